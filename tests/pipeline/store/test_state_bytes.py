"""Bytes of states per parameter: grids, rules and estimates count one way."""

from __future__ import annotations

import pytest

from sweepscope.pipeline.estimate.advice.applicable_rules import usual_state_bytes
from sweepscope.pipeline.estimate.physics.memory import state_bytes_per_param
from sweepscope.pipeline.estimate.physics.profile import choose_profile
from sweepscope.pipeline.estimate.rows.estimate_rows import estimate_frame
from sweepscope.pipeline.estimate.rows.stated_facts import with_usual_facts
from sweepscope.pipeline.reference.clusters import find_cluster, known_cards
from sweepscope.schemas import vocab
from tests.run_rows import completed_frame, open_store, rows_of, run_row

GENERATIONS = sorted({cluster.generation for card in known_cards() if (cluster := find_cluster(card))})


def test_the_store_s_macro_counts_as_the_estimator_does_for_every_framework() -> None:
    store = open_store(completed_frame())
    for framework in (None, *vocab.FRAMEWORK):
        said = "" if framework is None else f"'{framework}'"
        found = rows_of(store, f"SELECT state_bytes_per_param({said})::DOUBLE AS bytes")[0]["bytes"]
        assert found == usual_state_bytes(framework), framework
        for generation in GENERATIONS:
            profile = with_usual_facts(choose_profile(generation, framework), framework)
            assert found == state_bytes_per_param(profile), (framework, generation)


@pytest.mark.parametrize("framework", ["composer", "nemo", "mlperf", None])
def test_a_cell_that_cannot_fit_needs_what_its_estimate_fully_sharded_needs(framework: str | None) -> None:
    # 176B on 64 GPUs of 80 GB: 46 GiB of states at 18 bytes, fully sharded
    shape = {"model": "m", "num_layers": 70, "hidden_size": 14336, "num_heads": 112, "num_kv_heads": 112}
    sharded = {"zero_stage": 3, "dp": 64, "num_nodes": 8, "num_gpus": 64, "gas": 2}
    run = run_row(framework=framework, **shape, ffn_hidden_size=57344, gated_mlp=False, **sharded)
    runs = completed_frame(run)
    estimate = estimate_frame(runs).row(0, named=True)
    states = sum(estimate[f"est_mem_{part}_bytes"] for part in ("weights", "gradients", "optimizer"))
    cell = rows_of(open_store(runs), "SELECT states_lower_bound_bytes AS bytes FROM grid_cells")[0]
    # The estimate counts norms and biases too, of which labels know nothing.
    assert cell["bytes"] == pytest.approx(states, rel=0.01)


def test_a_grid_of_several_frameworks_takes_the_least() -> None:
    rows = [run_row("a", framework="nanotron"), run_row("b", framework="nemo")]
    cell = rows_of(
        open_store(completed_frame(*rows)), "SELECT params, states_lower_bound_bytes AS bytes FROM grid_cells"
    )
    assert [row["bytes"] for row in cell] == [pytest.approx(16 * cell[0]["params"] / 8)]
