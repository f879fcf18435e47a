"""Dumps of PyTorch's flight recorder, pickle or JSON, to rows (torch/csrc/distributed/c10d/FlightRecorderDetail.hpp).

A dump from someone else's cluster is untrusted: pickles go through `pipeline.io.safe_pickle`, which knows plain values
only, and every value is checked before it is used. Formats 1.1 (torch 2.2) to 2.10 differ in which fields there are, so
each is looked up on its own. Until 1.4 a group has a number instead of a name, which each process counts for itself.
Only the file's name has the global rank.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import polars as pl

from sweepscope.pipeline.io.safe_pickle import Limits, is_pickle, load
from sweepscope.schemas.tables.hangs import FLIGHT_RECORDS

MAX_RECORDS = 200_000
_LIMITS = Limits(string_bytes=1 << 20, depth=16, nodes=5_000_000)
_RANKS = re.compile(r"\[\s*(?:\d{1,7}(?:\s*,\s*\d{1,7})*)?\s*\]")
_TEXT_CHARS = 2_000
_INT = 1 << 63
STACK_FRAMES = 12


def records(data: bytes, *, rank: int | None) -> tuple[pl.DataFrame, int]:
    """Rows of `flight_records` without `source_path` and `run_dir`, and the number of entries that are no records.

    Raises:
        ValueError: neither a pickle of plain values nor JSON, or not a dump of the flight recorder.
    """
    dump = load(data, _LIMITS) if is_pickle(data) else json.loads(data.decode("utf-8", "replace"))
    if not isinstance(dump, dict) or not ({"entries", "pg_config", "pg_status"} & set(dump)):
        raise ValueError("no entries, process groups or status of a flight recorder in it")
    entries = dump.get("entries") or []
    if not isinstance(entries, list):
        raise ValueError("its entries are not a list")
    groups = _groups(dump.get("pg_config"))
    status = dump.get("pg_status")
    version = _text(dump.get("version"))
    rows = [
        {"dump_version": version, "rank": rank, "line_no": number, **_record(entry, groups, status)}
        for number, entry in enumerate(entries[:MAX_RECORDS], 1)
        if isinstance(entry, dict)
    ]
    schema = {name: dtype for name, dtype in FLIGHT_RECORDS.polars_schema.items() if name not in _PROVENANCE}
    return pl.DataFrame(rows, schema=schema), len(entries) - len(rows)


_PROVENANCE = ("source_path", "run_dir")


def _groups(config: object) -> dict[str, str | None]:
    """Ranks of each process group by its name, separated by a comma; in 1.4 a group is a list of them."""
    found = {}
    for name, group in config.items() if isinstance(config, dict) else ():
        found[str(name)] = _ranks(group.get("ranks") if isinstance(group, dict) else group)
    return found


def _ranks(value: object) -> str | None:
    """They are printed as "[0, 1]". Those of very large groups are unknown: each record would repeat them."""
    if isinstance(value, list | tuple) and all(isinstance(rank, int) for rank in value):
        value = str(list(value))
    is_list = isinstance(value, str) and len(value) <= _TEXT_CHARS and _RANKS.fullmatch(value) is not None
    return ",".join(re.findall(r"\d+", str(value))) or None if is_list else None


def _record(entry: Mapping[Any, Any], groups: Mapping[str, str | None], status: object) -> dict[str, object]:
    pair = entry.get("process_group")
    name, desc = (pair[0], pair[1]) if isinstance(pair, list | tuple) and len(pair) == 2 else (None, None)
    if pair is None and _int(entry.get("pg_id")) is not None:
        name = str(entry["pg_id"])
    known = status.get(str(entry.get("pg_id"))) if isinstance(status, dict) else None
    progress = known if isinstance(known, dict) else {}
    profiling = _text(entry.get("profiling_name"))
    op = operation(profiling)
    return {
        "record_id": _int(entry.get("record_id")),
        "pg_name": _text(name),
        "pg_desc": _text(desc),
        "pg_ranks": groups.get(str(name)) or None,
        "seq": _int(entry.get("collective_seq_id", entry.get("seq_id"))),
        "p2p_seq": _int(entry.get("p2p_seq_id")),
        "op_id": _int(entry.get("op_id")),
        "op": op,
        "profiling_name": profiling,
        "is_p2p": entry.get("is_p2p") is True or op in ("send", "recv"),
        "op_state": _text(entry.get("state")),
        "is_retired": entry.get("retired") is True,
        "input_sizes": _sizes(entry.get("input_sizes")),
        "input_dtypes": _words(entry.get("input_dtypes")),
        "output_sizes": _sizes(entry.get("output_sizes")),
        "output_dtypes": _words(entry.get("output_dtypes")),
        "created_ns": _time(entry.get("time_created_ns")),
        "found_started_ns": _time(entry.get("time_discovered_started_ns")),
        "found_completed_ns": _time(entry.get("time_discovered_completed_ns")),
        "duration_ms": _float(entry.get("duration_ms")),
        "timeout_ms": _int(entry.get("timeout_ms")),
        "last_enqueued_seq": _int(progress.get("last_enqueued_collective")),
        "last_started_seq": _int(progress.get("last_started_collective")),
        "last_completed_seq": _int(progress.get("last_completed_collective")),
        "stack": _stack(entry.get("frames")),
    }


def operation(profiling: str | None) -> str | None:
    """The operation without its backend and peers.

    >>> operation("nccl:all_reduce"), operation("nccl:send 1->2"), operation("gloo:_allgather_base")
    ('all_reduce', 'send', '_allgather_base')
    """
    return profiling.split(":", 1)[-1].split(" ", 1)[0] if profiling else None


def _text(value: object) -> str | None:
    return value[:_TEXT_CHARS] if isinstance(value, str) and value else None


def _int(value: object) -> int | None:
    """An integer, which JSON dumps may give as text."""
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,18}", value):
        value = int(value)
    is_int = isinstance(value, int) and not isinstance(value, bool)
    return value if is_int and isinstance(value, int) and -_INT <= value < _INT else None


def _time(value: object) -> int | None:
    """Nanoseconds since 1970; JSON has 0 where pickle has None."""
    return _int(value) or None


def _float(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _sizes(value: object) -> str | None:
    """Shapes as [8, 16] x [4]; anything but lists of integers is unknown."""
    if not isinstance(value, list | tuple):
        return None
    shapes = [[_int(size) for size in shape] for shape in value[:64] if isinstance(shape, list | tuple)]
    return json.dumps(shapes)[:2_000] if shapes else None


def _words(value: object) -> str | None:
    if not isinstance(value, list | tuple):
        return None
    return ", ".join(_text(word) or "?" for word in value[:64]) or None


def _stack(value: object) -> str | None:
    if not isinstance(value, list | tuple):
        return None
    frames = [frame for frame in value[:STACK_FRAMES] if isinstance(frame, dict)]
    texts = (f"{_text(f.get('filename'))}:{_int(f.get('line'))} {_text(f.get('name'))}" for f in frames)
    return " < ".join(texts)[:4_000] or None
