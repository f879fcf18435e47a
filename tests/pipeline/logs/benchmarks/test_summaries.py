"""Figures of benchmarks' summaries, and whose summaries they are."""

from __future__ import annotations

import pytest

from sweepscope.pipeline.logs.benchmarks.summaries import is_of_training, summary


@pytest.mark.parametrize(
    ("text", "column", "value"),
    [
        ("Average step time : 2.1 s", "step_time_s", 2.1),
        ("mean iteration time (ms): 812.0", "step_time_s", 0.812),
        ("    avg_step_time: 6.4", "step_time_s", 6.4),
        ("step_time_ms=231.0", "step_time_s", 0.231),
        ("Throughput per GPU | 4,311 tok/s", "tokens_per_s_per_gpu", 4311.0),
        ("Throughput        : 3.9K tokens/s/GPU", "tokens_per_s_per_gpu", 3900.0),
        ("tokens per second        : 80660", "tokens_per_s", 80660.0),
        ("MFU               : 45.5 %", "mfu_logged", 0.455),
        ("TFLOPS/GPU        : 206.7", "tflops_per_gpu_logged", 206.7),
    ],
)
def test_a_figure_by_its_name_and_unit(text: str, column: str, value: float) -> None:
    assert {name: figure.value for name, figure in summary([(1, text)]).items()} == {column: pytest.approx(value)}


@pytest.mark.parametrize(
    ("text", "gib"), [("Peak memory : 60.00 GiB", 60.0), ("max memory reserved (GB): 71.3", 71.3e9 / 2**30)]
)
def test_peaks_of_memory_stand_beside_a_rate(text: str, gib: float) -> None:
    found = summary([(1, "step time: 1 s"), (2, text)])
    (peak,) = (figure.value for name, figure in found.items() if name.startswith("mem_peak_"))
    assert peak / 2**30 == pytest.approx(gib)
    assert summary([(2, text)]) == {}


def test_a_median_counts_more_than_a_mean_and_other_figures_not_at_all() -> None:
    lines = ["p50 step time: 2.0 s", "mean step time: 2.2 s", "p99 step time: 3 s", "warmup step time: 9 s"]
    found = summary(enumerate([*lines, "max step time: 4 s", "forward step time: 0.7 s"]))
    assert found["step_time_s"].value == 2.0


def test_only_what_measures_steps_of_a_stated_batch_is_a_training() -> None:
    found = summary([(1, "step time: 2 s"), (2, "throughput: 900 tokens/s")])
    assert is_of_training(found, ["mbs", "seq_len"], ["step time: 2 s"])
    assert not is_of_training(found, ["mbs"], ["step time: 2 s"])
    assert not is_of_training(found, ["mbs", "seq_len"], ["Mean TTFT (ms): 120"])
    loader = summary([(1, "Average batch time: 0.012 s"), (2, "Throughput: 120,312 tokens/s")])
    assert not is_of_training(loader, ["mbs", "seq_len"], [])


@pytest.mark.parametrize(("text", "is_rate"), [("Measured TFLOPs: 2.81", False), ("Average TFLOPs: 281", True)])
def test_operations_of_a_batch_are_no_rate(text: str, *, is_rate: bool) -> None:
    lines = ["micro batch size 4", "sequence length 2048", text]
    assert is_of_training(summary(enumerate(lines)), {"mbs", "seq_len"}, lines) == is_rate
