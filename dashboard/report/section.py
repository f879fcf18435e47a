"""What a report is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import plotly.graph_objects as go
import polars as pl

from sweepscope.dashboard.queries.query import Query


@dataclass(frozen=True)
class Picture:
    """A chart with its title and one sentence on what it shows; `draw` makes its figure, for those who show it.

    `conditions` is what was chosen (origin, accelerator, sequence, batch), printed below the title.
    """

    title: str
    draw: Callable[[], go.Figure]
    alt: str
    conditions: str = ""


@dataclass(frozen=True)
class Listing:
    """A table: the columns that are shown, the first `most` rows of it.

    `links` is a column and, for each row, where its value leads (None: nowhere).
    """

    title: str
    frame: pl.DataFrame
    columns: Sequence[str]
    most: int = 40
    links: tuple[str, Sequence[str | None]] | None = None


@dataclass(frozen=True)
class Section:
    """One question with its answer, as the page of the same title gives it, and the queries behind every figure.

    `key` is its name for programs, `origins` are those of its rows.
    """

    key: str
    title: str
    answer: str
    meta: str = ""
    origins: tuple[str, ...] = ()
    figures: Sequence[tuple[str, str, str]] = ()
    pictures: Sequence[Picture] = ()
    listings: Sequence[Listing] = ()
    queries: dict[str, Query] = field(default_factory=dict)
    notes: Sequence[str] = ()
