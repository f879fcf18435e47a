"""The values of a dialect file with their meanings, to confirm or correct, and the file with what was corrected."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.logs.declared.columns import RUN_COLUMNS, STEP_COLUMNS, target
from sweepscope.pipeline.logs.declared.slots import FIELD, UNREAD, slots
from sweepscope.pipeline.logs.declared.toml_writer import written

_WITH_UNIT = {"duration": "s", "size": "GiB"}
_LONG_EXAMPLE = 300
_COUNTERS = ("step", "epoch", "epoch_step")


@dataclass(frozen=True)
class Value:
    """One value that the lines of a dialect file print.

    Attributes:
        key: by which a correction names it.
        printed: the text around it, with "…" in its place.
        meaning: column, or column:unit, or UNREAD.
        is_step: of a step's line, as opposed to a setting.
        is_counter: the number of the step, which every file needs.
        example: the value in an example line, "" where that has none.
    """

    key: str
    printed: str
    meaning: str
    is_step: bool
    is_counter: bool
    example: str = ""


def values_of(text: str, example: str = "") -> list[Value]:
    """The values of a dialect file, those of steps first; pieces for the same column are one value.

    Args:
        text: of the file.
        example: a line of a step.
    """
    found: dict[str, Value] = {}
    for slot in slots(tomllib.loads(text)):
        known = found.get(slot.key)
        if known is None or not known.example:
            is_counter = slot.meaning.partition(":")[0] in _COUNTERS
            value = Value(slot.key, slot.printed, slot.meaning, slot.is_step, is_counter, slot.example_in(example))
            found[slot.key] = value if known is None else replace(known, example=value.example)
    return list(found.values())


def corrected(
    text: str,
    meanings: Mapping[str, str],
    *,
    name: str,
    constants: Mapping[str, str | int] | None = None,
    folder: str = "",
    example: str = "",
) -> str:
    """The dialect file with other meanings.

    Args:
        text: of the file.
        meanings: by the key of a value; those that are left out stay as they are.
        name: of the dialect.
        constants: by column, in place of those of the folder; None leaves all as they are.
        folder: that the constants hold for; "" for all logs.
        example: a line of a step, as a comment.

    Raises UsageError where two values are taken for one column, or a meaning does not fit.
    """
    data = {"name": name, **{key: value for key, value in tomllib.loads(text).items() if key != "name"}}
    values = {value.key: value for value in values_of(text)}
    if unknown := [key for key in meanings if key not in values]:
        raise UsageError(f"The dialect file has no value {unknown[0]!r}. There are: {', '.join(values)}.")
    _check({key: meanings.get(key, value.meaning) for key, value in values.items()}, values)
    for slot in list(slots(data)):
        if meanings.get(slot.key, slot.meaning) != slot.meaning:
            slot.put(meanings[slot.key])
    data = _without_empty_rules(data)
    if constants is not None:
        others = [one for one in data.pop("constants", []) if _folder(one) != folder.rstrip("/")]
        stated = [{**({"folder": folder} if folder else {}), **constants}] if constants else []
        data |= {"constants": [*others, *stated]} if others or stated else {}
    note = "".join(char if char.isprintable() else " " for char in example.strip())[:_LONG_EXAMPLE]
    lines = written(data)
    return lines.replace("[[step]]\n", f"[[step]]\n# {note}\n", 1) if note else lines


def example_of(text: str) -> str:
    """The example line that `corrected` has put below the first [[step]] of a file; "" without."""
    found = re.search(r"^\[\[step\]\]\n# (.*)$", text, re.MULTILINE)
    return found[1] if found else ""


def folders_of(text: str) -> list[str]:
    """The folders that a file states constants for."""
    return [_folder(one) for one in tomllib.loads(text).get("constants", [])]


def constants_of(text: str, folder: str = "") -> dict[str, str | int]:
    """The constants that a file states for a folder."""
    tables = tomllib.loads(text).get("constants", [])
    mine = [one for one in tables if _folder(one) == folder.rstrip("/")]
    return {key: value for one in mine for key, value in one.items() if key != "folder"}


def _check(meanings: Mapping[str, str], values: Mapping[str, Value]) -> None:
    """Raises UsageError for a meaning that is none, or two values of steps with one column."""
    seen: dict[str, str] = {}
    for key, meaning in meanings.items():
        value = values[key]
        if meaning == UNREAD:
            if value.is_counter:
                raise UsageError(f"{value.printed!r} numbers the steps, and has to stay {value.meaning}.")
            continue
        name, _, unit = meaning.partition(":")
        allowed = STEP_COLUMNS if value.is_step else RUN_COLUMNS
        try:
            kept = target(name, unit or None, allowed)
        except ValueError as error:
            raise UsageError(f"{value.printed!r}: {error}") from error
        if kept.printed.word in _WITH_UNIT and not unit and meaning != value.meaning:
            raise UsageError(
                f"{value.printed!r}: {name} needs its unit, such as {name}:{_WITH_UNIT[kept.printed.word]}."
            )
        column = kept.column
        if value.is_step and column in seen:
            both = f"{seen[column]!r} and {value.printed!r} are both taken for {name}"
            raise UsageError(f"{both}. Keep one of them, and leave the other out.")
        seen[column] = value.printed


def _without_empty_rules(data: dict[str, Any]) -> dict[str, Any]:
    """The tables without rules that fill nothing any more."""
    kept = dict(data)
    dumps = [one for one in data.get("arguments", []) if one["columns"]]
    for one in dumps:
        if words := {name: each for name, each in one.get("words", {}).items() if name in one["columns"]}:
            one["words"] = words
        else:
            one.pop("words", None)
    lines = [one for one in data.get("setting", []) if set(FIELD.findall(one.get("line", "{x}"))) - {UNREAD}]
    for step in data.get("step", []):
        if not step.get("below", True):
            del step["below"]
    for table, rules in (("arguments", dumps), ("setting", lines)):
        kept.pop(table, None)
        kept |= {table: rules} if rules else {}
    return kept


def _folder(constants: Mapping[str, Any]) -> str:
    return str(constants.get("folder", "")).rstrip("/")
