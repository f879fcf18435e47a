"""Where the tables of a dialect file name a column, as places that can be written to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

UNREAD = "_"
"""Meaning of a value that is in no column."""

FIELD = re.compile(r"(?<!\{)\{([a-z_]\w*(?::[^{}]*)?|_)\}(?!\})")
_NUMBER = r"[-+]?[0-9][0-9.,]*(?:[eE][-+]?[0-9]+)?[KMBG]?"
_UNIT = r"[ ]?[A-Za-zµ%]*?"
_TEXTS_OF_ONE = 3


@dataclass(frozen=True)
class Slot:
    """Where a file names a column; `put` writes another meaning there. The rest as of `Value`.

    `pattern` finds its value in an example line, in a group; None where it cannot be found so.
    """

    key: str
    printed: str
    meaning: str
    is_step: bool
    put: Callable[[str], None]
    pattern: str | None = None

    def example_in(self, line: str) -> str:
        """Its value in a line, "" where it is not found."""
        found = re.search(self.pattern, line) if self.pattern and line else None
        return found[1].strip() if found else ""


def slots(data: Mapping[str, Any]) -> Iterator[Slot]:
    """Every place in the tables of a file that names a column, as it would be put into them."""
    signature = data.get("signature") or [""]
    for number, rule in enumerate(data.get("step", [])):
        for at in range(len(rule.get("parts", []))):
            yield from _of_text(rule["parts"], at, f"step {number}", is_step=True)
        if "line" in rule:
            yield from _of_text(rule, "line", f"step {number}", is_step=True)
        yield from _of_cells(rule, f"step {number}", signature[0])
        for entry in ("pairs", "below"):
            for name in rule.get(entry, {}):
                yield _of_name(rule[entry], name, f"step {number}", is_step=True)
    for number, rule in enumerate(data.get("arguments", [])):
        for name in rule["columns"]:
            yield _of_name(rule["columns"], name, f"arguments {number}", is_step=False)
    for number, rule in enumerate(data.get("setting", [])):
        if "line" in rule:
            yield from _of_text(rule, "line", f"setting {number}", is_step=False)


def _of_text(holder: Any, at: Any, place: str, *, is_step: bool) -> Iterator[Slot]:
    """Slots of a text with fields. What was not a value of its own before stays passed over."""
    parts = FIELD.split(holder[at])  # texts and, between them, meanings
    is_single = len(parts) == _TEXTS_OF_ONE
    for index in range(1, len(parts), 2):
        meaning = parts[index]
        if meaning == UNREAD and not is_single and any(part != UNREAD for part in parts[1::2]):
            continue  # a word beside a value, by which that is found
        if meaning == UNREAD and index != len(parts) - 2:
            continue

        def put(other: str, parts: list[str] = parts, index: int = index) -> None:
            parts[index] = other
            holder[at] = "".join(f"{{{part}}}" if odd % 2 else part for odd, part in enumerate(parts))

        shown = [("…" if odd == index else "·") if odd % 2 else part for odd, part in enumerate(parts)]
        printed = "".join(shown).replace("{{", "{").replace("}}", "}").strip()
        key = f"{place} {printed if meaning == UNREAD else meaning.partition(':')[0]}"
        yield Slot(key, printed, meaning, is_step, put, _pattern(parts, index))


def _pattern(parts: Sequence[str], index: int) -> str:
    """Finds one value of a text with fields, in a group."""
    texts = [
        r"\s*".join(map(re.escape, re.split(r"\s+", part.replace("{{", "{").replace("}}", "}"))))
        if not odd % 2
        else (rf"\s*({_NUMBER}){_UNIT}" if odd == index else r"\s*\S+?")
        for odd, part in enumerate(parts)
    ]
    begin = r"(?<![A-Za-z_])" if parts[0][:1].isalpha() else ""
    return begin + "".join(texts)


def _of_cells(rule: Mapping[str, Any], place: str, header: str) -> Iterator[Slot]:
    """Slots of a row, named after the header where it is whole."""
    cells, mark = rule.get("cells", []), rule.get("separator", " ")
    names = [name.strip() for name in (header.strip("|│ ").split(mark) if mark.strip() else header.split())]
    other = rf"[^{re.escape(mark.strip())}]*" if mark.strip() else r"\S+"
    between = re.escape(mark.strip()) if mark.strip() else r"\s+"
    for at, meaning in enumerate(cells):

        def put(new: str, at: int = at) -> None:
            cells[at] = new

        printed = names[at] if len(names) == len(cells) else f"cell {at + 1}"
        pattern = between.join(f"({other})" if one == at else other for one in range(len(cells)))
        yield Slot(f"{place} {printed}", printed, meaning, True, put, rf"^[|│\s]*{pattern}")


def _of_name(holder: dict[str, str], name: str, place: str, *, is_step: bool) -> Slot:
    """The slot of a value that is printed beside its name."""

    def put(other: str) -> None:
        if other == UNREAD:
            del holder[name]
        else:
            holder[name] = other

    return Slot(f"{place} {name}", name, holder[name], is_step, put)
