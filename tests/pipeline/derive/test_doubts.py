"""Runs whose throughput was guessed: what settles the doubt, and what does not."""

from __future__ import annotations

import polars as pl
import pytest

from sweepscope.pipeline.derive.complete import complete_runs
from sweepscope.pipeline.derive.doubts import without_doubtful
from sweepscope.schemas.tables.inference import DOUBTFUL_SPEED, INFERRED_COLUMNS
from tests.pipeline.derive.test_normalize import NOTHING, Row, runs_frame
from tests.run_rows import run_row

BATCH = {"num_gpus": 8, "gbs": 16, "seq_len": 4096, "source_path": "a.log"}


def doubtful(*columns: str) -> pl.DataFrame:
    rows = [
        {"source_path": "a.log", "column_name": name, "confidence": "low", "is_read": True, "field": name}
        for name in columns
    ]
    return INFERRED_COLUMNS.conform(pl.DataFrame(rows))


@pytest.mark.parametrize(
    ("measured", "guessed", "rate", "is_ranked"),
    [
        ({"step_time_s": 2.0, "tokens_per_s": 32_000.0}, ("tokens_per_s",), 32_000.0, True),
        ({"step_time_s": 2.0, "tokens_per_s": 4_000.0}, ("tokens_per_s",), 32_768.0, True),
        ({"step_time_s": 2.0, "tokens_per_s_per_gpu": 32_000.0}, ("tokens_per_s_per_gpu",), 32_768.0, True),
        # What is sure is kept: 8 x 4,050.
        ({"step_time_s": 2.0, "tokens_per_s": 9.0, "tokens_per_s_per_gpu": 4_050.0}, ("tokens_per_s",), 32_400.0, True),
        ({"step_time_s": 2.0, "tokens_per_s": 32_000.0}, ("tokens_per_s", "step_time"), 32_000.0, False),
        ({"step_time_s": None, "tokens_per_s": 32_000.0}, ("tokens_per_s",), 32_000.0, False),
        ({"step_time_s": 2.0, "tokens_per_s": 32_000.0, "gbs": None}, ("tokens_per_s",), 32_000.0, False),
    ],
)
def test_time_and_batch_settle_a_rate_in_doubt(
    measured: Row, guessed: tuple[str, ...], rate: float, is_ranked: bool
) -> None:
    nothing = {"tokens_per_s": None, "tokens_per_s_per_gpu": None, "quarantine_reason": None, "gbs_tokens": None}
    frame = runs_frame(run_row(**NOTHING | nothing | BATCH | measured))
    (run,) = complete_runs(without_doubtful(frame, doubtful(*guessed))).runs.to_dicts()
    assert run["tokens_per_s"] == rate
    assert run["quarantine_reason"] == (None if is_ranked else DOUBTFUL_SPEED)


@pytest.mark.parametrize(
    ("rate", "of_all", "of_each", "is_ranked"),
    [(32_500.0, 32_500.0, None, True), (16_250.0, 16_250.0, None, False), (4_060.0, None, 4_060.0, True)],
)
def test_a_rate_that_agrees_with_the_replicas_that_all_cards_make_is_that_of_all_or_of_each(
    rate: float, of_all: float | None, of_each: float | None, is_ranked: bool
) -> None:
    stated = {"num_gpus": 8, "mbs": 1, "gas": 2, "seq_len": 4096, "zero_stage": 1, "framework": "other"}
    measured = {"step_time_s": 2.0, "tokens_per_s": rate, "tokens_per_s_per_gpu": None, "gbs_tokens": None}
    frame = runs_frame(run_row(**NOTHING | stated | measured | {"source_path": "a.log", "quarantine_reason": None}))
    (run,) = without_doubtful(frame, doubtful("tokens_per_s")).to_dicts()
    assert (run["tokens_per_s"], run["tokens_per_s_per_gpu"]) == (of_all, of_each)
    assert run["quarantine_reason"] == (None if is_ranked else DOUBTFUL_SPEED)


def test_what_is_sure_stays_as_it_is() -> None:
    frame = runs_frame(run_row(source_path="a.log"))
    assert without_doubtful(frame, INFERRED_COLUMNS.empty()).equals(frame)
