"""A line with named fields, as a user writes it, to expressions that find it, lines that nearly are it, and its words.

    step {step}/{steps_planned} | loss {loss} | {step_time:ms}{? | grad norm {grad_norm}?} | {*} mem {mem_reserved:GiB}

`{column}` or `{column:printed}` is a value, `{_}` any one word, `{*}` any text, `{? ... ?}` a part that may be missing,
`{{` and `}}` are braces. A blank matches any number of blanks. Text before and after the pattern is free.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from sweepscope.pipeline.logs.declared.columns import Target
from sweepscope.pipeline.logs.declared.units import MISSING

MAX_CHARS = 2_000
MAX_FIELDS = 60
_MAX_DEPTH = 4
_BLANK = r"\s+"
_ANY_BLANK = r"\s*"
_MAX_BROKEN_CHARS = 30
_TOKEN = re.compile(r"\{\{|\}\}|\{\?|\?\}|\{([^{}]*)\}|[{}]")


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
Resolve = Callable[[str, str | None], Target | None]


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


def parse(text: str, resolve: Resolve, *, needs_text: bool = True) -> Template:
    """The template that `text` spells.

    Args:
        text: as the user wrote it.
        resolve: name and printed word of a field to what it fills; None for a field that is not kept.
        needs_text: it has to begin with text by which the line is found.

    Raises ValueError, saying what is wrong, and as `resolve` does.
    """
    if len(text) > MAX_CHARS:
        raise ValueError(f"the pattern has {len(text):,} characters; at most {MAX_CHARS:,} are read")
    tokens = list(_tokens(text.strip()))
    elements, remainder = _parse(tokens, 0, 0, resolve)
    template = Template(_loosened(elements))
    if remainder < len(tokens):
        raise ValueError("?} closes nothing: an optional part is written {? ... ?}")
    # The expression for a cut line nests once per element, and 250 levels are all that there are.
    if sum(kind == "field" for kind, _ in tokens) > MAX_FIELDS:
        raise ValueError(f"the pattern has too many fields; at most {MAX_FIELDS} are read")
    if not template.fields and not template.anchor:
        raise ValueError("the pattern is empty")
    if needs_text and not template.anchor:
        raise ValueError("the pattern begins without any fixed text. Put in the words that the trainer prints")
    columns = [field.target.column for field in template.fields if field.target]
    if twice := {column for column in columns if columns.count(column) > 1}:
        raise ValueError(f"{min(twice)} occurs twice. Keep one, and write {{_}} for the other")
    if template.head and template.fields and not _required(template):
        raise ValueError("every value is optional. Let one stand outside of {? ... ?}")
    return template


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


def _required(template: Template) -> bool:
    return any(isinstance(part, Field) for part in template.elements)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """(kind, text): "text", "open", "close" or "field"."""
    literal, position = "", 0
    for found in _TOKEN.finditer(text):
        literal, position = literal + text[position : found.start()], found.end()
        if found[0] in ("{{", "}}"):
            literal += found[0][0]
            continue
        if literal:
            yield "text", literal
            literal = ""
        if found[0] in ("{?", "?}"):
            yield ("open" if found[0] == "{?" else "close"), found[0]
        elif found[1] is None:
            raise ValueError(f"a lone {found[0]}: a field is written {{column}}, a brace {{{{ or }}}}")
        else:
            yield "field", found[1]
    if literal + text[position:]:
        yield "text", literal + text[position:]


def _parse(tokens: list[tuple[str, str]], at: int, depth: int, resolve: Resolve) -> tuple[list[Element], int]:
    found: list[Element] = []
    while at < len(tokens):
        kind, text = tokens[at]
        if kind == "close":
            return found, at + (depth > 0)
        if kind == "open":
            if depth == _MAX_DEPTH:
                raise ValueError(f"optional parts lie more than {_MAX_DEPTH} deep in each other")
            parts, at = _parse(tokens, at + 1, depth + 1, resolve)
            if not parts or tokens[at - 1][0] != "close":
                raise ValueError("an optional part {? is empty or not closed by ?}")
            found.append(Maybe(_loosened(parts, within=True)))
            continue
        found.append(Literal(text) if kind == "text" else _field(text, resolve))
        at += 1
    return found, at


def _loosened(parts: Sequence[Element], *, within: bool = False) -> tuple[Element, ...]:
    """The elements of one level, those texts marked that touch an optional part, or all within one."""

    def touches(at: int) -> bool:
        return any(isinstance(parts[near], Maybe) for near in (at - 1, at + 1) if 0 <= near < len(parts))

    return tuple(
        replace(part, is_loose=True) if isinstance(part, Literal) and (within or touches(at)) else part
        for at, part in enumerate(parts)
    )


def _field(text: str, resolve: Resolve) -> Element:
    if text == "*":
        return Anything()
    name, colon, word = text.partition(":")
    if not name.strip() or (colon and not word.strip()):
        raise ValueError(f"{{{text}}} is no field: write {{column}}, {{column:unit}}, {{_}} or {{*}}")
    return Field(f"{{{text}}}", resolve(name.strip(), word.strip() or None))


def _has_word(part: Element) -> bool:
    return isinstance(part, Literal) and bool(part.words)


def _begin(elements: tuple[Element, ...]) -> str:
    """The first word must not be the end of another: step is not in microstep."""
    first = elements[0]
    is_word = isinstance(first, Literal) and re.match(r"\w", first.text)
    return r"(?-u:\b)" if is_word or isinstance(first, Field) else ""


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
