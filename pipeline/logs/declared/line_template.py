"""A line with named fields, as a user writes it, to expressions that find it, lines that nearly are it, and its words.

    step {step}/{steps_planned} | loss {loss} | {step_time:ms}{? | grad norm {grad_norm}?} | {*} mem {mem_reserved:GiB}

`{column}` or `{column:printed}` is a value, `{_}` any one word, `{*}` any text, `{? ... ?}` a part that may be missing,
`{{` and `}}` are braces. A blank matches any number of blanks. Text before and after the pattern is free.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sweepscope.pipeline.logs.declared.columns import Target
from sweepscope.pipeline.logs.declared.units import MISSING
from sweepscope.pipeline.text.word_boundaries import BOUNDARY

_BLANK = r"\s+"
_ANY_BLANK = r"\s*"
_MAX_BROKEN_CHARS = 30


@dataclass(frozen=True)
class Literal:
    """Text of the line; `words` are its parts between blanks.

    `is_loose`: it touches an optional part, without which two blanks of the pattern are one of the line.
    """

    text: str
    is_loose: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(self.text.split())


@dataclass(frozen=True)
class Field:
    """A value; `target` is None for one that is not kept. `text` is what the user wrote."""

    text: str
    target: Target | None


@dataclass(frozen=True)
class Anything:
    """Any text, also none."""

    text: str = "{*}"


@dataclass(frozen=True)
class Maybe:
    """A part that may be missing."""

    parts: tuple[Element, ...]


Element = Literal | Field | Anything | Maybe


@dataclass(frozen=True)
class Template:
    """A parsed pattern."""

    elements: tuple[Element, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        """Its values in order, those of optional parts included."""
        return tuple(part for part in walk(self.elements) if isinstance(part, Field))

    @property
    def regex(self) -> str:
        """Finds the line; a named group per kept value."""
        end = "" if isinstance(self.elements[-1], Literal) else _END
        return _begin(self.elements) + _regex(self.elements) + end

    @property
    def head(self) -> int:
        """How many elements it takes to hold one value and one word: what a line of this kind begins with."""
        for count in range(1, len(self.elements) + 1):
            kinds = self.elements[:count]
            if any(isinstance(part, Field) for part in kinds) and any(_has_word(part) for part in kinds):
                return count
        return len(self.elements)

    @property
    def anchor(self) -> str:
        """The longest word of the head: no line of this kind is without it, cut ones included."""
        parts = self.elements[: self.head] if self.fields else self.elements
        words = [word for part in parts if isinstance(part, Literal) for word in part.words]
        return max(words, key=len, default="")

    @property
    def longest_word(self) -> str:
        """The longest word that every whole line of this kind holds."""
        words = [word for part in self.elements if isinstance(part, Literal) for word in part.words]
        return max(words, key=len, default="")

    @property
    def labels(self) -> tuple[str, ...]:
        """Words with letters behind the head, without which it is not this line."""
        remainder = [part for part in self.elements[self.head :] if isinstance(part, Literal)]
        words = (word for part in remainder for word in part.words)
        return tuple(dict.fromkeys(word for word in words if len(re.sub(r"[^A-Za-z]", "", word)) > 1))

    @property
    def cut(self) -> str:
        """Finds a line that begins like this one and ends too early."""
        begun, remainder = self.elements[: self.head + 1], ""
        for part in reversed(self.elements[len(begun) :]):
            remainder = rf"(?:{_broken(part)}|{_regex((part,))}{remainder})"
        return _begin(self.elements) + _regex(begun) + remainder

    def upto(self, count: int) -> str:
        """Finds the first `count` elements."""
        return _begin(self.elements) + _regex(self.elements[:count])


# The value at the end must be whole: not the 16 of 16x8, nor the 8 of 8.5.
_END = r"(?:\.?(?:[^\w.]|$))"


def walk(elements: tuple[Element, ...]) -> Iterator[Element]:
    """Every element, those within optional parts included."""
    for part in elements:
        if isinstance(part, Maybe):
            yield from walk(part.parts)
        else:
            yield part


def pieces(part: Literal) -> str:
    """Expression for fixed text: a blank may be any number of blanks."""
    words = [re.escape(word) for word in re.split(r"\s+", part.text)]
    if not part.is_loose:
        return _BLANK.join(words)
    begin, end = (_ANY_BLANK if not words[at] else "" for at in (0, -1))
    return begin + _BLANK.join(word for word in words if word) + (end if len(words) > 1 else "")


def value(target: Target | None, name: str | None = None) -> str:
    """Expression for a value, in a group called `name`; it may be printed as missing, and padded."""
    if target is None:
        return r"\s*\S+?"
    kind = target.printed
    group = rf"(?P<{name or target.column}>{kind.pattern}){kind.unit}"
    return rf"\s*(?:{group}|{MISSING})" if kind.is_number else rf"\s*{group}"


def _has_word(part: Element) -> bool:
    return isinstance(part, Literal) and bool(part.words)


def _begin(elements: tuple[Element, ...]) -> str:
    """The first word must not be the end of another: step is not in microstep."""
    first = elements[0]
    is_word = isinstance(first, Literal) and re.match(r"(?a:\w)", first.text)
    return BOUNDARY if is_word or isinstance(first, Field) else ""


def _regex(elements: tuple[Element, ...]) -> str:
    parts = []
    for position, part in enumerate(elements):
        if isinstance(part, Literal):
            parts.append(pieces(part))
        elif isinstance(part, Maybe):
            parts.append(f"(?:{_regex(part.parts)})?")
        elif isinstance(part, Anything):
            parts.append(".*?")
        elif part.target and part.target.printed.word == "text" and position == len(elements) - 1:
            parts.append(rf"\s*(?P<{part.target.column}>.+)")
        else:
            parts.append(value(part.target))
    return "".join(parts)


def _broken(part: Element) -> str:
    """Finds the end of the line, or fixed text that the end of the line cuts."""
    if not isinstance(part, Literal):
        return r"\s*$"
    text = part.text.strip()
    begun = (pieces(Literal(text[:count].strip())) for count in range(1, min(len(text), _MAX_BROKEN_CHARS) + 1))
    return rf"\s*(?:{'|'.join(('', *begun))})\s*$"
