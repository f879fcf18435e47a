"""The time line of a run, its files and nodes, on small made-up stores; every time is worked out by hand."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from sweepscope.schemas.registry import VIEWS
from sweepscope.schemas.vocab.timeline import ENTRY_KIND, ENTRY_SOURCE
from tests.dashboard.store_rows import Row, event_row, file_row, run_row, write_real_store
from tests.nccl_rows import flight_row, hang_line_row, hang_row, nccl_file_row, rank_row, warning_row

START = datetime(2026, 11, 20, 22, 41)
LOG = "/logs/a1/train.out"
UTC_NS = 1_000_000_000 * int((START - datetime(1970, 1, 1)).total_seconds())


def ask(tmp_path: Path, sql: str, **rows: list[Row]) -> list[Row]:
    path = write_real_store(tmp_path / "store.duckdb", **rows)
    with duckdb.connect(str(path), read_only=True) as connection:
        found: list[Row] = connection.sql(sql).pl().to_dicts()
    return found


def entries(tmp_path: Path, **rows: list[Row]) -> list[tuple[Any, ...]]:
    """Source, kind and minutes since the start of each entry of run a1 ("~" where the time is another line's)."""
    found = ask(tmp_path, "SELECT * FROM run_timeline WHERE run_id = 'a1' ORDER BY entry_no", **rows)
    assert {row["entry_source"] for row in found} <= set(ENTRY_SOURCE)
    assert {row["entry_kind"] for row in found} <= set(ENTRY_KIND)
    return [
        (
            row["entry_source"],
            row["entry_kind"],
            None if row["ts"] is None else (row["ts"] - START).total_seconds() / 60,
            "" if row["is_time_printed"] else "~",
        )
        for row in found
    ]


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def test_lines_of_a_log_without_times_take_those_of_their_neighbours(tmp_path: Path) -> None:
    events = [
        event_row(kind="launch", line_no=1),
        event_row(kind="straggler", line_no=5, ts=at(3)),
        event_row(kind="oom", line_no=9),
        event_row(kind="exception", line_no=9),
        event_row(kind="timeout", line_no=20, ts=at(7)),
    ]
    assert entries(tmp_path, runs=[run_row(status="oom")], events=events) == [
        ("log", "launch", 3.0, "~"),  # none before it has a time
        ("log", "straggler", 3.0, ""),
        ("log", "oom", 3.0, "~"),  # its exception is the same line
        ("log", "timeout", 7.0, ""),
    ]


def test_a_run_whose_lines_have_no_time_has_its_entries_in_order(tmp_path: Path) -> None:
    events = [event_row(kind="exception", line_no=9), event_row(kind="launch", line_no=1)]
    assert entries(tmp_path, runs=[run_row()], events=events) == [
        ("log", "launch", None, "~"),
        ("log", "exception", None, "~"),
    ]


def test_dumps_in_utc_come_at_the_log_s_time(tmp_path: Path) -> None:
    """The log's clock is seven hours behind; dumps that would be of another day have no time here."""
    dump = {"run_dir": "/logs/a1"}
    shifted = UTC_NS + 7 * 3600 * 10**9
    rows = {
        "runs": [run_row(status="hang")],
        "events": [event_row(kind="hang", line_no=950, ts=at(12))],
        "flight_records": [
            flight_row("t0", rank=0, seq=118, created_ns=shifted + 2 * 60 * 10**9, **dump),
            flight_row("t0", rank=0, seq=117, created_ns=shifted + 1 * 60 * 10**9, line_no=2, **dump),
            flight_row("t3", rank=3, seq=117, created_ns=shifted + 1 * 60 * 10**9, **dump),
        ],
        "nccl_hangs": [hang_row("t0", evidence_source="flight_recorder", **dump)],
    }
    assert entries(tmp_path, **rows) == [
        ("flight_recorder", "last_collective", 1.0, ""),  # rank 3: seq 117
        ("flight_recorder", "last_collective", 2.0, ""),
        ("flight_recorder", "suspect", 2.0, ""),  # when the first rank entered the collective that hangs
        ("log", "hang", 12.0, ""),
    ]
    days_off = [flight_row("t0", created_ns=UTC_NS + 40 * 86_400 * 10**9, **dump)]
    assert entries(tmp_path, runs=[run_row()], flight_records=days_off) == [
        ("flight_recorder", "last_collective", None, "~")
    ]


@pytest.mark.parametrize(
    ("printed", "minutes"), [("1120 22:51:00.897694279", 10.0149), ("2026-11-20 22:51:00", 10.0), ("no time", None)]
)
def test_lines_on_hangs_have_the_time_they_print(tmp_path: Path, printed: str, minutes: float | None) -> None:
    line = hang_line_row("died", name="a1/train", source_path=LOG, line_no=12, printed_at=printed)
    (entry,) = entries(tmp_path, runs=[run_row()], nccl_hang_lines=[line])
    assert entry[:2] == ("nccl", "hang_died")
    assert entry[2] == (None if minutes is None else pytest.approx(minutes, abs=1e-3))


def test_a_time_without_year_after_new_year_s_eve(tmp_path: Path) -> None:
    run = run_row(started_at=datetime(2026, 12, 31, 23, 50), ended_at=datetime(2027, 1, 1, 0, 20))
    line = hang_line_row("died", source_path=LOG, line_no=12, printed_at="101 00:10:00.5")
    (row,) = ask(tmp_path, "SELECT ts FROM run_timeline", runs=[run], nccl_hang_lines=[line])
    assert row["ts"] == datetime(2027, 1, 1, 0, 10, 0, 500_000)


def test_a_line_is_one_entry_though_two_parsers_read_it(tmp_path: Path) -> None:
    rows = {
        "runs": [run_row(status="hang")],
        "events": [event_row(kind="hang", line_no=950), event_row(kind="nccl_error", line_no=960)],
        "nccl_hang_lines": [hang_line_row(source_path=LOG, line_no=950, printed_at="1120 22:51:00.0")],
        "nccl_warnings": [warning_row(source_path=LOG, line_no=960), warning_row(source_path=LOG, line_no=961)],
    }
    assert entries(tmp_path, **rows) == [
        ("log", "hang", 10.0, ""),
        ("log", "nccl_error", 10.0, "~"),
        ("nccl", "nccl_unknown", 10.0, "~"),
    ]


def test_samples_and_jobs(tmp_path: Path) -> None:
    sample = {"source_path": "/logs/a1/smi.csv", "run_dir": "/logs/a1", "gpu_index": 0, "mem_total_bytes": 80 * 2**30}
    samples = [
        {**sample, "line_no": 2 + i, "ts": at(i), "mem_used_bytes": used * 2**30, "gpu_utilisation": busy}
        for i, (used, busy) in enumerate([(10, 0.9), (70, 0.9), (60, 0.0), (60, 0.0), (60, 0.0)])
    ]
    job = {
        "scheduler": "slurm",
        "job_id": "2691",
        "job_state": "timeout",
        "submitted_at": at(-30),
        "started_at": at(-1),
        "ended_at": at(20),
        "source_path": "/logs/sacct.txt",
        "line_no": 2,
        "run_dir": "/logs",
    }
    events = [event_row(kind="scheduler", source_path="/logs/sacct.txt", line_no=2)]
    found = entries(tmp_path, runs=[run_row()], gpu_samples=samples, scheduler_jobs=[job], events=events)
    assert found == [
        ("scheduler", "job_submitted", -30.0, ""),
        ("scheduler", "job_started", -1.0, ""),
        ("memory", "gpu_peak", 1.0, ""),
        ("memory", "gpus_idle", 1.0, ""),
        ("scheduler", "job_timeout", 20.0, ""),
    ]


def test_lines_are_of_the_attempt_within_which_they_are(tmp_path: Path) -> None:
    runs = [
        run_row("a1", source_path=LOG, line_no=1),
        run_row("a2", source_path=LOG, line_no=100, attempt=2),
        run_row("b1", source_path="/logs/b/train.out", run_dir="/logs/b"),
        run_row("c1", source_path="/logs/c/train.out", run_dir="/logs/c"),
        run_row("c2", source_path="/logs/c/again.out", run_dir="/logs/c"),
    ]
    nccl = {
        "nccl_files": [
            nccl_file_row("x", source_path="/logs/b/nccl.txt", run_dir="/logs/b"),
            nccl_file_row("y", source_path="/logs/c/nccl.txt", run_dir="/logs/c"),
            nccl_file_row("z", source_path="/logs/unit/rank1.txt", run_dir="/logs/unit/deep"),
        ],
        "files": [file_row("/logs/unit/rank1.txt", unit="/logs/b"), file_row("/logs/b/train.out", unit="/logs/b")],
    }
    found = ask(tmp_path, "SELECT run_id, path, from_line, to_line FROM run_files ORDER BY ALL", runs=runs, **nccl)
    assert [tuple(row.values()) for row in found] == [
        ("a1", LOG, 1, 99),
        ("a2", LOG, 100, None),
        ("b1", "/logs/b/nccl.txt", 1, None),
        ("b1", "/logs/b/train.out", 1, None),
        ("b1", "/logs/unit/rank1.txt", 1, None),
        ("c1", "/logs/c/train.out", 1, None),
        ("c2", "/logs/c/again.out", 1, None),  # of two runs of one folder none has the file beside them
    ]


def test_nodes_of_a_run_by_their_best_source(tmp_path: Path) -> None:
    runs = [
        run_row("a1", hosts="n0.site.org, n1", first_failed_host="n1"),
        run_row("b1", source_path="/logs/b", first_failed_host="10.0.0.7"),
    ]
    events = [event_row("b1", kind="launch", host="n2"), event_row("b1", kind="scheduler", host="n9", line_no=3)]
    ranks = [rank_row(source_path="/logs/b", host="n2.site.org"), rank_row(source_path="/logs/b", rank=1, host="n3")]
    sql = "SELECT * FROM run_hosts ORDER BY ALL"
    found = ask(tmp_path, sql, runs=runs, events=events, nccl_ranks=ranks)
    assert [tuple(row.values()) for row in found] == [
        ("a1", "n0", "scheduler"),
        ("a1", "n1", "scheduler"),
        ("b1", "10.0.0.7", "failure"),
        ("b1", "n2", "log"),
        ("b1", "n3", "nccl"),
    ]


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "localhost.localdomain"])
def test_the_name_that_every_node_has_is_that_of_none(tmp_path: Path, name: str) -> None:
    events = [event_row("a", kind="worker_failed", host=name)]
    runs = [run_row("a", status="crash", first_failed_host=name, tokens_per_s_per_gpu=None)]
    assert ask(tmp_path, "SELECT * FROM nodes", runs=runs, events=events) == []


def test_what_speaks_against_a_node(tmp_path: Path) -> None:
    dead = {"status": "nccl_error", "tokens_per_s_per_gpu": None}
    runs = [
        *(run_row(f"good{i}", hosts="n1, n2") for i in range(8)),
        *(run_row(f"bad{i}", hosts="n0", **dead) for i in range(4)),
        run_row("oom", hosts="n1", status="oom", tokens_per_s_per_gpu=None),
        run_row("lost", status="node_fail", tokens_per_s_per_gpu=None),
    ]
    events = [
        event_row("bad0", kind="worker_failed", host="n0.site.org"),
        event_row("bad1", kind="nccl_error", host="n0"),
        event_row("good0", kind="straggler", host="n2"),
        event_row("good1", kind="gpu_shared", rank=3),  # two nodes: it is open which
        event_row("bad2", kind="gpu_shared", rank=3),
        event_row("oom", kind="oom", host="n1"),
        event_row("lost", kind="node_fail", host="n7"),
    ]
    found = {row["host"]: row for row in ask(tmp_path, "SELECT * FROM nodes", runs=runs, events=events)}
    assert tuple(found["n0"]) == VIEWS["nodes"].column_names
    counts = {
        host: tuple(row[name] for name in ("runs_tried", "runs_judged", "runs_failed", "runs_naming"))
        for host, row in found.items()
    }
    assert counts == {"n0": (4, 4, 4, 2), "n1": (9, 9, 1, 0), "n2": (8, 8, 0, 0), "n7": (1, 0, 0, 1)}
    assert found["n0"]["failure_rate_elsewhere"] == pytest.approx(1 / 17)
    assert [host for host, row in found.items() if row["is_failing_more"]] == ["n0"]
    assert {host: (row["runs_straggling"], row["runs_occupied"]) for host, row in found.items()} == {
        "n0": (0, 1),
        "n1": (0, 0),
        "n2": (1, 0),
        "n7": (0, 0),
    }
    assert found["n7"]["failure_rate"] is None
