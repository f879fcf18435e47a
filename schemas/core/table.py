"""What a table is: its grain, key, columns and row rules. Nothing here knows a concrete table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import polars as pl

from sweepscope.schemas.core.column import Column


@dataclass(frozen=True)
class Rule:
    """A law between columns of one row, which holds by their definition.

    Args:
        name: of the law's check.
        columns: those that cannot all be right where the law is broken; none of them belongs to the key.
        holds: true, or NULL where something is unknown, for a row that keeps the law.
        message: what a broken law means, as a sentence that the values follow.
        empties: the values of `columns` become NULL. Otherwise they stay, as evidence that views judge.
    """

    name: str
    columns: tuple[str, ...]
    holds: pl.Expr = field(hash=False, compare=False)
    message: str
    empties: bool = True


@dataclass(frozen=True)
class Table:
    """One table or view.

    Args:
        name: a plural noun; of a view, what it answers.
        description: what the rows are, for the dictionary and the store's comments.
        grain: what one row is, beginning with "one row".
        primary_key: columns that identify a row.
        columns: in order.
        layer: who writes it. Ingest writes `lake` tables file by file; `reference` tables, which are bundled or planned
            and come from no log, are replaced as a whole; publishing computes a `view`, and fills a `store` table.
        replaced_by: column that names what a row was read from, mostly its file: reading that again replaces its rows.
        rules: laws between columns of one row.
        redefines: columns whose name means another thing in other tables (a file's `status` is not a run's).
        nullable_key: key columns that may be NULL (a file can be rejected as a whole, without a line).
        is_stored: of a view: publishing keeps its rows in the store.
        is_run_by_run: of a stored view: the rows of a run rest on that run and those with which it shares a log, a
            directory, a unit or a job, so that a new store computes them again where one of these changed.
    """

    name: str
    description: str
    grain: str
    primary_key: tuple[str, ...]
    columns: tuple[Column, ...]
    layer: Literal["lake", "reference", "view", "store"] = "lake"
    replaced_by: str = "source_path"
    rules: tuple[Rule, ...] = ()
    redefines: tuple[str, ...] = ()
    nullable_key: tuple[str, ...] = ()
    is_stored: bool = False
    is_run_by_run: bool = False

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def required(self) -> tuple[str, ...]:
        """Columns that may not be NULL: the key, and the column that a re-ingest replaces by."""
        wanted = {*self.primary_key, self.replaced_by} - set(self.nullable_key)
        return tuple(name for name in self.column_names if name in wanted)

    @cached_property
    def polars_schema(self) -> pl.Schema:
        """Name and dtype of every column, in order."""
        return pl.Schema({column.name: column.dtype for column in self.columns})

    @cached_property
    def _no_rows(self) -> pl.DataFrame:
        """Made once: an ingest asks for many, and making a column takes longer than cloning a frame."""
        return pl.DataFrame(schema=self.polars_schema)

    def empty(self) -> pl.DataFrame:
        """A frame with this table's columns and no rows."""
        return self._no_rows.clone()

    def conform(self, frame: pl.DataFrame) -> pl.DataFrame:
        """`frame` with exactly this table's columns, in order: missing ones become NULL, others are dropped.

        Raises polars.exceptions.InvalidOperationError when a value cannot be cast to its column's type.
        """
        have: Mapping[str, pl.DataType] = frame.schema
        if have == self.polars_schema:
            return frame
        # repeat, not lit: a literal would make one row out of none
        return frame.select(
            pl.col(name).cast(dtype) if name in have else pl.repeat(None, frame.height, dtype=dtype).alias(name)
            for name, dtype in self.polars_schema.items()
        )
