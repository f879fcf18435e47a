"""GPU samples of monitors: `dcgmi dmon`, `nvidia-smi dmon` and `pmon` (also `--format csv`), and dcgm-exporter.

dcgmi: a `#Entity` header with short names, repeated every so often; MiB without a unit. nvidia-smi: a header
`# gpu` (behind Date and Time with `-o DT`), then a line of units. pmon lists processes: what one of them uses, and no
more of the GPU than that. dcgm-exporter: Prometheus text, one line per field and GPU, memory in MiB.
"""

from __future__ import annotations

import re
from datetime import datetime

import polars as pl

from sweepscope.pipeline.memory.gpu_samples.units import RAW_LIMIT, Rejects, frame, number

_DCGMI = (
    {"FBTTL": "mem_total_bytes", "FBTL": "mem_total_bytes"}
    | {"FBFRE": "mem_free_bytes", "FBFR": "mem_free_bytes", "FBUSD": "mem_used_bytes", "FBUS": "mem_used_bytes"}
    | {"FBRSV": "mem_driver_reserved_bytes", "FBRV": "mem_driver_reserved_bytes"}
    | {"GPUTL": "gpu_utilisation", "MCUTL": "mem_utilisation", "POWER": "power_w", "TMPTR": "temperature_c"}
)
_DMON = (
    {"gpu": "gpu_index", "fb": "mem_used_bytes", "pwr": "power_w"}
    | {"sm": "gpu_utilisation", "mem": "mem_utilisation"}
    | {"gtemp": "temperature_c", "temp": "temperature_c"}
)
_PMON = {"gpu": "gpu_index", "pid": "pid", "fb": "mem_process_bytes"}
_DCGMI_HEADER = re.compile(r"#\s*Entity\b(.*)")
_DCGMI_ROW = re.compile(r"\s*GPU\s+(\d{1,4})\s+(.*)")
_SMI_HEADER = re.compile(r"#\s*((?:Date[\s,]+)?(?:Time[\s,]+)?gpu[\s,].*)", re.IGNORECASE)

EXPORTER_COLUMNS = {
    "DCGM_FI_DEV_FB_USED": "mem_used_bytes",
    "DCGM_FI_DEV_FB_FREE": "mem_free_bytes",
    "DCGM_FI_DEV_FB_TOTAL": "mem_total_bytes",
    "DCGM_FI_DEV_FB_RESERVED": "mem_driver_reserved_bytes",
    "DCGM_FI_DEV_GPU_UTIL": "gpu_utilisation",
    "DCGM_FI_DEV_MEM_COPY_UTIL": "mem_utilisation",
    "DCGM_FI_DEV_POWER_USAGE": "power_w",
    "DCGM_FI_DEV_GPU_TEMP": "temperature_c",
}
_EXPORTER_LINE = re.compile(r"(DCGM_FI_DEV_\w+)\{([^}]*)\}\s+(\S+)(?:\s+(\d{13}))?\s*")
EXPORTER_LABEL = re.compile(r'(\w+)="([^"]*)"')


def is_dcgmi(line: str) -> bool:
    """Whether a line is the header of dcgmi dmon."""
    return _DCGMI_HEADER.match(line) is not None


def is_smi(line: str) -> bool:
    """Whether a line is the header of nvidia-smi dmon or pmon."""
    return _SMI_HEADER.match(line) is not None


def read_dcgmi(lines: list[str]) -> tuple[pl.DataFrame, Rejects]:
    """Rows of `gpu_samples` from dcgmi dmon; other entities (switches, instances) are left out."""
    names: list[str] = []
    rows: list[dict[str, object]] = []
    rejects: Rejects = []
    for line_no, line in enumerate(lines, start=1):
        if header := _DCGMI_HEADER.match(line):
            names = header[1].split()
        elif row := _DCGMI_ROW.match(line):
            values = row[2].split()
            if len(values) != len(names):
                rejects.append((line_no, f"{len(names)} values expected", line[:RAW_LIMIT]))
                continue
            cells = dict(zip(names, values, strict=True))
            known = {column: number(column, cells[name]) for name, column in _DCGMI.items() if name in cells}
            rows.append({"line_no": line_no, "gpu_index": int(row[1]), **known})
    return frame(rows), rejects


def read_smi(lines: list[str]) -> tuple[pl.DataFrame, Rejects]:
    """Rows of `gpu_samples` from nvidia-smi dmon or pmon. `-` is a missing value; pmon has no row without a process."""
    names: list[str] = []
    separator: str | None = None
    rows: list[dict[str, object]] = []
    rejects: Rejects = []
    for line_no, line in enumerate(lines, start=1):
        if header := _SMI_HEADER.match(line):
            names = [name.lower() for name in re.split(r"[\s,]+", header[1].strip())]
            separator = "," if "," in header[1] else None
        elif names and line.strip() and not line.lstrip().startswith("#"):
            most = len(names) - 1 if names[-1] == "command" else -1  # the command may contain blanks
            values = [value.strip() for value in line.split(separator, most)]
            if len(values) != len(names):
                rejects.append((line_no, f"{len(names)} values expected", line[:RAW_LIMIT]))
                continue
            cells = dict(zip(names, values, strict=True))
            if cells.get("pid") == "-":
                continue
            columns = _PMON if "pid" in cells else _DMON
            known = {column: number(column, cells[name]) for name, column in columns.items() if name in cells}
            ts = _moment(f"{cells['date']} {cells['time']}") if "date" in cells and "time" in cells else None
            rows.append({"line_no": line_no, "ts": ts, **known})
    return frame(rows), rejects


def is_scrape(line: str) -> bool:
    """Whether a line is a sample of the exporter."""
    return _EXPORTER_LINE.match(line) is not None


def read_scrapes(lines: list[str]) -> tuple[pl.DataFrame, Rejects]:
    """Rows of `gpu_samples`, one per GPU and scrape: a repeated field begins the next scrape.

    Instances of a divided GPU (MIG) are left out: their memory is part of the GPU's.
    """
    rows: list[dict[str, object]] = []
    current: dict[tuple[str, str], dict[str, object]] = {}
    for line_no, line in enumerate(lines, start=1):
        found = _EXPORTER_LINE.match(line)
        column = EXPORTER_COLUMNS.get(found[1]) if found else None
        if not found or not column:
            continue
        labels = {
            name.lower(): value for name, value in EXPORTER_LABEL.findall(found[2])
        }  # spellings differ by version
        if labels.get("gpu_i_id"):
            continue
        host = labels.get("hostname") or labels.get("node")
        key = host or "", labels.get("uuid") or labels.get("gpu", "")
        row = current.get(key)
        if row is None or column in row:
            index = labels.get("gpu", "")
            row = current[key] = {
                "line_no": line_no,
                "gpu_index": int(index) if index.isdecimal() else None,
                "gpu_uuid": labels.get("uuid"),
                "accelerator": labels.get("modelname"),
                "host": host,
                "ts": int(found[4]) * 1000 if found[4] else None,
            }
            rows.append(row)
        row[column] = number(column, found[3])
    return frame(rows), []


def _moment(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y%m%d %H:%M:%S")
    except ValueError:
        return None
