"""Dialect files of logs whose steps are printed alike: what they have in common, and one file for all of them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from sweepscope.pipeline.logs.declared.slots import slots
from sweepscope.pipeline.logs.declared.toml_writer import written


def merged(texts: Sequence[str]) -> str:
    """One file for logs whose steps are printed alike: the commonest one with the settings and events of all."""
    ranked = sorted(set(texts), key=lambda text: (-texts.count(text), -len(text), text))
    data = tomllib.loads(ranked[0])
    for text in ranked[1:]:
        _add(data, tomllib.loads(text))
    return written(data)


def steps_of(text: str) -> str:
    """What files have in common that read the same values of steps: a key to group them by."""
    parts = [
        (step.get("parts"), step.get("cells"), step.get("separator"), step.get("below"))
        for step in tomllib.loads(text).get("step", [])
    ]
    return repr(parts)


def form_of(text: str) -> str:
    """What files have in common that find the same values of steps, whatever they are taken for."""
    data = tomllib.loads(text)
    keys = sorted({(slot.printed, slot.is_step) for slot in slots(data) if slot.is_step})
    return repr([keys, *(sorted(step.get("contains", [])) for step in data.get("step", []))])


def _add(data: dict[str, Any], other: Mapping[str, Any]) -> None:
    for dump in other.get("arguments", []):
        mine = next((one for one in data.get("arguments", []) if one["line"] == dump["line"]), None)
        if mine is None:
            data.setdefault("arguments", []).append(deepcopy(dump))
            continue
        mine["columns"] = {**dump["columns"], **mine["columns"]}
        if words := {**dump.get("words", {}), **mine.get("words", {})}:
            mine["words"] = {name: one for name, one in words.items() if name in mine["columns"]}
    for table in ("setting", "event"):
        known = [one["line"] for one in data.get(table, [])]
        data.setdefault(table, []).extend(deepcopy([one for one in other.get(table, []) if one["line"] not in known]))
        if not data[table]:
            del data[table]
