"""Ranges of a key: every row is in exactly one, they are in the order of the key, and none is far too large."""

from __future__ import annotations

from collections import Counter

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweepscope.pipeline.store import store_file
from sweepscope.pipeline.store.key_ranges import key_ranges
from sweepscope.schemas.core.ddl import quote
from sweepscope.schemas.registry import TABLES
from tests.properties import draws

STEPS = TABLES["steps"]
TEXTS = TABLES["settings"]

_RUN = st.sampled_from(["a", "b", "c'", "d", None])
_STEP = st.one_of(st.integers(-5, 40), st.none())


def parts_of(
    rows: list[tuple[object, object]], at_most: int, *, keys: tuple[str, str]
) -> list[list[tuple[object, ...]]]:
    """Rows of each range, in the order in which they are inserted."""
    table = STEPS if keys[1] == "step" else TEXTS
    types = {name: next(column.dtype for column in table.columns if column.name == name) for name in keys}
    with duckdb.connect() as connection:
        connection.register("found", pl.DataFrame(rows, schema=types, orient="row").to_arrow())
        query = "SELECT * FROM found WHERE $is_wanted"
        given_too = {"is_wanted": True}
        ranges = key_ranges(connection, table, query, given_too, rows_at_most=at_most)
        order = ", ".join(map(quote, keys))
        return [
            connection.execute(
                f"SELECT * FROM ({query}) AS kept WHERE {part.condition} ORDER BY {order}",
                {**given_too, **part.parameters},
            ).fetchall()
            for part in ranges
        ]


@settings(max_examples=draws(100), deadline=None)
@given(rows=st.lists(st.tuples(_RUN, _STEP), min_size=1, max_size=80), at_most=st.integers(1, 30))
def test_every_row_is_in_one_range_and_the_ranges_are_in_order(rows: list[tuple[object, object]], at_most: int) -> None:
    parts = parts_of(rows, at_most, keys=("run_id", "step"))
    flat = [row for part in parts for row in part]
    assert Counter(flat) == Counter(rows)
    assert flat == sorted(flat, key=lambda row: [(value is None, value) for value in row])


def test_a_run_with_many_steps_is_divided_and_small_runs_are_together() -> None:
    rows = [("long", step) for step in range(10_000)] + [(f"run{n:03}", step) for n in range(100) for step in range(20)]
    parts = parts_of(rows, 1000, keys=("run_id", "step"))
    assert max(map(len, parts)) < 1500
    assert len(parts) < 20


def test_a_key_of_texts_alone_is_divided_between_the_values_of_the_first_one() -> None:
    rows = [(run, f"name{n}") for run in ("a", "b") for n in range(100)]
    assert list(map(len, parts_of(rows, 50, keys=("run_id", "name")))) == [100, 100]


def test_few_rows_are_one_range() -> None:
    assert len(parts_of([("a", 1), ("b", 2)], 2, keys=("run_id", "step"))) == 1


def test_store_in_ranges_is_the_one_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pl.DataFrame({"run_id": ["b", "a", "a", "c"] * 50, "step": list(range(200))})
    columns = ", ".join(f"NULL::{'BIGINT'} AS {quote(c.name)}" for c in STEPS.columns if c.name not in rows.columns)
    found = []
    monkeypatch.setattr(store_file, "_FEW_VALUES", 0)
    for values in (1_000_000, 10 * len(STEPS.columns)):
        monkeypatch.setattr(store_file, "_VALUES_AT_ONCE", values)
        with duckdb.connect() as connection:
            connection.register("found", rows.to_arrow())
            connection.execute(f"CREATE TABLE steps AS SELECT *, {columns} FROM found LIMIT 0")
            store_file._insert(connection, STEPS, f"SELECT *, {columns} FROM found", {})
            found.append(connection.execute("SELECT run_id, step FROM steps").fetchall())
    assert found[0] == found[1] == sorted(rows.rows())
