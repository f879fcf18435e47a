"""`nvidia-smi -q`, as text and (`-x`) as XML, whole or in parts (`-d MEMORY`), once or again and again (`-l`).

Both have the same sections by nearly the same names (https://docs.nvidia.com/deploy/nvidia-smi, nvsmi_device.dtd): as
text a section is indented below its name, and so is a GPU below its bus id. MIG devices have sections of the same names
one level deeper, which are left out. A process on a GPU is a row of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import polars as pl

from sweepscope.pipeline.memory.gpu_samples.units import MAX_LINE_CHARS, MIB, NUMBERS, Rejects, frame, moment, quantity

_BEGIN = re.compile(r"=+NVSMI LOG=+|<nvidia_smi_log[ >]")
_TEXT_LINE = re.compile(r"( *)(\S.*?)(?:\s+: (.*?))?\s*$")
_TEXT_GPU = re.compile(r"GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:\S+\s*$")
_TAG = re.compile(r"<(/?)([a-z]\w*)[^<>]*>([^<]*)")
_POWER = ("gpu_power_readings", "power_readings")
# (Section, name) as in XML; where text has another name, that too.
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
_WHOSE = ("ts", "gpu_uuid", "accelerator")
_PROCESSES, _PIDS, _PROCESS_MEMORY = "processes", ("pid", "process_id"), ("used_memory", "used_gpu_memory")

Row = dict[str, Any]


class _Value(NamedTuple):
    """What one line or element says. `section` is "" right below a GPU, `top` above all GPUs."""

    line_no: int
    section: str
    name: str
    text: str


_TOP, _GPU = "top", "gpu"


def is_query(line: str) -> bool:
    """Whether a line begins such a text.

    >>> is_query("==============NVSMI LOG=============="), is_query("<nvidia_smi_log>"), is_query("GPU 0")
    (True, True, False)
    """
    return _BEGIN.match(line[:MAX_LINE_CHARS].strip()) is not None


def read_query(lines: Sequence[str]) -> tuple[pl.DataFrame, Rejects]:
    """Rows of `gpu_samples`. Raises ValueError where it holds no sample."""
    is_xml = any("<nvidia_smi_log" in line for line in lines)
    rows: list[Row] = []
    sample: list[Row] = []
    when: datetime | None = None
    attached: int | None = None
    for value in _of_xml(lines) if is_xml else _of_text(lines):
        if value.section == _TOP and value.name == "timestamp":
            rows += _numbered(sample, attached)
            sample, when, attached = [], moment(value.text), None
        elif value.section == _TOP and value.name == "attached_gpus" and value.text.isdecimal():
            attached = int(value.text)
        elif value.section == _TOP and value.name == _GPU:
            sample.append({"line_no": value.line_no, "ts": when})
        elif sample:
            _take(value, sample)
    rows += _numbered(sample, attached)
    return frame(rows), []


def _take(value: _Value, sample: list[Row]) -> None:
    gpu = next(row for row in reversed(sample) if "pid" not in row)
    if value.section == _PROCESSES:
        if value.name in _PIDS and value.text.isdecimal():
            whose = {name: gpu[name] for name in _WHOSE if name in gpu}
            sample.append({"line_no": value.line_no, **whose, "pid": int(value.text)})
        elif value.name in _PROCESS_MEMORY and "pid" in sample[-1]:
            sample[-1]["mem_process_bytes"] = quantity("mem_process_bytes", value.text, float(MIB))
        return
    column = _COLUMNS.get((value.section, value.name))
    if column and gpu.get(column) is None:
        gpu[column] = quantity(column, value.text, float(MIB))


def _numbered(sample: list[Row], attached: int | None) -> list[Row]:
    """The rows that tell something; GPUs are listed in order, but `-i` lists some of those attached only."""
    gpus = sum("pid" not in row for row in sample)
    index = -1
    for row in sample:
        index += "pid" not in row
        row["gpu_index"] = index if attached in (None, gpus) else None
    return [row for row in sample if any(row.get(name) is not None for name in NUMBERS - {"gpu_index"})]


def _of_text(lines: Sequence[str]) -> Iterator[_Value]:
    section = _TOP
    for line_no, line in enumerate((text[:MAX_LINE_CHARS] for text in lines), start=1):
        if _TEXT_GPU.match(line):
            section = ""
            yield _Value(line_no, _TOP, _GPU, line)
            continue
        found = _TEXT_LINE.match(line)
        if found is None:
            continue
        depth, name = len(found[1]), found[2].lower().replace(" ", "_")
        if depth == 0:
            section = _TOP
        elif depth == 4:
            section = name if found[3] is None else ""
        if found[3] is not None and (depth <= 8 or section == _PROCESSES):
            yield _Value(line_no, section, name, found[3])


def _of_xml(lines: Sequence[str]) -> Iterator[_Value]:
    path: list[str] = []
    for line_no, line in enumerate(lines, start=1):
        for close, tag, text in _TAG.findall(line):
            if close:
                del path[max((at for at, name in enumerate(path) if name == tag), default=len(path)) :]
                continue
            path.append(tag)
            if tag == _GPU:
                yield _Value(line_no, _TOP, _GPU, "")
            elif text.strip():
                yield _Value(line_no, _section(path), tag, text.strip())


def _section(path: Sequence[str]) -> str:
    """The section of the last element; one deeper than that is of none that matters."""
    if _GPU not in path:
        return _TOP
    inner = path[path.index(_GPU) + 1 : -1]
    if inner[:1] == [_PROCESSES]:
        return _PROCESSES
    return ("".join(inner)) if len(inner) <= 1 else "/".join(inner)
