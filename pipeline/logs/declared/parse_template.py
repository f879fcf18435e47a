"""A line with named fields, as a user writes it, to its elements; `line_template` describes the notation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from sweepscope.pipeline.logs.declared.columns import Target
from sweepscope.pipeline.logs.declared.line_template import Anything, Element, Field, Literal, Maybe, Template

MAX_CHARS = 2_000
_MAX_FIELDS = 60
_MAX_DEPTH = 4
_TOKEN = re.compile(r"\{\{|\}\}|\{\?|\?\}|\{([^{}]*)\}|[{}]")

Resolve = Callable[[str, str | None], Target | None]
"""Name and printed word of a field to what it fills; None for a field that is not kept. Raises ValueError."""


def parse(text: str, resolve: Resolve, *, needs_text: bool = True) -> Template:
    """The template that `text` spells.

    Args:
        text: as the user wrote it.
        resolve: see Resolve.
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
    if sum(kind == "field" for kind, _ in tokens) > _MAX_FIELDS:
        raise ValueError(f"the pattern has too many fields; at most {_MAX_FIELDS} are read")
    if not template.fields and not template.anchor:
        raise ValueError("the pattern is empty")
    if needs_text and not template.anchor:
        raise ValueError("the pattern begins without any fixed text. Put in the words that the trainer prints")
    columns = [field.target.column for field in template.fields if field.target]
    if twice := {column for column in columns if columns.count(column) > 1}:
        raise ValueError(f"{min(twice)} occurs twice. Keep one, and write {{_}} for the other")
    if template.head and template.fields and not any(isinstance(part, Field) for part in template.elements):
        raise ValueError("every value is optional. Let one stand outside of {? ... ?}")
    return template


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
