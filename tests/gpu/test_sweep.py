"""What our own sweep on one H100 left behind, as a stranger's: its logs are read, and its runs estimated.

`measured.csv` has what each training took, written down by itself (or by its framework); `logs` what it printed. No
constant was fitted on it.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from sweepscope.pipeline.derive.complete import complete_runs
from sweepscope.pipeline.estimate.rows.estimate_rows import estimate_frame
from tests.pipeline.ingest_in_memory import tables_of

HERE = Path(__file__).parent
GIB = 2**30


@pytest.fixture(scope="module")
def measured() -> pl.DataFrame:
    return pl.read_csv(HERE / "measured.csv", infer_schema_length=None)


@pytest.fixture(scope="module")
def runs() -> pl.DataFrame:
    """One row per log, `name` as in `measured`."""
    logs = {f"{path.stem}/log.txt": path.read_text() for path in sorted((HERE / "logs").glob("*.txt"))}
    read = complete_runs(tables_of(logs)["runs"]).runs
    return read.with_columns(name=pl.col("source_path").str.split("/").list.first())


def test_every_log_is_one_run_with_its_settings_and_its_end(measured: pl.DataFrame, runs: pl.DataFrame) -> None:
    assert runs["name"].is_unique().all()
    both = runs.filter(framework="other").join(measured, on="name", suffix="_true")
    assert both.height == 20
    for ours, theirs in (
        ("mbs", "micro_batch_size"),
        ("gas", "grad_accum"),
        ("seq_len", "seq_len_true"),
        ("recompute", "recompute_true"),
        ("num_gpus", "num_gpus_true"),
        ("accelerator", "accelerator_true"),
        ("status", "status_true"),
    ):
        assert both[ours].to_list() == both[theirs].to_list(), ours


def test_step_times_memory_and_mfu_are_those_that_the_trainer_measured(
    measured: pl.DataFrame, runs: pl.DataFrame
) -> None:
    done = runs.filter(framework="other", status="completed").join(measured, on="name", suffix="_true")
    assert done.height == 15
    for row in done.iter_rows(named=True):
        assert row["step_time_s"] == pytest.approx(row["step_time_s_true"], rel=0.02), row["name"]
        allocated = row["peak_allocated_gb"] * 1e9
        assert row["mem_peak_allocated_bytes"] == pytest.approx(allocated, abs=0.01 * GIB), row["name"]
        if row["params"] == 1_235_814_400:  # a known shape: attention counts
            assert row["mfu"] == pytest.approx(row["mfu_logged"], rel=0.01), row["name"]


def test_a_gpu_that_another_process_holds_is_no_want_of_memory_of_the_layout(runs: pl.DataFrame) -> None:
    (held,) = runs.filter(name="p-3b-mbs1-held").to_dicts()
    assert (held["status"], held["mbs"]) == ("oom", 1)
    assert "Process 622 has 77.94 GiB" in held["status_evidence"]


def test_estimates_of_what_was_never_fitted(measured: pl.DataFrame) -> None:
    plain = measured.filter(pl.col("framework").is_null()).with_columns(pl.all().cast(pl.String))
    estimated = estimate_frame(plain, assumes=True)
    done = estimated.filter(status="completed", loss="eager", precision="amp_bf16")
    time = (done["est_step_time_s"] / done["step_time_s"].cast(pl.Float64)).to_list()
    memory = (done["est_mem_bytes"] / (done["peak_allocated_gb"].cast(pl.Float64) * 1e9)).to_list()
    assert sorted(abs(ratio - 1) for ratio in time)[len(time) // 2] < 0.08
    assert sorted(abs(ratio - 1) for ratio in memory)[len(memory) // 2] < 0.03
    fits = estimated.select("name", "status", "est_fits").filter(pl.col("status") == "oom")
    assert fits.filter("est_fits")["name"].to_list() == ["p-1b-mbs16-full"]  # which failed by fragmentation


def test_compiled_layers_are_faster_and_smaller_in_the_estimate_as_on_the_gpu(measured: pl.DataFrame) -> None:
    pair = measured.filter(pl.col("name").is_in(["p-1b-mbs8", "p-1b-mbs8-compile"])).with_columns(
        pl.all().cast(pl.String)
    )
    eager, compiled = estimate_frame(pair, assumes=True).sort("execution", descending=True).iter_rows(named=True)
    gained = float(eager["step_time_s"]) / float(compiled["step_time_s"])
    assert eager["est_step_time_s"] / compiled["est_step_time_s"] == pytest.approx(gained, rel=0.08)
    freed = (float(eager["peak_allocated_gb"]) - float(compiled["peak_allocated_gb"])) * 1e9
    assert eager["est_mem_bytes"] - compiled["est_mem_bytes"] == pytest.approx(freed, rel=0.15)
