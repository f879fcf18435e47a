"""Scrapes of dcgm-exporter: Prometheus text, one line per field and GPU, memory in MiB."""

from __future__ import annotations

import re

import polars as pl

from sweepscope.pipeline.memory.gpu_samples.units import Rejects, frame, number

FIELDS = {
    "DCGM_FI_DEV_FB_USED": "mem_used_bytes",
    "DCGM_FI_DEV_FB_FREE": "mem_free_bytes",
    "DCGM_FI_DEV_FB_TOTAL": "mem_total_bytes",
    "DCGM_FI_DEV_FB_RESERVED": "mem_driver_reserved_bytes",
    "DCGM_FI_DEV_GPU_UTIL": "gpu_utilisation",
    "DCGM_FI_DEV_MEM_COPY_UTIL": "mem_utilisation",
    "DCGM_FI_DEV_POWER_USAGE": "power_w",
    "DCGM_FI_DEV_GPU_TEMP": "temperature_c",
}
_METRIC = re.compile(r"(DCGM_FI_DEV_\w+)\{([^}]*)\}\s+(\S+)(?:\s+(\d{13}))?\s*")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


def is_scrape(line: str) -> bool:
    """Whether a line is a sample of the exporter."""
    return _METRIC.match(line) is not None


def read_scrapes(lines: list[str]) -> tuple[pl.DataFrame, Rejects]:
    """One row per GPU and scrape: a field that comes again begins the next scrape.

    Instances of a divided GPU (MIG) are passed over: their memory is a part of it.
    """
    rows: list[dict[str, object]] = []
    current: dict[tuple[str, str], dict[str, object]] = {}
    for line_no, line in enumerate(lines, start=1):
        found = _METRIC.match(line)
        column = FIELDS.get(found[1]) if found else None
        if not found or not column:
            continue
        labels = {name.lower(): value for name, value in _LABEL.findall(found[2])}  # spellings differ by version
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
