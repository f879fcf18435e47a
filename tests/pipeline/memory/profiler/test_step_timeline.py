"""Steps, exchange and overlap in profiler traces: torch's own figures, HTA's, and a count of every microsecond."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sweepscope.pipeline.memory.profiler.step_timeline import StepTimeline
from sweepscope.pipeline.memory.sources import read_memory_file
from tests.pipeline.ingest_in_memory import batch_of
from tests.pipeline.memory.profiler.cuda_traces import STEP_US, STEPS, Span, rendered, spans_of

RECORDED = Path(__file__).parents[3] / "trackers" / "traces"
Rows = dict[str, list[dict[str, Any]]]


def rows_of(text: str, *, chunk_bytes: int = 1 << 20) -> Rows:
    timeline, data = StepTimeline(), text.encode()
    for _ in timeline.watch(data[at : at + chunk_bytes] for at in range(0, len(data), chunk_bytes)):
        pass
    return timeline.rows()


NAMES = [path.stem for path in sorted(RECORDED.glob("*.json"))]


def test_there_are_five_traces() -> None:
    assert len(NAMES) >= 5


@pytest.mark.parametrize("name", NAMES)
def test_steps_last_as_long_as_torchs_own_events_say(name: str) -> None:
    own = json.loads((RECORDED / f"{name}.json").read_text())
    data = gzip.decompress((RECORDED / f"{name}.pt.trace.json.gz").read_bytes())
    steps = read_memory_file("/x/a.pt.trace.json", [data], {"run_dir": "/x", "sweep": "s"}).tables["trace_steps"]
    assert steps["duration_s"].to_list() == pytest.approx([us / 1e6 for us in own["durations_us"]], abs=2e-9)
    assert (steps["rank"].unique().to_list(), steps["step"].to_list()) == ([own["rank"]], [2, 3, 4])
    assert steps["device_busy_s"].null_count() == steps["exchange_s"].null_count() == 3  # no GPU: unknown, not 0


# HolisticTraceAnalysis 0.5.0 on the same files, include_last_profiler_step=True: get_comm_comp_overlap, and of
# get_temporal_breakdown the compute time and, of 29,400 us, the idle time.
HTA = {0: (79.03, 18_913, 6_995), 1: (62.09, 15_869, 8_101)}


@pytest.mark.parametrize("rank", HTA)
def test_overlap_compute_and_idle_time_are_those_of_hta(rank: int) -> None:
    overlap, compute_us, idle_us = HTA[rank]
    steps = rows_of(rendered(spans_of(rank), rank=rank))["trace_steps"]
    exchange, exposed = (sum(row[name] for row in steps) for name in ("exchange_s", "exposed_exchange_s"))
    assert round(100 * (1 - exposed / exchange), 2) == overlap
    assert sum(row["compute_s"] for row in steps) * 1e6 == pytest.approx(compute_us)
    assert 29_400 - sum(row["device_busy_s"] for row in steps) * 1e6 == pytest.approx(idle_us)


def counted(spans: list[Span], step: int) -> tuple[int, int, int, int]:
    """Microseconds of a step in which anything ran, compute, exchange, and exchange without compute."""
    compute, exchange, copies = (np.zeros(STEP_US, bool) for _ in range(3))
    for span in spans:
        if span.step == step:
            which = {"gemm": compute, "copy": copies}.get(span.kind, exchange)
            which[span.begin : span.begin + span.length] = True
    alone = exchange & ~compute
    return tuple(int(flags.sum()) for flags in (compute | exchange | copies, compute, exchange, alone))  # type: ignore[return-value]  # four of them


@pytest.mark.parametrize("seed", range(20))
def test_times_are_those_of_every_microsecond(seed: int) -> None:
    spans = spans_of(seed)
    found = rows_of(rendered(spans, rank=3, indent=None if seed % 2 else 2), chunk_bytes=997)
    assert [row["step"] for row in found["trace_steps"]] == [7, 8, 9]
    for at, row in enumerate(found["trace_steps"]):
        names = ("device_busy_s", "compute_s", "exchange_s", "exposed_exchange_s")
        assert [row[name] * 1e6 for name in names] == pytest.approx(counted(spans, at))
        assert row["hidden_exchange_share"] == pytest.approx(1 - row["exposed_exchange_s"] / row["exchange_s"])
    by_operation = {row["trace_op"]: row for row in found["trace_collectives"]}
    for operation, row in by_operation.items():
        own = [span.length for span in spans if span.kind == operation]
        assert (row["calls"], row["traced_steps"]) == (len(own), STEPS)
        assert [row["kernel_s"] * 1e6, row["longest_kernel_s"] * 1e6] == pytest.approx([sum(own), max(own)])
    assert {span.kind for span in spans} - by_operation.keys() == {"gemm", "copy"}


def test_a_trace_that_is_cut_off_gives_the_events_before() -> None:
    text = rendered(spans_of(1), rank=1)
    whole, cut = rows_of(text)["trace_steps"], rows_of(text[: len(text) * 2 // 3])["trace_steps"]
    assert [row["step"] for row in cut] == [row["step"] for row in whole]
    assert sum(row["device_busy_s"] for row in cut) < sum(row["device_busy_s"] for row in whole)


def test_a_trace_without_steps_or_without_exchange_has_none() -> None:
    text = rendered(spans_of(1), rank=0)
    assert rows_of(text.replace("ProfilerStep#", "forward")) == {"trace_steps": [], "trace_collectives": []}
    alone = rows_of(rendered([span for span in spans_of(1) if span.kind == "gemm"], rank=0))
    assert alone["trace_collectives"] == []
    assert all(row["exchange_s"] == 0 and "hidden_exchange_share" not in row for row in alone["trace_steps"])


def test_what_is_kept_of_a_trace_does_not_grow_with_its_text() -> None:
    timeline, filler = StepTimeline(), b'{"ph": "i", "name": "' + b"x" * (1 << 20) + b'"},\n'
    for _ in range(40):
        timeline.add(filler)
        assert len(timeline._rest) < 10 << 20


def test_a_trace_beside_a_run_fills_the_tables() -> None:
    files = {f"run/rank{rank}.pt.trace.json": rendered(spans_of(rank), rank=rank) for rank in (0, 1)}
    batch = batch_of(files)
    assert set(batch.files["status"]) == {"parsed"}
    steps = batch.other["trace_steps"]
    assert (steps.height, sorted(steps["rank"].unique())) == (2 * STEPS, [0, 1])
    assert steps["run_dir"].n_unique() == 1
    assert batch.other["trace_collectives"]["trace_op"].n_unique() == 3
