"""Every value of a configuration file under its own name: JSON, YAML, TOML, or options as a command line has them."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping

import yaml

from sweepscope.pipeline.logs.evidence.argument_values import (
    command_values,
    node_values,
    option_values,
    words_of,
)
from sweepscope.pipeline.logs.sidecars.hparams import plain

_RESULTS = ("trainer_state.json", "train_results.json", "all_results.json", "eval_results.json")
"""Files with settings that hold what became of a run, too: these are no arguments."""
_OPTIONS = (".sh", ".txt", ".args", ".log", ".cmd")


def document_values(path: str, text: str) -> list[tuple[str, str]]:
    """Dotted names and values of the configuration at `path`; none of a file of another kind, or a damaged one."""
    name = path.rsplit("/", 1)[-1].lower()
    if name in _RESULTS:
        return []
    try:
        return list(_values(name, text))
    except (ValueError, RecursionError, yaml.YAMLError):
        return []  # the reader of its settings has accepted it, or has said why not


def _values(name: str, text: str) -> Iterator[tuple[str, str]]:
    if name.endswith(".json"):
        yield from _leaves(json.loads(text))
    elif name.endswith((".yaml", ".yml")):
        yield from _leaves(plain(text))
    elif name.endswith(".toml"):
        yield from _leaves(tomllib.loads(text))
    elif name.endswith(_OPTIONS):
        joined = text.replace("\\\n", " ")
        yield from (
            command_values(joined) if ".py" in joined else option_values(words_of(re.sub(r"(?m)^\s*#.*$", "", joined)))
        )


def _leaves(node: object) -> Iterator[tuple[str, str]]:
    if isinstance(node, Mapping):
        yield from node_values(node)
