"""Samples as tools print them for people: nvidia-smi's box, `rocm-smi --showmeminfo vram`, amd-smi's lists and tables.

nvidia-smi: two lines per GPU, the second with `used / total`; Windows names the driver's model in the first. rocm-smi:
`GPU[0] : VRAM Total Memory (B): 1`. amd-smi (amdsmi, amdsmi_cli): `metric` lists `USED_VRAM: 285 MB` below `GPU: 0`,
`monitor` has a table that scrolls.
Processes, which nvidia-smi lists below its box, are left to pmon.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import polars as pl

from sweepscope.pipeline.memory.gpu_samples.csv_tables import column_of
from sweepscope.pipeline.memory.gpu_samples.units import (
    FACTORS,
    MIB,
    RAW_LIMIT,
    TELLING,
    Rejects,
    frame,
    moment,
    quantity,
)

_BOX = re.compile(r"\|\s*NVIDIA-SMI \d")
_BOX_DATE = re.compile(r"(\w{3}) (\w{3}) +(\d+) (\d\d:\d\d:\d\d) (\d{4})\s*$")
_BOX_GPU = re.compile(r"\|\s+(\d{1,4})\s+(\S.*?)\s+(?:On|Off|N/A|WDDM|TCC|MCDM)\s*\|\s*[0-9A-Fa-f]{4,8}:")
_BOX_USE = re.compile(r"\|\s*(?:N/A|\d+%|ERR!)\s+(?:(\d+)C|\S+)\s.*?\|\s*(?:(\d+)MiB\s*/\s*(\d+)MiB|N/A[^|]*)\s*\|(.*)")
_BOX_POWER = re.compile(r"(\d+(?:\.\d+)?)W\s*/")
_ROCM = re.compile(r"GPU\[(\d{1,4})\]\s*: (.+): +(\S.*?)\s*$")
_AMD_GPU = re.compile(r"\s*GPU: (\d{1,4})\s*$")
_AMD_VALUE = re.compile(r"\s+([A-Z][A-Z0-9_]+): (\S.*?)\s*$")
_AMD_TABLE = re.compile(r"(?:TIMESTAMP\s+)?GPU\s\s.*\bVRAM_(?:USED|USAGE|TOTAL)\b")
_AMD_COLUMNS = {
    "GPU": "gpu_index",
    "POWER": "power_w",
    "POWER_USAGE": "power_w",
    "GPU_T": "temperature_c",
    "GPU_TEMP": "temperature_c",
    "GFX%": "gpu_utilisation",
    "GFX_UTIL": "gpu_utilisation",
    "MEM%": "mem_utilisation",
    "MEM_UTIL": "mem_utilisation",
    "VRAM_USED": "mem_used_bytes",
    "VRAM_FREE": "mem_free_bytes",
    "VRAM_TOTAL": "mem_total_bytes",
}
_OF = re.compile(r"([\d.]+)/([\d.]+) ([KMGT]B)")

Row = dict[str, Any]


def is_printed(line: str) -> bool:
    """Whether a line begins what one of the tools prints for people."""
    if _BOX.match(line) or _AMD_TABLE.match(line.lstrip()):
        return True
    name = rocm[2] if (rocm := _ROCM.match(line)) else listed[1] if (listed := _AMD_VALUE.match(line)) else ""
    known = column_of(name)
    return known is not None and known[0] in TELLING


def read_printed(lines: Sequence[str]) -> tuple[pl.DataFrame, Rejects]:
    """Rows of whatever the text holds. Raises ValueError where it holds no sample."""
    if any(_BOX.match(line) for line in lines):
        return frame(_boxes(lines)), []
    if any(_AMD_TABLE.match(line.lstrip()) for line in lines):
        return _table(lines)
    return frame(_listed(lines)), []


def _boxes(lines: Sequence[str]) -> list[Row]:
    rows: list[Row] = []
    when: datetime | None = None
    gpu: tuple[int, str] | None = None
    for line_no, line in enumerate(lines, start=1):
        if date := _BOX_DATE.match(line):
            when = moment(" ".join(date.groups()))
        elif found := _BOX_GPU.match(line):
            gpu = int(found[1]), found[2]
        elif gpu and (use := _BOX_USE.match(line)):
            power = _BOX_POWER.search(line)
            share = re.match(r"\s*(\d+)%", use[4])
            rows.append(
                {
                    "line_no": line_no,
                    "ts": when,
                    "gpu_index": gpu[0],
                    "accelerator": gpu[1].removesuffix("..."),
                    "mem_used_bytes": int(use[2]) * MIB if use[2] else None,
                    "mem_total_bytes": int(use[3]) * MIB if use[3] else None,
                    "gpu_utilisation": int(share[1]) / 100 if share else None,
                    "power_w": float(power[1]) if power else None,
                    "temperature_c": float(use[1]) if use[1] else None,
                }
            )
            gpu = None
    return rows


def _listed(lines: Sequence[str]) -> list[Row]:
    """Values one to a line; a value of a GPU that comes again begins its next sample."""
    rows: list[Row] = []
    current: dict[int, Row] = {}
    number = 0
    for line_no, line in enumerate(lines, start=1):
        if found := _AMD_GPU.match(line):
            number = int(found[1])
            current.pop(number, None)
            continue
        rocm = _ROCM.match(line)
        listed = None if rocm else _AMD_VALUE.match(line)
        if not (rocm or listed):
            continue
        name, value = (rocm[2], rocm[3]) if rocm else (listed[1], listed[2])  # type: ignore[index]  # one of the two
        gpu = int(rocm[1]) if rocm else number
        known = column_of(name)
        read = quantity(known[0], value, known[1]) if known else None
        if known is None or read is None:
            continue
        row = current.get(gpu)
        if row is None or (rocm and known[0] in row):
            row = current[gpu] = {"line_no": line_no, "gpu_index": gpu}
            rows.append(row)
        row.setdefault(known[0], read)
    return rows


def _table(lines: Sequence[str]) -> tuple[pl.DataFrame, Rejects]:
    """Rows of `amd-smi monitor`; two blanks part the cells, as one stands between a number and its unit."""
    names: list[str] = []
    rows: list[Row] = []
    rejects: Rejects = []
    for line_no, line in enumerate(lines, start=1):
        if _AMD_TABLE.match(line.lstrip()):
            names = line.split()
        elif names and re.match(r"\s*\d", line):
            cells = re.split(r"\s{2,}", line.strip())
            if len(cells) != len(names):
                rejects.append((line_no, f"{len(names)} values expected", line[:RAW_LIMIT]))
                continue
            row: Row = {"line_no": line_no}
            for name, cell in zip(names, cells, strict=True):
                if name == "VRAM_USAGE" and (both := _OF.fullmatch(cell)):
                    factor = FACTORS.get(both[3].lower(), MIB)
                    row["mem_used_bytes"] = round(float(both[1]) * factor)
                    row["mem_total_bytes"] = round(float(both[2]) * factor)
                elif name == "TIMESTAMP" and cell.isdecimal():
                    row["ts"] = datetime.fromtimestamp(int(cell), tz=UTC).replace(tzinfo=None)
                elif column := _AMD_COLUMNS.get(name):
                    row[column] = quantity(column, cell, float(MIB))
            rows.append(row)
    return frame(rows), rejects
