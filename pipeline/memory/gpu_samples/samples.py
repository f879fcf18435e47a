"""Rows of `gpu_samples` from a text in any of the formats of monitoring tools.

Tables with a header (`csv_tables`) or without (`headerless`), scrolling tables and scrapes (`monitors`), JSON
(`json_samples`), and what tools print for people (`smi_query`, `printed`).
Missing values are `[N/A]`, `[Not Supported]` or the like. Times are local, without a zone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import polars as pl

from sweepscope.pipeline.memory.gpu_samples import csv_tables, monitors, prometheus, smi_query
from sweepscope.pipeline.memory.gpu_samples.headerless import bare_columns, is_bare
from sweepscope.pipeline.memory.gpu_samples.json_samples import is_json_samples, read_json
from sweepscope.pipeline.memory.gpu_samples.printed import is_printed, read_printed
from sweepscope.pipeline.memory.gpu_samples.units import BYTES, MIB, Rejects

_MIN_TABLE_LINES, _TABLE_SHARE = 2, 0.9
_MONITOR_ROW = re.compile(r"#|\s*(?:GPU(?:-\w+)?\s+)?\d")
_HEAD_LINES, _HEAD_CHARS = 2_000, 16_384


def is_samples(head: str) -> bool:
    """Whether a text begins with samples in one of the formats."""
    kinds = (
        *(csv_tables.header, monitors.is_dcgmi, monitors.is_smi),
        *(monitors.is_scrape, smi_query.is_query, is_bare, is_printed),
    )
    return (
        is_json_samples(head)
        or prometheus.is_range(head)
        or any(kind(line) for line in head.splitlines() for kind in kinds)
    )


def is_table(head: str) -> bool:
    """Whether a text consists of samples from its first line on, whatever its name.

    False for a log that begins with a box of nvidia-smi, or has a monitor's rows between other lines.
    """
    first = head.lstrip("\r\n").split("\n", 1)[0]
    is_row: Callable[[str], object]
    if monitors.is_smi(first) or monitors.is_dcgmi(first):
        is_row = _MONITOR_ROW.match
    elif header := csv_tables.header(first):
        is_row = partial(_has_cells, separator=header[0], count=len(header[1]))
    elif is_bare(first):
        is_row = is_bare
    else:
        return False  # nearly every log: its other lines are not examined
    lines = [line for line in head.splitlines()[:-1] or head.splitlines() if line.strip()]
    rows = sum(1 for line in lines if is_row(line))
    return len(lines) >= _MIN_TABLE_LINES and rows >= _TABLE_SHARE * len(lines)


def _has_cells(line: str, *, separator: str, count: int) -> bool:
    return line.count(separator) + 1 >= count


def read_samples(text: str) -> tuple[pl.DataFrame, Rejects]:
    """Rows of `gpu_samples` without the columns that name the file, and lines that look like rows and are not.

    Raises ValueError where the columns are unknown or no sample is found.
    """
    if is_json_samples(text[:_HEAD_CHARS]):
        return read_json(text)
    if prometheus.is_range(text[:_HEAD_CHARS]):
        return prometheus.read_range(text)
    lines = text.splitlines()
    for is_kind, read in (
        (monitors.is_scrape, monitors.read_scrapes),
        (monitors.is_smi, monitors.read_smi),
        (monitors.is_dcgmi, monitors.read_dcgmi),
        (smi_query.is_query, smi_query.read_query),
    ):
        if any(is_kind(line) for line in lines[:_HEAD_LINES]):
            return read(lines)
    if headers := [(at, *found) for at, line in enumerate(lines) if (found := csv_tables.header(line))]:
        return csv_tables.read_csv(lines, headers)
    if any(is_bare(line) for line in lines):
        named = [(name, float(MIB) if name in BYTES else 1.0) for name in bare_columns(lines)]
        return csv_tables.read_csv(lines, [(-1, ",", named)])
    if any(is_printed(line) for line in lines):
        return read_printed(lines)
    raise ValueError("no header that names the columns; record with `--format=csv`, which writes one")
