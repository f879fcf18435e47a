"""Checked rules of a dialect file, from its TOML text. Every error names file, line and remedy.

Bounds: the size of the file, and how many rules, literals and characters it may hold. Expressions are those of
polars, which take time linear in the line whatever they are, and are compiled here once to see that they are valid.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import polars as pl

from sweepscope.pipeline.logs.declared.argument_lines import argument_regex, check_field
from sweepscope.pipeline.logs.declared.columns import (
    EVENT_COLUMNS,
    RUN_COLUMNS,
    STEP_COLUMNS,
    Target,
    suggestion,
    target,
)
from sweepscope.pipeline.logs.declared.line_template import Field
from sweepscope.pipeline.logs.declared.parse_template import MAX_CHARS, Resolve, parse
from sweepscope.pipeline.logs.declared.rules import Arguments, Document, File, Rule, pair_regex
from sweepscope.pipeline.logs.declared.toml_reader import Tables
from sweepscope.pipeline.logs.registry import DIALECTS, TABLES
from sweepscope.schemas import vocab

_MIN_SIGNATURE_CHARS = 5
_NAME = re.compile(vocab.DECLARED_FRAMEWORK)
_RESERVED = ("other", "evidence", "published", "built-in")


def read_document(text: str, origin: str, *, reserved: Collection[str] = ()) -> Document:
    """The rules of a dialect file.

    Args:
        text: its content.
        origin: its name, for messages.
        reserved: names of parsers of other things than logs, which no dialect may have.

    Raises UsageError naming file, line and remedy.
    """
    return _Reader(text, origin, reserved).document()


class _Reader(Tables):
    """Takes the tables apart into rules."""

    def __init__(self, text: str, origin: str, reserved: Collection[str]) -> None:
        super().__init__(text, origin)
        self.reserved = reserved

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
        taken = {*self.reserved, *_RESERVED, *(d.name for d in DIALECTS), *(t.name for t in TABLES)}
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
            for dialect in DIALECTS:
                if any(literal in other for other in dialect.signature_literals):
                    message = f"signature {literal!r} is printed by {dialect.name} as well"
                    raise self.fail(location, f"{message}. Give text that only this trainer prints")
        return literals

    def rule(self, table: str, number: int, part: dict[str, Any], allowed: tuple[str, ...]) -> Rule:
        label = f"[[{table}]] {number + 1}"
        extra = {"event": ("kind",)}.get(table, ())
        self.only(part, ("line", "regex", "contains", "units", "pairs", *extra), table, number)
        ways = [way for way in ("line", "regex", "pairs") if way in part]
        location = self.location(table, number, ways[0] if ways else "")
        if len(ways) != 1:
            raise self.fail(
                location, f"{label} needs one of line, regex or pairs, and has {' and '.join(ways) or 'none'}"
            )
        kind = ""
        if table == "event":
            kind = self.choice(part, "kind", tuple(vocab.EVENT_KIND), table=table, number=number)
        try:
            rule = self.way(ways[0], part, table, number, allowed)
        except ValueError as error:
            raise self.fail(location, f"{label}: {error}") from error
        columns = rule.columns
        if table == "step" and "step" not in columns:
            raise self.fail(location, f"{label} has no step number. Put {{step}} where the trainer prints it")
        if table == "setting" and not columns:
            raise self.fail(location, f"{label} names no column. Write {{tp}} where the trainer prints that value")
        return Rule(location, label, rule.contains, rule.template, rule.regex, rule.pairs, rule.targets, kind)

    def way(self, way: str, part: dict[str, Any], table: str, number: int, allowed: tuple[str, ...]) -> Rule:
        """The rule without its location. Raises ValueError or UsageError."""
        if way == "line":
            if strays := {"contains", "units"} & set(part):
                raise ValueError(f"{min(strays)} goes with regex only. A line says by itself what it contains")
            parsed = parse(self.text(part, "line", table, number), _resolver(allowed))
            if table == "step" and not any(
                isinstance(part, Field) and part.target and part.target.column == "step" for part in parsed.elements
            ):
                raise ValueError("the step number {step} is missing, or optional")
            expressions = (parsed.regex, parsed.cut) if parsed.fields else (parsed.regex,)
            for expression in expressions:
                _groups(expression)
            return Rule("", "", (parsed.anchor,), template=parsed)
        if way == "pairs":
            keys = self.table(part, "pairs", table, number)
            pairs = {key: _pair(key, word, allowed) for key, word in keys.items()}
            step_key = next((key for key, kept in pairs.items() if kept.column == "step"), None)
            if table == "event":
                raise ValueError("an event is found by line or regex")
            for key, kept in pairs.items():
                _groups(pair_regex(key, kept))
            return Rule("", "", (step_key,) if step_key else tuple(pairs), pairs=pairs)
        contains = self.strings(part, "contains", table, number)
        units = self.table(part, "units", table, number, default={})
        regex = self.text(part, "regex", table, number)
        if len(regex) > MAX_CHARS:
            raise ValueError(f"the regex has {len(regex):,} characters; at most {MAX_CHARS:,} are read")
        groups = _groups(regex)
        if unknown := [name for name in units if name not in groups]:
            raise ValueError(
                f"units names {unknown[0]}, which is no group of the regex. {suggestion(unknown[0], groups)}"
            )
        named = [name for name in groups if not name.isdigit()]
        targets = {name: target(name, units.get(name), allowed) for name in named}
        return Rule("", "", contains, regex=regex, targets=targets)

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
        _groups(regex)
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


def _pair(key: str, word: str, allowed: tuple[str, ...]) -> Target:
    name, colon, unit = word.partition(":")
    if not key.strip():
        raise ValueError("an empty key in pairs")
    return target(name.strip(), unit.strip() if colon else None, allowed)


def _resolver(allowed: tuple[str, ...]) -> Resolve:
    return lambda name, word: None if name == "_" else target(name, word, allowed)


def _groups(regex: str) -> list[str]:
    """Names of the groups of an expression. Raises ValueError for one that polars does not take."""
    try:
        dtype = pl.select(groups=pl.lit("").str.extract_groups(regex)).schema["groups"]
    except pl.exceptions.PolarsError as error:
        messages = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise ValueError(
            f"the regex is not valid: {messages[-1].removeprefix('error: ')} (Rust's syntax, no look-around)"
        ) from error
    return [field.name for field in dtype.fields] if isinstance(dtype, pl.Struct) else []
