"""Words for an MFU that a log prints and that differs from the one computed here, by which runs are ranked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweepscope.dashboard.format.numbers import number, percent
from sweepscope.schemas.thresholds import MFU_DIFFERS


def differs(row: Mapping[str, Any]) -> bool:
    """Whether a printed MFU is so far from the computed one (`mfu`, `mfu_logged`) that it calls for an explanation.

    >>> differs({"mfu": 0.36, "mfu_logged": 0.50}), differs({"mfu": 0.36, "mfu_logged": 0.365})
    (True, False)
    >>> differs({"mfu": None, "mfu_logged": 0.50}), differs({"mfu": 0.36, "mfu_logged": None})
    (False, False)
    """
    mfu, printed = row["mfu"], row.get("mfu_logged")
    return bool(mfu) and printed is not None and abs(printed / mfu - 1) > MFU_DIFFERS


def beside_computed(row: Mapping[str, Any]) -> str:
    """The printed MFU and by how many points it differs from the computed; empty where they agree or one is unknown.

    >>> beside_computed({"mfu": 0.36, "mfu_logged": 0.50}).replace("\\xa0", " ")
    '50.0 %, 14.0 points above the computed one'
    """
    if not differs(row):
        return ""
    points = 100 * (row["mfu_logged"] - row["mfu"])
    return f"{percent(row['mfu_logged'])}, {number(abs(points), 1)} points {_side(points)} the computed one"


def _side(points: float) -> str:
    return "above" if points > 0 else "below"
