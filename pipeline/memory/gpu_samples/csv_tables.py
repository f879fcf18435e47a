"""Rows of `gpu_samples` from tables with a header: nvidia-smi's queries, rocm-smi, amd-smi, xpu-smi, custom scripts.

nvidia-smi (https://docs.nvidia.com/deploy/nvidia-smi, names by `--help-query-gpu` and `--help-query-compute-apps`):
the header names columns and units, values repeat the units except with `nounits`. rocm-smi `--csv` (rocm_smi_lib,
python_smi_tools/rocm_smi.py): units in parentheses, cards by name, no time. amd-smi `--csv` of `monitor` and `metric`:
MB without a unit. Spreadsheets save them with semicolons, tabs and decimal commas.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from datetime import datetime

import polars as pl

from sweepscope.pipeline.memory.gpu_samples.monitors import EXPORTER_COLUMNS
from sweepscope.pipeline.memory.gpu_samples.units import (
    BYTES,
    FACTORS,
    INDICES,
    MIB,
    MISSING,
    NUMBERS,
    RAW_LIMIT,
    REQUIRED_ANY,
    SHARES,
    Rejects,
)

# Column -> printed names in lower case, blanks as underscores.
_NAMES = {
    "ts": "timestamp time datetime date ts",
    "gpu_index": "index gpu gpu_id gpu_index id device deviceid",
    "gpu_uuid": "uuid gpu_uuid",
    "accelerator": "name gpu_name card_series",
    "host": "hostname host node",
    "mem_used_bytes": "memory.used memory_used mem_used vram_total_used_memory vram_used gpu_memory_used used_vram",
    "mem_free_bytes": "free_vram memory.free memory_free mem_free vram_free",
    "mem_total_bytes": "total_vram memory.total memory_total mem_total vram_total_memory vram_total",
    "mem_driver_reserved_bytes": "memory.reserved memory_reserved",
    "mem_process_bytes": "used_gpu_memory used_memory",
    "pid": "pid",
    "gpu_utilisation": "utilization.gpu gpu_util utilization_gpu gpu_utilization gpu_use gfx gfx_activity",
    "mem_utilisation": "utilization.memory mem_util utilization_memory gpu_memory_read/write_activity umc_activity",
    "power_w": "power.draw power_draw power power.draw.instant power.draw.average "
    "average_graphics_package_power current_socket_graphics_package_power power_usage gpu_power "
    "socket_power average_socket_power current_socket_power",
    "temperature_c": "temperature.gpu temperature_gpu temperature temp temperature_(sensor_edge) "
    "temperature_(sensor_junction) hotspot_temperature hotspot gpu_core_temperature",
}
_COLUMNS = {name: column for column, names in _NAMES.items() for name in names.split()} | {
    name.lower(): column for name, column in EXPORTER_COLUMNS.items()
}
_ADDRESSES = frozenset({"pci.bus_id", "gpu_bus_id", "pci_bus_id", "bus_id", "gpu.pci.bus_id", "pci.bus"})
_CELL = re.compile(r"([A-Za-z][^\[\]\";]*?)\s*(?:[\[(]([^\])]*)[\])])?")
_UNIT_IN_NAME = re.compile(r"_?(mib|gib|mb|gb)$")
_GPU_IN_NAME = re.compile(r"^gpu_|_gpu$")
"""Marks of columns that are of a card, in scripts that sample the host, too: `gpu_memory_total`, `index_gpu`."""
_TIMES = (
    *("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S%.f"),
    *("%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M"),
)
_BANNER = re.compile(r"\s*[+|]|\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4}\s*$|\s*$")
_MAX_CELLS, _MAX_CHARS = 60, 80

Named = list[tuple[str | None, float]]
"""Column (None: not read) and factor to its unit, of each cell."""
Header = tuple[int, str, Named]
"""Index of the line, separator, cells."""


def header(line: str) -> tuple[str, Named] | None:
    """Separator and cells of a header; None for another line."""
    for separator in ",;\t":
        cells = [cell.strip(' "') for cell in line.split(separator)]
        if 1 < len(cells) <= _MAX_CELLS and not any(char.isdigit() for char in cells[0]) and (named := _named(cells)):
            return separator, named
    return None


def column_of(cell: str) -> tuple[str, float] | None:
    """The column of a printed name and the factor to its unit; None for an unknown name.

    >>> column_of("VRAM Total Used Memory (B)"), column_of("memory.used [MiB]"), column_of("loss")
    (('mem_used_bytes', 1), ('mem_used_bytes', 1048576), None)
    """
    part = _name_and_unit(cell)
    column, factor = _column(*part) if part else (None, 1.0)
    return (column, factor) if column else None


def _name_and_unit(cell: str) -> tuple[str, str] | None:
    found = _CELL.fullmatch(cell) if len(cell) <= _MAX_CHARS else None
    return (found[1].lower().replace(" ", "_").strip("_"), (found[2] or "").lower()) if found else None


def _column(name: str, unit: str) -> tuple[str | None, float]:
    # Some scripts put the unit into the name.
    suffix = _UNIT_IN_NAME.search(name) if name not in _COLUMNS else None
    bare = name[: suffix.start()] if suffix else name
    column = _COLUMNS.get(bare) or _COLUMNS.get(_GPU_IN_NAME.sub("", bare))
    return column, FACTORS.get(unit or (suffix[1] if suffix else ""), MIB) if column in BYTES else 1.0


def _named(cells: Sequence[str]) -> Named | None:
    parts = [part for cell in cells if (part := _name_and_unit(cell))]
    if len(parts) < len(cells):
        return None
    lists_processes = any(name == "pid" for name, _ in parts)
    named: Named = []
    for name, unit in parts:
        column, factor = _column(name, unit)
        is_other = name == "name" if lists_processes else name == "used_memory"
        if is_other or column in {known for known, _ in named}:  # the column was requested twice
            column = None
        named.append((column, factor if column else 1.0))
    if not {"gpu_index", "gpu_uuid"} & {column for column, _ in named}:
        address = next((at for at, (name, _) in enumerate(parts) if name in _ADDRESSES), None)
        if address is not None:  # else several GPUs could not be distinguished
            named[address] = "gpu_uuid", 1.0
    return named if REQUIRED_ANY & {column for column, _ in named} else None


def read_csv(lines: Sequence[str], headers: Sequence[Header]) -> tuple[pl.DataFrame, Rejects]:
    """Rows below each header, and lines that look like rows and are not.

    `headers` are in the order of their lines; one of index -1 names the columns of a text without a header.
    """
    parts = []
    rejects = [
        (at + 1, "a line before the header", line[:RAW_LIMIT])
        for at, line in enumerate(lines[: max(headers[0][0], 0)])
        if not _BANNER.match(line)
    ]
    ends = [*(at for at, _, _ in headers[1:]), len(lines)]
    for (at, separator, named), end in zip(headers, ends, strict=True):
        body = pl.DataFrame({"line_no": range(at + 2, end + 1), "raw": lines[at + 1 : end]}).filter(
            pl.col("raw").str.strip_chars() != ""
        )
        body = body.with_columns(cells=_cells(body["raw"], separator))
        is_whole = pl.col("cells").list.len() == len(named)
        rejects += [
            (line_no, f"{len(named)} values expected", raw[:RAW_LIMIT])
            for line_no, raw in body.filter(~is_whole).select("line_no", "raw").iter_rows()
            if not _BANNER.match(raw)
        ]
        columns = [
            _typed(pl.col("cells").list.get(index).str.strip_chars(' "'), column, factor).alias(column)
            for index, (column, factor) in enumerate(named)
            if column
        ]
        parts.append(body.filter(is_whole).select("line_no", *columns))
    return pl.concat(parts, how="diagonal_relaxed"), rejects


def moment(text: str) -> datetime | None:
    """A printed time in any of the formats of these tables; None for another text."""
    found: datetime | None = pl.select(_typed(pl.lit(text), "ts", 1.0)).item()
    return found


def _cells(rows: pl.Series, separator: str) -> pl.Series:
    if not rows.str.contains('"', literal=True).any():
        return rows.str.split(separator)
    quoted = csv.reader(rows.to_list(), delimiter=separator, skipinitialspace=True)
    return pl.Series(list(quoted), dtype=pl.List(pl.String))


def _typed(text: pl.Expr, column: str, factor: float) -> pl.Expr:
    if column == "ts":
        plain = (
            text.str.replace_all("/", "-").str.replace(r"(?:Z|[+-]\d\d:?\d\d)$", "").str.replace(r"(:\d\d),", "${1}.")
        )
        seconds = text.str.extract(r"^(\d{9,10}(?:\.\d+)?)$").cast(pl.Float64, strict=False)
        return pl.coalesce(
            *(plain.str.to_datetime(form, time_unit="us", strict=False) for form in _TIMES),
            pl.from_epoch((seconds * 1e6).cast(pl.Int64), "us"),
        )
    if column not in NUMBERS:
        return pl.when(text.str.contains(f"^(?:{MISSING.pattern})$")).then(None).otherwise(text)
    if column in INDICES:
        return text.str.extract(r"^(?:card|GPU)?(-?\d+)$").cast(pl.Int64, strict=False)
    # A decimal comma; before three digits it may separate thousands, and the value is then unknown.
    plain = text.str.replace(r"^(-?\d+),(\d{1,2}|\d{4,})(\D|$)", "${1}.${2}${3}")
    value = plain.str.extract(r"^(-?\d+(?:\.\d+)?)\s*(?:[^\d.,].*)?$").cast(pl.Float64, strict=False)
    if column in BYTES:
        unit = text.str.extract(r"(?i)([kmg]i?b)$").str.to_lowercase()
        return (value * unit.replace_strict(FACTORS, default=factor, return_dtype=pl.Float64)).round().cast(pl.Int64)
    return value / 100 if column in SHARES else value
