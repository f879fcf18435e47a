"""Other estimators beside ours on the same rows of every bundled table, with our profile and the table withheld."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import polars as pl

from sweepscope.pipeline.estimate.calibration.fit import Batch, batches
from sweepscope.pipeline.estimate.calibration.pooled import without_table
from sweepscope.pipeline.estimate.calibration.published_tables import published_table
from sweepscope.pipeline.estimate.calibration.transfer_tables import GIBIBYTES, TABLES
from sweepscope.pipeline.estimate.physics.estimate import estimate
from sweepscope.pipeline.estimate.physics.layouts import Array
from tests.validation.cells import rank_cells
from tests.validation.peers.ask import PEERS, Answers, ask, missing
from tests.validation.peers.questions import questions

OURS = "sweepscope"
_CELL = ("model", "accelerator", "num_gpus", "seq_len", "global_batch_tokens")
_MOST = 600
"""Rows of a table that are asked; of more, every n-th. SimuMax takes 20 a second."""
KNOWS = {
    ("SimuMax", "simumax_b200"): "products and attention profiled on this machine, at 0.48 of its peak",
    ("SimuMax", "selene_megatron"): "products at 0.75 of the peak, measured on an A100",
    ("SimuMax", "bigscience_sweeps"): "products at 0.75 of the peak, measured on an A100",
    ("Calculon", "selene_megatron"): "efficiencies set on this table",
    ("llm-analysis", "bigscience_sweeps"): "0.5 of the peak in all, what large runs of that time reported",
    ("llm-analysis", "simumax_b200"): "0.5 of the peak in all, which this machine's 0.48 is near to",
    ("Calculon", "bigscience_sweeps"): "efficiencies set on A100 runs of Megatron-LM, which this code is made from",
}
"""What a peer knows of a table that ours, with the table withheld, does not."""


@dataclass(frozen=True)
class Asked:
    """Rows of a table: batches with the constants that the table had no say in, and what was measured."""

    name: str
    table: pl.DataFrame
    batches: list[Batch]
    step_time_s: Array
    mem_bytes: Array
    ran: Array
    """1 where a run completed, 0 where it ran out of memory, NaN where nothing is known."""


def _number(table: pl.DataFrame, name: str) -> Array:
    if name not in table.columns:
        return np.full(table.height, np.nan)
    return table[name].cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()


def asked_of(name: str) -> Asked:
    """The rows of a bundled table that completed or ran out of memory."""
    table = published_table(name)
    if "status" not in table.columns:
        table = table.with_columns(status=pl.lit("success"))
    table = table.with_columns(pl.col("status").fill_null("success"))
    table = table.filter(pl.col("status").is_in(["success", "completed", "oom"]))
    table = table.gather_every(max(table.height // _MOST, 1))
    is_oom = (table["status"] == "oom").to_numpy()
    unit = 2.0**30 if name in GIBIBYTES else 1e9
    return Asked(
        name=name,
        table=table,
        batches=batches(table, without_table(name)),
        step_time_s=np.where(is_oom, np.nan, _number(table, "step_time_s")),
        mem_bytes=np.where(is_oom, np.nan, unit * _number(table, "peak_mem_gb")),
        ran=np.where(is_oom, 0.0, 1.0),
    )


def _ours(rows: Asked) -> tuple[Answers, Array]:
    """(our answers, 1 where we say that a row fits)."""
    size = rows.table.height
    seconds, bytes_, fits = (np.full(size, np.nan) for _ in range(3))
    begun = time.process_time()
    for batch in rows.batches:
        found = estimate(batch.asked, batch.at)
        seconds[batch.indices], bytes_[batch.indices] = found.step_time_s, found.mem_bytes
        fits[batch.indices] = found.fits
    return Answers(seconds, bytes_, time.process_time() - begun, ""), fits


def _theirs(peer: str, rows: Asked) -> tuple[Answers, Array]:
    """(a peer's answers, 1 where its bytes are within the card's)."""
    found = ask(peer, [row for batch in rows.batches for row in questions(batch)])
    order = np.concatenate([batch.indices for batch in rows.batches])
    card = np.concatenate([np.full(batch.indices.size, batch.asked.cluster.memory_bytes) for batch in rows.batches])
    seconds, bytes_, fits = (np.full(rows.table.height, np.nan) for _ in range(3))
    seconds[order], bytes_[order] = found.seconds, found.bytes
    fits[order] = np.where(np.isfinite(found.bytes), found.bytes <= card, np.nan)
    return Answers(seconds, bytes_, found.cpu_s, found.reason), fits


def _median_error(predicted: Array, measured: Array) -> float | None:
    both = np.isfinite(predicted) & np.isfinite(measured) & (measured > 0)
    return 100 * float(np.median(np.abs(predicted[both] / measured[both] - 1))) if both.any() else None


def balanced(fits: Array, ran: Array) -> float | None:
    """Mean share of right verdicts on runs that ran and on those out of memory, in percent; None without both."""
    known = np.isfinite(fits) & np.isfinite(ran)
    if not (known & (ran == 1)).any() or not (known & (ran == 0)).any():
        return None
    return 100 * float(np.mean([np.mean(fits[known & (ran == label)] == label) for label in (1.0, 0.0)]))


def _row(who: str, rows: Asked, said: tuple[Answers, Array], mask: Array) -> dict[str, object]:
    found, fits = said
    seconds = np.where(mask, found.seconds, np.nan)
    sweeps = rows.table.select(name for name in _CELL if name in rows.table.columns)
    counts = sweeps.filter(pl.Series(np.isfinite(seconds) & np.isfinite(rows.step_time_s))).group_by(pl.all()).len()
    has_sweeps = counts.height > 0 and int(counts["len"].cast(pl.Int64).to_numpy().max()) >= 8
    ranked = rank_cells(sweeps.rows(), seconds, rows.step_time_s) if has_sweeps else None
    return {
        "table": rows.name,
        "who": who,
        "rows": int(np.sum(np.isfinite(seconds))),
        "time, median %": _median_error(seconds, rows.step_time_s),
        "Spearman": ranked.spearman if ranked else None,
        "regret %": 100 * ranked.regret if ranked else None,
        "memory, median %": _median_error(np.where(mask, found.bytes, np.nan), rows.mem_bytes),
        "OOM, balanced %": balanced(np.where(mask, fits, np.nan), rows.ran),
        "layouts/s": int(np.sum(np.isfinite(found.seconds))) / max(found.cpu_s, 1e-9),
        "note": found.reason,
    }


def beside() -> pl.DataFrame:
    """Per table: ours on all its rows, and each peer beside ours on the rows that the peer answers.

    Where a peer is nearer, `note` says what it knows; else why it has no answer to other rows.
    """
    entries: list[dict[str, object]] = []
    for name in TABLES:
        rows = asked_of(name)
        said = _ours(rows)
        ours = said[0]
        entries.append(_row(OURS, rows, said, np.ones(rows.table.height)))
        for peer in PEERS:
            if reason := missing(peer):
                entries.append({"table": name, "who": peer, "rows": 0, "note": f"skipped: {reason}"})
                continue
            theirs = _theirs(peer, rows)
            both = np.isfinite(theirs[0].seconds) & np.isfinite(ours.seconds)
            entries.append(_row(peer, rows, theirs, both))
            if known := KNOWS.get((peer, name)):
                entries[-1]["note"] = "; ".join([f"knows: {known}", *([theirs[0].reason] if theirs[0].reason else [])])
            if 0 < both.sum() < np.isfinite(ours.seconds).sum():
                entries.append(_row(f"{OURS}, the same rows", rows, said, both))
    return pl.DataFrame(entries, infer_schema_length=None)
