"""Offline runs of Weights & Biases: `wandb/offline-run-*/run-ID.wandb`.

Formats: wandb core/pkg/leveldb (the framing: `record_framing.wandb_records`); wandb/proto/wandb_internal.proto (Record:
history = 2, config = 5, run = 17, exit = 18, environment = 26; HistoryItem: key = 1, nested_key = 2, value_json = 16;
HistoryStep: num = 1; RunRecord: config = 4; ConfigItem: as HistoryItem; RunExitRecord: exit_code = 1, not_complete = 3;
EnvironmentRecord: gpu_type = 18, gpu_count = 19). `_step` and `_timestamp` are items of the history like the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sweepscope.pipeline.logs.trackers.tracked_run import Row, TrackedRun, numbers, settings_of
from sweepscope.pipeline.text import protobuf_wire as wire
from sweepscope.pipeline.text.record_framing import wandb_records

_HISTORY, _CONFIG, _RUN, _EXIT, _ENVIRONMENT = 2, 5, 17, 18, 26


def read(data: bytes) -> TrackedRun:
    """The run of one file, as far as it was written. Raises ValueError for a file of another format."""
    rows: list[Row] = []
    config: dict[str, Any] = {}
    machine: dict[str, str] = {}
    exit_code: int | None = None
    for record in wandb_records(data):
        for number, value in wire.fields(record):
            if number == _HISTORY:
                rows.append(_row(len(rows) + 1, wire.as_bytes(value)))
            elif number == _CONFIG:
                config |= _updates(wire.as_bytes(value))
            elif number == _RUN:
                for part, content in wire.fields(wire.as_bytes(value)):
                    if part == 4:
                        config |= _updates(wire.as_bytes(content))
            elif number == _EXIT:
                exit_code = _exit_code(wire.as_bytes(value))
            elif number == _ENVIRONMENT:
                machine = _machine(wire.as_bytes(value))
    config.pop("_wandb", None)
    # A script that ended well has completed; one with another code failed, of which a log would say why.
    ended = "" if exit_code is None else "fail" if exit_code else "completed"
    return TrackedRun(rows, config, {**machine, **settings_of(config)}, ended)


def _row(number: int, history: bytes) -> Row:
    items: dict[str, Any] = {}
    step: int | None = None
    for part, value in wire.fields(history):
        if part == 1:
            items.update(_items(wire.as_bytes(value)))
        elif part == 2:
            step = next((wire.signed(one) for at, one in wire.fields(wire.as_bytes(value)) if at == 1), 0)
    scalars = {name: float(value) for name, value in numbers("", items)}
    counted = scalars.pop("_step", step)
    return Row(number, None if counted is None else int(counted), scalars.pop("_timestamp", None), scalars)


def _updates(config: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part, value in wire.fields(config):
        if part == 1:
            found.update(_items(wire.as_bytes(value)))
    return found


def _items(item: bytes) -> Iterator[tuple[str, Any]]:
    """Name and value of one item; nothing where the value is no JSON."""
    key, nested, text = "", [], ""
    for part, value in wire.fields(item):
        if part == 1:
            key = wire.as_text(value)
        elif part == 2:
            nested.append(wire.as_text(value))
        elif part == 16:
            text = wire.as_text(value)
    try:
        yield key or ".".join(nested), json.loads(text)
    except (ValueError, RecursionError):
        return


def _exit_code(record: bytes) -> int | None:
    parts = dict(wire.fields(record))
    if parts.get(3):  # not complete: the file was closed for another reason than the end of the run
        return None
    return wire.signed(parts.get(1, 0))


def _machine(record: bytes) -> dict[str, str]:
    """The accelerator, and how many the machine has; nothing of a machine without."""
    parts = dict(wire.fields(record))
    found = {"accelerator": wire.as_text(parts[18])} if parts.get(18) else {}
    return found | ({"gpus_per_node": str(wire.as_number(parts[19]))} if parts.get(19) else {})
