from __future__ import annotations

import duckdb
import polars as pl
import pytest

from sweepscope.schemas.columns.shared import COLUMNS
from sweepscope.schemas.core import ddl
from sweepscope.schemas.core.column import Column
from sweepscope.schemas.core.table import Table
from sweepscope.schemas.registry import ALL, TABLES, VIEWS

# The unit is the suffix, wherever the unit has one.
SUFFIX = {"bytes": "_bytes", "s": "_s", "TFLOP/s": "_tflops", "tokens/s": "_per_s", "tokens/s/GPU": "_per_gpu"}
# Contract names, and names whose last word says more than the unit.
ENDS_OTHERWISE = {"bytes", "mtime", "peak_tflops_logged", "peak_tflops_bf16"}

columns = pytest.mark.parametrize("column", COLUMNS.values(), ids=lambda column: column.name)
tables = pytest.mark.parametrize("table", ALL.values(), ids=lambda table: table.name)


@columns
def test_every_column_is_described(column: Column) -> None:
    assert len(column.description.split()) >= 2 or column.description.isalpha()
    assert not column.description.endswith(".")


@columns
def test_every_number_has_a_unit(column: Column) -> None:
    is_number = column.dtype in (pl.Int64, pl.Float64)
    assert bool(column.unit) == is_number


@columns
def test_a_unit_with_a_suffix_stands_in_the_name(column: Column) -> None:
    suffix = SUFFIX.get(column.unit or "")
    if suffix and column.name not in ENDS_OTHERWISE:
        assert column.name.endswith(suffix)


@tables
def test_every_table_states_its_grain_and_a_key_of_its_columns(table: Table) -> None:
    assert table.grain.startswith("one row")
    assert set(table.primary_key) <= set(table.column_names)
    assert len(set(table.column_names)) == len(table.column_names)


@tables
def test_overrides_change_a_meaning_on_purpose(table: Table) -> None:
    for column in table.overrides:
        assert column.name in table.column_names
        assert column != COLUMNS.get(column.name)


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_a_re_ingest_can_find_the_rows_it_replaces(table: Table) -> None:
    assert table.replaced_by in table.column_names


def test_the_ddl_runs_and_carries_the_descriptions() -> None:
    connection = duckdb.connect()
    for table in TABLES.values():
        connection.execute(ddl.create_table(table))
        for statement in ddl.comments(table):
            connection.execute(statement)
    found = connection.sql(
        "SELECT table_name, column_name, comment FROM duckdb_columns() WHERE NOT internal"
    ).fetchall()
    assert len(found) == sum(len(table.columns) for table in TABLES.values())
    assert all(comment for _, _, comment in found)


def test_tables_and_views_do_not_share_names() -> None:
    assert not set(TABLES) & set(VIEWS)


def test_conform_fills_and_orders_columns() -> None:
    table = TABLES["events"]
    frame = table.conform(pl.DataFrame({"kind": ["oom"], "run_id": ["a"], "stray": [1]}))
    assert frame.columns == list(table.column_names)
    assert frame.row(0, named=True)["text"] is None
    assert table.conform(frame) is frame


def test_names_and_texts_are_quoted() -> None:
    assert ddl.quote('a"b') == '"a""b"'
    assert ddl.literal("it's") == "'it''s'"
