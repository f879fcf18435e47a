"""Sidecars: torchtitan's configuration, a TOML to 0.2 and options of the command line from 0.3 on.

Formats: torchtitan/config/job_config.py of 0.2; config/manager.py of 0.3 (`--module` and `--config` name a function
that makes a configuration, `--section.field=value` changes it, `section:kind` chooses one of several classes; tyro
takes hyphens for underscores and a value as a word of its own). What options do not name is set by that function, so
that nothing is taken for a default.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from itertools import pairwise

from sweepscope.pipeline.logs.sidecars import run_files
from sweepscope.pipeline.logs.sidecars.column_names import TORCHTITAN

_RECOMPUTE = re.compile(r"activation[-_]checkpoint:(none|selective|full)")


def read_options(text: str) -> Mapping[str, str]:
    """Columns of `runs` from the options of 0.3. Raises ValueError for a text without torchtitan's."""
    try:
        words = shlex.split(text, comments=True)
    except ValueError as error:
        raise ValueError(f"no words of a command line: {error}") from error
    given: dict[str, str] = {}
    for word, following in pairwise([*words, ""]):
        name, separator, value = word.removeprefix("--").partition("=")
        if word.startswith("--"):
            given[name.replace("-", "_")] = value if separator else following
    found = {column: given[name] for name, column in TORCHTITAN.items() if given.get(name, "-1") != "-1"}
    if not found:
        raise ValueError("it holds no option of torchtitan, such as --parallelism.tensor_parallel_degree=2")
    if hit := next(filter(None, map(_RECOMPUTE.fullmatch, words)), None):
        found["recompute"] = hit[1]
    return found | _model(given.get("module", ""), given.get("config", ""))


def _model(module: str, config: str) -> dict[str, str]:
    """Model and flavor of `--module=llama3 --config=llama3_8b`, as the registry of models spells a size."""
    flavor = config.removeprefix(f"{module}_")
    if not module or flavor == config:
        return {}
    return {"arg:model": module, "arg:flavor": flavor.upper() if flavor[:1].isdigit() else flavor}


SIDECARS = (*run_files.TORCHTITAN, *run_files.beside(read_options, "torchtitan_options*.txt"))
