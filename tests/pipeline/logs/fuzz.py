"""A mutation fuzzer for whole logs, guided by what they turn out to be.

Seeds are the golden logs of every format, and the files that stand beside logs. A mutant is kept as a seed when the
tables it yields are of a kind not seen before (dialect, status, kinds of events, whether lines were rejected): that
takes the place of branch coverage, which a coverage-guided fuzzer such as atheris could not see here: the branches are
inside polars' expressions. Many mutants are read as one batch, which is also how they meet in practice.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from sweepscope.pipeline.derive.complete import complete_runs
from tests.pipeline.ingest_in_memory import Tables, tables_of

BATCH = 12
MAX_BYTES = 20_000
BATCH_CPU_S = 30.0

_TOKENS = (
    # bytes that end, hide or decorate lines
    b"\0",
    b"\x1b[31m",
    b"\x1b",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"\xff\xfe",
    b"\xe2\x82",
    b"\xef\xbb\xbf",
    # numbers
    b"9" * 400,
    b"-",
    b"nan",
    b"-inf",
    b"1e309",
    b"1e-400",
    b"99999999999999999999",
    b"-1",
    b"0",
    # structure
    b",",
    b"{",
    b"}" * 50,
    b"[" * 3000,
    b"(",
    b"'",
    b'"',
    b"|",
    b" | ",
    b": ",
    b"=",
    b"x" * 20_000,
    "█".encode() * 30,
    # prefixes
    b"[rank0]:",
    b"[default1]:",
    b"16: ",
    b"[1,14]<stderr>:",
    b"9999-99-99 99:99:99",
    b"0001-01-01 00:00:00",
    # evidence and symptoms
    b"Traceback (most recent call last):\n",
    b"[after training is done] datetime: 1970-01-01 00:00:00\n",
    b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
    b"Process 1 has 99999999999999.00 GiB memory in use.",
    b"number of nan iterations:   1",
    b"MnRtt/Rnk: 0.00ms/8 | MxRtt/Rnk: 1.0ms/99999999999999999999",
    b"  Rank=99999999999999999999 Node=n Score=0.00\n",
    b"slurmstepd: error: *** JOB 1 ON n CANCELLED AT 9999-12-31T23:59:59 DUE TO TIME LIMIT ***\n",
    b"Watchdog caught collective operation timeout: ran for 9" + b"9" * 30 + b" milliseconds\n",
)
BESIDE = {
    "config.json": json.dumps(
        {
            "distributed": {"tp_size": 2, "cp_size": 1, "pp_size": 1, "dp_size": 4, "use_cpu": False},
            "model": {"name": "tests/tiny", "num_hidden_layers": 4, "num_attention_heads": 8, "dtype": "bfloat16"},
            "training": {"total_train_steps": 6, "seq_length": 128, "micro_batch_size": 2, "seed": 42},
        },
        indent=1,
    ).encode(),
    "status.txt": b"completed",
    "bench.csv": b"job_id,name,nodes,seq_len,mbs,batch_accum,gbs,mTFLOPs,hTFLOPs,tok/s/gpu,Mem Alloc (GB),"
    b"Mem Res (GB),dp,pp,tp\n"
    b"1,a,2,4096,1,8,128,400.5,400.5,9000,40.5,44.25,16,1,1\n2,b,2,4096,1,8,128,-1,-1,-1,-1,-1,8,2,1\n",
    "sacct.txt": b"JobID|JobName|State|ExitCode|Submit|Start|End|Elapsed|NNodes|NodeList|AllocTRES|MaxRSS\n"
    b"1001|a|TIMEOUT|0:0|2025-02-03T04:00:00|2025-02-03T04:01:00|2025-02-03T06:01:00|02:00:00|2|n[1-2]|gres/gpu=16|\n",
    "train.err": b"slurmstepd: error: *** JOB 1001 ON n1 CANCELLED AT 2025-02-03T06:01:00 DUE TO TIME LIMIT ***\n",
}
"""Files beside a log, of which every directory of a batch gets one in five, most of them mutated."""

_NUMBER = re.compile(rb"\d+(?:\.\d+)?")

Kind = tuple[object, ...]


@dataclass
class Found:
    """What a run of the fuzzer did: mutants read, kinds of tables met, and the size of its pool of seeds."""

    mutants: int = 0
    batches: int = 0
    kinds: set[Kind] = field(default_factory=set)
    pool: list[bytes] = field(default_factory=list)
    slowest_cpu_s: float = 0.0


class FuzzError(AssertionError):
    """A batch that broke a rule; the files are in the folder that it names."""


def seeds(folder: Path) -> list[bytes]:
    """The golden logs below `folder`."""
    return [
        path.read_bytes()[:MAX_BYTES] for path in sorted(folder.glob("*/*/*")) if path.suffix not in (".json", ".csv")
    ]


def fuzz(pool: list[bytes], rng: np.random.Generator, *, keep: Path, batches: int = 0, seconds: float = 0.0) -> Found:
    """Mutate until `batches` are read and `seconds` have passed: a count alone repeats itself on any machine.

    Raises FuzzError with the first batch that breaks a rule, kept in `keep`.
    """
    found = Found(pool=list(pool))
    until = time.monotonic() + seconds
    while found.batches < batches or time.monotonic() < until:
        mutants = {f"{place:02d}/train.log": mutant(found.pool, rng) for place in range(BATCH)}
        beside = {
            f"{place:02d}/{name}": mutant([seed, *found.pool[:1]], rng) if rng.random() < 0.8 else seed
            for place in range(BATCH)
            for name, seed in BESIDE.items()
            if rng.random() < 0.2
        }
        mutants |= beside
        begin = time.process_time()
        try:
            tables = tables_of(mutants)
            check(tables, mutants)
            complete_runs(tables["runs"])
        except Exception as error:
            for name, data in mutants.items():
                (keep / name.replace("/", "_")).write_bytes(data)
            raise FuzzError(f"{type(error).__name__}: {error}; the batch is in {keep}") from error
        spent_s = time.process_time() - begin
        if spent_s > BATCH_CPU_S:
            raise FuzzError(f"a batch of {sum(map(len, mutants.values())):,} bytes took {spent_s:.1f} s")
        found.mutants += BATCH
        found.batches += 1
        found.slowest_cpu_s = max(found.slowest_cpu_s, spent_s)
        for name, kind in kinds(tables, mutants):
            if kind not in found.kinds and name not in beside:
                found.kinds.add(kind)
                found.pool.append(mutants[name])
    return found


def mutant(pool: list[bytes], rng: np.random.Generator) -> bytes:
    """One of the pool with one to eight changes."""
    data = pool[rng.integers(len(pool))]
    for _ in range(rng.integers(1, 9)):
        data = _CHANGES[rng.integers(len(_CHANGES))](data, pool, rng)[:MAX_BYTES]
    return data


def _at(data: bytes, rng: np.random.Generator) -> int:
    return int(rng.integers(len(data) + 1))


def _cut(data: bytes, _pool: list[bytes], rng: np.random.Generator) -> bytes:
    return data[: _at(data, rng)]


def _flip(data: bytes, _pool: list[bytes], rng: np.random.Generator) -> bytes:
    changed = bytearray(data)
    for place in rng.integers(0, max(len(data), 1), size=4) if data else ():
        changed[place] = rng.integers(256)
    return bytes(changed)


def _insert(data: bytes, _pool: list[bytes], rng: np.random.Generator) -> bytes:
    place = _at(data, rng)
    return data[:place] + _TOKENS[rng.integers(len(_TOKENS))] + data[place:]


def _number(data: bytes, _pool: list[bytes], rng: np.random.Generator) -> bytes:
    """Another number in the place of one."""
    hits = list(_NUMBER.finditer(data))
    if not hits:
        return data
    hit = hits[rng.integers(len(hits))]
    others = (b"0", b"-1", b"nan", b"inf", b"1e309", b"9" * 25, b"0.0000001", b"1.2.3", b"", b"1,234,567")
    return data[: hit.start()] + others[rng.integers(len(others))] + data[hit.end() :]


def _lines(data: bytes, pool: list[bytes], rng: np.random.Generator) -> bytes:
    """A line doubled, dropped, moved, glued to the next, or taken from another log."""
    lines = data.split(b"\n")
    place, other = int(rng.integers(len(lines))), int(rng.integers(len(lines)))
    choice = rng.integers(5)
    if choice == 0:
        lines.insert(other, lines[place])
    elif choice == 1:
        del lines[place]
    elif choice == 2:
        lines[place], lines[other] = lines[other], lines[place]
    elif choice == 3 and place + 1 < len(lines):
        lines[place : place + 2] = [lines[place] + lines[place + 1]]
    else:
        foreign = pool[rng.integers(len(pool))].split(b"\n")
        lines.insert(place, foreign[rng.integers(len(foreign))])
    return b"\n".join(lines)


def _splice(data: bytes, pool: list[bytes], rng: np.random.Generator) -> bytes:
    other = pool[rng.integers(len(pool))]
    return data[: _at(data, rng)] + other[_at(other, rng) :]


def _repeat(data: bytes, _pool: list[bytes], rng: np.random.Generator) -> bytes:
    return data * int(rng.integers(2, 5))


_CHANGES = (_cut, _flip, _insert, _insert, _number, _number, _lines, _lines, _splice, _repeat)


def check(tables: Tables, files: Mapping[str, bytes]) -> None:
    """Laws that hold for any input. Raises AssertionError."""
    runs, steps = tables["runs"], tables["steps"]
    if not runs["run_id"].is_unique().all():
        raise AssertionError("two runs share an id")
    if steps.select(pl.struct("run_id", "step").is_duplicated().any()).item():
        raise AssertionError("a step stands twice")
    if not set(steps["run_id"]) <= set(runs["run_id"]):
        raise AssertionError("steps without a run")
    for name in ("runs", "steps", "events"):
        for path, line in tables[name].select("source_path", "line_no").drop_nulls().unique().iter_rows():
            if not 1 <= line <= files[path].count(b"\n") + 1:
                raise AssertionError(f"{name}: no line {line} in {path}")


def kinds(tables: Tables, files: Mapping[str, bytes]) -> Iterator[tuple[str, Kind]]:
    """What each file turned out to be."""
    of_file = {
        "status": tables["runs"].select("source_path", "framework", "status", "status_confidence"),
        "event": tables["events"].select("source_path", "kind"),
        "reject": tables["rejects"].select(pl.col("file").alias("source_path"), "table"),
    }
    for name in files:
        kind: list[object] = []
        for label, frame in of_file.items():
            mine = frame.filter(pl.col("source_path") == name).drop("source_path").unique()
            kind += [label, *sorted(map(str, mine.rows()))]
        yield name, tuple(kind)
