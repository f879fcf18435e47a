"""Estimates of runs: one row each, in the columns of the table."""

from __future__ import annotations

import polars as pl
import pytest

from sweepscope.data import PUBLISHED
from sweepscope.pipeline.derive.complete import complete_runs
from sweepscope.pipeline.estimate.rows.estimate_rows import PREDICTED, estimate_frame, estimate_runs
from sweepscope.pipeline.ingest.published import load_published
from sweepscope.schemas.tables.estimates import ESTIMATES
from tests.pipeline.estimate.rows.test_estimate_rows import row


def test_the_table_has_the_columns_that_the_verb_appends() -> None:
    prediction = ESTIMATES.polars_schema.items()
    assert {k: v for k, v in prediction if k not in ("run_id", "origin", "source_path", "line_no")} == dict(PREDICTED)


@pytest.mark.slow
def test_every_bundled_run_has_one_estimate_or_a_reason() -> None:
    runs = load_published(PUBLISHED)["runs"]
    estimates = estimate_runs(runs)
    assert estimates["run_id"].equals(runs["run_id"])
    assert estimates["est_status"].null_count() == 0
    estimated = estimates.filter(pl.col("est_status") == "ok")
    assert estimated.height > 3000
    assert (
        estimated.select(pl.col("est_step_time_s", "est_mem_bytes", "est_mfu").is_not_null().all()).row(0)
        == (True,) * 3
    )
    assert estimates.schema == ESTIMATES.polars_schema


def test_a_run_is_estimated_as_its_row_in_the_source_table_is() -> None:
    given = pl.DataFrame([row(source_id="llm_foundry_bench")])
    as_run = complete_runs(
        pl.DataFrame(
            [
                {
                    **{
                        k: v
                        for k, v in row(gated_mlp=True, tie_word_embeddings=False, sequence_parallel=True).items()
                        if k not in ("grad_accum", "micro_batch_size", "zero_stage_or_fsdp", "source_id")
                    },
                    "gas": 16,
                    "mbs": 2,
                    "zero_stage": 1,
                    "framework": "composer",
                    "run_id": "a",
                    "status": "completed",
                }
            ]
        )
    ).runs
    expected = estimate_frame(given)
    got = estimate_runs(as_run)
    assert got["est_profile"][0] == expected["est_profile"][0] == "hopper-composer"
    assert got["est_step_time_s"][0] == pytest.approx(expected["est_step_time_s"][0])
    assert got["est_mem_bytes"][0] == pytest.approx(expected["est_mem_bytes"][0])


def test_copies_of_the_sharded_states_need_memory() -> None:
    published = load_published(PUBLISHED)["runs"]
    found = published.filter(pl.col("dp_replicate") > 1)
    assert found.height > 0
    copied, sharded = estimate_runs(found), estimate_runs(found.with_columns(dp_replicate=pl.lit(1, pl.Int64)))
    assert (copied["est_mem_bytes"] > sharded["est_mem_bytes"]).all()
    assert found["layout"].str.contains(r"Z\d in \d+ copies").all()


def test_no_runs_have_no_estimates() -> None:
    assert estimate_runs(load_published(PUBLISHED)["runs"].clear()).is_empty()
