"""GPU samples of `nvidia-smi -q`, as text and (`-x`) as XML, whole or in parts (`-d MEMORY`), once or repeated (`-l`).

Both have the same sections by nearly the same names (https://docs.nvidia.com/deploy/nvidia-smi, nvsmi_device.dtd). In
the text a section is indented below its name, and so is a GPU below its bus id. MIG devices have sections of the same
names one level deeper, which are not read. A process on a GPU is a row of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import polars as pl

from sweepscope.pipeline.memory.gpu_samples.smi_xml import GPU, PROCESSES, TOP, Value, xml_values
from sweepscope.pipeline.memory.gpu_samples.units import MAX_LINE_CHARS, MIB, NUMBERS, Rejects, frame, moment, quantity

_BEGIN = re.compile(r"=+NVSMI LOG=+|<nvidia_smi_log[ >]")
_TEXT_LINE = re.compile(r"( *)(\S.*?)(?:\s+: (.*?))?\s*$")
_TEXT_GPU = re.compile(r"GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:\S+\s*$")
_POWER = ("gpu_power_readings", "power_readings")
# (Section, name) as in XML, and as in the text where that differs.
_COLUMNS = {
    ("", "product_name"): "accelerator",
    ("", "uuid"): "gpu_uuid",
    ("", "gpu_uuid"): "gpu_uuid",
    ("fb_memory_usage", "total"): "mem_total_bytes",
    ("fb_memory_usage", "used"): "mem_used_bytes",
    ("fb_memory_usage", "free"): "mem_free_bytes",
    ("fb_memory_usage", "reserved"): "mem_driver_reserved_bytes",
    ("utilization", "gpu_util"): "gpu_utilisation",
    ("utilization", "gpu"): "gpu_utilisation",
    ("utilization", "memory_util"): "mem_utilisation",
    ("utilization", "memory"): "mem_utilisation",
    ("temperature", "gpu_temp"): "temperature_c",
    ("temperature", "gpu_current_temp"): "temperature_c",
} | {
    (section, name): "power_w"
    for section in _POWER
    for name in ("power_draw", "average_power_draw", "instant_power_draw", "instantaneous_power_draw")
}
_OF_GPU = ("ts", "gpu_uuid", "accelerator")
_PIDS, _PROCESS_MEMORY = ("pid", "process_id"), ("used_memory", "used_gpu_memory")

Row = dict[str, Any]


def is_query(line: str) -> bool:
    """Whether a line begins such a text.

    >>> is_query("==============NVSMI LOG=============="), is_query("<nvidia_smi_log>"), is_query("GPU 0")
    (True, True, False)
    """
    return _BEGIN.match(line[:MAX_LINE_CHARS].strip()) is not None


def read_query(lines: Sequence[str]) -> tuple[pl.DataFrame, Rejects]:
    """Rows of `gpu_samples`, and documents that are cut off or damaged. Raises ValueError where it holds no sample."""
    rejects: Rejects = []
    is_xml = any("<nvidia_smi_log" in line for line in lines)
    rows: list[Row] = []
    sample: list[Row] = []
    ts: datetime | None = None
    attached: int | None = None
    for value in xml_values(lines, rejects) if is_xml else _text_values(lines):
        if value.section == TOP and value.name == "timestamp":
            rows += _numbered(sample, attached)
            sample, ts, attached = [], moment(value.text), None
        elif value.section == TOP and value.name == "attached_gpus" and value.text.isdecimal():
            attached = int(value.text)
        elif value.section == TOP and value.name == GPU:
            sample.append({"line_no": value.line_no, "ts": ts})
        elif sample:
            _add(value, sample)
    rows += _numbered(sample, attached)
    return frame(rows), rejects


def _add(value: Value, sample: list[Row]) -> None:
    """Add a value to the rows of its sample: one of the last GPU, or of the last process on it."""
    gpu = next(row for row in reversed(sample) if "pid" not in row)
    if value.section == PROCESSES:
        if value.name in _PIDS and value.text.isdecimal():
            inherited = {name: gpu[name] for name in _OF_GPU if name in gpu}
            sample.append({"line_no": value.line_no, **inherited, "pid": int(value.text)})
        elif value.name in _PROCESS_MEMORY and "pid" in sample[-1]:
            sample[-1]["mem_process_bytes"] = quantity("mem_process_bytes", value.text, float(MIB))
        return
    column = _COLUMNS.get((value.section, value.name))
    if column and gpu.get(column) is None:
        gpu[column] = quantity(column, value.text, float(MIB))


def _numbered(sample: list[Row], attached: int | None) -> list[Row]:
    """Rows with a measured value, numbered by GPU. With `-i` only some of the attached GPUs are listed: no number."""
    gpus = sum("pid" not in row for row in sample)
    index = -1
    for row in sample:
        index += "pid" not in row
        row["gpu_index"] = index if attached in (None, gpus) else None
    return [row for row in sample if any(row.get(name) is not None for name in NUMBERS - {"gpu_index"})]


def _text_values(lines: Sequence[str]) -> Iterator[Value]:
    section = TOP
    for line_no, line in enumerate((text[:MAX_LINE_CHARS] for text in lines), start=1):
        if _TEXT_GPU.match(line):
            section = ""
            yield Value(line_no, TOP, GPU, line)
            continue
        found = _TEXT_LINE.match(line)
        if found is None:
            continue
        depth, name = len(found[1]), found[2].lower().replace(" ", "_")
        if depth == 0:
            section = TOP
        elif depth == 4:
            section = name if found[3] is None else ""
        if found[3] is not None and (depth <= 8 or section == PROCESSES):
            yield Value(line_no, section, name, found[3])
