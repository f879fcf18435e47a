"""Laws of winners, margins and scaling that hold for every cell of any store."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import duckdb
import polars as pl
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from sweepscope import data
from sweepscope.pipeline.ingest import plan
from sweepscope.pipeline.ingest.batch import parse_batch, validate_batch
from sweepscope.pipeline.ingest.published import load_published
from sweepscope.pipeline.simulate.sweep import write_sweep
from tests.run_rows import Row, open_store, rows_of, run_row, runs_frame

UNLAWFUL_WINNERS = """
SELECT * FROM best_configs
WHERE NOT isfinite(tokens_per_s_per_gpu) OR tokens_per_s_per_gpu < runner_up_tokens_per_s_per_gpu
  OR margin < 0 OR noise < 0 OR isnan(margin) OR isnan(noise)
  OR (runner_up_run_id IS NULL) <> (margin IS NULL) OR (runner_up_run_id IS NULL) <> (noise IS NULL)
  OR is_tie IS NULL OR is_tie <> coalesce(margin <= noise, false)
  OR (runner_up_run_id IS NULL) <> (chance_best IS NULL) OR NOT coalesce(chance_best BETWEEN 0 AND 1.001, true)
  OR run_noise IS NULL OR noise_basis IS NULL OR noise_repeats < 0
  OR NOT (low_tokens_per_s_per_gpu <= tokens_per_s_per_gpu AND tokens_per_s_per_gpu <= high_tokens_per_s_per_gpu)
"""
BEATEN_WINNERS = """
SELECT l.* FROM ranked_layouts AS l
JOIN best_configs AS b
  ON b.origin = l.origin AND b.model = l.model AND b.num_nodes = l.num_nodes AND b.seq_len = l.seq_len
  AND b.gbs_tokens = l.gbs_tokens
  AND b.num_gpus IS NOT DISTINCT FROM l.num_gpus AND b.accelerator IS NOT DISTINCT FROM l.accelerator
WHERE l.tokens_per_s_per_gpu > b.tokens_per_s_per_gpu
  OR (l.rank_in_cell > 1 AND l.tokens_per_s_per_gpu > b.runner_up_tokens_per_s_per_gpu)
"""
UNLAWFUL_SCALING = """
SELECT * FROM scaling_efficiency
WHERE scaling_efficiency <> tokens_per_s_per_gpu / baseline_tokens_per_s_per_gpu OR scaling_efficiency < 0
  OR baseline_num_gpus > num_gpus OR baseline_run_id IS NULL OR (run_id = baseline_run_id AND scaling_efficiency <> 1)
"""


POOLED_MEASUREMENTS = """
SELECT l.run_id FROM ranked_layouts AS l
JOIN runs AS r USING (run_id)
WHERE l.framework_version IS DISTINCT FROM r.framework_version OR l.torch_version IS DISTINCT FROM r.torch_version
  OR l.nccl_version IS DISTINCT FROM r.nccl_version OR l.cluster IS DISTINCT FROM r.cluster
  OR l.repeats > (
    SELECT count(*) FROM runs AS other
    WHERE other.layout IS NOT DISTINCT FROM r.layout AND other.model = r.model
      AND other.framework_version IS NOT DISTINCT FROM r.framework_version
      AND other.torch_version IS NOT DISTINCT FROM r.torch_version
      AND other.nccl_version IS NOT DISTINCT FROM r.nccl_version AND other.cluster IS NOT DISTINCT FROM r.cluster
  )
"""


def assert_lawful(connection: duckdb.DuckDBPyConnection) -> None:
    for law in (UNLAWFUL_WINNERS, BEATEN_WINNERS, UNLAWFUL_SCALING, POOLED_MEASUREMENTS):
        assert rows_of(connection, law) == []


def test_winners_of_the_bundled_and_of_simulated_runs(tmp_path: Path) -> None:
    found = plan.find([str(write_sweep(tmp_path / "sweep", runs=60, seed=1))])
    simulated = validate_batch(parse_batch(found, now=datetime(2035, 1, 1)))["runs"]
    runs = pl.concat([load_published(data.PUBLISHED)["runs"], simulated])
    with open_store(runs) as connection:
        assert len(rows_of(connection, "SELECT origin FROM best_configs GROUP BY ALL")) == 2
        assert_lawful(connection)


_SPEED = st.one_of(
    st.none(),
    st.sampled_from([float("nan"), float("inf"), -1.0, 0.0, 1.0, 99.5, 100.0, 41_200.0, 41_300.0]),
    st.floats(1e-3, 1e9),
)
_RUNS = st.lists(
    st.fixed_dictionaries(
        {
            "model": st.sampled_from(["a", "b", "c", "d", "e"]),
            "num_nodes": st.sampled_from([1, 2]),
            "num_gpus": st.sampled_from([8, 16, None]),
            "tp": st.sampled_from([1, 2, None]),
            "accelerator": st.sampled_from(["H100-SXM-80GB", None]),
            "framework_version": st.sampled_from(["1.0", "2.0", None]),
            "cluster": st.sampled_from(["north", None]),
            "tokens_per_s_per_gpu": _SPEED,
            "mfu": st.one_of(st.none(), st.floats(0, 1)),
            "status": st.sampled_from(["completed", "completed", "completed", "oom"]),
        }
    ),
    max_size=150,
)


# A store takes a second to build: few examples of many cells each, and no shrinking.
@settings(max_examples=8, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(_RUNS)
def test_winners_of_any_runs(rows: list[Row]) -> None:
    with open_store(runs_frame(*(run_row(str(number), **row) for number, row in enumerate(rows)))) as connection:
        assert_lawful(connection)
