from __future__ import annotations

from collections import Counter

import duckdb
import polars as pl

from sweepscope.schemas.columns import shared
from sweepscope.schemas.core import ddl
from sweepscope.schemas.registry import ALL, COLUMNS, TABLES, VIEWS

# The unit is the suffix, wherever the unit has one.
SUFFIX = {"bytes": "_bytes", "s": "_s", "TFLOP/s": "_tflops", "tokens/s": "_per_s", "tokens/s/GPU": "_per_gpu"}
# Contract names, and names whose last word says more than the unit.
ENDS_OTHERWISE = {"bytes", "mtime", "peak_tflops_logged", "peak_tflops_bf16"}


def test_every_column_is_described() -> None:
    """In two words or more, or in one that is a name; without a full stop."""
    texts = {column.name: column.description for column in COLUMNS.values()}
    assert not [name for name, text in texts.items() if len(text.split()) < 2 and not text.isalpha()]
    assert not [name for name, text in texts.items() if text.endswith(".")]


def test_numbers_have_a_unit_and_nothing_else_has() -> None:
    numbers = {column.name for column in COLUMNS.values() if column.dtype in (pl.Int64, pl.Float64)}
    assert numbers == {column.name for column in COLUMNS.values() if column.unit}


def test_a_unit_with_a_suffix_ends_the_name() -> None:
    ends = {column.name: SUFFIX.get(column.unit or "", "") for column in COLUMNS.values()}
    assert not [name for name, end in ends.items() if name not in ENDS_OTHERWISE and not name.endswith(end)]


def test_every_table_states_its_grain_and_a_key_of_its_columns() -> None:
    for table in ALL.values():
        assert table.grain.startswith("one row"), table.name
        assert set(table.primary_key) <= set(table.column_names), table.name
        assert len(set(table.column_names)) == len(table.column_names), table.name


def test_a_name_has_one_meaning_unless_a_table_says_that_it_redefines_it() -> None:
    defined = [(table, column) for table in ALL.values() for column in table.columns]
    assert not [(t.name, c.name) for t, c in defined if (c == COLUMNS[c.name]) == (c.name in t.redefines)]
    assert not [(t.name, name) for t in ALL.values() for name in t.redefines if name not in t.column_names]


def test_shared_columns_are_shared() -> None:
    uses = Counter(name for table in ALL.values() for name in set(table.column_names) - set(table.redefines))
    groups = {*shared.HARDWARE, *shared.MODEL, *shared.LAYOUT, *shared.SOFTWARE}
    assert not [name for name in shared.COLUMNS if uses[name] < 2 and name not in groups]


def test_a_re_ingest_can_find_the_rows_it_replaces() -> None:
    assert not [table.name for table in TABLES.values() if table.replaced_by not in table.column_names]


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
