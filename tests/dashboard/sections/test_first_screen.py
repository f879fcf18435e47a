"""Grids that the first screen lists, read before a reader goes to them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from sweepscope.dashboard.app.store import Store, latest_store
from sweepscope.dashboard.queries import overview as queries
from sweepscope.dashboard.queries.reader import Reader
from sweepscope.dashboard.queries.slices import slices
from sweepscope.dashboard.sections import first_screen
from sweepscope.dashboard.sections.grid_cells import grid_cells
from sweepscope.dashboard.selection.filters import Filters
from sweepscope.dashboard.selection.slices import others, resolve_slice
from tests.dashboard.app_pages.grid_home import make_home, run, small_sweep


class NoDatabase:
    """A connection that answers nothing."""

    def sql(self, query: str, **_arguments: object) -> NoReturn:
        pytest.fail(f"asked anew: {query}")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Two grids: of sequences of 4,096 and of 8,192 tokens."""
    monkeypatch.setenv("SWEEPSCOPE_HOME", str(tmp_path))
    longer = [run("f", seq_len=8192, speed=30_000.0), run("g", tp=2, seq_len=8192, speed=29_000.0)]
    make_home(tmp_path, [*small_sweep(), *longer])
    return latest_store()


def test_another_grid_of_the_first_screen_is_drawn_without_the_database(store: Store) -> None:
    known = slices().run(store.con)
    first, _ = resolve_slice(Filters(), known)
    assert first is not None
    other = others(first, known)[0].slice

    first_screen.read(store.for_thread())

    answered = replace(store, con=Reader(NoDatabase(), store.con.answers))  # type: ignore[arg-type] - NoDatabase is no connection: any query of it fails
    grid = grid_cells(answered, other, Filters())
    assert grid["runs_completed"].sum() == 2
    assert queries.repeats(other).run(answered.con).height == 1
    assert queries.without_mfu(other).run(answered.con).columns
    assert first_screen.proposals(answered, other, grid) == first_screen.proposals(store, other, grid)


def test_a_version_is_read_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []
    monkeypatch.setattr(first_screen, "start", begun.append)
    monkeypatch.setattr(first_screen, "open_store", lambda: store)
    first_screen.read_ahead()
    first_screen.read_ahead()
    assert [one.path for one in begun] == [store.path]
