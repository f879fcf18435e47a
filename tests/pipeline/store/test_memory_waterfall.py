"""From the estimate to the card: levels, gaps that add up, fragmentation and the term that is off; figures by hand."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import duckdb
import polars as pl
import pytest

from sweepscope.schemas.core.table import Table
from sweepscope.schemas.tables import memory
from sweepscope.schemas.tables.estimates import ESTIMATES
from sweepscope.schemas.tables.runs import EVENTS
from tests.run_rows import Row, completed_frame, open_store, rows_of, run_row

GIB = 1 << 30
CARD = 85_520_809_984
START = datetime(2026, 1, 3, 15, 0)
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.00 GiB "
    "of which 1.00 GiB is free. Process 7 has 3.00 GiB memory in use. Including non-PyTorch memory, this process has "
    "75.00 GiB memory in use. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 2.00 GiB is reserved by "
    "PyTorch but unallocated."
)
GAPS = (
    "estimate_gap_bytes",
    "fragmentation_bytes",
    "outside_allocator_bytes",
    "other_processes_bytes",
    "headroom_bytes",
)


def estimate(run_id: str = "a1", **gib: float) -> Row:
    parts = {"weights": 2, "gradients": 4, "optimizer": 8, "activations": 20, "logits": 3, "buffers": 1} | gib
    return {
        "run_id": run_id,
        "est_status": "ok",
        "est_mem_bytes": sum(parts.values()) * GIB,
        "est_mem_fragmentation_bytes": 0.05 * sum(parts.values()) * GIB,
        **{f"est_mem_{part}_bytes": size * GIB for part, size in parts.items()},
    }


def store(
    *runs: Row, estimates: list[Row] | None = None, events: list[Row] | None = None, **tables: list[Row]
) -> duckdb.DuckDBPyConnection:
    connection = open_store(
        completed_frame(*runs),
        events=EVENTS.conform(pl.DataFrame(events)) if events else None,
        estimates=ESTIMATES.conform(pl.DataFrame(estimates)) if estimates else None,
    )
    for name, rows in tables.items():
        table: Table = getattr(memory, name.upper())
        connection.register("rows", table.conform(pl.DataFrame(rows, infer_schema_length=None)))
        connection.execute(f"INSERT INTO {name} SELECT * FROM rows")
    return connection


def waterfall(connection: duckdb.DuckDBPyConnection) -> Row:
    (row,) = rows_of(connection, "FROM memory_waterfall")
    return row


def snapshot(path: str = "/runs/a/rank0.pickle", **changes: Any) -> Row:
    return {
        "source_path": path,
        "run_dir": "/runs/a",
        "device": 0,
        "mem_source": "snapshot",
        "peak_requested_active_bytes": 50 * GIB,
        "peak_reserved_bytes": 60 * GIB,
        "peak_is_lower_bound": False,
        "oom_events": 0,
        "recorded_until": START + timedelta(minutes=10),
    } | changes


def groups(path: str = "/runs/a/rank0.pickle", **gib: float) -> list[Row]:
    return [
        {
            "source_path": path,
            "device": 0,
            "group_no": number,
            "category": category,
            "rule": "said",
            "bytes": size * GIB,
        }
        for number, (category, size) in enumerate(gib.items(), start=1)
    ]


def test_levels_of_a_log_and_the_sums_are_exact() -> None:
    run = run_row(mem_peak_allocated_bytes=50 * GIB, mem_peak_reserved_bytes=60 * GIB)
    row = waterfall(store(run, estimates=[estimate()]))
    assert row["est_mem_bytes"] == 38 * GIB
    assert (row["estimate_gap_bytes"], row["fragmentation_bytes"]) == (12 * GIB, 10 * GIB)
    assert (row["outside_allocator_bytes"], row["other_processes_bytes"], row["mem_used_max_bytes"]) == (
        None,
        None,
        None,
    )
    assert row["headroom_bytes"] == CARD - 60 * GIB
    assert row["eps_frag"] == pytest.approx(0.2)
    assert row["est_mem_bytes"] + sum(row[gap] or 0 for gap in GAPS) == CARD == row["mem_total_bytes"]


def test_the_text_of_a_failure_knows_the_process_and_the_others() -> None:
    failed = {"run_id": "a1", "source_path": "/logs/a1.out", "line_no": 9, "kind": "oom", "text": OOM}
    row = waterfall(store(run_row(status="oom"), events=[failed], estimates=[estimate()]))
    assert (row["peak_source"], row["peak_is_lower_bound"]) == ("oom_report", True)
    assert (row["fragmentation_bytes"], row["outside_allocator_bytes"]) == (2 * GIB, 3 * GIB)
    assert (row["other_processes_bytes"], row["headroom_bytes"]) == (3 * GIB, GIB)
    assert row["est_mem_bytes"] + sum(row[gap] for gap in GAPS) == 79 * GIB == row["mem_total_bytes"]


def test_samples_show_what_lies_outside_the_allocator() -> None:
    run = run_row(
        run_dir="/runs/a",
        started_at=START,
        ended_at=START + timedelta(minutes=30),
        mem_peak_allocated_bytes=50 * GIB,
        mem_peak_reserved_bytes=60 * GIB,
    )
    samples = [
        {
            "source_path": "/runs/a/gpu.csv",
            "line_no": at,
            "run_dir": "/runs/a",
            "gpu_index": 0,
            "ts": START + timedelta(minutes=at),
            "mem_used_bytes": used * GIB,
            "mem_total_bytes": 80 * GIB,
        }
        for at, used in ((1, 30), (2, 63), (3, 62))
    ]
    row = waterfall(store(run, gpu_samples=samples))
    assert (row["outside_allocator_bytes"], row["mem_process_bytes"], row["other_processes_bytes"]) == (
        3 * GIB,
        None,
        None,
    )
    assert (row["mem_used_max_bytes"], row["used_source"], row["headroom_bytes"]) == (63 * GIB, "gpu_samples", 17 * GIB)
    assert row["estimate_gap_bytes"] is None  # nothing is estimated


def test_a_snapshot_says_what_the_bytes_were_for() -> None:
    run = run_row(run_dir="/runs/a", mem_peak_allocated_bytes=52 * GIB, mem_peak_reserved_bytes=61 * GIB)
    parts = groups(
        parameters=10, gradients=5, optimizer_state=15, activations=12, input=1, workspace=2, communication=3, unknown=2
    )
    row = waterfall(store(run, memory_snapshots=[snapshot()], memory_at_peak=parts))
    told = {
        name: row[f"mem_{name}_bytes"] / GIB
        for name in ("weights", "gradients", "optimizer", "activations", "buffers", "unknown")
    }
    assert told == {"weights": 10, "gradients": 5, "optimizer": 15, "activations": 13, "buffers": 5, "unknown": 2}
    assert (row["peak_source"], row["beyond_snapshot_bytes"]) == ("log", 2 * GIB)
    assert sum(told.values()) * GIB + row["beyond_snapshot_bytes"] == row["mem_peak_allocated_bytes"]


def test_the_rank_with_the_largest_peak_stands_for_the_run() -> None:
    ranks = [snapshot(), snapshot("/runs/a/rank1.pickle", peak_requested_active_bytes=55 * GIB)]
    parts = [*groups(parameters=50), *groups("/runs/a/rank1.pickle", parameters=55)]
    row = waterfall(store(run_row(run_dir="/runs/a"), memory_snapshots=ranks, memory_at_peak=parts))
    assert (row["snapshot_path"], row["mem_weights_bytes"]) == ("/runs/a/rank1.pickle", 55 * GIB)
    assert (row["mem_peak_allocated_bytes"], row["peak_source"]) == (55 * GIB, "snapshot")
    assert row["beyond_snapshot_bytes"] == 0


def joined(snapshots: list[Row], *runs: Row) -> list[tuple[str, str]]:
    rows = rows_of(store(*runs, memory_snapshots=snapshots), "FROM run_snapshots ORDER BY source_path")
    return [(row["source_path"], row["run_id"]) for row in rows]


def test_a_snapshot_belongs_to_the_nearest_run_above_it() -> None:
    runs = run_row("outer", run_dir="/runs"), run_row("inner", run_dir="/runs/a"), run_row("beside", run_dir="/runs/a2")
    assert joined([snapshot("/runs/a/mem/r0.pickle", run_dir="/runs/a/mem")], *runs) == [
        ("/runs/a/mem/r0.pickle", "inner")
    ]


@pytest.mark.parametrize("root", ["", "s3://bucket", "/runs with a ~ and a %"])
def test_a_folder_is_above_another_whatever_its_root(root: str) -> None:
    runs = run_row("above", run_dir=f"{root}/a"), run_row("beside", run_dir=f"{root}/a/b2")
    path = f"{root}/a/b/c/r0.pickle"
    assert joined([snapshot(path, run_dir=f"{root}/a/b/c")], *runs) == [(path, "above")]
    assert joined([snapshot(path, run_dir=f"{root}/other")], *runs) == []


def test_of_several_attempts_the_one_during_which_it_was_recorded() -> None:
    def attempt(number: int, **changes: Any) -> Row:
        begin = START + timedelta(hours=number)
        return run_row(
            f"t{number}",
            attempt=number,
            run_dir="/runs/a",
            started_at=begin,
            ended_at=begin + timedelta(minutes=50),
            **changes,
        )

    during = snapshot(recorded_until=START + timedelta(hours=2, minutes=5))
    outside = snapshot("/runs/a/b.pickle", recorded_until=START + timedelta(hours=9))
    failed = snapshot("/runs/a/c.pickle", recorded_until=START + timedelta(hours=9), oom_events=1)
    found = joined([during, outside, failed], attempt(1, status="oom"), attempt(2))
    assert found == [("/runs/a/c.pickle", "t1"), ("/runs/a/rank0.pickle", "t2")]


def test_fragmentation_of_a_sweep_leaves_out_failures_and_empty_devices() -> None:
    runs = [
        run_row(f"r{at}", mem_peak_allocated_bytes=10 * GIB, mem_peak_reserved_bytes=(10 + at) * GIB)
        for at in range(1, 6)
    ]
    runs.append(run_row("failed", status="oom", mem_peak_allocated_bytes=10 * GIB, mem_peak_reserved_bytes=70 * GIB))
    runs.append(run_row("empty", mem_peak_allocated_bytes=1000, mem_peak_reserved_bytes=GIB))
    whole, sweep = rows_of(
        store(*runs, estimates=[estimate("r1")]), "FROM memory_fragmentation ORDER BY sweep NULLS FIRST"
    )
    assert (whole["sweep"], sweep["sweep"], sweep["n"]) == (None, "sweep", 5)
    assert [sweep[name] for name in ("eps_frag", "eps_frag_low", "eps_frag_high", "eps_frag_max")] == pytest.approx(
        [0.3, 0.14, 0.46, 0.5]
    )
    assert sweep["est_eps_frag"] == pytest.approx(0.05)
    assert sweep["fragmentation_max_bytes"] == 5 * GIB


def test_the_term_that_is_off_explains_the_residuals() -> None:
    """Activations are 1.5 times the estimate; everything else is right."""
    sizes = (4, 8, 12, 20, 32)
    runs = [run_row(f"r{at}", mem_peak_allocated_bytes=(18 + 1.5 * at) * GIB) for at in sizes]
    rows = rows_of(store(*runs, estimates=[estimate(f"r{at}", activations=at) for at in sizes]), "FROM memory_terms")
    terms = {row["term"]: row for row in rows if row["sweep"]}
    assert set(terms) == {"states", "activations", "logits", "buffers", "constant"}
    assert terms["activations"]["n"] == 5
    assert terms["activations"]["term_factor"] == pytest.approx(1.5)
    assert terms["activations"]["explained_share"] == pytest.approx(1.0)
    residuals = [0.5 * at for at in sizes]
    mean = sum(residuals) / 5
    assert terms["constant"]["term_offset_bytes"] == pytest.approx(mean * GIB)
    assert terms["constant"]["explained_share"] == pytest.approx(5 * mean**2 / sum(r**2 for r in residuals))
    assert terms["states"]["explained_share"] == pytest.approx(terms["constant"]["explained_share"])  # 14 GiB in all


def test_too_few_runs_fit_nothing_but_snapshots_still_measure() -> None:
    run = run_row(run_dir="/runs/a", mem_peak_allocated_bytes=50 * GIB)
    parts = groups(parameters=6, gradients=4, optimizer_state=10, activations=30)
    connection = store(run, estimates=[estimate()], memory_snapshots=[snapshot()], memory_at_peak=parts)
    terms = {row["term"]: row for row in rows_of(connection, "FROM memory_terms WHERE sweep = 'sweep'")}
    assert {row["term_factor"] for row in terms.values()} == {None}
    assert (terms["states"]["est_beside_median_bytes"], terms["states"]["measured_median_bytes"]) == (
        14 * GIB,
        20 * GIB,
    )
    assert (terms["activations"]["n_snapshots"], terms["logits"]["n_snapshots"]) == (1, 0)


def test_parts_in_a_row_end_where_the_next_level_is() -> None:
    failed = {"run_id": "a1", "source_path": "/logs/a1.out", "line_no": 9, "kind": "oom", "text": OOM}
    parts = groups(parameters=10, gradients=20, activations=35)
    connection = store(
        run_row(status="oom", run_dir="/runs/a"),
        events=[failed],
        estimates=[estimate()],
        memory_snapshots=[snapshot()],
        memory_at_peak=parts,
    )
    rows = rows_of(connection, "FROM memory_waterfall_parts ORDER BY part_no")
    assert all(row["bytes"] is not None for row in rows)
    ends = {
        kind: [row["begins_at_bytes"] + row["bytes"] for row in rows if row["part_kind"] == kind]
        for kind in ("estimated", "gap", "level", "measured")
    }
    levels = dict(zip(["estimate", "allocated", "reserved", "process", "device", "card"], ends["level"], strict=True))
    assert ends["estimated"][-1] == levels["estimate"] == 38 * GIB
    assert ends["measured"][-1] == levels["allocated"] == 70 * GIB
    assert ends["gap"] == [levels[name] for name in ("allocated", "reserved", "process", "device", "card")]


def test_what_is_unknown_keeps_its_row_without_bytes() -> None:
    run = run_row(mem_peak_allocated_bytes=50 * GIB, accelerator=None)
    rows = {(row["part_kind"], row["part"]): row["bytes"] for row in rows_of(store(run), "FROM memory_waterfall_parts")}
    assert len(rows) == 24
    assert {part for part, size in rows.items() if size is not None} == {("level", "allocated")}
