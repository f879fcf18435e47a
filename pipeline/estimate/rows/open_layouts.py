"""Layouts that rows leave open, filled with the fastest that fits and named. As `assumptions`, for tables that someone
asks about: nothing is fitted to such rows, and none counts for the accuracy of estimates.
"""

from __future__ import annotations

from typing import Any, Final

import polars as pl

from sweepscope.pipeline.estimate.rows.asking import ChooseProfile
from sweepscope.pipeline.estimate.rows.assumptions import usual_batch
from sweepscope.pipeline.estimate.rows.ceiling import Fastest, fastest
from sweepscope.pipeline.reference.layout_text import full_layout_text

_DEGREES: Final = ("dp", "tp", "pp", "cp", "ep", "vpp", "mbs", "gas", "zero_stage", "recompute", "pipeline_schedule")

_TIMES: Final = (1, 2, 4)
"""Multiples of the usual batch that are tried where a schedule needs more micro-batches than it has."""


def with_open_layouts(rows: pl.DataFrame, choose: ChooseProfile) -> pl.DataFrame:
    """Rows of `with_assumed` whose degrees or micro-batch are open, with the fastest choice that fits; `assumed` names
    it. A row without an accelerator or their number, or that states what no layout has, is left as it is."""
    is_open = pl.any_horizontal(pl.col("dp", "tp", "pp", "mbs").is_null()) & pl.col("num_gpus").is_not_null()
    if not (mask := rows.select(is_open.alias("open"))["open"]).any():
        return rows
    filled = [
        _filled(row, choose) if open_ else row for row, open_ in zip(rows.iter_rows(named=True), mask, strict=True)
    ]
    return pl.DataFrame(filled, schema=rows.schema, orient="row")


def _filled(row: dict[str, Any], choose: ChooseProfile) -> dict[str, Any]:
    notes = [row["assumed"]] if row["assumed"] else []
    asked, found = _with_batch(row, choose)
    if isinstance(found, str):
        return row
    if asked is not row:
        notes.append(f"a batch of {asked['gbs']:,} sequences")
    fits = "the fastest layout that fits" if found.fits else "the fastest layout, which is not estimated to fit"
    notes.append(f"{fits}, of what is left open: {full_layout_text(found.named)}")
    return {**asked, **_degrees(found), "assumed": "; ".join(notes)}


def _with_batch(row: dict[str, Any], choose: ChooseProfile) -> tuple[dict[str, Any], Fastest | str]:
    """(row with its batch, fastest layout or why there is none). A batch that is not stated is the usual one, or
    as many times it as a pipeline needs."""
    if row["gbs"] or row["gbs_tokens"]:
        return row, fastest(row, choose, doubt=1.0)
    usual = usual_batch(row["num_gpus"], row["seq_len"])
    found: Fastest | str = ""
    for times in _TIMES:
        asked = {**row, "gbs": times * usual}
        if not isinstance(found := fastest(asked, choose, doubt=1.0), str):
            return asked, found
    return row, found


def _degrees(found: Fastest) -> dict[str, Any]:
    chosen = {name: found.named[name] for name in _DEGREES}
    at = found.at
    return {
        **chosen,
        "etp": int(at.etp[0]),
        "sequence_parallel": bool(at.sequence_parallel[0]),
        "stated_recompute": chosen["recompute"],
    }
