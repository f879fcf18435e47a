"""What a program gets for a question: the sentence that the page shows, the rows behind it, and their SQL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import polars as pl
from pydantic import BaseModel, Field

from sweepscope.dashboard.format.emphasis import without_marks
from sweepscope.dashboard.format.numbers import NBSP
from sweepscope.dashboard.report.section import Section
from sweepscope.pipeline.text.json_rows import as_json


class Table(BaseModel):
    """Rows of an answer. Columns in which every row is null are left out."""

    title: str
    rows: list[dict[str, Any]] = Field(description="units are the suffixes of the names; mfu and shares are in 0 to 1")
    rows_in_all: int = Field(description="more than `rows` where a limit cut them")


class Answer(BaseModel):
    """One question answered from one version of the store."""

    answer: str = Field(description="in one or a few sentences")
    tables: list[Table] = []
    notes: list[str] = Field(default=[], description="what was left out, assumed or not searched")
    origins: list[str] = Field(
        default=[], description="whose rows: measured (runs of one's own), published, simulated; estimated where so"
    )
    sql: dict[str, str] = Field(default={}, description="queries behind the figures, each of which runs as it is")
    store_version: int | None = Field(default=None, description="of the store; null where it was not asked")


def table(title: str, frame: pl.DataFrame, columns: Sequence[str] | None = None, *, limit: int) -> Table:
    """The first `limit` rows, in `columns` (those that the frame has) or in all of them."""
    kept = [name for name in columns or frame.columns if name in frame.columns and frame[name].count()]
    rows = json.loads(as_json(frame.select(kept).head(limit))) if kept else []
    return Table(title=title, rows=rows, rows_in_all=frame.height)


def of_section(part: Section, *, version: int, limit: int) -> Answer:
    """A section of the report without its pictures."""
    return Answer(
        answer=plain(part.answer),
        tables=[table(listing.title, listing.frame, listing.columns, limit=limit) for listing in part.listings],
        notes=[plain(note) for note in (part.meta, *part.notes) if note],
        origins=list(part.origins),
        sql={name: query.runnable() for name, query in part.queries.items()},
        store_version=version,
    )


def plain(text: str) -> str:
    """A sentence of a page without its marks of emphasis and its fixed spaces.

    >>> plain("**TP=2**: 40\\N{NO-BREAK SPACE}%")
    'TP=2: 40 %'
    """
    return without_marks(text).replace(NBSP, " ")
