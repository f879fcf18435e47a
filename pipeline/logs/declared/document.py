"""Checked rules of a dialect file, from its TOML text. Every error names file, line and remedy.

Bounds: the size of the file, and how many rules, literals and characters it may hold. Expressions are those of
polars, which take time linear in the line whatever they are, and are compiled here once to see that they are valid.
That is most of the time it takes; `is_trusted` leaves it out for the files that come with sweepscope and its tests.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from sweepscope.pipeline.logs.declared.argument_lines import argument_literals, argument_regex, check_field
from sweepscope.pipeline.logs.declared.columns import (
    EVENT_COLUMNS,
    RUN_COLUMNS,
    STEP_COLUMNS,
    suggestion,
    target,
)
from sweepscope.pipeline.logs.declared.parse_template import parse
from sweepscope.pipeline.logs.declared.rule_reader import RuleReader
from sweepscope.pipeline.logs.declared.rules import RANKS, STEPS, Arguments, Constants, Document, File
from sweepscope.pipeline.logs.declared.stated_values import fitting
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.facts import EVIDENCE
from sweepscope.schemas import vocab

_MIN_SIGNATURE_CHARS = 5
_NAME = re.compile(vocab.DECLARED_FRAMEWORK)
_RESERVED = ("other", EVIDENCE, "published", "built-in")


def read_document(
    text: str,
    origin: str,
    *,
    reserved: Collection[str] = (),
    others: Sequence[Dialect] = (),
    is_trusted: bool = False,
    needs_steps: bool = True,
) -> Document:
    """The rules of a dialect file.

    Args:
        text: its content.
        origin: its name, for messages.
        reserved: names of parsers, which no dialect may have.
        others: dialects whose signatures it may not have.
        is_trusted: its expressions have been checked before.
        needs_steps: a file without a step is none.

    Raises UsageError naming file, line and remedy.
    """
    return _Reader(text, origin, reserved, others, is_trusted).document(needs_steps=needs_steps)


class _Reader(RuleReader):
    """Takes the tables apart into rules."""

    def __init__(
        self, text: str, origin: str, reserved: Collection[str], others: Sequence[Dialect], is_trusted: bool
    ) -> None:
        super().__init__(text, origin, is_trusted=is_trusted)
        self.reserved, self.others = reserved, others

    def document(self, *, needs_steps: bool) -> Document:
        known = (
            *("name", "description", "signature", "logs", "repeated", "labels"),
            *("step", "setting", "arguments", "event", "file", "constants"),
        )
        self.only(self.data, known, "")
        steps = tuple(self.rule("step", n, part, STEP_COLUMNS) for n, part in self.tables("step"))
        settings = tuple(self.rule("setting", n, part, RUN_COLUMNS) for n, part in self.tables("setting"))
        events = tuple(self.rule("event", n, part, EVENT_COLUMNS) for n, part in self.tables("event"))
        if needs_steps and not steps:
            raise self.fail(self.location(), "no [[step]]: it has to say how a training step is printed")
        constants = tuple(self.constants(n, part) for n, part in self.tables("constants"))
        return Document(
            name=self.name(),
            description=self.text(self.data, "description", "", default=""),
            signature=self.signature(),
            logs=tuple(pattern.lower() for pattern in self.strings(self.data, "logs", "", 0, default=())),
            repeated=self.choice(self.data, "repeated", ("first", "last"), default="first"),
            steps=steps,
            settings=settings,
            arguments=tuple(dump for n, part in self.tables("arguments") for dump in self.argument_dumps(n, part)),
            events=events,
            files=tuple(self.file(n, part) for n, part in self.tables("file")),
            constants=constants,
            labels=self.choice(self.data, "labels", (RANKS, STEPS), default=RANKS),
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
        # Without one, the file is for logs that no other dialect knows: its steps tell which.
        literals = self.strings(self.data, "signature", "", 0, default=())
        for literal in literals:
            if len(literal.strip()) < _MIN_SIGNATURE_CHARS or not re.search(r"[^\W\d_]{2}", literal):
                message = f"signature {literal!r} could stand in anybody's log. Give at least {_MIN_SIGNATURE_CHARS} "
                raise self.fail(location, f"{message}characters that only this trainer prints")
            for dialect in self.others:
                if any(literal in other for other in dialect.signature_literals):
                    message = f"signature {literal!r} is printed by {dialect.name} as well"
                    raise self.fail(location, f"{message}. Give text that only this trainer prints")
        return literals

    def argument_dumps(self, number: int, part: dict[str, Any]) -> list[Arguments]:
        self.only(part, ("line", "columns", "words"), "arguments", number)
        lines = part.get("line")
        texts = lines if isinstance(lines, list) and lines else [lines]
        return [self.argument_dump(number, {**part, "line": text}) for text in texts]

    def argument_dump(self, number: int, part: dict[str, Any]) -> Arguments:
        label = f"[[arguments]] {number + 1}"
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
        columns = self.columns(part, "arguments", number)
        literals = argument_literals(parsed, columns)
        return Arguments(location, label, regex, literals, columns, self.words(part, "arguments", number, columns))

    def file(self, number: int, part: dict[str, Any]) -> File:
        self.only(part, ("name", "requires", "columns", "words"), "file", number)
        pattern = self.text(part, "name", "file", number).lower()
        form = pattern.rsplit(".", 1)[-1]
        if form not in ("json", "toml", "yaml", "yml") or "/" in pattern:
            message = (
                f"[[file]] {number + 1}: {pattern!r} is not a file that is read. Name a .json, .yaml or .toml file"
            )
            raise self.fail(self.location("file", number, "name"), f"{message}, without its directory")
        requires = self.strings(part, "requires", "file", number)
        location = self.location("file", number)
        columns = self.columns(part, "file", number)
        return File(location, pattern, form, columns, requires, self.words(part, "file", number, columns))

    def constants(self, number: int, part: dict[str, Any]) -> Constants:
        given = dict(part)
        folder = self.text(given, "folder", "constants", number, default="").rstrip("/")
        given.pop("folder", None)
        values = {}
        for key, value in given.items():
            try:
                column, text = fitting(key, value)
            except ValueError as error:
                location = self.location("constants", number, key)
                raise self.fail(location, f"[[constants]] {number + 1}: {error}") from error
            values[column] = text
        return Constants(folder, values)

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

    def words(
        self, part: dict[str, Any], table: str, number: int, columns: Collection[str]
    ) -> dict[str, dict[str, str]]:
        """Name as printed to the words of its values."""
        given = part.get("words", {})
        location = self.location(table, number, "words")
        if not isinstance(given, dict):
            raise self.fail(location, 'words has to map names. Write words = { fp16 = { True = "fp16" } }')
        if unknown := [name for name in given if name not in columns]:
            raise self.fail(location, f"words names {unknown[0]!r}. {suggestion(unknown[0], columns)}")
        return {name: self.table(given, name, table, number) for name in given}
