"""Bars of a waterfall, names of runs, verdicts by number: what the page on memory is made of."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from sweepscope.dashboard.text import memory_run as run_texts
from sweepscope.dashboard.view_models import memory
from sweepscope.schemas.vocab.memory import MEM_FIT, PART, PART_KIND
from tests.run_rows import open_store

GIB = 1 << 30
Row = dict[str, Any]


def parts(status: str = "completed", **known: float) -> pl.DataFrame:
    """Rows of the real view over one made-up waterfall; unnamed levels are unknown."""
    connection = open_store(pl.DataFrame(schema=memory_schema()))
    query = connection.sql("SELECT * FROM memory_waterfall LIMIT 0")
    row = dict.fromkeys(query.columns, "NULL") | known | {"status": f"'{status}'"}
    values = ", ".join(f"{value} AS {name}" for name, value in row.items() if name != "run_id")
    connection.execute(f"CREATE OR REPLACE VIEW memory_waterfall AS SELECT 'a' AS run_id, {values}")
    return connection.sql("FROM memory_waterfall_parts ORDER BY part_no").pl()


def memory_schema() -> pl.Schema:
    from sweepscope.schemas.tables.runs import RUNS

    return RUNS.polars_schema


def test_what_a_run_never_allocated_is_not_unexplained() -> None:
    levels = {"est_mem_bytes": 9, "estimate_gap_bytes": -4, "mem_peak_allocated_bytes": 5}
    for status, name in (("oom", "Never allocated"), ("crash", "Never allocated"), ("completed", "Unexplained")):
        (gap,) = [bar for bar in memory.bars(parts(status, **levels)) if bar.kind == "gap"]
        assert (gap.name, gap.size, gap.is_unexplained) == (name, -4, name == "Unexplained")
    (more,) = [bar for bar in memory.bars(parts("oom", **levels | {"estimate_gap_bytes": 2})) if bar.kind == "gap"]
    assert more.name == "Unexplained"


def test_only_known_parts_are_drawn_and_begin_where_the_last_ended() -> None:
    bars = memory.bars(
        parts(
            est_mem_weights_bytes=2,
            est_mem_gradients_bytes=3,
            est_mem_bytes=5,
            estimate_gap_bytes=-1,
            mem_peak_allocated_bytes=4,
        )
    )
    assert [(bar.name, bar.begin, bar.size) for bar in bars] == [
        ("~ weights", 0, 2),
        ("~ gradients", 2, 3),
        ("~ Estimated", 0, 5),
        ("Unexplained", 5, -1),
        ("Allocated", 0, 4),
    ]
    assert [bar.name for bar in bars if bar.is_unexplained] == ["Unexplained"]


def test_a_process_alone_on_its_gpu_is_not_told_apart_from_the_gpu() -> None:
    levels = {
        "mem_peak_reserved_bytes": 6,
        "outside_allocator_bytes": 2,
        "mem_process_bytes": 8,
        "mem_used_max_bytes": 8,
    }
    alone = memory.bars(parts(**levels, other_processes_bytes=0))
    assert [bar.name for bar in alone] == ["Reserved", "Context, NCCL, libraries", "GPU in use"]
    shared = memory.bars(parts(**(levels | {"mem_used_max_bytes": 9}), other_processes_bytes=1))
    assert [bar.name for bar in shared][-3:] == ["Process", "Other processes", "GPU in use"]


def test_a_gap_that_may_hold_other_processes_does_not_name_libraries() -> None:
    frame = parts(mem_peak_reserved_bytes=6, outside_allocator_bytes=2, mem_used_max_bytes=8)
    assert [bar.name for bar in memory.bars(frame)] == ["Reserved", "Outside the allocator", "GPU in use"]
    assert memory.unknown_parts(frame) == ["Estimated", "Allocated", "Process", "Card"]


def test_every_part_and_verdict_has_a_name() -> None:
    frame = parts()
    assert frame.height == 24
    cut_short = parts("oom", estimate_gap_bytes=-1)
    assert {*frame["part"], *cut_short["part"]} == set(PART)
    assert set(frame["part_kind"]) == set(PART_KIND)
    assert set(memory.VERDICT) == set(MEM_FIT)


def peak(run_id: str, **changes: Any) -> Row:
    return {"run_id": run_id, "status": "completed", "mem_peak_allocated_bytes": GIB, "est_mem_bytes": None} | changes


def test_a_failed_run_with_levels_is_shown_first() -> None:
    rows = [peak("a", status="oom", mem_peak_allocated_bytes=None), peak("b"), peak("c", est_mem_bytes=GIB)]
    assert memory.default_run(rows) == "c"
    assert memory.default_run([*rows, peak("d", status="oom")]) == "d"
    assert memory.default_run(rows[:1]) == "a"
    assert memory.default_run([]) is None


@pytest.mark.parametrize("status", ["failed", "truncated", "unknown"])
def test_a_run_that_ended_for_no_known_reason_is_not_known_to_fit(status: str) -> None:
    row = {"mem_verdict": "fits", "verdict_evidence": "held 77.40 GiB of 79.65 GiB", "status": status}
    assert run_texts.verdict_text(row, status) == (
        "**Near the limit when it ended.** Held 77.40 GiB of 79.65 GiB. Memory may be the cause; the log has no reason."
    )
    assert run_texts.need(row) == "? near the limit when it ended"


@pytest.mark.parametrize("status", ["completed", "hang"])
def test_a_run_whose_end_is_known_fits_near_the_limit(status: str) -> None:
    row = {"mem_verdict": "fits", "verdict_evidence": "held 3 of 4", "status": status}
    assert run_texts.verdict_text(row, status) == "**Fits, near the limit.** Held 3 of 4."
    assert run_texts.need(row) == "✓ fits, near the limit"


@pytest.mark.parametrize(
    ("basis", "lines", "end"),
    [
        ("oom_report", 5, " The request is that of line 812, one of 5 out-of-memory lines."),
        ("oom_report", 1, ""),
        ("snapshot", 5, ""),
    ],
)
def test_a_verdict_names_the_line_of_its_request_among_several(basis: str, lines: int, end: str) -> None:
    row = {"mem_verdict": "recompute", "verdict_evidence": "asked for 1.88 GiB", "verdict_basis": basis}
    text = run_texts.verdict_text({**row, "oom_lines": lines, "oom_line_no": 812}, "oom")
    assert text == f"**Needs recompute: giving up activations frees enough.** Asked for 1.88 GiB.{end}"


def test_sweeps_and_verdicts_are_counted() -> None:
    peaks = pl.DataFrame(
        {
            "sweep": ["x", "x", "y", None],
            "status": ["oom", "oom", "oom", "completed"],
            "mem_verdict": ["recompute", "sharding", "recompute", "fits"],
        }
    )
    assert memory.sweeps(peaks, pl.DataFrame({"sweep": ["z", "x", None]})) == {"x": 2, "y": 1, "z": 0}
    assert memory.verdicts(peaks) == [("recompute", 2), ("sharding", 1)]
