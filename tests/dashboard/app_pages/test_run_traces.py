"""The part of a run's page on traces of profilers, headless over the real views."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dashboard.app_pages.test_data_pages import look_at, text_of
from tests.dashboard.store_rows import make_real_home, run_row


def step(
    rank: int, number: int, duration_s: float, *, exposed_s: float = 0.1, folder: str = "/sweep/a/profiler"
) -> dict[str, object]:
    return {
        "source_path": f"{folder}/rank{rank}.json.gz",
        "run_dir": folder,
        "sweep": "sweep",
        "rank": rank,
        "step": number,
        "duration_s": duration_s,
        "device_busy_s": duration_s * 0.9,
        "compute_s": duration_s * 0.75,
        "exchange_s": 0.4,
        "exposed_exchange_s": exposed_s,
        "hidden_exchange_share": 1 - exposed_s / 0.4,
    }


def kernel(rank: int, op: str, *, calls: int, kernel_s: float) -> dict[str, object]:
    return {
        "source_path": f"/sweep/a/profiler/rank{rank}.json.gz",
        "run_dir": "/sweep/a/profiler",
        "sweep": "sweep",
        "rank": rank,
        "trace_op": op,
        "calls": calls,
        "traced_steps": 2,
        "kernel_s": kernel_s,
        "longest_kernel_s": 0.05,
    }


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_real_home(
        tmp_path_factory.mktemp("traces") / "home",
        runs=[
            run_row("a", run_dir="/sweep/a", layout="DP8 TP2 PP1"),
            run_row("b", run_dir="/sweep", dp=4),
            run_row("c1", run_dir="/sweep/c", attempt=1, gas=7),
            run_row("c2", run_dir="/sweep/c", attempt=2, gas=7),
        ],
        trace_steps=[
            *(step(0, number, 2.0) for number in (1, 2)),
            *(step(1, number, 1.0, exposed_s=0.2) for number in (1, 2)),
            step(0, 1, 3.0, folder="/sweep/c/profiler"),
        ],
        trace_collectives=[kernel(rank, "AllReduce", calls=6, kernel_s=0.6) for rank in (0, 1)],
    )


def test_a_run_shows_its_exposed_and_hidden_communication_and_its_collectives(home: Path) -> None:
    text = text_of(look_at(home, "run", run="a")).replace("\xa0", " ")
    assert "Profiler trace <span>2 traces, 4 steps" in text
    assert "2.00 s on the slowest rank, 1.00 s on the fastest" in text
    assert "1.50 s, 75 % of the step" in text
    assert "0.100 s with DP8 TP2 PP1; 75 % is hidden" in text
    assert "3.0 per step, 0.300 s in sum, longest 0.0500 s" in text


@pytest.mark.parametrize("run", ["b", "c1", "c2"])
def test_a_trace_of_a_nearer_run_or_of_one_of_several_is_not_shown(home: Path, run: str) -> None:
    assert "Profiler trace" not in text_of(look_at(home, "run", run=run))
