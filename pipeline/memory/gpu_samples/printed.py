"""GPU samples in the tables and lists that vendor tools print for people.

- nvidia-smi: a box with two lines per GPU, the second with `used / total`; Windows adds the driver model to the first.
  hl-smi (Gaudi) draws the same box under its own name.
- npu-smi (Ascend): a box with two lines per chip, `Memory-Usage(MB)` and, where the chip has any, `HBM-Usage(MB)`.
- amd-smi (amdsmi_cli): `metric` lists `USED_VRAM: 285 MB` below `GPU: 0`, `monitor` prints a scrolling table, and
  without a verb (since ROCm 7.0) a box like nvidia-smi's.
- rocm-smi (python_smi_tools/rocm_smi.py): `GPU[0] : VRAM Total Memory (B): 1` with `--showmeminfo vram`, else a concise
  table whose columns differ by version; its last column is the utilisation, its VRAM% has no bytes.
- gpustat (gpustat/core.py, GPUStat.print_to): `[0] name | 35'C, 0 % | 1234 / 8192 MB | user(9M)`.

Process lists below nvidia-smi's box are not read; pmon has them.
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
    MAX_LINE_CHARS,
    MIB,
    RAW_LIMIT,
    REQUIRED_ANY,
    Rejects,
    frame,
    moment,
    quantity,
)

_BOX = re.compile(r"\|\s*(?:NVIDIA-SMI \d|HL-SMI Version:)")
_BOX_DATE = re.compile(r"(\w{3}) (\w{3}) +(\d+) (\d\d:\d\d:\d\d) (\d{4})\s*$")
_BOX_GPU = re.compile(r"\|\s+(\d{1,4})\s+(\S.*?)\s+(?:On|Off|N/A|WDDM|TCC|MCDM)\s*\|\s*[0-9A-Fa-f]{4,8}:")
_BOX_USE = re.compile(r"\|\s*(?:N/A|\d+%|ERR!)\s+(?:(\d+)C|\S+)\s.*?\|\s*(?:(\d+)MiB\s*/\s*(\d+)MiB|N/A[^|]*)\s*\|(.*)")
_BOX_POWER = re.compile(r"(\d+(?:\.\d+)?)W\s*/")

_NPU_BOX = re.compile(r"\|\s*npu-smi \d")
_NPU_CARD = re.compile(
    r"\|\s*(\d{1,4})\s+(\S+)\s*\|\s*[A-Z]\w+\s*\|\s*(?:([\d.]+)|\S+)\s+(?:(\d+)|\S+)\s+\d+\s*/\s*\d+\s*\|"
)
_NPU_CHIP = re.compile(
    r"\|\s*\d{1,4}(?:\s+(\d{1,4}))?\s*\|\s*[0-9A-Fa-f]{4}:\S+\s*\|\s*(?:(\d+)|\S+)"
    r"\s+(\d+)\s*/\s*(\d+)(?:\s+(\d+)\s*/\s*(\d+))?\s*\|"
)

_ROCM_VALUE = re.compile(r"GPU\[(\d{1,4})\]\s*: (.+): +(\S.*?)\s*$")
_ROCM_HEADER = re.compile(r"\s*(?:GPU|Device)\s+.*\bTemp\b.*\bVRAM%\s+GPU%\s*$")
_ROCM_ROW = re.compile(
    r"\s*(\d{1,4})\s.*?(?:([\d.]+) ?(?:°[Cc]|[Cc])|N/A)\s+(?:([\d.]+)W|N/A)\s.*\s\S+\s+(?:(\d+)%|\S+)\s*$"
)

_AMD_LIST_GPU = re.compile(r"\s*GPU: (\d{1,4})\s*$")
_AMD_VALUE = re.compile(r"\s+([A-Z][A-Z0-9_]+): (\S.*?)\s*$")
_AMD_TABLE = re.compile(r"(?:TIMESTAMP\s+)?GPU\s\s.*\bVRAM_(?:USED|USAGE|TOTAL)\b")
_AMD_COLUMNS = (
    {"GPU": "gpu_index", "POWER": "power_w", "POWER_USAGE": "power_w"}
    | {"GPU_T": "temperature_c", "GPU_TEMP": "temperature_c", "GFX%": "gpu_utilisation"}
    | {"GFX_UTIL": "gpu_utilisation", "MEM%": "mem_utilisation", "MEM_UTIL": "mem_utilisation"}
    | {"VRAM_USED": "mem_used_bytes", "VRAM_FREE": "mem_free_bytes", "VRAM_TOTAL": "mem_total_bytes"}
)
_AMD_USED_OF_TOTAL = re.compile(r"([\d.]+)/([\d.]+) ([KMGT]B)")
_AMD_BOX = re.compile(r"\s*\|\s*AMD-SMI \d")
_AMD_BOX_GPU = re.compile(
    r"\s*\|\s*[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d\s+(\S.*?)\s*\|\s*(?:(\d+) %|N/A)"
    r"\s+(?:(\d+) °C|N/A)\s+\S+\s+(?:(\d+)/|N/A)[^|]*\|"
)
_AMD_BOX_USE = re.compile(
    r"\s*\|\s*(\d{1,4})(?:\s+\S+){3}\s*\|\s*(?:(\d+) %|N/A)\s+(?:[\d.]+ %|N/A)\s+(?:(\d+)/(\d+) MB|N/A)\s*\|"
)

_GPUSTAT_HEADER = re.compile(r"(\S+)\s+(\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4})\b")
_GPUSTAT = re.compile(
    r"\[(\d{1,4})\] (\S.*?)\s*\|\s*(?:(\d+)|\?+)['°]C,(?:\s*[\d?]+ %,)?\s*(?:(\d+)|\?+) %"
    r"(?:,\s*(?:(\d+)|\?+) (?:/[^|]*?)?W)?\s*\|\s*(\d+) /\s*(\d+) MB\b"
)

Row = dict[str, Any]


def is_printed(line: str) -> bool:
    """Whether a line begins one of these tables or lists, or is a row of gpustat."""
    if _BOX.match(line) or _AMD_TABLE.match(line.lstrip()) or _is_list_value(line):
        return True
    return any(pattern.match(line[:MAX_LINE_CHARS]) for pattern in (_AMD_BOX, _NPU_BOX, _ROCM_HEADER, _GPUSTAT))


def read_printed(lines: Sequence[str]) -> tuple[pl.DataFrame, Rejects]:
    """Rows of `gpu_samples`, and lines that look like rows and are not. Raises ValueError where no sample is found."""
    if any(_BOX.match(line) for line in lines):
        return frame(_box_rows(lines)), []
    if any(_AMD_TABLE.match(line.lstrip()) for line in lines):
        return _monitor_rows(lines)
    if any(_is_list_value(line) for line in lines):
        return frame(_list_rows(lines)), []
    return frame(_table_rows(lines)), []


def _is_list_value(line: str) -> bool:
    name = rocm[2] if (rocm := _ROCM_VALUE.match(line)) else listed[1] if (listed := _AMD_VALUE.match(line)) else ""
    known = column_of(name)
    return known is not None and known[0] in REQUIRED_ANY


def _box_rows(lines: Sequence[str]) -> list[Row]:
    rows: list[Row] = []
    ts: datetime | None = None
    gpu: tuple[int, str] | None = None
    for line_no, line in enumerate(lines, start=1):
        if date := _BOX_DATE.match(line):
            ts = moment(" ".join(date.groups()))
        elif found := _BOX_GPU.match(line):
            gpu = int(found[1]), found[2].removesuffix("...")
        elif gpu and (use := _BOX_USE.match(line)):
            power = _BOX_POWER.search(line)
            share = re.match(r"\s*(\d+)%", use[4])
            row = _row(gpu[0], gpu[1], temperature=use[1], power=power and power[1], gpu_share=share and share[1])
            rows.append({"line_no": line_no, "ts": ts, **row, **_memory(use[2], use[3])})
            gpu = None
    return rows


def _list_rows(lines: Sequence[str]) -> list[Row]:
    """Values one to a line; a repeated value of a GPU begins its next sample."""
    rows: list[Row] = []
    current: dict[int, Row] = {}
    number = 0
    for line_no, line in enumerate(lines, start=1):
        if found := _AMD_LIST_GPU.match(line):
            number = int(found[1])
            current.pop(number, None)
            continue
        if rocm := _ROCM_VALUE.match(line):
            gpu, name, text = int(rocm[1]), rocm[2], rocm[3]
        elif listed := _AMD_VALUE.match(line):
            gpu, name, text = number, listed[1], listed[2]
        else:
            continue
        known = column_of(name)
        value = quantity(known[0], text, known[1]) if known else None
        if known is None or value is None:
            continue
        row = current.get(gpu)
        if row is None or (rocm and known[0] in row):
            row = current[gpu] = {"line_no": line_no, "gpu_index": gpu}
            rows.append(row)
        row.setdefault(known[0], value)
    return rows


def _monitor_rows(lines: Sequence[str]) -> tuple[pl.DataFrame, Rejects]:
    """Rows of `amd-smi monitor`. Two blanks separate cells: a single one separates a number from its unit."""
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
                row |= _monitor_cell(name, cell)
            rows.append(row)
    return frame(rows), rejects


def _monitor_cell(name: str, cell: str) -> Row:
    if name == "VRAM_USAGE" and (both := _AMD_USED_OF_TOTAL.fullmatch(cell)):
        factor = FACTORS.get(both[3].lower(), MIB)
        return {"mem_used_bytes": round(float(both[1]) * factor), "mem_total_bytes": round(float(both[2]) * factor)}
    if name == "TIMESTAMP" and cell.isdecimal():
        return {"ts": datetime.fromtimestamp(int(cell), tz=UTC).replace(tzinfo=None)}
    column = _AMD_COLUMNS.get(name)
    return {column: quantity(column, cell, float(MIB))} if column else {}


def _table_rows(lines: Sequence[str]) -> list[Row]:
    """Rows of gpustat, of amd-smi's and npu-smi's boxes and of rocm-smi's concise table."""
    rows: list[Row] = []
    amd: re.Match[str] | None = None
    npu: re.Match[str] | None = None
    is_rocm = False
    source: Row = {"host": None, "ts": None}
    for line_no, line in enumerate((text[:MAX_LINE_CHARS] for text in lines), start=1):
        row: Row | None = None
        if found := _GPUSTAT_HEADER.match(line):
            source = {"host": found[1], "ts": moment(found[2])}
        elif found := _GPUSTAT.match(line):
            index, name, temperature, share, power, used, total = found.groups()
            row = source | _row(index, name, temperature=temperature, power=power, gpu_share=share)
            row |= _memory(used, total)
        elif found := _AMD_BOX_GPU.match(line):
            amd = found
        elif amd and (found := _AMD_BOX_USE.match(line)):
            row = _row(found[1], amd[1], temperature=amd[3], power=amd[4], gpu_share=found[2])
            row |= _memory(found[3], found[4]) | {"mem_utilisation": _share(amd[2])}
            amd = None
        elif found := _NPU_CARD.match(line):
            npu = found
        elif npu and (found := _NPU_CHIP.match(line)):
            row = _npu_row(npu, found)
            npu = None if found[1] is None else npu  # a card of several chips names each
        elif _ROCM_HEADER.match(line):
            is_rocm = True
        elif is_rocm and (found := _ROCM_ROW.match(line)):
            row = _row(found[1], None, temperature=found[2], power=found[3], gpu_share=found[4])
        if row is not None:
            rows.append({"line_no": line_no, **row})
    return rows


def _npu_row(card: re.Match[str], chip: re.Match[str]) -> Row:
    """A chip's sample. Its number on the device, where that is printed, counts across cards."""
    share, used, total, hbm_used, hbm_total = chip.groups()[1:]
    row = _row(chip[1] or card[1], card[2], temperature=card[4], power=card[3], gpu_share=share)
    # Chips with HBM print 0 / 0 for the other memory.
    return row | (_memory(hbm_used, hbm_total) if hbm_total else _memory(used, total))


def _row(
    index: int | str, name: str | None, *, temperature: str | None, power: str | None, gpu_share: str | None
) -> Row:
    return {
        "gpu_index": int(index),
        "accelerator": name,
        "temperature_c": float(temperature) if temperature else None,
        "power_w": float(power) if power else None,
        "gpu_utilisation": _share(gpu_share),
    }


def _memory(used_mib: str | None, total_mib: str | None) -> Row:
    sizes = {"mem_used_bytes": used_mib, "mem_total_bytes": total_mib}
    return {column: int(text) * MIB if text else None for column, text in sizes.items()}


def _share(percent: str | None) -> float | None:
    return int(percent) / 100 if percent else None
