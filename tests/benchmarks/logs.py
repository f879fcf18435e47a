"""How fast logs are parsed, on one core, beside `grep -c` over the same bytes and a script of the usual kind.

Every measurement runs in a process of its own with one polars thread, so that its memory is its own. Seconds are of the
processor, not of the clock: on a machine that does other things, too, they say what the work costs.

`python -m tests.benchmarks.logs PATH` measures one path and prints JSON; `make bench` prints the tables.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import polars as pl

from sweepscope.pipeline.ingest import plan
from sweepscope.pipeline.ingest.batch import parse_batch
from tests.paths import CORPUS

MIXTURE_MB = 1_000
DIALECT_MB = 64
SWEEP_STEPS = (20, 200, 2_000)
LOG_SUFFIXES = {".log", ".out", ".txt", ".err"}

# What a step line of each format holds, for grep.
STEP_WORDS = {
    "axolotl": "'loss'",
    "composer": "Train loss",
    "deepspeed": "step=",
    "gpt-neox": "samples/sec",
    "hf-trainer": "'loss'",
    "litgpt": "iter time",
    "maxtext": "completed step",
    "megatron": "iteration ",
    "megatron-deepspeed": "iteration ",
    "mlperf": ":::MLLOG",
    "nanogpt": "loss",
    "nanotron": "iteration: ",
    "nemo": "iteration ",
    "picotron": "Step: ",
    "torchtitan": "step: ",
}


def corpus() -> Path | None:
    """The folder of real logs, by format, where there is one."""
    logs = CORPUS / "logs"
    return logs if (logs / "manifest.csv").is_file() else None


def logs_by_format(root: Path) -> dict[str, bytes]:
    """All logs below each directory of `root`, one behind the other."""
    found = {}
    for directory in sorted(path for path in root.iterdir() if path.is_dir() and path.name in STEP_WORDS):
        files = sorted(path for path in directory.rglob("*") if path.suffix in LOG_SUFFIXES)
        parts = (path.read_bytes() for path in files)
        found[directory.name] = b"".join(part if part.endswith(b"\n") else part + b"\n" for part in parts)
    return {name: data for name, data in found.items() if data}


def grown(data: bytes, size: int, target: Path) -> Path:
    """A log of about `size` bytes that repeats `data`."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as stream:
        for _ in range(max(1, size // len(data))):
            stream.write(data)
    return target


def measured(path: Path) -> dict[str, float]:
    """What a fresh process says of reading `path`."""
    command = [sys.executable, "-m", "tests.benchmarks.logs", str(path)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=os.environ | {"POLARS_MAX_THREADS": "1"}
    )
    return dict(json.loads(done.stdout))


def cpu_seconds(*command: str) -> float:
    """User and system time of a command, the best of three."""
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return max(min(times), 1e-3)


def mixed(logs: dict[str, bytes], target: Path) -> Path:
    """A mixture of MIXTURE_MB in which each format has its share of the logs: a file each."""
    whole = sum(map(len, logs.values()))
    for name, data in logs.items():
        grown(data, MIXTURE_MB * 1_000_000 * len(data) // whole, target / name / "run.log")
    return target


def without_nccl(data: bytes) -> bytes:
    """A log without NCCL's own lines: of the mixture of real logs they are more than a quarter."""
    return b"".join(line for line in data.splitlines(keepends=True) if b" NCCL " not in line)


def rates(sweep: Path, scratch: Path) -> pl.DataFrame:
    """MB/s per format and of mixtures in which each has its share of the real logs, or else of the simulated ones."""
    logs = logs_by_format(corpus() or sweep)
    rows = []
    for name, data in logs.items():
        one = grown(data, DIALECT_MB * 1_000_000, scratch / "one" / name / "run.log")
        rows.append((name, _row(one, STEP_WORDS[name])))
    rows.append(("mixture", _row(mixed(logs, scratch / "mixture"), "loss")))
    bare = {name: without_nccl(data) for name, data in logs.items()}
    rows.append(("mixture without NCCL's lines", _row(mixed(bare, scratch / "bare"), "loss")))
    return pl.DataFrame(
        [(name, *figures) for name, figures in rows],
        schema=["format", "MB", "ours MB/s", "grep -c MB/s", "ratio", "peak RSS MB", "bytes per step"],
        orient="row",
    )


def _row(path: Path, word: str) -> tuple[object, ...]:
    ours = measured(path)
    size = ours["bytes"] / 1e6
    grep = cpu_seconds("grep", "-rc", word, str(path))
    per_step = round(ours["bytes"] / ours["steps"]) if ours["steps"] else None
    return (
        round(size),
        round(size / ours["cpu_s"]),
        round(size / grep),
        f"1 : {ours['cpu_s'] / grep:.1f}",
        round(ours["peak_rss_mb"]),
        per_step,
    )


def read(path: str) -> dict[str, float]:
    """Read every log at `path` into facts, and say what that took."""
    from sweepscope.pipeline.ingest import plan
    from sweepscope.pipeline.ingest.read_batch import read_batch

    found = plan.find([path])
    begin = time.process_time()
    batch = read_batch(found)
    return {
        "cpu_s": time.process_time() - begin,
        "bytes": float(found["bytes"].sum()),
        "steps": float(batch.facts.steps.height),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


# ---- The script that everybody has: every pattern on every line.

_FIELDS = {
    "step": re.compile(r"Step:\s*(\d+)"),
    "loss": re.compile(r"Loss:\s*([\d.]+|nan|inf)"),
    "tokens_per_s": re.compile(r"Tokens/s:\s*([\d.]+[KMBT]?)"),
    "tokens_per_s_per_gpu": re.compile(r"Tokens/s/GPU:\s*([\d.]+[KMBT]?)"),
    "tokens": re.compile(r"Tokens:\s*([\d.]+[KMBT]?)"),
    "mfu": re.compile(r"MFU:\s*([\d.]+)%"),
    "memory_gb": re.compile(r"Memory usage:\s*([\d.]+)GB"),
    "params": re.compile(r"Number of parameters:\s*([\d.]+[KMBT]?)"),
}
_SIGNS = {
    "oom": re.compile(r"OutOfMemoryError|CUDA out of memory"),
    "hang": re.compile(r"Watchdog caught collective operation timeout"),
    "nccl_error": re.compile(r"NCCL error|ncclSystemError|ncclInternalError"),
    "timeout": re.compile(r"DUE TO TIME LIMIT"),
    "crash": re.compile(r"Traceback \(most recent call last\)|ChildFailedError|RuntimeError"),
}
_SUFFIX = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}


def script(sweep: str) -> dict[str, float]:
    """One row per run directory: configuration, last status and mean of each field, with regular expressions."""
    begin = time.process_time()
    rows = []
    for config in sorted(Path(sweep).rglob("config.json")):
        row = dict(json.loads(config.read_text(encoding="utf-8"))["distributed"])
        for log in config.parent.glob("*.out"):
            values: dict[str, list[float]] = {name: [] for name in _FIELDS}
            for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
                for name, field in _FIELDS.items():
                    if hit := field.search(line):
                        text = hit[1]
                        values[name].append(float(text.rstrip("KMBT")) * _SUFFIX.get(text[-1], 1.0))
                for name, sign in _SIGNS.items():
                    if sign.search(line):
                        row["status"] = name
            row |= {name: sum(found) / len(found) for name, found in values.items() if found}
        rows.append(row)
    pl.DataFrame(rows, infer_schema_length=None)
    return {"cpu_s": time.process_time() - begin, "runs": float(len(rows))}


def parsed(sweep: str) -> dict[str, float]:
    """The same directories to rows of every table: outcome, evidence, steps, settings, metrics."""

    begin = time.process_time()
    tables = parse_batch(plan.find([sweep]), now=plan.utc_now())
    return {"cpu_s": time.process_time() - begin, "runs": float(tables["runs"].height)}


_STEP = re.compile(rb"(Step:\s*)(\d+)")


def stretched(log: bytes, steps: int) -> bytes:
    """A picotron log with so many step lines, which repeat its own and count on; one without any stays as it is."""
    lines = log.splitlines(keepends=True)
    places = [place for place, line in enumerate(lines) if _STEP.search(line)]
    if not places:
        return log
    own = itertools.cycle(lines[place] for place in places)
    more = [_STEP.sub(rb"\g<1>%d" % step, next(own)) for step in range(1, steps + 1)]
    behind = [line for place, line in enumerate(lines) if place > places[0] and place not in set(places)]
    return b"".join([*lines[: places[0]], *more, *behind])


def beside_a_script(scratch: Path) -> pl.DataFrame:
    """Picotron sweeps of 500 run directories: our parse and the script's, each in a process of its own."""
    from sweepscope.pipeline.simulate.sweep import write_sweep

    sweep = write_sweep(scratch / "picotron", runs=500, seed=2, frameworks=("picotron",))
    logs = {path: path.read_bytes() for path in sweep.rglob("*.out")}
    rows = []
    for steps in SWEEP_STEPS:
        for path, log in logs.items():
            path.write_bytes(stretched(log, steps))
        size = sum(path.stat().st_size for path in sweep.rglob("*") if path.is_file()) / 1e6
        ours, usual = (_seconds(verb, sweep) for verb in ("--parse", "--script"))
        ratio = round(usual / ours, 2)
        rows.append((steps, round(size), ours, round(size / ours), usual, round(size / usual), ratio))
    return pl.DataFrame(
        rows,
        schema=["steps per run", "MB", "ours CPU s", "ours MB/s", "script CPU s", "script MB/s", "times the script"],
        orient="row",
    )


def _seconds(verb: str, sweep: Path) -> float:
    """Processor time of one reader of the sweep, the best of three processes."""
    command = [sys.executable, "-m", "tests.benchmarks.logs", verb, str(sweep)]
    environment = os.environ | {"POLARS_MAX_THREADS": "1"}
    return min(float(json.loads(subprocess.check_output(command, env=environment))["cpu_s"]) for _ in range(3))


if __name__ == "__main__":
    verb, place = sys.argv[1:] if len(sys.argv) > 2 else ("--read", sys.argv[1])
    sys.stdout.write(json.dumps({"--read": read, "--parse": parsed, "--script": script}[verb](place)))
