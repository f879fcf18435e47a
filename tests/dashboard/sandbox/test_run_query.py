"""The SQL sandbox against queries that mean harm, and against the ones people write."""

from __future__ import annotations

import datetime
import hashlib
import resource
import time
from decimal import Decimal
from pathlib import Path

import duckdb
import polars as pl
import pytest

from sweepscope.dashboard.sandbox.run_query import Limits, run_query
from sweepscope.pipeline.errors import QueryError, StoreError


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "results-1.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE runs AS SELECT range AS step, 'run ' || range AS name FROM range(100000)")
    return path


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT * FROM runs WHERE step < 3", 3),
        ("WITH few AS (SELECT * FROM runs LIMIT 2) SELECT * FROM few", 2),
        ("FROM runs LIMIT 1", 1),
        ("VALUES (1), (2)", 2),
        ("SELECT 1;", 1),
        ("-- a comment\nSELECT 1 -- another", 1),
        ("DESCRIBE runs", 2),
        ("SUMMARIZE runs", 2),
        ("SHOW TABLES", 1),
        ("EXPLAIN SELECT * FROM runs", 1),
        ("explain analyze select count(*) from runs", 1),
        ("EXPLAIN (FORMAT json) SELECT 1", 1),
        ("SELECT * FROM runs WHERE step < 0", 0),
    ],
)
def test_runs_every_kind_of_reading_statement(no_child: None, store: Path, sql: str, rows: int) -> None:
    result = run_query(store, sql)
    assert result.frame.height == rows
    assert not result.truncated


def test_an_answer_costs_less_than_a_second_when_warm(store: Path) -> None:
    run_query(store, "SELECT 1")
    best = min(_processor_seconds(store) for _ in range(3))
    assert best < 1.0, f"{best:.2f} s"


def _processor_seconds(store: Path) -> float:
    """Of the query's process, start and end included: what the machine's other users leave of it is not ours."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run_query(store, "SELECT count(*) FROM runs")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def test_keeps_types_and_turns_rare_ones_into_text(store: Path) -> None:
    sql = """
        SELECT sum(step) AS total, 1.5::DECIMAL(9, 2) AS price, DATE '2026-11-20' AS day, NULL AS nothing,
               INTERVAL 1 DAY AS span, [1, 2] AS parts, {'a': 1} AS record, 'x'::BLOB AS raw,
               100000000000000000000::HUGEINT AS wide
        FROM runs
    """
    row = run_query(store, sql).frame.row(0, named=True)
    assert row == {
        "total": 4_999_950_000,
        "price": Decimal("1.50"),
        "day": datetime.date(2026, 11, 20),
        "nothing": None,
        "span": "1 day",
        "parts": "[1, 2]",
        "record": "{'a': 1}",
        "raw": "x",
        "wide": Decimal(10**20),
    }


def test_names_repeated_columns_apart(store: Path) -> None:
    assert run_query(store, 'SELECT 1 AS a, 2 AS "A", 3 AS a').frame.columns == ["a", "A_2", "a_3"]


def test_says_when_rows_are_left_out(store: Path) -> None:
    capped = run_query(store, "SELECT * FROM runs", limits=Limits(max_rows=10))
    exact = run_query(store, "SELECT * FROM runs LIMIT 10", limits=Limits(max_rows=10))
    assert (capped.frame.height, capped.truncated) == (10, True)
    assert (exact.frame.height, exact.truncated) == (10, False)


def test_never_sends_more_bytes_than_allowed(store: Path) -> None:
    result = run_query(store, "SELECT repeat('x', 10000) FROM range(100000)", limits=Limits(max_bytes=20 << 20))
    assert result.truncated
    assert result.frame.estimated_size() <= 20 << 20


def test_a_trillion_rows_stream_into_the_row_cap(store: Path) -> None:
    result = run_query(store, "SELECT * FROM range(1000000000000)")
    assert (result.frame.height, result.truncated) == (Limits().max_rows, True)


@pytest.mark.parametrize(
    "sql",
    [
        "COPY runs TO '{folder}/out.csv'",
        "EXPLAIN ANALYZE COPY runs TO '{folder}/out.csv'",
        "EXPORT DATABASE '{folder}/out'",
        "ATTACH '{folder}/other.duckdb'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET memory_limit = '100GB'",
        "PRAGMA memory_limit = '100GB'",
        "RESET enable_external_access",
        "CALL pragma_version()",
        "CHECKPOINT",
        "USE other",
        "BEGIN",
        "PREPARE p AS SELECT 1",
        "CREATE TABLE mine (i INTEGER)",
        "CREATE TEMP TABLE mine AS SELECT 1",
        "INSERT INTO runs VALUES (1, 'a')",
        "UPDATE runs SET step = 0",
        "DELETE FROM runs",
        "DROP TABLE runs",
        "ALTER TABLE runs ADD COLUMN z INTEGER",
        "COMMENT ON TABLE runs IS 'x'",
        "MERGE INTO runs USING runs AS other ON true WHEN MATCHED THEN DELETE",
        "VACUUM",
        "EXPLAIN DROP TABLE runs",
    ],
)
def test_refuses_every_statement_that_does_not_only_read(no_child: None, store: Path, tmp_path: Path, sql: str) -> None:
    with pytest.raises(QueryError, match="Only a query that reads can run here"):
        run_query(store, sql.format(folder=tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT 1; SELECT 2", "this text holds 2"),
        ("SELECT 1; DROP TABLE runs", "this text holds 2"),
        ("", "no statement"),
        ("-- nothing", "no statement"),
        ("/* */ EXPLAIN SELECT 1", "first word"),
        ("PIVOT runs ON step", "FROM \\(PIVOT"),
        ("SELCT 1", 'syntax error at or near "SELCT"'),
        ("SELECT nope FROM runs", 'Referenced column "nope" not found'),
        ("SELECT error('boom')", "boom"),
        ("x" * 100_001, "longer than 100,000 characters"),
        ("WITH gone AS (DELETE FROM runs RETURNING *) SELECT * FROM gone", "read-only"),
    ],
)
def test_says_in_words_why_a_query_did_not_run(no_child: None, store: Path, sql: str, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        run_query(store, sql)


@pytest.mark.parametrize(
    "sql",
    [
        "FROM read_csv('/etc/passwd')",
        "FROM read_text('/etc/passwd')",
        "FROM read_blob('/proc/self/environ')",
        "FROM glob('/etc/*')",
        "FROM '/etc/passwd'",
        "FROM read_parquet('https://example.org/a.parquet')",
        "FROM read_csv('s3://bucket/a.csv')",
        "FROM sniff_csv('/etc/passwd')",
        "FROM which_secret('a', 's3')",
        "SELECT getenv('HOME')",
    ],
)
def test_reads_nothing_but_the_store(no_child: None, store: Path, sql: str) -> None:
    with pytest.raises(QueryError, match=r"Only the tables of this store|does not exist"):
        run_query(store, sql)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("DROP TABLE runs", "Only a query that reads"),
        ("EXPLAIN ANALYZE COPY runs TO '/tmp/out.csv'", "Only a query that reads"),
        ("FROM read_text('/etc/passwd')", "Only the tables of this store"),
        ("FROM request", "does not exist"),
        ("SELCT 1", 'syntax error at or near "SELCT"'),
    ],
)
def test_a_child_refuses_in_the_same_words(store: Path, sql: str, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        run_query(store, sql)


@pytest.mark.parametrize("name", ["request", "out", "batches", "statement", "sys"])
def test_python_variables_are_not_tables(no_child: None, store: Path, name: str) -> None:
    with pytest.raises(QueryError, match="does not exist"):
        run_query(store, f"FROM {name}")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT repeat('x', 2000000000)",
        "SELECT length(repeat('x', 2000000000))",
        "SELECT repeat('x', 200000000) FROM range(40)",
        "SELECT string_agg(name, '') FROM runs, range(3000)",
        "SELECT list(step) FROM runs, range(3000)",
        "SELECT * FROM range(100000) a, range(100000) b ORDER BY hash(a.range)",
    ],
)
def test_memory_has_a_ceiling_that_no_function_passes(store: Path, sql: str) -> None:
    limits = Limits(wall_s=30, memory_bytes=256 << 20)
    with pytest.raises(QueryError, match=r"more than 0\.25 GiB of memory"):
        run_query(store, sql, limits=limits)


@pytest.mark.parametrize(
    "sql",
    [
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",
        "SELECT count(*) FROM range(1000000000000)",
        "SELECT count(*) FROM runs a, runs b, runs c WHERE a.step + b.step <> c.step",
    ],
)
def test_a_query_without_end_is_stopped_on_time(store: Path, sql: str) -> None:
    started = time.monotonic()
    with pytest.raises(QueryError, match=r"Stopped after 1\.5 s"):
        run_query(store, sql, limits=Limits(wall_s=1.5))
    assert time.monotonic() - started < 60  # of which a busy machine may need some to start a process


def test_processor_time_has_a_ceiling_of_its_own(store: Path) -> None:
    class Miserly(Limits):
        cpu_s = 1

    with pytest.raises(QueryError, match="processor time"):
        run_query(store, "SELECT count(*) FROM range(1000000000000)", limits=Miserly(wall_s=30))


def test_the_store_is_untouched_and_readable_afterwards(store: Path) -> None:
    before = digest(store)
    for sql in ("DROP TABLE runs", "SELECT repeat('x', 2000000000)", "WITH a AS (DELETE FROM runs RETURNING *) FROM a"):
        with pytest.raises(QueryError):
            run_query(store, sql)
    assert digest(store) == before
    assert run_query(store, "SELECT count(*) AS n FROM runs").frame.equals(pl.DataFrame({"n": [100_000]}))
    assert [entry.name for entry in store.parent.iterdir()] == [store.name]


def test_reads_beside_another_open_reader(store: Path) -> None:
    with duckdb.connect(str(store), read_only=True) as connection:
        assert connection.sql("SELECT count(*) FROM runs").fetchall() == [(100_000,)]
        assert run_query(store, "SELECT 1").frame.height == 1


def test_a_missing_store_names_the_path_and_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"none\.duckdb: no such store\. Ingest"):
        run_query(tmp_path / "none.duckdb", "SELECT 1")


def test_a_file_that_is_no_store_is_an_error_in_words(tmp_path: Path) -> None:
    path = tmp_path / "broken.duckdb"
    path.write_bytes(b"not a database" * 1000)
    with pytest.raises(QueryError, match="not a valid DuckDB database"):
        run_query(path, "SELECT 1")
