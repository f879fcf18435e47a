"""The store of a home, opened for one question: always the version that is current."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import duckdb
import polars as pl

from sweepscope.dashboard.queries.failures import Scope
from sweepscope.dashboard.queries.reader import Answers, Reader
from sweepscope.dashboard.queries.slices import slices
from sweepscope.dashboard.selection.filters import Filters
from sweepscope.dashboard.selection.slices import Slice, offered_origins, resolve_slice
from sweepscope.pipeline.errors import StoreError, UsageError
from sweepscope.pipeline.store import published

_NEAR = 8


@dataclass(frozen=True)
class Opened:
    """One version of the store."""

    path: Path
    version: int
    con: Reader

    def grid(self, filters: Filters, model: str | None = None) -> Slice:
        """The grid that fits the given values and answers most, among those that have `model`.

        Raises UsageError for a value that no grid has, StoreError where the store has no grid.
        """
        found = slices().run(self.con)
        if found.is_empty():
            raise StoreError("No run has a cell yet: that takes a model, a node count, a sequence length and a batch.")
        if model is not None:
            has = found.filter(pl.col("models").list.contains(model))
            if has.is_empty():
                raise unknown("model", model, found["models"].explode().drop_nulls())
            found = has
        chosen, absent = resolve_slice(filters, found)
        if absent or chosen is None:
            name = absent[0]
            raise unknown(name, str(getattr(filters, name)), found[name].drop_nulls())
        return chosen

    def scope(self, origin: str | None, sweep: str | None) -> Scope:
        """Whose runs are meant; without an origin one's own, else published ones.

        Raises UsageError for an origin or a sweep without a run, StoreError where the store has no run.
        """
        runs = self.con.frame("SELECT DISTINCT origin, sweep FROM runs WHERE duplicate_of IS NULL", {})
        if runs.is_empty():
            raise StoreError("The store has no run yet. Run `sweepscope ingest PATH` first.")
        for name, value in (("origin", origin), ("sweep", sweep)):
            fits = runs.filter(pl.lit(True) if value is None else pl.col(name) == value)
            if fits.is_empty():
                raise unknown(name, str(value), runs[name].drop_nulls())
            runs = fits
        return Scope(offered_origins(runs["origin"].to_list())[0], sweep)


@contextmanager
def opened(home: Path) -> Iterator[Opened]:
    """The current version. Raises StoreError where there is none, or where it lacks what is asked of it."""
    path = published.current(home)
    with published.connect(path) as connection:
        version = published.store_info(connection).version
        try:
            yield Opened(path, version, Reader(connection, Answers()))
        except duckdb.Error as error:
            raise StoreError(
                f"The store {path} lacks what was asked ({str(error).splitlines()[0]}): another version of sweepscope "
                "published it. Run `sweepscope ingest PATH` with this one: it publishes the store anew."
            ) from error


def unknown(name: str, value: str, known: pl.Series) -> UsageError:
    """The error for a value that no row has, with those that come nearest to it."""
    texts = [str(one) for one in known.unique().sort()]
    near = get_close_matches(value, texts, n=_NEAR, cutoff=0.3) or texts[:_NEAR]
    return UsageError(f"There is no {name} {value!r}. There is, among others: {', '.join(near) or 'nothing'}.")
