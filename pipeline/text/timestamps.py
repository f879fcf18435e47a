"""Timestamps of training logs, in the time zone of the log, which is rarely printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from sweepscope.pipeline.text.field_extraction import captures
from sweepscope.pipeline.text.line_templates import LineTemplates

_CLOCK = "[0-9]{2}:[0-9]{2}:[0-9]{2}"
_MILLISECONDS = "milliseconds since 1970"
# Pattern with a group, and the formats of that group. Each line is read by the first pattern that it matches.
_STAMPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    # Megatron, torchtitan, slurmstepd, torchrun
    (
        rf"([0-9]{{4}}[-/][0-9]{{2}}[-/][0-9]{{2}}[ T_]{_CLOCK})",
        (*(f"%Y-%m-%d{mark}%H:%M:%S" for mark in " T_"), "%Y/%m/%d %H:%M:%S"),
    ),
    # nanotron; loggers of facebookresearch, with two digits of the year
    (rf"\b([0-9]{{2}}/[0-9]{{2}}/(?:[0-9]{{2}})?[0-9]{{2}} {_CLOCK})", ("%m/%d/%y %H:%M:%S", "%m/%d/%Y %H:%M:%S")),
    (rf"\[([0-9]{{8}} {_CLOCK})\]", ("%Y%m%d %H:%M:%S",)),  # Primus
    (rf"\b([0-9]{{2}}\.[0-9]{{2}}\.[0-9]{{4}},? {_CLOCK})", ("%d.%m.%Y %H:%M:%S", "%d.%m.%Y, %H:%M:%S")),
    # date(1) and asctime(3)
    (
        rf"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) ([A-Z][a-z]{{2}} [ 0-9][0-9] {_CLOCK} (?:[A-Z]{{3,4}} )?[0-9]{{4}})\b",
        ("%b %e %H:%M:%S %Y", "%b %e %H:%M:%S %Z %Y"),
    ),
    (r':::MLLOG .*"time_ms": ?([0-9]{13})\b', (_MILLISECONDS,)),  # MLPerf; read as UTC
)
_FORMATS = {f"stamp {index}": formats for index, (_, formats) in enumerate(_STAMPS)}

STAMPS = {name: pattern for name, (pattern, _) in zip(_FORMATS, _STAMPS, strict=True)}
"""Patterns by column, which `extract_each` extracts together with those of a dialect, for `stamped`."""

_ANY_STAMP = "|".join(pattern for pattern, _ in _STAMPS)


def timestamp(text: pl.Expr) -> pl.Expr:
    """First timestamp of a line as Datetime, NULL when it has none.

    >>> str(pl.select(timestamp(pl.lit("10/17/2025 16:31:56 [INFO]: x"))).item())
    '2025-10-17 16:31:56'
    >>> str(pl.select(timestamp(pl.lit("Mon Jun  1 01:00:07 UTC 2026"))).item())
    '2026-06-01 01:00:07'
    >>> str(pl.select(timestamp(pl.lit("10.05.2026 08:00:04 gpu017"))).item())
    '2026-05-10 08:00:04'
    """
    return text.map_batches(_read, return_dtype=pl.Datetime("us"), is_elementwise=True)


def times_of(lines: pl.DataFrame) -> pl.Series:
    """First timestamp of each line, or else of its prefix, as Datetime called `ts`; NULL where neither has one.

    `lines`: `text`, `prefix`, and perhaps `template`, by which lines that have none are known without a search.
    """
    found = _times_of_text(lines)
    # Most prefixes are those of ranks: few, and without a time.
    if found.null_count() and lines["prefix"].unique().str.contains(_ANY_STAMP).any():
        found = pl.select(pl.coalesce(found, _read(lines["prefix"]))).to_series()
    return found.alias("ts")


def _times_of_text(lines: pl.DataFrame) -> pl.Series:
    if "template" not in lines.columns:
        return _read(lines["text"])
    if not LineTemplates.of(lines).matching(_ANY_STAMP).any():
        return _no_times(lines.height)
    return _first(captures(lines["text"], STAMPS, lines["template"]).get_columns())


def stamped() -> pl.Expr:
    """Like `timestamp`, of the text from which STAMPS were extracted."""
    return pl.map_batches(list(STAMPS), _first, return_dtype=pl.Datetime("us"), is_elementwise=True)


def _read(text: pl.Series) -> pl.Series:
    if text.null_count() == text.len():
        return _no_times(text.len())
    return _first(captures(text, STAMPS).get_columns())


def _no_times(lines: int) -> pl.Series:
    return pl.Series([None], dtype=pl.Datetime("us")).new_from_index(0, lines)


def _first(printed: Sequence[pl.Series]) -> pl.Series:
    """The first time of each line; formats are tried only until every line has one, as most logs use a single one."""
    lines = printed[0].len()
    found = _no_times(lines)
    columns = zip(printed, _FORMATS.values(), strict=True)
    for read in (times for column, formats in columns for times in _times(column, formats)):
        found = read if found.null_count() == lines else pl.select(pl.coalesce(found, read)).to_series()
        if not found.null_count():
            break
    return found


def _times(printed: pl.Series, formats: Sequence[str]) -> Iterator[pl.Series]:
    """Times read by each of the formats, until none is unread."""
    unread = printed.len() - printed.null_count()
    for layout in formats:
        if not unread:
            return
        if layout == _MILLISECONDS:
            read = printed.cast(pl.Int64).cast(pl.Datetime("ms")).cast(pl.Datetime("us"))
        else:
            read = printed.str.to_datetime(layout, strict=False, time_unit="us")
        unread -= read.len() - read.null_count()
        yield read
