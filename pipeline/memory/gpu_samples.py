"""Samples of the device itself: `nvidia-smi --query-gpu --format=csv`, `dcgmi dmon` and dcgm-exporter.

nvidia-smi: https://docs.nvidia.com/deploy/nvidia-smi (names by `--help-query-gpu`); a header names columns and units,
values carry them again unless `nounits` was asked for; what a device does not know is `[N/A]`, `[Not Supported]` or the
like; without a header `gpu_bare` tells the columns. dcgmi dmon: a `#Entity` header with short names, repeated every so
often; MiB without saying so. nvidia-smi dmon: a `# gpu` header (after `Date Time` with `-o DT`), then one of units.
dcgm-exporter: Prometheus text, one line per field and GPU, MiB. Times are local, without a zone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

import polars as pl

from pipeline.memory.gpu_bare import bare_columns, is_bare

_MIB = 1 << 20
_FACTORS = {"b": 1, "kib": 1 << 10, "mib": _MIB, "gib": 1 << 30, "kb": 1 << 10, "mb": _MIB, "gb": 1 << 30}

# Names of nvidia-smi's query, and what people write over their own loops -> column.
_COLUMNS = {
    "timestamp": "ts", "time": "ts", "datetime": "ts", "date": "ts", "ts": "ts",
    "index": "gpu_index", "gpu": "gpu_index", "gpu_id": "gpu_index", "gpu_index": "gpu_index", "id": "gpu_index",
    "uuid": "gpu_uuid", "gpu_uuid": "gpu_uuid", "name": "accelerator", "gpu_name": "accelerator",
    "hostname": "host", "host": "host", "node": "host",
    "memory.used": "mem_used_bytes", "memory_used": "mem_used_bytes", "mem_used": "mem_used_bytes",
    "memory.free": "mem_free_bytes", "memory_free": "mem_free_bytes", "mem_free": "mem_free_bytes",
    "memory.total": "mem_total_bytes", "memory_total": "mem_total_bytes", "mem_total": "mem_total_bytes",
    "memory.reserved": "mem_driver_reserved_bytes", "memory_reserved": "mem_driver_reserved_bytes",
    "utilization.gpu": "gpu_utilisation", "gpu_util": "gpu_utilisation", "utilization_gpu": "gpu_utilisation",
    "gpu_utilization": "gpu_utilisation", "utilization.memory": "mem_utilisation", "mem_util": "mem_utilisation",
    "utilization_memory": "mem_utilisation", "power.draw": "power_w", "power_draw": "power_w", "power": "power_w",
    "power.draw.instant": "power_w", "power.draw.average": "power_w", "temperature.gpu": "temperature_c",
    "temperature_gpu": "temperature_c", "temperature": "temperature_c", "temp": "temperature_c",
}  # fmt: skip
_TELLING = {"mem_used_bytes", "mem_free_bytes", "gpu_utilisation"}
_DMON = {
    "FBTTL": "mem_total_bytes", "FBTL": "mem_total_bytes", "FBFRE": "mem_free_bytes", "FBFR": "mem_free_bytes",
    "FBUSD": "mem_used_bytes", "FBUS": "mem_used_bytes", "FBRSV": "mem_driver_reserved_bytes",
    "FBRV": "mem_driver_reserved_bytes", "GPUTL": "gpu_utilisation", "MCUTL": "mem_utilisation", "POWER": "power_w",
    "TMPTR": "temperature_c",
}  # fmt: skip
_EXPORTER = {
    "DCGM_FI_DEV_FB_USED": "mem_used_bytes", "DCGM_FI_DEV_FB_FREE": "mem_free_bytes",
    "DCGM_FI_DEV_FB_TOTAL": "mem_total_bytes", "DCGM_FI_DEV_FB_RESERVED": "mem_driver_reserved_bytes",
    "DCGM_FI_DEV_GPU_UTIL": "gpu_utilisation", "DCGM_FI_DEV_MEM_COPY_UTIL": "mem_utilisation",
    "DCGM_FI_DEV_POWER_USAGE": "power_w", "DCGM_FI_DEV_GPU_TEMP": "temperature_c",
}  # fmt: skip
_COLUMNS |= {name.lower(): column for name, column in _EXPORTER.items()}
_SMI_DMON = {
    "gpu": "gpu_index", "fb": "mem_used_bytes", "sm": "gpu_utilisation", "mem": "mem_utilisation", "pwr": "power_w",
    "gtemp": "temperature_c", "temp": "temperature_c",
}  # fmt: skip
_HEADER_CELL = re.compile(r"\s*\"?([A-Za-z][\w.]*?)_?\s*(?:\[([^\]]*)\]|_?(MiB|GiB|MB|GB|mib|mb|gib|gb))?\"?\s*")
_DMON_HEADER = re.compile(r"#\s*Entity\b(.*)")
_SMI_DMON_HEADER = re.compile(r"#\s*((?:Date\s+Time\s+)?gpu\s.*)", re.IGNORECASE)
_DMON_ROW = re.compile(r"\s*GPU\s+(\d{1,4})\s+(.*)")
_METRIC = re.compile(r"(DCGM_FI_DEV_\w+)\{([^}]*)\}\s+(\S+)(?:\s+(\d{13}))?")
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_MISSING = re.compile(r"(?i)\[?(?:n/?a|not supported|unknown error|not found|insufficient permissions|nan)\]?|-?")
_BANNER = re.compile(r"\s*[+|]|\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4}\s*$|\s*$")
_TIMES = ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M")

_BYTES = {name for name in (*_COLUMNS.values(), *_DMON.values()) if name.endswith("_bytes")}
_SHARES = {"gpu_utilisation", "mem_utilisation"}
_NUMBERS = {*_BYTES, *_SHARES, "power_w", "temperature_c", "gpu_index"}

Rejects = list[tuple[int, str, str]]


def is_samples(head: str) -> bool:
    """Whether a text begins with samples in one of the formats."""
    return any(
        _header(line)
        or _DMON_HEADER.match(line)
        or _SMI_DMON_HEADER.match(line)
        or _METRIC.match(line)
        or is_bare(line)
        for line in head.splitlines()
    )


def read_samples(text: str) -> tuple[pl.DataFrame, Rejects]:
    """Rows of `gpu_samples`, without the columns that name the file, and lines that look like a row and are none.

    Raises ValueError where nothing says what the numbers are.
    """
    lines = text.splitlines()
    if any(_METRIC.match(line) for line in lines[:2_000]):
        return _exported(lines)
    headers = [(at, names) for at, line in enumerate(lines) if (names := _header(line))]
    if headers:
        return _csv(lines, headers)
    if any(_DMON_HEADER.match(line) for line in lines[:2_000]):
        return _dmon(lines)
    if any(_SMI_DMON_HEADER.match(line) for line in lines[:2_000]):
        return _smi_dmon(lines)
    if any(is_bare(line) for line in lines):
        columns = bare_columns(lines)
        return _csv(lines, [(-1, [(name, float(_MIB) if name in _BYTES else 1.0) for name in columns])])
    raise ValueError("no header that names the columns; record with `--format=csv`, which writes one")


def _header(line: str) -> list[tuple[str | None, float]] | None:
    """Column and factor to its unit of each cell, where a line is a header: None for a column that is not kept."""
    cells = line.split(",")
    if not 1 < len(cells) <= 60 or any(char.isdigit() for char in cells[0].strip()):
        return None
    named: list[tuple[str | None, float]] = []
    for cell in cells:
        found = _HEADER_CELL.fullmatch(cell)
        if not found:
            return None
        column = _COLUMNS.get(found[1].lower())
        if column in {name for name, _ in named}:
            column = None  # a column that was asked for twice
        unit = (found[2] or found[3] or "").lower()
        named.append((column, _FACTORS.get(unit, _MIB) if column in _BYTES else 1.0))
    return named if _TELLING & {name for name, _ in named} else None


def _csv(lines: list[str], headers: list[tuple[int, list[tuple[str | None, float]]]]) -> tuple[pl.DataFrame, Rejects]:
    parts, rejects = [], [
        (at + 1, "a line before the header", line[:2_000])
        for at, line in enumerate(lines[: max(headers[0][0], 0)])
        if not _BANNER.match(line)
    ]  # fmt: skip
    ends = [*(at for at, _ in headers[1:]), len(lines)]
    for (at, named), end in zip(headers, ends, strict=True):
        body = pl.DataFrame({"line_no": range(at + 2, end + 1), "raw": lines[at + 1 : end]}).filter(
            pl.col("raw").str.strip_chars() != ""
        )
        cells = pl.col("raw").str.split(",")
        odd = body.filter(cells.list.len() != len(named))
        rejects += [
            (number, f"{len(named)} values expected", raw[:2_000])
            for number, raw in odd.rows()
            if not _BANNER.match(raw)
        ]
        good = body.filter(cells.list.len() == len(named))
        columns = [
            _typed(cells.list.get(place).str.strip_chars(' "'), column, factor).alias(column)
            for place, (column, factor) in enumerate(named)
            if column
        ]
        parts.append(good.select("line_no", *columns))
    return pl.concat(parts, how="diagonal_relaxed"), rejects


def _typed(text: pl.Expr, column: str, factor: float) -> pl.Expr:
    if column == "ts":
        plain = text.str.replace_all("/", "-").str.replace(r"(?:Z|[+-]\d\d:?\d\d)$", "")
        seconds = text.str.extract(r"^(\d{9,10}(?:\.\d+)?)$").cast(pl.Float64, strict=False)
        return pl.coalesce(
            *(plain.str.to_datetime(form, time_unit="us", strict=False) for form in _TIMES),
            pl.from_epoch((seconds * 1e6).cast(pl.Int64), "us"),
        )
    if column not in _NUMBERS:
        return pl.when(text.str.contains(f"^(?:{_MISSING.pattern})$")).then(None).otherwise(text)
    number = text.str.extract(r"^(-?\d+(?:\.\d+)?)").cast(pl.Float64, strict=False)
    if column in _BYTES:
        unit = text.str.extract(r"(?i)([kmg]i?b)$").str.to_lowercase()
        known = unit.replace_strict(_FACTORS, default=factor, return_dtype=pl.Float64)
        return (number * known).round().cast(pl.Int64)
    return number.cast(pl.Int64) if column == "gpu_index" else number / (100 if column in _SHARES else 1)


def _dmon(lines: list[str]) -> tuple[pl.DataFrame, Rejects]:
    """Rows of dcgmi dmon; lines of other entities (switches, instances) are passed over."""
    names: list[str] = []
    rows: list[dict[str, object]] = []
    rejects: Rejects = []
    for number, line in enumerate(lines, start=1):
        if header := _DMON_HEADER.match(line):
            names = header[1].split()
        elif row := _DMON_ROW.match(line):
            values = row[2].split()
            if len(values) != len(names):
                rejects.append((number, f"{len(names)} values expected", line[:2_000]))
                continue
            told = {
                _DMON[name]: _number(_DMON[name], v) for name, v in zip(names, values, strict=True) if name in _DMON
            }
            rows.append({"line_no": number, "gpu_index": int(row[1]), **told})
    return _frame(rows), rejects


def _smi_dmon(lines: list[str]) -> tuple[pl.DataFrame, Rejects]:
    """Rows of nvidia-smi dmon; `-` is what a GPU does not say. Lines of units begin with # as the names do."""
    names: list[str] = []
    rows: list[dict[str, object]] = []
    rejects: Rejects = []
    for number, line in enumerate(lines, start=1):
        if header := _SMI_DMON_HEADER.match(line):
            names = header[1].lower().split()
        elif names and line.strip() and not line.lstrip().startswith("#"):
            values = line.split()
            if len(values) != len(names):
                rejects.append((number, f"{len(names)} values expected", line[:2_000]))
                continue
            told = dict(zip(names, values, strict=True))
            row = {column: _number(column, told[name]) for name, column in _SMI_DMON.items() if name in told}
            index = row.pop("gpu_index", None)
            when = _moment(f"{told['date']} {told['time']}") if "date" in told and "time" in told else None
            rows.append({"line_no": number, "gpu_index": None if index is None else int(index), "ts": when, **row})
    return _frame(rows), rejects


def _moment(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y%m%d %H:%M:%S")
    except ValueError:
        return None


def _exported(lines: list[str]) -> tuple[pl.DataFrame, Rejects]:
    """One row per GPU and scrape: a field that comes again begins the next scrape."""
    rows: list[dict[str, object]] = []
    current: dict[tuple[str, str], dict[str, object]] = {}
    for number, line in enumerate(lines, start=1):
        found = _METRIC.match(line)
        column = _EXPORTER.get(found[1]) if found else None
        if not found or not column:
            continue
        labels = {name.lower(): value for name, value in _LABEL.findall(found[2])}  # spellings differ by version
        host = labels.get("hostname") or labels.get("node")
        key = host or "", labels.get("uuid") or labels.get("gpu", "")
        row = current.get(key)
        if row is None or column in row:
            index = labels.get("gpu", "")
            row = current[key] = {
                "line_no": number, "gpu_index": int(index) if index.isdecimal() else None,
                "gpu_uuid": labels.get("uuid"), "accelerator": labels.get("modelname"), "host": host,
                "ts": int(found[4]) * 1000 if found[4] else None,
            }  # fmt: skip
            rows.append(row)
        row[column] = _number(column, found[3])
    return _frame(rows), []


def _number(column: str, text: str) -> float | int | None:
    if _MISSING.fullmatch(text):
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    if column in _BYTES:
        return round(value * _MIB)
    return value / 100 if column in _SHARES else value


def _frame(rows: Sequence[dict[str, object]]) -> pl.DataFrame:
    if not rows:
        raise ValueError("no sample of a GPU")
    return pl.DataFrame(rows, infer_schema_length=None)
