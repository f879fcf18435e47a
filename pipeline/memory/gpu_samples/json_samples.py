"""GPU samples as JSON: `rocm-smi --json`, `amd-smi metric|monitor --json`, `gpustat --json`, in one or many documents.

rocm-smi (rocm_smi_lib, python_smi_tools/rocm_smi.py): `{"card0": {"VRAM Total Used Memory (B)": "1"}, "system": {}}`.
amd-smi (amdsmi, amdsmi_cli/amdsmi_commands.py): a list of GPUs, since ROCm 7 below `gpu_data`; parts of a GPU are
dicts, quantities `{"value": 1, "unit": "MB"}`. gpustat: a list `gpus` with the names of nvidia-smi.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from sweepscope.pipeline.memory.gpu_samples.csv_tables import column_of, moment
from sweepscope.pipeline.memory.gpu_samples.units import RAW_LIMIT, REQUIRED_ANY, Rejects, quantity

_KNOWN = re.compile(
    r'"VRAM Total (?:Used )?Memory \(B\)"|"GPU use \(%\)"|"(?:used_vram|vram_used|gfx_activity|memory\.used)"\s*:'
)
_CARD = re.compile(r"card(\d{1,4})")
_START = re.compile(r"^\s*[{\[]", re.MULTILINE)
_MAX_DEPTH = 6
_SKIPPED_PARTS = frozenset({"processes", "process_list"})

Row = dict[str, Any]


def is_json_samples(head: str) -> bool:
    """Whether a text begins with samples as JSON."""
    return _START.match(head) is not None and _KNOWN.search(head) is not None


def read_json(text: str) -> tuple[pl.DataFrame, Rejects]:
    """Rows of `gpu_samples`, one per GPU and document, and damaged documents by their first line.

    Raises ValueError for a text without samples.
    """
    rows: list[Row] = []
    rejects: Rejects = []
    decoder = json.JSONDecoder()
    at, line_no, counted = 0, 1, 0
    while found := _START.search(text, at):
        begin = found.end() - 1
        line_no += text.count("\n", counted, begin)
        counted = begin
        try:
            document, at = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            raw = text[begin : begin + RAW_LIMIT].split("\n", 1)[0]
            rejects.append((line_no, "JSON that is cut off or damaged", raw))
            at = _next_document(text, begin)
            continue
        rows += [{"line_no": line_no, **row} for row in _rows(document)]
    if not rows:
        raise ValueError("no sample of a GPU")
    return pl.DataFrame(rows, infer_schema_length=None), rejects


def _next_document(text: str, begin: int) -> int:
    """Offset of the next line that begins a document, behind a damaged one."""
    found = re.compile(r"^[{\[]", re.MULTILINE).search(text, begin + 1)
    return found.start() if found else len(text)


def _rows(document: Any) -> Iterator[Row]:
    listed = document.get("gpu_data", document.get("gpus", document)) if isinstance(document, dict) else document
    outer = _quantities(document) if isinstance(document, dict) and listed is not document else {}
    cards: list[tuple[int | None, Any]]
    if isinstance(listed, dict):
        cards = [(int(card[1]), part) for name, part in listed.items() if (card := _CARD.fullmatch(name))]
        cards = cards or [(None, listed)]  # one GPU, with its index among its values
    elif isinstance(listed, list):
        cards = [(None, part) for part in listed]
    else:
        return
    for number, part in cards:
        row = {**outer, **_quantities(part)} if isinstance(part, dict) else {}
        if REQUIRED_ANY & row.keys():
            yield row if number is None else {**row, "gpu_index": number}


def _quantities(part: Mapping[str, Any], depth: int = 0) -> Row:
    """Values by column of a dict and of the dicts in it; of two values of one column the first."""
    row: Row = {}
    for name, value in part.items():
        if isinstance(value, dict) and "value" not in value:
            if depth < _MAX_DEPTH and name not in _SKIPPED_PARTS:
                row = {**_quantities(value, depth + 1), **row}
            continue
        known = column_of(name)
        if known is None or isinstance(value, list) or value is None:
            continue
        column, factor = known
        text = f"{value['value']} {value.get('unit', '')}".strip() if isinstance(value, dict) else str(value)
        read = moment(text) if column == "ts" else quantity(column, text, factor)
        if read is not None:
            row.setdefault(column, read)
    return row
