"""Start a new dialect: `python -m tests.scaffold dialect NAME`.

It writes `pipeline/logs/dialects/<name>.py` from a template, its lines in `pipeline/logs/registry.py` and
`schemas/vocab`, and `tests/golden/<name>/first_run` with a small log and the rows that it gives. All generic tests of
dialects then pass. Replace log and patterns by those of the real format, and write `expected.json` anew
(tests/golden/README.md).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from sweepscope.schemas.vocab import DECLARED_FRAMEWORK, FRAMEWORK
from tests.paths import ROOT

_MODULE = '''"""@NAME@.

Formats: <repository>/<file> <function>
(`[@NAME@] step 1/10 | loss 2.5000 | 0.500 s | 8192 tokens/s`), <file>
(`[@NAME@] layout: dp=2 tp=4 pp=1, micro batch 2, sequence 4096`).

Say from when a step counts, whose tokens are counted (of a GPU or of all), and what changed between versions.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialect import CombinedSetting, Dialect
from sweepscope.pipeline.logs.dialects import environment
from sweepscope.pipeline.logs.expressions import whole
from sweepscope.pipeline.logs.extractors import matched_settings, milestones
from sweepscope.pipeline.logs.facts import STEP_FACTS, conform
from sweepscope.pipeline.text.field_extraction import extract_each
from sweepscope.pipeline.text.quantities import NUMBER, number
from sweepscope.pipeline.text.timestamps import timestamp

_LOOKS_LIKE = r"^\\[@NAME@\\] step \\d+/\\d+ \\|"
_NUMBERS = {
    "loss": rf"\\| loss ({NUMBER}) \\|",
    "step_time_s": rf"\\| ({NUMBER}) s \\|",
    "tokens_per_s": rf"\\| ({NUMBER}) tokens/s\\s*$",
}
_COUNTERS = {"counter": r"\\] step (\\d+)/", "steps_planned": r"\\] step \\d+/(\\d+) "}


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """Step lines; one that does not reach its tokens is cut and stays unparsed."""
    rows = extract_each(lines.filter(pl.col("text").str.contains(_LOOKS_LIKE)), {**_NUMBERS, **_COUNTERS})
    rows = rows.with_columns(
        *(number(pl.col(name)) for name in _NUMBERS), *(pl.col(name).cast(pl.Int64, strict=False) for name in _COUNTERS)
    )
    step = pl.when(pl.col("tokens_per_s").is_not_null()).then("counter")
    return conform(rows.with_columns(step=step, ts=timestamp(pl.col("prefix"))), STEP_FACTS)


_LAYOUT = {
    "dp": r"\\] layout: .*\\bdp=(\\d+)",
    "tp": r"\\] layout: .*\\btp=(\\d+)",
    "pp": r"\\] layout: .*\\bpp=(\\d+)",
    "mbs": r"\\] layout: .*\\bmicro batch (\\d+)",
    "seq_len": r"\\] layout: .*\\bsequence (\\d+)",
}


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """Layout and batch, and what launchers print."""
    return pl.concat([matched_settings(lines, _LAYOUT.items()), environment.settings(lines)])


COMBINED = (CombinedSetting("num_gpus", whole("dp") * whole("tp") * whole("pp"), ("dp",), setting_source="derived"),)

DIALECT = Dialect(
    name="@NAME@",
    module=__name__,
    signature_literals=("[@NAME@] ",),
    literals_by_function={
        "steps": ("[@NAME@] step ",),
        "settings": ("[@NAME@] layout: ", *environment.LITERALS),
        "events": ("[@NAME@] training finished",),
    },
    steps=steps,
    settings=settings,
    events=milestones(training_end=r"^\\[@NAME@\\] training finished"),
    combined=COMBINED,
)
'''
_LOG = """\
[@NAME@] layout: dp=2 tp=4 pp=1, micro batch 2, sequence 4096
[@NAME@] step 1/3 | loss 2.5000 | 1.000 s | 16384 tokens/s
[@NAME@] step 2/3 | loss 2.2500 | 0.500 s | 32768 tokens/s
[@NAME@] step 3/3 | loss 2.0
[@NAME@] training finished
"""


def add_dialect(name: str, root: Path = ROOT) -> list[Path]:
    """The files that a new dialect adds or changes below `root`. Raises SystemExit for a name that cannot be used."""
    if not re.fullmatch(DECLARED_FRAMEWORK, name):
        raise SystemExit(f"{name!r} cannot be used: a small letter, then small letters, digits, dots, dashes")
    module = re.sub(r"[.-]", "_", name)
    written = root / "pipeline" / "logs" / "dialects" / f"{module}.py"
    if name in FRAMEWORK or written.exists():
        raise SystemExit(f"there is a dialect or framework called {name!r}")
    registry, vocabulary = root / "pipeline" / "logs" / "registry.py", root / "schemas" / "vocab" / "__init__.py"
    log = root / "tests" / "golden" / name / "first_run" / "train.log"
    log.parent.mkdir(parents=True)
    written.write_text(_MODULE.replace("@NAME@", name), encoding="utf-8")
    log.write_text(_LOG.replace("@NAME@", name), encoding="utf-8")
    # A bare progress bar is read by nobody else, so it stays behind all others.
    _insert(registry, f"    {module}.DIALECT,\n", before="    bare_progress_bar.DIALECT,\n")
    _insert(registry, f"    {module},\n", before=_next_import(registry.read_text(encoding="utf-8"), module))
    _insert(vocabulary, f'    "{name}": "{name}",\n', before='    "other": "a framework without')
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "tests/pipeline/logs/test_golden.py",
            "-k",
            name,
        ],
        cwd=root,
        env={**os.environ, "UPDATE_GOLDEN": "1", "PYTHONPATH": str(root)},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return [written, registry, vocabulary, log, log.with_name("expected.json")]


def _next_import(registry: str, module: str) -> str:
    """The line of the list of imported modules before which a module belongs."""
    listed = registry.split("dialects import (\n", 1)[1].split(")\n", 1)[0].splitlines(keepends=True)
    return next((line for line in listed if line.strip(" ,\n") > module), ")\nfrom sweepscope.pipeline.logs.dialects.")


def _insert(file: Path, text: str, *, before: str) -> None:
    head, found, tail = file.read_text(encoding="utf-8").partition(before)
    if not found:
        raise SystemExit(f"{file} holds no line {before.strip()!r}: add {text.strip()!r} there by hand")
    file.write_text(f"{head}{text}{found}{tail}", encoding="utf-8")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["dialect", name]:
            sys.stdout.writelines(f"{path.relative_to(ROOT)}\n" for path in add_dialect(name))
        case _:
            raise SystemExit("usage: python -m tests.scaffold dialect NAME")
