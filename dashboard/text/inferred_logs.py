"""The sentences about logs that no dialect knows: what was found in them, what they lack, and how to correct it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sweepscope.dashboard.format.numbers import capital, count, number
from sweepscope.dashboard.queries.query import Row

FACTS = {
    "speed": "step time or tokens/s",
    "batch": "global batch",
    "seq_len": "sequence length",
    "num_gpus": "number of GPUs",
    "model": "model",
}
"""Names of `queries.health.WANTED_FACTS`."""

_COLUMNS = {
    "step_time": "step time",
    "tokens_per_s": "tokens/s",
    "tokens_per_s_per_gpu": "tokens/s per GPU",
    "mem_allocated": "allocated memory",
    "mem_reserved": "reserved memory",
    "tflops_per_gpu": "TFLOP/s per GPU",
    "mfu": "MFU",
}


def column_name(name: str) -> str:
    """A column of a dialect file in words.

    >>> column_name("step_time"), column_name("grad_norm")
    ('step time', 'grad norm')
    """
    return _COLUMNS.get(name, name.replace("_", " "))


def answer(logs: Sequence[Row]) -> str:
    """How many logs were read by inference, what was found in them, and what keeps their runs out of rankings."""
    total = len(logs)
    found = Counter(column_name(name) for log in logs for name in dict.fromkeys(log["found"] or ()))
    verb = "was" if total == 1 else "were"
    lead = f"**{count(total, 'log')} in no known format {verb} read by inference.**"
    parts = [_share(name, hits, total) for name, hits in found.most_common()]
    lacking = [(name, sum(bool(log[f"no_{fact}"]) for log in logs)) for fact, name in FACTS.items()]
    missing = [_share(name, hits, total) for name, hits in sorted(lacking, key=lambda pair: -pair[1]) if hits]
    sentences = [lead]
    if parts:
        sentences.append(f"Found: {', '.join(parts)}.")
    if missing:
        sentences.append(f"Not found, so that these runs are compared less: {', '.join(missing)}.")
    return " ".join(sentences)


def _share(name: str, hits: int, total: int) -> str:
    """A fact, and in how many logs unless in all."""
    return name if hits == total else f"{name} ({number(hits)} of {number(total)})"


def named(columns: Sequence[str] | None) -> str | None:
    """Columns in words; None for none.

    >>> named(["loss", "step_time"])
    'loss, step time'
    """
    return ", ".join(map(column_name, columns)) if columns else None


def missing(log: Row) -> str:
    """Facts that the runs of one log lack, in words; empty when there are none."""
    return capital(", ".join(name for fact, name in FACTS.items() if log[f"no_{fact}"]))


def remedy(source_path: str) -> str:
    """How to correct what was read, in two commands."""
    return (
        "**Is a column wrong or missing?** Write the format down as a dialect file, correct it, and keep it: "
        f"**sweepscope dialect infer {_quoted(source_path)} > mine.toml**, "
        "then **sweepscope ingest --dialect mine.toml PATH**. "
        "All logs with its signature are then read by it, in every later ingest."
    )


def _quoted(path: str) -> str:
    return path if path.replace("/", "").replace(".", "").replace("_", "").replace("-", "").isalnum() else f"'{path}'"
