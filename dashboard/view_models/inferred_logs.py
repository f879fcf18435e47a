"""Logs of no known format by the form of their steps, so that a sweep of many logs is corrected once."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sweepscope.dashboard.queries.query import Row
from sweepscope.pipeline.inspection import correct_dialect

_NOT_IN_NAMES = re.compile(r"[^a-z0-9._-]+")
_LONGEST_NAME = 40


@dataclass(frozen=True)
class Form:
    """Logs whose steps are printed, and read, alike.

    Attributes:
        logs: their paths.
        rows: of `queries.health.inferred_logs`; none of logs that a kept file has read.
        text: of the dialect file that reads them, or is to; "" where none can be written for them.
        example: a line of a step.
        kept_as: name of the home's dialect file for this form.
    """

    logs: tuple[str, ...]
    rows: tuple[Row, ...]
    text: str
    example: str
    kept_as: str | None = None

    @property
    def folder(self) -> str:
        """The folder that all logs lie in; "" where they have none in common."""
        folders = [posixpath.dirname(path) for path in self.logs]
        try:
            return posixpath.commonpath(folders) if all(folders) else ""
        except ValueError:  # local ones and URLs
            return ""

    @property
    def is_table(self) -> bool:
        """Whether these are tables with a row per run."""
        return any(row["is_table"] for row in self.rows)

    @property
    def is_read_by_kept(self) -> bool:
        """Whether the logs have been read by the home's file."""
        return self.kept_as is not None and not self.rows


def forms(rows: Sequence[Row], kept: Mapping[str, str], read: Sequence[Row]) -> list[Form]:
    """The forms of inferred logs, most logs first, then those of kept files without an inferred log.

    Args:
        rows: of `queries.health.inferred_logs`.
        kept: text by name of the home's dialect files.
        read: rows of `queries.health.logs_read_by`.
    """
    grouped: dict[tuple[str, bool], list[Row]] = {}
    for row in rows:
        text = row["dialect_text"]
        grouped.setdefault((correct_dialect.steps_of(text) if text else "", row["is_table"]), []).append(row)
    names = {correct_dialect.form_of(text): name for name, text in kept.items()}
    found = []
    for members in sorted(grouped.values(), key=len, reverse=True):
        texts = [str(row["dialect_text"]) for row in members if row["dialect_text"]]
        text = correct_dialect.merged(texts) if texts else ""
        name = names.get(correct_dialect.form_of(text)) if text else None
        example = next((str(row["example"]) for row in members if row["example"]), "")
        logs = tuple(str(row["source_path"]) for row in members)
        found.append(Form(logs, tuple(members), kept[name] if name else text, example, name))
    waiting = {form.kept_as for form in found}
    for name, text in kept.items():
        values = correct_dialect.values_of(text)
        if name not in waiting and values:
            logs = tuple(str(row["source_path"]) for row in read if row["parser"] == name)
            found.append(Form(logs, (), text, correct_dialect.example_of(text), name))
    return found


def proposed_name(form: Form, taken: Sequence[str]) -> str:
    """A name for the dialect file of a form, after the folder of its logs.

    >>> proposed_name(Form(("/a/My Sweep/run1/x.log", "/a/My Sweep/run2/x.log"), (), "", ""), ["my-sweep"])
    'my-sweep-2'
    """
    if form.kept_as:
        return form.kept_as
    plain = _NOT_IN_NAMES.sub("-", posixpath.basename(form.folder).lower()).strip("-._")
    base = (plain if plain[:1].isalpha() else f"trainer-{plain}" if plain else "my-trainer")[: _LONGEST_NAME - 3]
    numbered = (base, *(f"{base}-{number}" for number in range(2, len(taken) + 3)))
    return next(name for name in numbered if name not in taken)
