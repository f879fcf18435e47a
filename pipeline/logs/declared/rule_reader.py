"""Checked rules for kinds of lines, from the tables of a dialect file."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import polars as pl

from sweepscope.pipeline.logs.declared.cells import cells_regex
from sweepscope.pipeline.logs.declared.columns import EPOCH_COLUMNS, EPOCH_STEP, STEP_TOKENS, Target, suggestion, target
from sweepscope.pipeline.logs.declared.line_template import Anything, Field, Maybe, Template
from sweepscope.pipeline.logs.declared.parse_template import MAX_CHARS, Resolve, parse
from sweepscope.pipeline.logs.declared.rules import COUNTED, LINES, Rule, pair_regex
from sweepscope.pipeline.logs.declared.toml_reader import MAX_CELLS, Tables
from sweepscope.schemas import vocab

_MAX_SKIPPED = 3
_MAX_SEPARATOR = 3
_OF_STEPS = ("first_epoch", "epoch_steps", "counts", "below", "epoch_line", "epoch_line_is")
PLACES = ("above", "below")
"""Where the line with an epoch's number stands, of the epoch's steps."""
_WAYS = ("line", "parts", "cells", "pairs", "regex")
_GROUP = re.compile(r"\(\?P?<([A-Za-z_]\w*)>")


class RuleReader(Tables):
    """Takes tables of lines apart into rules.

    Where it `is_trusted`, expressions are not compiled to see if they are valid, which is most of the time that reading
    a file takes.
    """

    def __init__(self, text: str, origin: str, *, is_trusted: bool) -> None:
        super().__init__(text, origin)
        self.is_trusted = is_trusted

    def rule(self, table: str, number: int, part: dict[str, Any], allowed: tuple[str, ...]) -> Rule:
        label = f"[[{table}]] {number + 1}"
        extra = {"event": ("kind",), "step": _OF_STEPS}.get(table, ())
        self.only(part, (*_WAYS, "contains", "without", "units", "separator", *extra), table, number)
        ways = [way for way in _WAYS if way in part]
        location = self.location(table, number, ways[0] if ways else "")
        if len(ways) != 1:
            raise self.fail(
                location, f"{label} needs one of {', '.join(_WAYS)}, and has {' and '.join(ways) or 'none'}"
            )
        kind = ""
        if table == "event":
            kind = self.choice(part, "kind", tuple(vocab.EVENT_KIND), table=table, number=number)
        try:
            rule = self.way(ways[0], part, table, number, allowed)
        except ValueError as error:
            raise self.fail(location, f"{label}: {error}") from error
        without = self.strings(part, "without", table, number, default=())
        also = self.strings(part, "contains", table, number, default=())
        first, steps = (self.count(part, key, table, number) for key in ("first_epoch", "epoch_steps"))
        counter = self.choice(part, "counts", COUNTED, default="steps", table=table, number=number)
        rule = replace(
            rule,
            location=location,
            label=label,
            kind=kind,
            contains=tuple(dict.fromkeys((*rule.contains, *also))),
            without=without,
            first_epoch=first or 0,
            epoch_steps=steps,
            counts=counter,
            below=self.below(part, number, allowed, rule.columns) if "below" in part else {},
            epoch_line=self.epoch_line(part, number) if "epoch_line" in part else None,
            epoch_line_is=self.choice(part, "epoch_line_is", PLACES, default="above", table=table, number=number),
        )
        if table == "step":
            self.check_counter(rule)
        if table == "setting" and not rule.columns:
            raise self.fail(location, f"{label} names no column. Write {{tp}} where the trainer prints that value")
        return rule

    def check_counter(self, rule: Rule) -> None:
        """Raises UsageError for a step without a number, and for lines that have one and are counted all the same."""
        columns = rule.columns
        if rule.counts == LINES:
            if bad := {"step", *EPOCH_COLUMNS}.intersection(columns):
                raise self.fail(rule.location, f"{rule.label} counts its lines. Leave out {{{min(bad)}}}")
            if not columns:
                raise self.fail(rule.location, f"{rule.label} names no column. Write {{loss}} where it is printed")
            return
        if not rule.counts_steps:
            raise self.fail(rule.location, f"{rule.label} has no step number. Put {{step}} where the trainer prints it")
        if rule.epoch_line and (EPOCH_STEP not in columns or "epoch" in columns):
            raise self.fail(
                rule.location, f"{rule.label}: with an epoch_line it needs {{epoch_step}}, and no {{epoch}}"
            )
        if "step" not in columns and "epoch" not in columns and not rule.epoch_line:
            raise self.fail(rule.location, f"{rule.label}: a step that is counted within its epoch needs {{epoch}}")

    def way(self, way: str, part: dict[str, Any], table: str, number: int, allowed: tuple[str, ...]) -> Rule:
        """The rule without its location. Raises ValueError or UsageError."""
        if way in ("parts", "pairs", "cells") and table == "event":
            raise ValueError("an event is found by line or regex")
        if "separator" in part and way != "cells":
            raise ValueError("separator goes with cells only")
        if "units" in part and way != "regex":
            raise ValueError("units goes with regex only. Elsewhere, a unit is written behind the column: column:unit")
        of_way = {
            "line": self.line,
            "parts": self.parts,
            "cells": self.cells,
            "pairs": self.pairs,
            "regex": self.regex,
        }
        return of_way[way](part, table, number, allowed)

    def line(self, part: dict[str, Any], table: str, number: int, allowed: tuple[str, ...]) -> Rule:
        parsed = parse(self.text(part, "line", table, number), _resolver(allowed))
        if table == "step" and part.get("counts") != LINES:
            _check_outside(parsed)
        expressions = (parsed.regex, parsed.cut) if parsed.fields else (parsed.regex,)
        for expression in expressions:
            self.check(expression)
        # A step that is cut counts as one that nearly is one.
        return Rule("", "", (parsed.anchor if table == "step" else parsed.longest_word,), template=parsed)

    def parts(self, part: dict[str, Any], table: str, number: int, allowed: tuple[str, ...]) -> Rule:
        pieces = tuple(parse(text, _resolver(allowed)) for text in self.strings(part, "parts", table, number))
        for piece in pieces:
            _check_short(piece)
            self.check(piece.regex)
        if table != "step":
            return Rule("", "", (), parts=pieces, any_of=tuple(piece.longest_word for piece in pieces))
        if part.get("counts") != LINES:
            _check_outside(pieces[0])
        return Rule("", "", (pieces[0].anchor,), parts=pieces)

    def cells(self, part: dict[str, Any], table: str, number: int, allowed: tuple[str, ...]) -> Rule:
        names = self.strings(part, "cells", table, number, most=MAX_CELLS)
        kept = [None if name == "_" else _pair(name, name, allowed) for name in names]
        columns = [one.column for one in kept if one]
        if twice := {column for column in columns if columns.count(column) > 1}:
            raise ValueError(f"{min(twice)} occurs twice. Keep one, and write _ for the other")
        separator = part.get("separator", " ")
        if not isinstance(separator, str) or not 1 <= len(separator) <= _MAX_SEPARATOR or re.search(r"\w", separator):
            raise ValueError('separator is not a sign that stands between cells, such as ","')
        regex = cells_regex(kept, separator)
        self.check(regex)
        targets = {one.column: one for one in kept if one}
        contains = () if separator.isspace() else (separator.strip(),)
        return Rule("", "", contains or (separator,), regex=regex, targets=targets, is_blind=True)

    def below(
        self, part: dict[str, Any], number: int, allowed: tuple[str, ...], columns: Collection[str]
    ) -> dict[str, Target]:
        location = self.location("step", number, "below")
        own = (*columns, "step", "rank", "ts", *EPOCH_COLUMNS, STEP_TOKENS)
        try:
            pairs = self.keys(part, "below", "step", number, allowed)
            if bad := [kept.column for kept in pairs.values() if kept.column in own]:
                raise ValueError(f"{bad[0]} is a value of the step's own line. Leave it out of below")
        except ValueError as error:
            raise self.fail(location, f"[[step]] {number + 1}: {error}") from error
        return pairs

    def epoch_line(self, part: dict[str, Any], number: int) -> Template:
        location = self.location("step", number, "epoch_line")
        try:
            parsed = parse(self.text(part, "epoch_line", "step", number), _resolver(("epoch", "epochs")))
        except ValueError as error:
            raise self.fail(location, f"[[step]] {number + 1}: epoch_line: {error}") from error
        if not any(field.target and field.target.column == "epoch" for field in parsed.fields):
            raise self.fail(location, f"[[step]] {number + 1}: epoch_line has no {{epoch}}. Put it where the number is")
        self.check(parsed.regex)
        return parsed

    def keys(
        self, part: dict[str, Any], key: str, table: str, number: int, allowed: tuple[str, ...]
    ) -> dict[str, Target]:
        """Key as printed to what it fills. Raises ValueError."""
        found = {name: _pair(name, word, allowed) for name, word in self.table(part, key, table, number).items()}
        for name, kept in found.items():
            self.check(pair_regex(name, kept))
        return found

    def pairs(self, part: dict[str, Any], table: str, number: int, allowed: tuple[str, ...]) -> Rule:
        pairs = self.keys(part, "pairs", table, number, allowed)
        step_key = next((key for key, kept in pairs.items() if kept.column in ("step", EPOCH_STEP)), None)
        return Rule("", "", (step_key,) if step_key else (), pairs=pairs, any_of=() if step_key else tuple(pairs))

    def regex(self, part: dict[str, Any], table: str, number: int, allowed: tuple[str, ...]) -> Rule:
        contains = self.strings(part, "contains", table, number)
        units = self.table(part, "units", table, number, default={})
        regex = self.text(part, "regex", table, number)
        if len(regex) > MAX_CHARS:
            raise ValueError(f"the regex has {len(regex):,} characters; at most {MAX_CHARS:,} are read")
        self.check(regex)
        groups = _GROUP.findall(regex)
        if unknown := [name for name in units if name not in groups]:
            raise ValueError(
                f"units names {unknown[0]}, which is no group of the regex. {suggestion(unknown[0], groups)}"
            )
        targets = {name: target(name, units.get(name), allowed) for name in groups}
        return Rule("", "", contains, regex=regex, targets=targets)

    def check(self, regex: str) -> None:
        """Raises ValueError for an expression that polars does not take."""
        if self.is_trusted:
            return
        try:
            pl.select(pl.lit("").str.extract_groups(regex))
        except pl.exceptions.PolarsError as error:
            messages = [line.strip() for line in str(error).splitlines() if line.strip()]
            reason = messages[-1].removeprefix("error: ")
            raise ValueError(f"the regex is not valid: {reason} (Rust's syntax, no look-around)") from error


def _check_short(piece: Template) -> None:
    """Raises ValueError for a part that could take long to look for in a line: Python searches some of them."""
    if any(isinstance(element, Anything | Maybe) for element in piece.elements):
        raise ValueError("a part is short and whole: split it at {*} and {? ?} into several parts")
    if sum(isinstance(element, Field) and element.target is None for element in piece.elements) > _MAX_SKIPPED:
        raise ValueError(f"a part passes over at most {_MAX_SKIPPED} words with {{_}}")


def _check_outside(template: Template) -> None:
    """Raises ValueError where the step's number may be missing."""
    columns = {part.target.column for part in template.elements if isinstance(part, Field) and part.target}
    if not columns & {"step", EPOCH_STEP}:
        raise ValueError("the step number {step} is missing, or optional; of parts, it belongs into the first")


def _pair(key: str, word: str, allowed: tuple[str, ...]) -> Target:
    name, colon, unit = word.partition(":")
    if not key.strip():
        raise ValueError("an empty key in pairs")
    return target(name.strip(), unit.strip() if colon else None, allowed)


def _resolver(allowed: tuple[str, ...]) -> Resolve:
    return lambda name, word: None if name == "_" else target(name, word, allowed)
