"""Units, missing values and kinds of columns that all formats of GPU samples share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import polars as pl

MIB: Final = 1 << 20
FACTORS: Final = {"b": 1, "kib": 1 << 10, "mib": MIB, "gib": 1 << 30, "kb": 1 << 10, "mb": MIB, "gb": 1 << 30}
"""Bytes by unit; the tools print MB and mean MiB."""

BYTES: Final = frozenset(
    {"mem_used_bytes", "mem_free_bytes", "mem_total_bytes", "mem_driver_reserved_bytes", "mem_process_bytes"}
)
SHARES: Final = frozenset({"gpu_utilisation", "mem_utilisation"})
INDICES: Final = frozenset({"gpu_index", "pid"})
NUMBERS: Final = BYTES | SHARES | INDICES | {"power_w", "temperature_c"}

REQUIRED_ANY: Final = frozenset({"mem_used_bytes", "mem_free_bytes", "mem_process_bytes", "gpu_utilisation"})
"""Columns of which a table must have at least one."""

MISSING: Final = re.compile(
    r"(?i)\[?(?:n/?a|not supported|unknown error|not found|insufficient permissions|gpu is lost|gpu requires reset"
    r"|nan)\]?|-?"
)
RAW_LIMIT: Final = 2_000
MAX_LINE_CHARS: Final = 400
"""Tables printed for people are narrower; the rest of a longer line is ignored."""

Rejects = list[tuple[int, str, str]]
"""Line number, reason and text of lines that look like rows and are not."""


def number(column: str, text: str) -> float | int | None:
    """A printed value, memory in MiB, converted to the unit of its column; None for a missing value."""
    if MISSING.fullmatch(text):
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    if column in BYTES:
        return round(value * MIB)
    if column in INDICES:
        return int(value)
    return value / 100 if column in SHARES else value


_QUANTITY = re.compile(r"(-?\d+(?:\.\d+)?)\s*([A-Za-z%\u00b0]*)")


def quantity(column: str, text: str, factor: float) -> float | int | str | None:
    """A printed value converted to the unit of its column; `factor` applies where no unit is printed.

    >>> quantity("mem_used_bytes", "285 MB", 1.0), quantity("power_w", "138 W", 1.0), quantity("power_w", "N/A", 1.0)
    (298844160, 138.0, None)
    """
    if MISSING.fullmatch(text):
        return None
    if column not in NUMBERS:
        return text
    found = _QUANTITY.fullmatch(text)
    if not found:
        return None
    value = float(found[1])
    if column in BYTES:
        return round(value * FACTORS.get(found[2].lower(), factor))
    if column in INDICES:
        return int(value)
    return value / 100 if column in SHARES else value


def moment(text: str) -> datetime | None:
    """The time that C's asctime prints, as nvidia-smi and gpustat do: `Sat Feb  7 11:17:58 2026`; None for another."""
    try:
        return datetime.strptime(" ".join(text.split()), "%a %b %d %H:%M:%S %Y")
    except ValueError:
        return None


def frame(rows: Sequence[dict[str, object]]) -> pl.DataFrame:
    """Rows as a frame. Raises ValueError for no rows."""
    if not rows:
        raise ValueError("no sample of a GPU")
    return pl.DataFrame(rows, infer_schema_length=None)
