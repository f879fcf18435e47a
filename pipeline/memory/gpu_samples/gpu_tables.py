"""Tables that tools print for people: amd-smi's box, rocm-smi's concise table, gpustat.

amd-smi without a verb (amdsmi_cli, since ROCm 7.0): two lines per GPU, like nvidia-smi's. rocm-smi
(python_smi_tools/rocm_smi.py, showAllConcise): a row per GPU, its columns by version, of which the last is the use;
its VRAM% has no bytes. gpustat (gpustat/core.py, GPUStat.print_to): `[0] name | 35'C, 0 % | 1234 / 8192 MB | user(9M)`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import polars as pl

from sweepscope.pipeline.memory.gpu_samples.units import MAX_LINE_CHARS, MIB, Rejects, frame, moment

_AMD = re.compile(r"\s*\|\s*AMD-SMI \d")
_AMD_GPU = re.compile(
    r"\s*\|\s*[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d\s+(\S.*?)\s*\|\s*(?:(\d+) %|N/A)"
    r"\s+(?:(\d+) °C|N/A)\s+\S+\s+(?:(\d+)/|N/A)[^|]*\|"
)
_AMD_USE = re.compile(
    r"\s*\|\s*(\d{1,4})(?:\s+\S+){3}\s*\|\s*(?:(\d+) %|N/A)\s+(?:[\d.]+ %|N/A)\s+(?:(\d+)/(\d+) MB|N/A)\s*\|"
)
_ROCM = re.compile(r"\s*(?:GPU|Device)\s+.*\bTemp\b.*\bVRAM%\s+GPU%\s*$")
_ROCM_ROW = re.compile(
    r"\s*(\d{1,4})\s.*?(?:([\d.]+) ?(?:°[Cc]|[Cc])|N/A)\s+(?:([\d.]+)W|N/A)\s.*\s\S+\s+(?:(\d+)%|\S+)\s*$"
)
_STAT = re.compile(
    r"\[(\d{1,4})\] (\S.*?)\s*\|\s*(?:(\d+)|\?+)['°]C,(?:\s*[\d?]+ %,)?\s*(?:(\d+)|\?+) %"
    r"(?:,\s*(?:(\d+)|\?+) /[^|]*?W)?\s*\|\s*(\d+) /\s*(\d+) MB\b"
)
_STAT_HEAD = re.compile(r"(\S+)\s+(\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4})\b")

Row = dict[str, Any]


def is_table(line: str) -> bool:
    """Whether a line begins such a table, or is a row of gpustat."""
    return any(pattern.match(line[:MAX_LINE_CHARS]) for pattern in (_AMD, _ROCM, _STAT))


def read_tables(lines: Sequence[str]) -> tuple[pl.DataFrame, Rejects]:
    """Rows of `gpu_samples`. Raises ValueError where it holds no sample."""
    rows: list[Row] = []
    amd: re.Match[str] | None = None
    is_rocm = False
    host: str | None = None
    when: datetime | None = None
    for line_no, line in enumerate((text[:MAX_LINE_CHARS] for text in lines), start=1):
        if found := _STAT_HEAD.match(line):
            host, when = found[1], moment(found[2])
        elif found := _STAT.match(line):
            rows.append({"line_no": line_no, "host": host, "ts": when, **_of_gpustat(found)})
        elif found := _AMD_GPU.match(line):
            amd = found
        elif amd and (found := _AMD_USE.match(line)):
            rows.append({"line_no": line_no, **_of_amd(amd, found)})
            amd = None
        elif _ROCM.match(line):
            is_rocm = True
        elif is_rocm and (found := _ROCM_ROW.match(line)):
            rows.append({"line_no": line_no, **_of_rocm(found)})
    return frame(rows), []


def _of_gpustat(found: re.Match[str]) -> Row:
    return {
        "gpu_index": int(found[1]),
        "accelerator": found[2],
        "temperature_c": _float(found[3]),
        "gpu_utilisation": _share(found[4]),
        "power_w": _float(found[5]),
        "mem_used_bytes": _mib(found[6]),
        "mem_total_bytes": _mib(found[7]),
    }


def _of_amd(gpu: re.Match[str], use: re.Match[str]) -> Row:
    return {
        "gpu_index": int(use[1]),
        "accelerator": gpu[1],
        "mem_utilisation": _share(gpu[2]),
        "temperature_c": _float(gpu[3]),
        "power_w": _float(gpu[4]),
        "gpu_utilisation": _share(use[2]),
        "mem_used_bytes": _mib(use[3]),
        "mem_total_bytes": _mib(use[4]),
    }


def _of_rocm(found: re.Match[str]) -> Row:
    return {
        "gpu_index": int(found[1]),
        "temperature_c": _float(found[2]),
        "power_w": _float(found[3]),
        "gpu_utilisation": _share(found[4]),
    }


def _float(text: str | None) -> float | None:
    return float(text) if text else None


def _share(text: str | None) -> float | None:
    return int(text) / 100 if text else None


def _mib(text: str | None) -> int | None:
    return int(text) * MIB if text else None
