"""What follows from the values in a row of a table of runs: the kind of its batch, and tokens per second. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from math import isclose, prod
from typing import Any

_AGREE = 0.05


def with_batch(row: dict[str, Any]) -> dict[str, Any]:
    """The row with its batch of unknown kind as one process's or the whole job's.

    Another batch beside it decides, else the tokens that a step took; else the accumulation beside it, which a batch of
    the whole job has in it.
    """
    batch = row.pop("batch", None)
    if batch is None or {"gbs", "mbs"} <= row.keys():
        return row
    if "mbs" in row:
        return {**row, "gbs": batch} if batch % row["mbs"] == 0 else row
    if "gbs" in row:
        return {**row, "mbs": batch} if row["gbs"] % batch == 0 else row
    kind = _kind_of_batch(row, batch) or ("mbs" if "gas" in row else None)
    return {**row, kind: batch} if kind else row


def _kind_of_batch(row: Mapping[str, Any], batch: int) -> str | None:
    """`gbs` or `mbs`, by the tokens of a step; None where these are unknown or are those of neither."""
    replicas, rate = row.get("dp") or _replicas(row), row.get("tokens_per_s")
    if rate is None and row.get("tokens_per_s_per_gpu") and row.get("num_gpus"):
        rate = row["tokens_per_s_per_gpu"] * row["num_gpus"]
    if not (rate and replicas and row.get("step_time_s") and row.get("seq_len")):
        return None
    sequences = rate * row["step_time_s"] / row["seq_len"]
    sizes = {"gbs": batch, "mbs": batch * replicas * row.get("gas", 1)}
    fitting = [kind for kind, size in sizes.items() if isclose(sequences, size, rel_tol=_AGREE)]
    return fitting[0] if len({sizes[kind] for kind in fitting}) == 1 else None


def _replicas(row: Mapping[str, Any]) -> int | None:
    ways = prod(row.get(name, 1) for name in ("tp", "pp", "cp"))
    return row["num_gpus"] // ways if "num_gpus" in row and row["num_gpus"] % ways == 0 else None


def with_rates(row: dict[str, Any]) -> dict[str, Any]:
    """The row with samples/s as tokens/s."""
    samples = row.pop("samples_per_s", None)
    if samples and "tokens_per_s" not in row and row.get("seq_len"):
        row["tokens_per_s"] = samples * row["seq_len"]
    return row
