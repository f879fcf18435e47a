"""When the software of a row was current, in years: as stated, or by what names a version or a date.

Products and attention on a new generation of cards get faster for years after its launch (`physics/maturity.py`).
"""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Any, Final

import polars as pl

ROUNDS: Final = {
    **{"v3.0": 2023.4, "v3.1": 2023.8, "v4.0": 2024.4, "v4.1": 2024.8, "v5.0": 2025.4, "v5.1": 2025.8},
}
"""Rounds of MLPerf Training by when their submissions were due, in May and October (mlcommons/training_results_v3.0 to
v5.1)."""
TORCH: Final = {
    **{"1.12": 2022.5, "1.13": 2022.8, "2.0": 2023.2, "2.1": 2023.8, "2.2": 2024.1, "2.3": 2024.3, "2.4": 2024.6},
    **{"2.5": 2024.8, "2.6": 2025.1, "2.7": 2025.3, "2.8": 2025.6, "2.9": 2025.8},
}
"""Releases of PyTorch (pytorch/pytorch, RELEASE.md: release cadence)."""
_CALENDAR: Final = re.compile(r"(?:\b|v)(2\d)\.(0[1-9]|1[0-2])\b|\bv(2\d)\.([1-9])\b")
"""Versions that are year and month, as those of NVIDIA's and AMD's containers: NeMo 24.09, v25.04.02, v25.6."""
_ARXIV: Final = re.compile(r"arxiv\.org/(?:abs|pdf)/(\d\d)(0[1-9]|1[0-2])\.\d{4,5}")
_ROUND: Final = re.compile(r"(?i)mlperf.*?(v\d\.\d)")
_MINOR: Final = re.compile(r"(\d+\.\d+)")
COLUMNS: Final = ("software_year", "framework_version", "torch_version", "table_or_figure", "source_title")
"""Columns of a row that are read, beside `started_at`, `source_id` and `source_url`; what is stated first."""


def _of_month(year: str, month: str) -> float:
    return round(2000 + int(year) + (int(month) - 0.5) / 12, 1)


def _calendar(text: str) -> float | None:
    found = _CALENDAR.search(text)
    return _of_month(found[1] or found[3], found[2] or found[4]) if found else None


def _of_start(value: Any) -> float | None:
    if isinstance(value, date | datetime):
        return _of_month(str(value.year - 2000), str(value.month))
    found = re.match(r"20(\d\d)-(\d\d)", str(value or ""))
    return _of_month(found[1], found[2]) if found else None


def software_year(row: dict[str, Any]) -> float | None:
    """Year of a row's software, to a tenth; None where nothing states it.

    In turn: `software_year` as stated, a calendar version of the framework, PyTorch's release, the round of MLPerf, a
    calendar version in the names of table and source, when the run started, the month of the paper on arXiv.

    >>> software_year({"framework_version": "NeMo 24.09"}), software_year({"torch_version": "2.6.0+cu124"})
    (2024.7, 2025.1)
    >>> software_year({"source_id": "mlperf_training_v4.1"}), software_year({"source_title": "v25.5"})
    (2024.8, 2025.4)
    >>> software_year({"source_url": "https://arxiv.org/abs/2405.19888"}), software_year({"torch_version": "nightly"})
    (2024.4, None)
    """
    text = {name: str(row.get(name) or "") for name in (*COLUMNS, "source_id", "source_url")}
    if re.fullmatch(r"20\d\d(\.\d+)?", text["software_year"]):
        return float(text["software_year"])
    minor = _MINOR.match(text["torch_version"])
    edition = _ROUND.search(text["source_id"])
    paper = _ARXIV.search(text["source_url"].casefold())
    found = (
        _calendar(text["framework_version"]),
        TORCH.get(minor[1]) if minor else None,
        ROUNDS.get(edition[1].casefold()) if edition else None,
        _calendar(text["table_or_figure"]),
        _calendar(text["source_title"]),
        _of_start(row.get("started_at")),
        _of_month(paper[1], paper[2]) if paper else None,
    )
    return next((year for year in found if year is not None), None)


def software_years(frame: pl.DataFrame) -> pl.Series:
    """`software_year` of each row of any frame, one call per distinct row of what states it."""
    names = [name for name in (*COLUMNS, "source_id", "source_url", "started_at") if name in frame.columns]
    if not names:
        return pl.Series("software_year", [None] * frame.height, dtype=pl.Float64)
    some = frame.select(names)
    if "started_at" in names and some["started_at"].dtype.is_temporal():
        some = some.with_columns(pl.col("started_at").dt.truncate("1mo"))
    known: dict[tuple[Any, ...], float | None] = {}
    for values in some.unique().iter_rows():
        known[values] = software_year(dict(zip(names, values, strict=True)))
    return pl.Series("software_year", [known[values] for values in some.iter_rows()], dtype=pl.Float64)
