"""The SQL page's questions run in the sandbox on a store with real views, empty and filled."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from sweepscope.dashboard.queries.canned import CANNED, Canned
from sweepscope.dashboard.sandbox.run_query import run_query
from tests.dashboard.store_rows import Row, event_row, reject_row, run_row, setting_row, step_rows, write_real_store

FILLED: dict[str, list[Row]] = {
    "runs": [
        run_row("a1", mem_peak_allocated_bytes=200_000_000_000),
        run_row("a2", layout="DP8 TP2 PP1", tp=2, dp=8, tokens_per_s_per_gpu=6000.0),
        run_row("a3", tokens_per_s_per_gpu=6900.0),
        run_row("a4", num_nodes=4, num_gpus=32, dp=32),
        run_row("a5", num_nodes=8, num_gpus=64, dp=64, status="oom", mfu=None, tokens_per_s_per_gpu=None),
        *(run_row(f"f{place}", status="crash", mfu=None, tokens_per_s_per_gpu=None) for place in range(10)),
        run_row("u1", mfu_logged=0.5),
        run_row("n1", dp=4, tp=4, status="node_fail", mfu=None, tokens_per_s_per_gpu=None),
        # without them no setting would fail more often than the rest
        *(run_row(f"g{place}", dp=8, tp=2, mbs=1, gas=20, tokens_per_s_per_gpu=6000.0) for place in range(12)),
    ],
    "steps": step_rows("a1", (9.0, 3.0, 3.0, 3.0, 9.0)),
    "events": [event_row("a1"), event_row("a1", kind="slowdown", line_no=7)],
    "settings": [setting_row("a1"), setting_row("a1", value="2", is_used=False, setting_source="folder_name")],
    "rejects": [reject_row()],
    "accelerators": [
        {"accelerator": "MI300X", "vendor": "AMD", "peak_bf16_tflops": 1307.0, "memory_bytes": 206_158_430_208}
    ],
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_real_store(tmp_path_factory.mktemp("filled") / "results-1.duckdb", **FILLED)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_real_store(tmp_path_factory.mktemp("bare") / "results-1.duckdb")


@pytest.mark.slow
@pytest.mark.parametrize("canned", CANNED, ids=lambda canned: canned.key)
def test_every_question_has_an_answer_on_a_filled_store(no_child: None, filled: Path, canned: Canned) -> None:
    assert run_query(filled, canned.sql).frame.height > 0


def test_a_question_is_answered_by_a_child_too(filled: Path) -> None:
    assert run_query(filled, CANNED[0].sql).frame.height > 0


def test_every_question_runs_on_an_empty_store(bare: Path) -> None:
    with duckdb.connect(str(bare), read_only=True) as connection:
        for canned in CANNED:
            assert connection.sql(canned.sql).fetchall() == [], canned.key


def test_keys_are_unique_and_questions_end_as_questions() -> None:
    assert len({canned.key for canned in CANNED}) == len(CANNED)
    assert all(canned.question.endswith("?") for canned in CANNED)


def test_stragglers_are_steady_steps_only(filled: Path) -> None:
    sql = next(canned.sql for canned in CANNED if canned.key == "stragglers")
    assert run_query(filled, sql).frame["step"].to_list() == [5]
