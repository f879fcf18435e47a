"""What somebody states of runs whose logs do not say it: the rules of a `sweepscope.toml`, and of a home's statements.

    accelerator = "H100-SXM-80GB"        # of all runs in the file's folder

    [[runs]]
    match = "tp8_*"                      # of those runs only
    cluster = "alps"
    override = true                      # counts even where logs or configurations say otherwise

In the home, where the file lies beside no run, each `[[runs]]` names its `folder`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from sweepscope.pipeline.logs.declared.columns import suggestion
from sweepscope.pipeline.logs.declared.stated_values import STATABLE, known_value
from sweepscope.pipeline.logs.declared.toml_reader import Tables
from sweepscope.pipeline.logs.declared.toml_writer import written

NAME = "sweepscope.toml"
"""Name of a file in or above a sweep that states what its logs do not say."""

_OTHER_KEYS = ("folder", "match", "override")
_MOST = 2_000
"""Statements in one file."""


@dataclass(frozen=True)
class Statement:
    """Values that hold for runs in a folder.

    Attributes:
        folder: path or URL, of a folder or of one file.
        match: pattern of paths in the folder, "" for all.
        values: text by column of `runs`.
        is_override: they count more than what logs and configurations say.
        file: that states them.
        is_of_home: it is the home's, which counts more than one beside the runs.
    """

    folder: str
    values: Mapping[str, str]
    match: str = ""
    is_override: bool = False
    file: str = ""
    is_of_home: bool = False

    @property
    def scope(self) -> tuple[str, str, bool]:
        """What it is stated of, and whether it overrides: one statement of each scope can be."""
        return self.folder, self.match, self.is_override

    def holds_for(self, path: str) -> bool:
        """Whether a file's rows are of runs that this states something of."""
        if path == self.folder:
            return not self.match
        inside = path.removeprefix(f"{self.folder.rstrip('/')}/")
        return inside != path and (not self.match or _matches(inside.split("/"), self.match.strip("/").split("/")))


def _matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a path, or a folder that it lies in, matches: `*` stays within a name, `**` is any folders.

    >>> [_matches("a/tp8_x/log.out".split("/"), text.split("/")) for text in ("a", "tp8*", "*/tp8*", "**/*.out")]
    [True, False, True, True]
    """
    if not pattern:
        return True
    if pattern[0] == "**":
        return any(_matches(parts[at:], pattern[1:]) for at in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])


def read_statements(text: str, origin: str, folder: str | None = None) -> tuple[Statement, ...]:
    """The statements of a file.

    Args:
        text: its content.
        origin: its name, for messages and as the statements' file.
        folder: that it lies in; None: each of its tables names one.

    Raises UsageError naming file, line and remedy.
    """
    tables = Tables(text, origin, what="A file of statements holds columns of runs and their values")
    found = []
    if folder is not None:
        top = {key: value for key, value in tables.data.items() if key != "runs"}
        found += [_statement(tables, top, folder)] if top else []
    else:
        tables.only(tables.data, ("runs",), "")
    for number, part in tables.tables("runs", most=_MOST):
        where = folder if folder is not None else tables.text(part, "folder", "runs", number).rstrip("/")
        if folder is not None and "folder" in part:
            raise tables.fail(
                tables.location("runs", number, "folder"), 'folder is not known here. Write match = "tp8_*"'
            )
        found.append(_statement(tables, part, where, "runs", number, is_of_home=folder is None))
    scopes = [one.scope for one in found]
    if twice := next((number for number, scope in enumerate(scopes) if scope in scopes[:number]), None):
        shift = len(found) - len(tables.data.get("runs", []))
        message = f"the same runs as above ({found[twice].match or 'all'}). Write their values into one table"
        raise tables.fail(tables.location("runs", twice - shift), message)
    return tuple(found)


def _statement(
    tables: Tables, part: Mapping[str, Any], folder: str, table: str = "", number: int = 0, *, is_of_home: bool = False
) -> Statement:
    match = tables.text(dict(part), "match", table, number, default="")
    if match.startswith("/") or ".." in match.split("/"):
        raise tables.fail(
            tables.location(table, number, "match"), f"match is {match!r}. Write it relative to the file's folder"
        )
    override = part.get("override", False)
    if not isinstance(override, bool):
        raise tables.fail(tables.location(table, number, "override"), f"override is {override!r}. Write true or false")
    values = {}
    for key, value in part.items():
        if key in _OTHER_KEYS:
            continue
        try:
            column, text = known_value(key, value)
        except ValueError as error:
            raise tables.fail(tables.location(table, number, key), str(error)) from error
        values[column] = text
    if not values:
        message = f"it states nothing. {suggestion('', STATABLE)}"
        raise tables.fail(tables.location(table, number), message)
    return Statement(folder, values, match, override, tables.origin, is_of_home)


def text_of(statements: Sequence[Statement]) -> str:
    """The file of a home's statements, in one order whatever that of the statements."""
    tables = [
        {
            "folder": one.folder,
            **({"match": one.match} if one.match else {}),
            **({"override": True} if one.is_override else {}),
            **{name: _plain(name, one.values[name]) for name in sorted(one.values)},
        }
        for one in sorted(statements, key=lambda one: one.scope)
    ]
    return written({"runs": tables}) if tables else ""


def _plain(name: str, text: str) -> str | int | float:
    """The value as TOML has it."""
    for value in (*_numbers(text), text):
        try:
            if known_value(name, value) == (name, text):
                return value
        except ValueError:
            continue
    return text


def _numbers(text: str) -> list[int | float]:
    try:
        return [int(text)]
    except ValueError:
        pass
    try:
        return [float(text)]
    except ValueError:
        return []
