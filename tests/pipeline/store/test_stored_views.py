"""Which views a store keeps the rows of, and when they are computed again."""

from __future__ import annotations

import duckdb
import pytest

from sweepscope.pipeline.store.publish import VIEW_FOLDER, load_views
from sweepscope.pipeline.store.stored_views import as_stored, outdated
from sweepscope.schemas.core import ddl
from sweepscope.schemas.registry import TABLES, VIEWS

_RULES = (
    "-- of nccl_ranks\nCREATE VIEW nccl_findings AS SELECT source_path, 'in steps: it''s' AS evidence FROM nccl_files;"
)


@pytest.fixture(scope="module")
def views() -> dict[str, str]:
    return load_views(VIEW_FOLDER)


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        (["steps"], []),
        (["nccl_ranks"], ["run_hosts", "nccl_findings"]),
        (["files"], ["run_files", "run_hosts", "nccl_findings"]),  # nodes of NCCL's lines are found by way of run_files
        (["gpu_samples"], ["run_gpu_memory", "memory_waterfall"]),
        ([], []),
    ],
)
def test_a_stored_view_is_outdated_by_the_tables_that_it_reads(
    views: dict[str, str], changed: list[str], wanted: list[str]
) -> None:
    assert outdated(views, changed) == wanted


def test_words_of_comments_and_texts_are_no_tables() -> None:
    assert outdated({"nccl_findings": _RULES}, ["nccl_ranks", "steps"]) == []
    assert outdated({"nccl_findings": _RULES}, ["nccl_files"]) == ["nccl_findings"]


def test_stored_views_are_tables_with_the_columns_of_their_schema(views: dict[str, str]) -> None:
    with duckdb.connect() as connection:
        for table in TABLES.values():
            connection.execute(ddl.create_table(table))
        for statement in as_stored(views).values():
            connection.execute(statement)
        for view in VIEWS.values():
            for statement in ddl.comments(view):  # of a view or a table, whichever it is
                connection.execute(statement)
        tables = connection.sql("SELECT table_name FROM duckdb_tables()").fetchall()
        for view in VIEWS.values():
            assert tuple(connection.sql(f"FROM {view.name}").columns) == view.column_names
    assert {name for (name,) in tables} - set(TABLES) == {view.name for view in VIEWS.values() if view.is_stored}


def test_an_ending_semicolon_and_a_comment_are_left_where_they_were(views: dict[str, str]) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE nccl_files AS SELECT 'b' AS source_path UNION ALL SELECT 'a'")
        connection.execute(
            as_stored({"nccl_findings": _RULES.replace("SELECT", "SELECT 'x' AS nccl_rule,")})["nccl_findings"]
        )
        rows = connection.sql("SELECT source_path, evidence FROM nccl_findings").fetchall()
    assert rows == [("a", "in steps: it's"), ("b", "in steps: it's")]  # in the order of the key
