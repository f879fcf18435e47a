"""Samples of the device itself: which of the recorders' formats a text has, and its rows of `gpu_samples`.

Tables with a header (`gpu_csv`) or without (`gpu_bare`), tables that scroll (`gpu_monitors`), scrapes (`gpu_exporter`),
JSON (`gpu_json`), what is printed for people (`gpu_text`).
What a device does not know is `[N/A]`, `[Not Supported]` or the like. Times are local, without a zone.
"""

from __future__ import annotations

import polars as pl

from pipeline.memory import gpu_csv, gpu_exporter, gpu_monitors
from pipeline.memory.gpu_bare import bare_columns, is_bare
from pipeline.memory.gpu_json import is_json_samples, read_json
from pipeline.memory.gpu_text import is_printed, read_printed
from pipeline.memory.gpu_values import BYTES, MIB, Rejects

_HEAD_LINES, _HEAD_CHARS = 2_000, 16_384


def is_samples(head: str) -> bool:
    """Whether a text begins with samples in one of the formats."""
    kinds = (gpu_csv.header, gpu_monitors.is_dcgmi, gpu_monitors.is_smi, gpu_exporter.is_scrape, is_bare, is_printed)
    return is_json_samples(head) or any(kind(line) for line in head.splitlines() for kind in kinds)


def read_samples(text: str) -> tuple[pl.DataFrame, Rejects]:
    """Rows of `gpu_samples`, without the columns that name the file, and lines that look like a row and are none.

    Raises ValueError where nothing says what the numbers are.
    """
    if is_json_samples(text[:_HEAD_CHARS]):
        return read_json(text)
    lines = text.splitlines()
    for is_kind, read in (
        (gpu_exporter.is_scrape, gpu_exporter.read_scrapes),
        (gpu_monitors.is_smi, gpu_monitors.read_smi),
        (gpu_monitors.is_dcgmi, gpu_monitors.read_dcgmi),
    ):
        if any(is_kind(line) for line in lines[:_HEAD_LINES]):
            return read(lines)
    if headers := [(at, *found) for at, line in enumerate(lines) if (found := gpu_csv.header(line))]:
        return gpu_csv.read_csv(lines, headers)
    if any(is_bare(line) for line in lines):
        named = [(name, float(MIB) if name in BYTES else 1.0) for name in bare_columns(lines)]
        return gpu_csv.read_csv(lines, [(-1, ",", named)])
    if any(is_printed(line) for line in lines):
        return read_printed(lines)
    raise ValueError("no header that names the columns; record with `--format=csv`, which writes one")
