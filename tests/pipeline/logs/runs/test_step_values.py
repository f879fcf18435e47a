"""Impossible values of steps: each becomes NULL and a reject, and the rest of its row and run is kept."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from sweepscope.pipeline.logs.facts import PEAK_FACTS, STEP_FACTS, conform
from sweepscope.pipeline.logs.runs.step_values import checked_peaks, checked_steps
from sweepscope.pipeline.orchestration.run import ingest_paths
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.maintenance import verify
from sweepscope.pipeline.store.published import connect, current

SOURCES = pl.DataFrame({"source": [0], "path": ["a.log"]})

MEGATRON = (
    " iteration       {step}/      12 | consumed samples:           {step} | elapsed time per iteration (ms): {ms} "
    "| learning rate: 1.000E-05 | global batch size:     1 | lm loss: 9.5E+00 | grad norm: 1.250 |"
)
NANOTRON = (
    "10/17/2025 16:31:56 [INFO|DP=0|TP=0|nid001]: iteration: {step} / 12 | consumed_tokens: 783M | "
    "time_per_iteration_ms: {ms} | tokens_per_sec: 137K | tokens_per_sec_per_gpu: 2.14K | global_batch_size: 1.57M | "
    "lm_loss: 2.25 | lr: 0.0003"
)
DEEPSPEED = (
    "[2024-03-04 05:06:10,891] [INFO] [timer.py:199:stop] epoch=0/micro_step={step}/global_step={step}, "
    "RunningAvgSamplesPerSec=51.25, CurrSamplesPerSec=50.5, MemAllocated={gib}GB, MaxMemAllocated=4.6GB"
)
COLOSSALAI = (
    "[01/02/24 03:04:05] INFO     colossalai - colossalai - INFO: [{step}/12] Loss:9.75, Step time: {s}s, TFLOPS: 4.250, "
    "FWD time: 0.250s"
)
PICOTRON = (
    "[rank 0] Step: {step}     | Loss: 9.5 | Global batch size: 131.07K | Tokens/s:  10.50K | "
    "Tokens/s/GPU:   1.31K | Tokens: 131.07K | MFU:  {percent}% | Memory usage:  20.50GB"
)
LOGS = {
    "megatron": (MEGATRON, "step_time_s", "-0.412"),
    "nanotron": (NANOTRON, "step_time_s", "-0.412"),
    "deepspeed": (DEEPSPEED, "mem_allocated_bytes", "-2147483648"),
    "colossalai": (COLOSSALAI, "step_time_s", "-0.412"),
    "picotron": (PICOTRON, "mfu_logged", "-0.412"),
}
BAD_STEP = 5


def log(line: str) -> str:
    """Twelve steps of a log, of which BAD_STEP has a negative figure."""
    figures = [
        {"ms": "412.0", "s": "0.412", "percent": "41.2", "gib": "2.0"},
        {"ms": "-412.0", "s": "-0.412", "percent": "-41.2", "gib": "-2.0"},
    ]
    return "".join(line.format(step=step, **figures[step == BAD_STEP]) + "\n" for step in range(1, 13))


def test_negative_figures_of_five_dialects_become_rejects_with_their_line(tmp_path: Path) -> None:
    for dialect, (line, _, _) in LOGS.items():
        (tmp_path / "sweep" / dialect).mkdir(parents=True)
        (tmp_path / "sweep" / dialect / "run.log").write_text(log(line))
    home = Home.resolve(str(tmp_path / "home"))
    ingest_paths(home, [str(tmp_path / "sweep")], with_published=False)
    assert not verify(home).problems
    with connect(current(home.path)) as con:
        rejects = con.sql('SELECT file, line_no, "table", "column", reason, raw FROM rejects').pl()
        steps = con.sql(
            "SELECT framework, count(*) AS steps, count(s.step_time_s) AS step_time_s, count(s.mfu_logged) AS mfu_logged, "
            "count(s.mem_allocated_bytes) AS mem_allocated_bytes FROM steps AS s JOIN runs USING (run_id) GROUP BY ALL"
        ).pl()
    for dialect, (_, column, value) in LOGS.items():
        (row,) = rejects.filter(pl.col("file").str.contains(f"/{dialect}/run.log")).to_dicts()
        bound = "must be above 0" if column == "step_time_s" else "must be at least 0"
        assert (row["line_no"], row["table"], row["column"]) == (BAD_STEP, "steps", column)
        assert row["reason"] == f"the value was left out: {bound}, got {value}"
        assert f'"{column}":{value}' in row["raw"]
        (counts,) = steps.filter(framework=dialect).to_dicts()
        assert (counts["steps"], counts[column]) == (12, 11)


def steps(**columns: list[object]) -> pl.DataFrame:
    lines = len(next(iter(columns.values())))
    given = {"source": [0] * lines, "line_no": list(range(1, lines + 1)), "step": list(range(1, lines + 1)), **columns}
    return conform(pl.DataFrame(given), STEP_FACTS)


def test_a_time_rounded_to_zero_is_unknown_and_no_fault() -> None:
    kept, rejects = checked_steps(
        steps(step_time_s=[0.0, 1.0], tokens_per_s=[float("inf"), 5.0], mfu_logged=[float("nan"), 0.0]), SOURCES
    )
    assert kept.select("step_time_s", "tokens_per_s", "mfu_logged").rows() == [(None, None, None), (1.0, 5.0, 0.0)]
    assert rejects.is_empty()


def test_a_negative_step_loses_its_row() -> None:
    kept, rejects = checked_steps(steps(step=[-1, 1], loss=[9.0, 8.0]), SOURCES)
    assert kept["step"].to_list() == [1]
    assert rejects.select("file", "line_no", "column", "reason").rows() == [
        ("a.log", 1, "step", "must be at least 0, got -1")
    ]


def test_several_bad_values_of_a_line_are_named_one_by_one() -> None:
    kept, rejects = checked_steps(steps(step_time_s=[-1.0], mem_allocated_bytes=[-2], loss=[3.0]), SOURCES)
    assert kept.select("step_time_s", "mem_allocated_bytes", "loss").rows() == [(None, None, 3.0)]
    assert sorted(rejects["column"]) == ["mem_allocated_bytes", "step_time_s"]


def test_a_diverged_loss_is_a_fact() -> None:
    kept, rejects = checked_steps(steps(loss=[float("nan"), -3.0], grad_norm=[float("inf"), 1.0]), SOURCES)
    assert kept["loss"].is_nan().to_list() == [True, False]
    assert rejects.is_empty()


def test_a_negative_peak_is_left_out() -> None:
    peaks = pl.DataFrame(
        [(0, 3, "mem_peak_reserved_bytes", -1.0), (0, 4, "mem_peak_reserved_bytes", 7.0)],
        schema=PEAK_FACTS,
        orient="row",
    )
    kept, rejects = checked_peaks(peaks, SOURCES)
    assert kept["value"].to_list() == [7.0]
    assert rejects.select("file", "line_no", "table", "column", "reason").rows() == [
        ("a.log", 3, "runs", "mem_peak_reserved_bytes", "the value was left out: must be at least 0, got -1.0")
    ]


def test_no_memory_at_all_is_unknown_and_no_fault() -> None:
    """mmengine prints `memory: 0` on a CPU."""
    kept, rejects = checked_steps(steps(mem_allocated_bytes=[0, 5], mem_reserved_bytes=[0, None]), SOURCES)
    assert kept.select("mem_allocated_bytes", "mem_reserved_bytes").rows() == [(None, None), (5, None)]
    assert rejects.is_empty()
    peaks = [(0, 3, "mem_peak_reserved_bytes", 0.0), (0, 4, "mem_peak_reserved_bytes", 7.0)]
    good, bad = checked_peaks(pl.DataFrame(peaks, schema=PEAK_FACTS, orient="row"), SOURCES)
    assert (good["value"].to_list(), bad.height) == ([7.0], 0)


def test_no_rows() -> None:
    nothing = pl.DataFrame(schema=STEP_FACTS)
    assert [frame.height for frame in checked_steps(nothing, SOURCES)] == [0, 0]
    assert [frame.height for frame in checked_peaks(pl.DataFrame(schema=PEAK_FACTS), SOURCES)] == [0, 0]
