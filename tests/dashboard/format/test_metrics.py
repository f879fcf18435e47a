from __future__ import annotations

import pytest

from sweepscope.dashboard.format.metrics import METRICS, offered, paint_share
from tests.dashboard.grid_rows import cell, empty, grid


def test_only_metrics_with_a_value_are_offered() -> None:
    assert [metric.key for metric in offered(grid(cell()))] == ["mfu", "throughput", "step_time", "memory", "failures"]
    assert [metric.key for metric in offered(grid(cell(mfu=None, hfu=0.5)))][-1] == "hfu"
    assert [metric.key for metric in offered(grid(empty()))] == ["failures"]


def test_mfu_is_painted_on_one_scale_whatever_else_is_on_the_page() -> None:
    shares = paint_share(grid(cell(mfu=0.25), cell(num_nodes=32, mfu=0.9), empty()), METRICS["mfu"])
    assert shares.to_list() == [0.5, 1.0, None]


def test_throughput_is_compared_within_a_model() -> None:
    rows = [
        cell("1B", 1, tokens_per_s_per_gpu=40_000.0),
        cell("1B", 2, tokens_per_s_per_gpu=10_000.0),
        cell("80B", 8, tokens_per_s_per_gpu=600.0),
    ]
    assert paint_share(grid(*rows), METRICS["throughput"]).to_list() == [1.0, 0.25, 1.0]


def test_the_shortest_step_is_the_brightest() -> None:
    rows = [cell("1B", 1, step_time_s=4.0), cell("1B", 2, step_time_s=1.0)]
    assert paint_share(grid(*rows), METRICS["step_time"]).to_list() == [0.25, 1.0]


def test_memory_is_a_share_of_the_card() -> None:
    rows = [cell(mem_peak_bytes=42_735_763_456), cell(num_nodes=32, memory_bytes=None)]
    assert paint_share(grid(*rows), METRICS["memory"]).to_list() == [pytest.approx(0.5), None]
