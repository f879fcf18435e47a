"""The sentences on what logs do not say, and what is stated instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sweepscope.dashboard.format.numbers import count
from sweepscope.dashboard.queries.query import Row

LABELS: Mapping[str, str] = {
    "accelerator": "Accelerator",
    "model": "Model",
    "num_gpus": "GPUs per run",
    "seq_len": "Sequence length, tokens",
    "gbs": "Global batch, sequences",
    "cluster": "Cluster",
}
"""Columns that the editor asks for, with the labels of their fields."""

WHY: Mapping[str, str] = {
    "accelerator": "no MFU without it",
    "model": "no MFU and no ranking without it",
    "num_gpus": "no ranking without it",
    "seq_len": "no ranking without it",
    "gbs": "no ranking without it",
    "cluster": "keeps runs of unlike clusters apart",
}
_NOUNS = {
    "accelerator": "an accelerator",
    "model": "a model",
    "num_gpus": "a GPU count",
    "seq_len": "a sequence length",
    "gbs": "a batch",
}
NOTHING_CHOSEN = "Nothing is chosen yet: fill at least one field, then save."


def lacking(row: Row) -> str:
    """What runs lack, by their number.

    >>> lacking({"runs": 49, "no_accelerator": 49, "no_model": 1, "no_gbs": 0})
    '49 runs without an accelerator, 1 run without a model'
    """
    parts = [(row.get(f"no_{name}", 0), noun) for name, noun in _NOUNS.items()]
    return ", ".join(f"{count(number, 'run')} without {noun}" for number, noun in parts if number)


def summary(rows: Sequence[Row]) -> str:
    """The heading's qualifier: what the runs of all folders lack."""
    total = {f"no_{name}": sum(row[f"no_{name}"] for row in rows) for name in _NOUNS}
    return lacking(total) or "nothing that rankings need"


def instructions(folder: str) -> str:
    """What a statement does."""
    return (
        f"Choose what holds for the runs in **{folder}**; leave the rest empty. It fills gaps only: what a log or its "
        "configuration says counts more."
    )


def kept(path: str, command: str) -> str:
    """Where statements were saved, and when they count."""
    return (
        f"**Saved** in {path}. These runs are read again at the next ingest, which a watching sweepscope starts by "
        f"itself; otherwise run **{command}**."
    )


def by_command(folder: str, options: str, home: str) -> str:
    """How to state something that this page may not write."""
    return (
        "These pages are open to others, or the home cannot be written to, so that nothing is saved from here. State "
        f"it with **sweepscope ingest {folder} {options}{home}**, or in a sweepscope.toml in that folder."
    )


def statement(folder: str, match: str, values: Mapping[str, str]) -> tuple[str, str]:
    """Of which runs something is stated, and what.

    >>> statement("/sweep", "tp8_*", {"cluster": "alps"})
    ('/sweep/tp8_*', 'cluster alps')
    """
    stated = ", ".join(f"{name} {value}" for name, value in values.items())
    return (f"{folder}/{match}" if match else folder), stated


def applied(rows: Sequence[Row]) -> str:
    """How many runs of this store have what is stated; "" where none do."""
    parts = []
    for row in rows:
        ignored = row["runs"] - row["runs_used"]
        unused = f" ({ignored} more say otherwise themselves)" if ignored else ""
        parts.append(f"{row['name']} {row['value']} of {count(row['runs_used'], 'run')}{unused}")
    return f"In this store: {'; '.join(parts)}." if parts else ""
