"""Runs of logs in which a script measures one layout after the other, and of logs that hold a summary alone."""

from __future__ import annotations

import pytest

from tests.pipeline.ingest_in_memory import tables_of

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.95 GiB. GPU 0 has a total capacity of 79.15 GiB\n"
)
STEPS = "".join(f"iter {n}: loss={9 - n / 5:.3f} time=1.{500 + n % 3}s\n" for n in range(1, 13))
SUMMARY = "Average step time : 2.100 s\nThroughput : 3901.0 tokens/s/GPU\nMFU : 20.90 %\nPeak memory : 60.00 GiB\n"
CONFIG = "Benchmark config: model=llama3_8b batch_size_per_gpu=2 seq_length=8192 world_size=32\n"


def header(tp: int, mbs: int) -> str:
    return f"===== tp={tp} dp=4 mbs={mbs} =====\n"


def test_each_launch_of_a_loop_is_a_run_with_its_settings_and_its_outcome() -> None:
    text = (
        f"seq_len=2048 gas=4\n{header(1, 1)}{STEPS}avg iteration time: 1.5s\n{header(1, 8)}{OOM}{header(2, 8)}{STEPS}"
    )
    runs = tables_of({"sweep.log": text})["runs"].sort("attempt")
    assert runs["status"].to_list() == ["completed", "oom", "completed"]
    assert runs["tp"].to_list() == [1, 1, 2]
    assert runs["mbs"].to_list() == [1, 8, 8]
    assert runs["seq_len"].to_list() == [2048] * 3
    assert runs["last_step"].to_list() == [12, None, 12]
    assert runs["step_time_s"].to_list() == [pytest.approx(1.5, abs=0.01), None, pytest.approx(1.5, abs=0.01)]


def test_a_summary_is_of_the_launch_above_it() -> None:
    text = f"{header(1, 1)}{SUMMARY}{header(1, 8)}{OOM}{header(2, 8)}{SUMMARY.replace('2.100', '3.000')}"
    runs = tables_of({"bench.txt": text})["runs"].sort("attempt")
    assert runs["status"].to_list() == ["completed", "oom", "completed"]
    assert runs["step_time_s"].to_list() == [2.1, None, 3.0]
    assert runs["step_time_basis"].to_list() == ["summary", None, "summary"]


def test_a_summary_without_steps_is_a_run() -> None:
    (run,) = tables_of({"fsdp_bs2.txt": CONFIG + SUMMARY})["runs"].to_dicts()
    assert (run["status"], run["step_time_s"], run["tokens_per_s_per_gpu"]) == ("completed", 2.1, 3901.0)
    assert (run["mfu_logged"], run["mem_peak_allocated_bytes"]) == (pytest.approx(0.209), 60 * 2**30)
    assert (run["mbs"], run["seq_len"], run["num_gpus"]) == (2, 8192, 32)


def test_a_figure_above_a_failure_completes_nothing() -> None:
    (run,) = tables_of({"fsdp_bs2.log": CONFIG + SUMMARY + OOM})["runs"].to_dicts()
    assert run["status"] == "oom"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "model=llama3-8b batch_size=8 prompt_len=512\nDecode throughput: 1203.4 tokens/s/GPU\n", id="serving"
        ),
        pytest.param(
            "batch_size=64 seq_len=4096\nAverage batch time : 0.012 s\nThroughput : 9,312 tokens/s\n", id="data"
        ),
        pytest.param("m=8192 n=8192 dtype=bf16\nAverage time: 1.50 ms\nTFLOPS: 733.0\n", id="a product of matrices"),
    ],
)
def test_what_measures_no_training_is_no_run(text: str) -> None:
    assert tables_of({"bench.txt": text})["runs"].is_empty()
