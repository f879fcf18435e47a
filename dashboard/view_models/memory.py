"""What the page on memory shows: the bars of a waterfall, peaks beside the card, and verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from sweepscope.dashboard.format.symbols import Mark
from sweepscope.dashboard.queries.query import Row

VERDICT: dict[str, Mark] = {
    "others": Mark("◇", "other processes filled the GPU", "infra"),
    "expandable_segments": Mark("▤", "would fit with expandable_segments", "completed"),
    "pools": Mark("▥", "free, in other pools or streams", "warning"),
    "recompute": Mark("↻", "needs recompute", "warning"),
    "micro_batch": Mark("▿", "needs a smaller micro-batch", "warning"),
    "sharding": Mark("▲", "needs sharding", "failed"),
    "fragmented": Mark("▤", "fits; fragmentation takes the rest", "soft"),
    "fits": Mark("✓", "fits, near the limit", "soft"),
    "unknown": Mark("?", "what would make it fit is not known", "mute"),
}
"""What a run needs, by symbol and word."""

_NAMES = {
    ("estimated", "weights"): "~ weights",
    ("estimated", "gradients"): "~ gradients",
    ("estimated", "optimizer"): "~ optimizer states",
    ("estimated", "activations"): "~ activations",
    ("estimated", "logits"): "~ logits and loss",
    ("estimated", "buffers"): "~ buffers, context",
    ("level", "estimate"): "~ Estimated",
    ("gap", "estimate_gap"): "Unexplained",
    ("gap", "never_allocated"): "Never allocated",
    ("level", "allocated"): "Allocated",
    ("measured", "weights"): "of it: weights",
    ("measured", "gradients"): "of it: gradients",
    ("measured", "optimizer"): "of it: optimizer states",
    ("measured", "activations"): "of it: activations",
    ("measured", "buffers"): "of it: NCCL, workspaces",
    ("measured", "unknown"): "of it: no rule knows",
    ("measured", "beyond_snapshot"): "of it: not in the snapshot",
    ("gap", "fragmentation"): "Reserved, not allocated",
    ("level", "reserved"): "Reserved",
    ("gap", "outside_allocator"): "Context, NCCL, libraries",
    ("level", "process"): "Process",
    ("gap", "other_processes"): "Other processes",
    ("level", "device"): "GPU in use",
    ("gap", "headroom"): "Headroom",
    ("level", "card"): "Card",
}


@dataclass(frozen=True)
class Bar:
    """A part of the waterfall: from `begin` over `size` bytes (negative: to the left)."""

    name: str
    kind: str
    part: str
    begin: float
    size: float

    @property
    def is_unexplained(self) -> bool:
        """Whether the use of these bytes is unknown."""
        return self.part in ("estimate_gap", "unknown", "beyond_snapshot")


def bars(parts: pl.DataFrame) -> list[Bar]:
    """Rows of `queries.memory.parts` that are known, in order; without `process` where it is alone on the GPU.

    A gap that holds the device's other processes as well is labelled so.
    """
    known = {(row["part_kind"], row["part"]): row for row in parts.iter_rows(named=True) if row["bytes"] is not None}
    others = known.get(("gap", "other_processes"))
    if others is not None and others["bytes"] == 0:
        del known["gap", "other_processes"], known["level", "process"]
    shown = []
    for key, row in known.items():
        name = _NAMES[key]
        if key == ("gap", "outside_allocator") and ("level", "process") not in known and others is None:
            name = "Outside the allocator"
        shown.append(Bar(name, *key, begin=row["begins_at_bytes"], size=row["bytes"]))
    return shown


def unknown_parts(parts: pl.DataFrame) -> list[str]:
    """Names of unknown levels, measured parts left out."""
    return [
        _NAMES[row["part_kind"], row["part"]].removeprefix("~ ")
        for row in parts.iter_rows(named=True)
        if row["bytes"] is None and row["part_kind"] == "level"
    ]


def sweeps(peaks: pl.DataFrame, snapshots: pl.DataFrame) -> dict[str, int]:
    """Number of runs by sweep, most first; a sweep with memory artefacts alone has none.

    `peaks` are rows of `queries.memory.peaks`, `snapshots` of `queries.memory.snapshots`.
    """
    counted = peaks.drop_nulls("sweep").group_by("sweep").len()
    runs = dict(counted.sort(["len", "sweep"], descending=[True, False]).iter_rows())
    return runs | dict.fromkeys(sorted(set(snapshots["sweep"].drop_nulls()) - runs.keys()), 0)


def verdicts(peaks: pl.DataFrame) -> list[tuple[str, int]]:
    """Verdicts of runs that ran out of memory with their number, most first."""
    failed = peaks.filter(pl.col("status") == "oom")
    counted = failed.group_by("mem_verdict").len().sort(["len", "mem_verdict"], descending=[True, False])
    return list(counted.iter_rows())


def run_names(rows: Sequence[Row]) -> list[str]:
    """A short name for each run: the layout, with the model and the nodes where they differ between the rows.

    >>> run_names([{"layout": "DP8", "model": "A", "num_nodes": 1, "recompute": None},
    ...            {"layout": "DP8", "model": "B", "num_nodes": 1, "recompute": "full"}])
    ['DP8 · A', 'DP8 · B · recompute full']
    """
    varied = {name: len({row[name] for row in rows}) > 1 for name in ("model", "num_nodes", "recompute")}
    names = []
    for row in rows:
        parts = [row["layout"] or "layout unknown"]
        if varied["model"] and row["model"]:
            parts.append(row["model"])
        if varied["num_nodes"] and row["num_nodes"]:
            parts.append(f"{row['num_nodes']} node" + ("s" if row["num_nodes"] > 1 else ""))
        if varied["recompute"] and row["recompute"] not in (None, "none"):
            parts.append(f"recompute {row['recompute']}")
        names.append(" · ".join(parts))
    return names


def default_run(rows: Sequence[Row]) -> str | None:
    """The run to show first: one that failed with levels, else the fullest with an estimate, else the first."""
    known = [row for row in rows if row["mem_peak_allocated_bytes"] is not None]
    failed = [row for row in known if row["status"] == "oom"]
    estimated = [row for row in known if row["est_mem_bytes"] is not None]
    return next((row["run_id"] for group in (failed, estimated, known, list(rows)) for row in group), None)
