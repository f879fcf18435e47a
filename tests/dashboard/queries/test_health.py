"""Files, rejects and versions, counted on a real DuckDB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from sweepscope.dashboard.queries import dictionary, health, stated
from sweepscope.schemas.registry import ALL, TABLES
from tests.dashboard.store_rows import file_row, reject_row, run_row, write_store


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = write_store(
        tmp_path_factory.mktemp("store") / "results-1.duckdb",
        runs=[run_row("a1"), run_row("a2"), run_row("s1", origin="simulated", status="oom")],
        files=[
            file_row("/l/a"),
            file_row("/l/b", parser_version=2, lines_rejected=2),
            file_row("/l/b0", parser=None, parser_version=None, secrets_hidden=7, kind="nccl"),
            file_row("/l/b1", parser=None, parser_version=None, secrets_hidden=0, kind="nccl"),
            file_row("/l/c", status="rejected", error="/l/c is a binary file."),
            file_row("/l/d", status="rejected", error="/l/d is a binary file."),
            file_row("/l/e", status="skipped", parser=None, parser_version=None),
        ],
        rejects=[
            reject_row(line_no=1, reason="cannot be read as Int64, got x1"),
            reject_row(line_no=2, reason="cannot be read as Int64, got x2 (3 times)"),
            reject_row(line_no=3, reason="must be at least 1"),
        ],
    )
    with duckdb.connect(str(path), read_only=True) as connection:
        yield connection


def test_summary_counts_files_by_what_became_of_them(con: Any) -> None:
    row = health.summary().run(con).row(0, named=True)
    assert {name: row[name] for name in ("files", "parsed", "skipped", "rejected", "lines_rejected")} == {
        "files": 7,
        "parsed": 4,
        "skipped": 1,
        "rejected": 2,
        "lines_rejected": 3,
    }
    assert (row["copies"], row["kept"], row["failed"]) == (0, 0, 0)


def test_files_with_the_same_reason_stand_together_without_their_paths(con: Any) -> None:
    first = health.files().run(con).row(0, named=True)
    assert (first["status"], first["error"], first["files"]) == ("rejected", "… is a binary file.", 2)


def test_the_example_is_the_file_with_the_most_credentials(con: Any) -> None:
    rows = {row["kind"]: row for row in health.files().run(con).iter_rows(named=True) if row["status"] == "parsed"}
    assert (rows["nccl"]["secrets_hidden"], rows["nccl"]["example"]) == (7, "/l/b0")
    assert rows["log"]["secrets_hidden"] is None


def test_rejects_with_the_same_reason_stand_together_without_their_values(con: Any) -> None:
    reasons = health.reject_reasons().run(con)
    assert dict(reasons.select("reason", "rejects").iter_rows()) == {
        "cannot be read as Int64": 2,
        "must be at least 1": 1,
    }
    assert health.rejects("cannot be read as Int64").run(con)["line_no"].to_list() == [1, 2]
    assert health.all_rejects().run(con).height == 3


def test_versions_of_a_parser_are_counted(con: Any) -> None:
    parsers = health.parsers().run(con)
    assert parsers.select("parser_version", "versions", "files").rows() == [(1, 2, 3), (2, 2, 1)]


def test_runs_are_counted_by_origin_and_outcome(con: Any) -> None:
    assert health.origins().run(con).rows() == [("measured", "completed", 2, 0), ("simulated", "oom", 1, 0)]


def test_row_counts_cover_every_stored_table(con: Any) -> None:
    counts = dict(health.row_counts().run(con).iter_rows())
    assert set(counts) == set(TABLES)
    assert (counts["runs"], counts["steps"]) == (3, 0)


def test_the_dictionary_describes_every_column_of_every_table(con: Any) -> None:
    assert set(dictionary.relations().run(con)["table_name"]) == set(ALL)
    columns = dictionary.columns().run(con)
    assert columns.height == sum(len(table.columns) for table in ALL.values())
    assert columns["comment"].null_count() == 0


def test_what_only_repeats_a_run_lacks_nothing(tmp_path: Path) -> None:
    again = {"source_path": "/logs/.submitit/7_0_log.out", "run_dir": "/logs/.submitit/7", "seq_len": None, "gbs": None}
    inferred = [
        {
            "source_path": path,
            "column_name": "loss",
            "field": "loss",
            "confidence": "high",
            "is_read": True,
            "line_no": 1,
        }
        for path in ("/logs/a1/train.out", again["source_path"])
    ]
    path = write_store(
        tmp_path / "results-1.duckdb",
        runs=[run_row("a1"), run_row("a2", **again, duplicate_of="a1")],
        inferred_columns=inferred,
    )
    with duckdb.connect(str(path), read_only=True) as connection:
        assert stated.gaps().run(connection).is_empty()
        assert health.inferred_logs().run(connection)["source_path"].to_list() == ["/logs/a1/train.out"]
