"""Sentences on one run beside its estimate: its name, its hover and what became of its MFU."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sweepscope.dashboard.format.columns import column_label
from sweepscope.dashboard.format.devices import devices
from sweepscope.dashboard.format.numbers import (
    MISSING,
    NBSP,
    count,
    gib,
    in_sentence,
    percent,
    plain,
    points,
    seconds,
)
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.view_models.estimator import (
    RECOUNTED,
    UNEXPLAINED,
    Hover,
    Loss,
    at_peak,
    times,
)
from sweepscope.schemas.registry import COLUMNS


def hover(row: Row) -> Hover:
    """Subject, layout, then measured beside estimated, without the words and units that all points share."""
    memory = "peak memory not logged"
    if row["mem_peak_allocated_bytes"] is not None:
        memory = f"peak {gib(row['mem_peak_allocated_bytes'])}, estimated {gib(row['est_mem_bytes'])}"
    return Hover(
        name=plain(name(row)),
        layout=plain(row["layout"] or row["pattern"]),
        step_s=_bare(seconds(row["step_time_s"])),
        est_step_s=_bare(seconds(row["est_step_time_s"])),
        times=_bare(times(row["time_ratio"])),
        mfu_percent=MISSING if row["mfu"] is None else _bare(percent(row["mfu"])),
        est_mfu_percent=_bare(percent(row["est_mfu"])),
        memory=memory.replace(NBSP, " "),
    )


def _bare(text: str) -> str:
    """A figure without its unit."""
    return text.split(NBSP, maxsplit=1)[0]


def name(row: Row) -> str:
    """A run by model and size.

    >>> name({"model": "Llama 8B", "num_nodes": 2, "num_gpus": 16})
    'Llama 8B on 2 nodes'
    >>> name({"model": None, "num_nodes": None, "num_gpus": 8})
    'unnamed model on 8 GPUs'
    """
    where = count(row["num_nodes"], "node") if row["num_nodes"] else devices(row["num_gpus"], row.get("accelerator"))
    return f"{row['model'] or 'unnamed model'} on {where}"


def setup(row: Row) -> str:
    """In what else it differs from other runs of the model: its layout, and where it ran."""
    return " · ".join(part for part in (row["layout"] or row["pattern"], row.get("accelerator")) if part)


def option(row: Row, role: str) -> str:
    """A run in the selector, after what it is an example of."""
    return f"{role}: {name(row)} · {row['layout'] or row['pattern']}"


def waterfall_alt(row: Row, losses: Sequence[Loss]) -> str:
    """What the waterfall shows."""
    largest = sorted(losses, key=lambda loss: -loss.share)[:2]
    listed = " and ".join(f"{loss.name.lower()} {points(-loss.share)}" for loss in largest)
    end = f"what is left, {percent(at_peak(row))}" if row["mfu"] is None else f"the MFU of {percent(row['mfu'])}"
    return f"From peak to {end}: most is lost to {listed} points."


def left_name(row: Row) -> str:
    """Name of the last bar: without an MFU it is what the estimate's FLOPs would take at peak."""
    return "Estimate's FLOPs at peak" if row["mfu"] is None else "Measured MFU"


def unexplained(losses: Sequence[Loss]) -> str:
    """What the hatched bar means for this run."""
    share = next(loss.share for loss in losses if loss.name == UNEXPLAINED)
    if share < 0:
        return (
            f"The run is faster than its estimate: {percent(-share, 0)} of the step is a gain that it does not explain."
        )
    return f"Unexplained, {percent(share, 0)} of the step, is time beyond what the estimate accounts for."


def recount(row: Row, losses: Sequence[Loss]) -> str:
    """What the bar RECOUNTED means, or why the run has no MFU; empty where its MFU counts as the estimate does."""
    if row["mfu"] is None:
        return f" The run has no MFU: {str(row['mfu_basis'] or 'unknown').removeprefix('not computed: ')}."
    if losses[-1].name != RECOUNTED:
        return ""
    formula = str(row["mfu_basis"] or "other FLOPs").partition(";")[0]
    return (
        f" MFU is by {formula} here as on every page; the estimate counts other FLOPs: {RECOUNTED} is the difference."
    )


def assumed(assumptions: str | None) -> str:
    """What the estimate assumed, columns by the names that tables have for them.

    >>> assumed("num_layers, num_kv_heads of Llama 3 8B; no recomputation")
    ' Assumed: layers, KV heads of Llama 3 8B; no recomputation.'
    """
    if not assumptions:
        return ""
    names = re.compile(r"\b(?:" + "|".join(sorted(COLUMNS, key=len, reverse=True)) + r")\b")

    def label(match: re.Match[str]) -> str:
        return in_sentence(column_label(match[0])) if "_" in match[0] else match[0]

    return f" Assumed: {names.sub(label, assumptions)}."
