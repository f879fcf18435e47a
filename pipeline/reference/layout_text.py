"""A parallel layout as one text, and the values that make two layouts the same.

The column `layout`, the answers of a search and the dashboard's sentences share the spelling. What looks for a layout
among runs compares `layout_key`, never texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import polars as pl

LAYOUT: Final = ("dp", "tp", "pp", "cp", "ep", "vpp", "gas", "mbs", "zero_stage", "recompute")
"""Columns of a layout, in the names of a search."""

SCHEDULE_NAMES: Final = {
    "afab": "AFAB",
    "1f1b": "1F1B",
    "interleaved": "interleaved 1F1B",
    "zb-h1": "ZB-H1",
    "zb-v": "ZB-V",
    "dualpipe": "DualPipe",
    "dualpipe-v": "DualPipe-V",
}
"""Pipeline schedules as their papers write them."""

_SHOWN_FROM = {"dp": 1, "tp": 1, "pp": 1, "vpp": 2, "cp": 2, "ep": 2, "gas": 1, "mbs": 1}
_IN_TEXT = (*_SHOWN_FROM, "zero_stage", "dp_replicate")

Row = Mapping[str, Any]


def layout_key(row: Row) -> tuple[Any, ...]:
    """Values of LAYOUT, then copies of the sharded states; equal for rows with the same layout.

    A degree that a source leaves out is 1; sharding over one rank is no sharding.
    """
    filled = {name: row.get(name) for name in LAYOUT}
    for name in ("cp", "ep", "vpp"):
        filled[name] = filled[name] or 1
    filled["recompute"] = filled["recompute"] or "none"
    if filled["dp"] == filled["cp"] == 1:
        filled["zero_stage"] = 0
    return (*filled.values(), (row.get("dp_replicate") or 1) if filled["zero_stage"] else 1)


def layout_text(row: Row) -> str | None:
    """The layout in one text, as in the column `layout`; None when nothing is known.

    CP, EP, VPP and copies of what ZeRO shards appear when greater than 1; unknown parts are left out.

    >>> layout_text({"dp": 8, "tp": 4, "pp": 1, "cp": 1, "gas": 16, "mbs": 2, "zero_stage": 1})
    'DP8 TP4 PP1 · GAS16 MBS2 · Z1'
    >>> layout_text({"dp": 16, "tp": 1, "pp": 4, "vpp": 2, "zero_stage": 1, "dp_replicate": 2})
    'DP16 TP1 PP4 VPP2 · Z1 in 2 copies'
    """
    degrees, batch = (
        " ".join(f"{name.upper()}{row[name]}" for name in names if (row.get(name) or 0) >= _SHOWN_FROM[name])
        for names in (("dp", "tp", "pp", "vpp", "cp", "ep"), ("gas", "mbs"))
    )
    sharding = "" if row.get("zero_stage") is None else f"Z{row['zero_stage']}"
    if sharding and (row.get("dp_replicate") or 1) > 1:
        sharding += f" in {row['dp_replicate']} copies"
    return " · ".join(part for part in (degrees, batch, sharding) if part) or None


def layout_texts(frame: pl.DataFrame) -> pl.Series:
    """`layout_text` of every row of `frame`, named "layout"."""
    known = frame.select(name for name in _IN_TEXT if name in frame.columns)
    distinct = known.unique()
    texts = [layout_text(row) for row in distinct.iter_rows(named=True)]
    named = distinct.with_columns(pl.Series("layout", texts, dtype=pl.String))
    return known.join(named, on=known.columns, how="left", nulls_equal=True, maintain_order="left")["layout"]


def full_layout_text(row: Row) -> str:
    """`layout_text` with the pipeline schedule, where VPP does not imply it, and recomputation.

    >>> full_layout_text({"dp": 16, "tp": 8, "pp": 2, "pipeline_schedule": "zb-v", "recompute": "full"})
    'DP16 TP8 PP2 · ZB-V · full recompute'
    """
    parts = [layout_text(row) or "layout unknown"]
    if (schedule := row.get("pipeline_schedule") or "1f1b") not in ("1f1b", "interleaved"):
        parts.append(SCHEDULE_NAMES.get(schedule, schedule))
    if (mode := row.get("recompute") or "none") != "none":
        parts.append(f"{mode} recompute")
    return " · ".join(parts)
