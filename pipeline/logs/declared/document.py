"""Checked rules of a dialect file, from its TOML text. Every error names file, line and remedy.

Bounds: the size of the file, and how many rules, literals and characters it may hold. Expressions are those of
polars, which take time linear in the line whatever they are, and are compiled here once to see that they are valid.
That is most of the time it takes; `is_trusted` leaves it out for the files that come with sweepscope and its tests.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from sweepscope.pipeline.logs.declared.argument_lines import argument_regex, check_field
from sweepscope.pipeline.logs.declared.columns import (
    EPOCH_STEP,
    EVENT_COLUMNS,
    RUN_COLUMNS,
    STEP_COLUMNS,
    Target,
    suggestion,
    target,
)
from sweepscope.pipeline.logs.declared.line_template import Anything, Field, Maybe, Template
from sweepscope.pipeline.logs.declared.parse_template import MAX_CHARS, Resolve, parse
from sweepscope.pipeline.logs.declared.rules import Arguments, Document, File, Rule, pair_regex
from sweepscope.pipeline.logs.declared.toml_reader import Tables
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.schemas import vocab

_MAX_SKIPPED = 3
_WAYS = ("line", "parts", "pairs", "regex")
_MIN_SIGNATURE_CHARS = 5
_NAME = re.compile(vocab.DECLARED_FRAMEWORK)
_GROUP = re.compile(r"\(\?P?<([A-Za-z_]\w*)>")
_RESERVED = ("other", "evidence", "published", "built-in")


def read_document(
    text: str,
    origin: str,
    *,
    reserved: Collection[str] = (),
    others: Sequence[Dialect] = (),
    is_trusted: bool = False,
) -> Document:
    """The rules of a dialect file.

    Args:
        text: its content.
        origin: its name, for messages.
        reserved: names of parsers, which no dialect may have.
        others: dialects whose signatures it may not have.
        is_trusted: its expressions have been checked before.

    Raises UsageError naming file, line and remedy.
    """
    return _Reader(text, origin, reserved, others, is_trusted).document()


class _Reader(Tables):
    """Takes the tables apart into rules."""

    def __init__(
        self, text: str, origin: str, reserved: Collection[str], others: Sequence[Dialect], is_trusted: bool
    ) -> None:
        super().__init__(text, origin)
        self.reserved, self.others, self.is_trusted = reserved, others, is_trusted

    def document(self) -> Document:
        known = (
            *("name", "description", "signature", "logs", "repeated"),
            *("step", "setting", "arguments", "event", "file"),
        )
        self.only(self.data, known, "")
        steps = tuple(self.rule("step", n, part, STEP_COLUMNS) for n, part in self.tables("step"))
        settings = tuple(self.rule("setting", n, part, RUN_COLUMNS) for n, part in self.tables("setting"))
        events = tuple(self.rule("event", n, part, EVENT_COLUMNS) for n, part in self.tables("event"))
        if not steps:
            raise self.fail(self.location(), "no [[step]]: it has to say how a training step is printed")
        return Document(
            name=self.name(),
            description=self.text(self.data, "description", "", default=""),
            signature=self.signature(),
            logs=tuple(pattern.lower() for pattern in self.strings(self.data, "logs", "", 0, default=())),
            repeated=self.choice(self.data, "repeated", ("first", "last"), default="first"),
            steps=steps,
            settings=settings,
            arguments=tuple(self.argument_dump(n, part) for n, part in self.tables("arguments")),
            events=events,
            files=tuple(self.file(n, part) for n, part in self.tables("file")),
        )

    def name(self) -> str:
        name = self.text(self.data, "name", "")
        taken = {*self.reserved, *_RESERVED}
        if not _NAME.fullmatch(name):
            rule = "a small letter, then up to 39 small letters, digits, dots, dashes or underscores"
            raise self.fail(self.location(key="name"), f"name {name!r} cannot be used: {rule}")
        if name in taken:
            raise self.fail(self.location(key="name"), f"name {name!r} is taken by sweepscope itself. Choose another")
        return name

    def signature(self) -> tuple[str, ...]:
        location = self.location(key="signature")
        literals = self.strings(self.data, "signature", "", 0)
        for literal in literals:
            if len(literal.strip()) < _MIN_SIGNATURE_CHARS or not re.search(r"[^\W\d_]{2}", literal):
                message = f"signature {literal!r} could stand in anybody's log. Give at least {_MIN_SIGNATURE_CHARS} "
                raise self.fail(location, f"{message}characters that only this trainer prints")
            for dialect in self.others:
                if any(literal in other for other in dialect.signature_literals):
                    message = f"signature {literal!r} is printed by {dialect.name} as well"
                    raise self.fail(location, f"{message}. Give text that only this trainer prints")
        return literals

    def rule(self, table: str, number: int, part: dict[str, Any], allowed: tuple[str, ...]) -> Rule:
        label = f"[[{table}]] {number + 1}"
        extra = {"event": ("kind",), "step": ("first_epoch", "epoch_steps")}.get(table, ())
        self.only(part, (*_WAYS, "contains", "without", "units", *extra), table, number)
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
        rule = replace(
            rule,
            location=location,
            label=label,
            kind=kind,
            contains=tuple(dict.fromkeys((*rule.contains, *also))),
            without=without,
            first_epoch=first or 0,
            epoch_steps=steps,
        )
        if table == "step":
            self.check_counter(rule)
        if table == "setting" and not rule.columns:
            raise self.fail(location, f"{label} names no column. Write {{tp}} where the trainer prints that value")
        return rule

    def check_counter(self, rule: Rule) -> None:
        """Raises UsageError for a step without a number."""
        columns = rule.columns
        if not rule.counts_steps:
            raise self.fail(rule.location, f"{rule.label} has no step number. Put {{step}} where the trainer prints it")
        if "step" not in columns and not ({"epoch"} <= set(columns) and (rule.epoch_steps or "epoch_steps" in columns)):
            needed = "{epoch}, and {epoch_steps} or epoch_steps = how many steps an epoch has"
            raise self.fail(rule.location, f"{rule.label}: a step that is counted within its epoch needs {needed}")

    def way(self, way: str, part: dict[str, Any], table: str, number: int, allowed: tuple[str, ...]) -> Rule:
        """The rule without its location. Raises ValueError or UsageError."""
        if way in ("parts", "pairs") and table == "event":
            raise ValueError("an event is found by line or regex")
        if "units" in part and way != "regex":
            raise ValueError("units goes with regex only. Elsewhere, a unit is written behind the column: column:unit")
        of_way = {"line": self.line, "parts": self.parts, "pairs": self.pairs, "regex": self.regex}
        return of_way[way](part, table, number, allowed)

    def line(self, part: dict[str, Any], table: str, number: int, allowed: tuple[str, ...]) -> Rule:
        parsed = parse(self.text(part, "line", table, number), _resolver(allowed))
        if table == "step":
            _check_outside(parsed)
        expressions = (parsed.regex, parsed.cut) if parsed.fields else (parsed.regex,)
        for expression in expressions:
            self.check(expression)
        return Rule("", "", (parsed.anchor,), template=parsed)

    def parts(self, part: dict[str, Any], table: str, number: int, allowed: tuple[str, ...]) -> Rule:
        pieces = tuple(parse(text, _resolver(allowed)) for text in self.strings(part, "parts", table, number))
        for piece in pieces:
            _check_short(piece)
            self.check(piece.regex)
        if table != "step":
            return Rule("", "", (), parts=pieces, any_of=tuple(piece.anchor for piece in pieces))
        _check_outside(pieces[0])
        return Rule("", "", (pieces[0].anchor,), parts=pieces)

    def pairs(self, part: dict[str, Any], table: str, number: int, allowed: tuple[str, ...]) -> Rule:
        keys = self.table(part, "pairs", table, number)
        pairs = {key: _pair(key, word, allowed) for key, word in keys.items()}
        for key, kept in pairs.items():
            self.check(pair_regex(key, kept))
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

    def argument_dump(self, number: int, part: dict[str, Any]) -> Arguments:
        label = f"[[arguments]] {number + 1}"
        self.only(part, ("line", "columns"), "arguments", number)
        location = self.location("arguments", number, "line")
        try:
            # Such a line is found by the names that it is asked for, not by text of its own.
            parsed = parse(self.text(part, "line", "arguments", number), check_field, needs_text=False)
        except ValueError as error:
            raise self.fail(location, f"{label}: {error}") from error
        written = [field.text for field in parsed.fields]
        if sorted(text for text in written if text != "{_}") != ["{name}", "{value}"]:
            raise self.fail(location, f"{label} needs {{name}} and {{value}}, once each")
        regex = argument_regex(parsed)
        self.check(regex)
        return Arguments(location, label, regex, self.columns(part, "arguments", number))

    def file(self, number: int, part: dict[str, Any]) -> File:
        self.only(part, ("name", "requires", "columns"), "file", number)
        pattern = self.text(part, "name", "file", number).lower()
        form = pattern.rsplit(".", 1)[-1]
        if form not in ("json", "toml", "yaml", "yml") or "/" in pattern:
            message = (
                f"[[file]] {number + 1}: {pattern!r} is not a file that is read. Name a .json, .yaml or .toml file"
            )
            raise self.fail(self.location("file", number, "name"), f"{message}, without its directory")
        requires = self.strings(part, "requires", "file", number)
        location = self.location("file", number)
        return File(location, pattern, form, self.columns(part, "file", number), requires)

    def columns(self, part: dict[str, Any], table: str, number: int) -> dict[str, str]:
        """Name as printed to column of `runs`."""
        found = {}
        for key, word in self.table(part, "columns", table, number).items():
            try:
                found[key] = target(word, None, RUN_COLUMNS).column
            except ValueError as error:
                location = self.location(table, number, "columns")
                raise self.fail(location, f"[[{table}]] {number + 1}: {error}") from error
        return found


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
