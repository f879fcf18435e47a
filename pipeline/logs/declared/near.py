"""Where a line that nearly is one of a rule's stops being one, and what should stand there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from sweepscope.pipeline.logs.declared.line_template import Anything, Element, Field, Literal, Template
from sweepscope.pipeline.logs.declared.rules import Rule, key_regex, pair_regex


@dataclass(frozen=True)
class Near:
    """A line that begins like a rule's and is not found by it.

    `at` is the character where it stops being one, `wanted` what should stand there; None where that is unknown.
    """

    line_no: int
    text: str
    at: int | None
    wanted: str
    is_reject: bool


def near_line(line_no: int, text: str, rule: Rule, *, is_reject: bool) -> Near:
    """A line that `rule` does not find, and where it stops being one of its lines."""
    at, wanted = None, "the expression does not match"
    if template := rule.parts[0] if rule.parts else rule.template:
        at, wanted = stop(text, template)
    elif rule.pairs is not None:
        for key, kept in rule.pairs.items():
            end = _end(text, key_regex(key))
            if end is not None and _end(text, pair_regex(key, kept)) is None:
                blanks = len(text[end:]) - len(text[end:].lstrip())
                return Near(line_no, text, end + blanks, f"a value of {key}, such as {kept.printed.example}", is_reject)
        wanted = "a key is missing"
    return Near(line_no, text, at, wanted, is_reject)


def stop(text: str, template: Template) -> tuple[int, str]:
    """Where in a line the pattern stops to fit, and what it wants there."""
    parts = tuple(_by_word(template.elements))
    begun, at = 0, 0
    for count in range(len(parts), 0, -1):
        end = _end(text, Template(parts).upto(count))
        if end is not None:
            begun, at = count, end
            break
    if begun == len(parts):
        behind = re.match(r"\S*", text[at:])
        what = behind.group() if behind else ""
        return at, f"the end of the value: name the unit that is printed, or write {what!r} behind the field"
    blanks = len(text[at:]) - len(text[at:].lstrip())
    ahead = next((part for part in parts[begun:] if not isinstance(part, Literal) or part.text.strip()), parts[begun])
    return at + blanks, _wish(ahead)


def _wish(part: Element) -> str:
    if isinstance(part, Field):
        return f"{part.text}, such as {part.target.printed.example}" if part.target else f"{part.text}, any word"
    return f"{part.text.strip()!r}" if isinstance(part, Literal) else "more"


def _by_word(elements: Sequence[Element]) -> list[Element]:
    """Elements with fixed text taken word by word, so that the stop is exact to the word."""
    parts: list[Element] = []
    for part in elements:
        if isinstance(part, Literal):
            parts += [replace(part, text=word) for word in re.findall(r"\s*\S+|\s+$", part.text)]
        elif not isinstance(part, Anything) or not parts or not isinstance(parts[-1], Anything):
            parts.append(part)
    return parts


def _end(text: str, expression: str) -> int | None:
    """Character behind the first match; None without one. By polars, whose expressions cannot run away."""
    line = pl.Series([text])
    begin = line.str.find(expression).item()
    if begin is None:
        return None
    matched = line.str.extract(f"({expression})").item()
    return len(text.encode()[:begin].decode()) + len(matched)
