"""Knobs offer only what can be launched, and turning one never leaves a layout that cannot."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweepscope.pipeline.estimate.physics.estimate import estimate
from sweepscope.pipeline.estimate.physics.layouts import SCHEDULES
from sweepscope.pipeline.estimate.physics.profile import choose_profile
from sweepscope.pipeline.estimate.rows.asking import question_on
from sweepscope.pipeline.estimate.search.enumerate import Request, launch_codes
from sweepscope.pipeline.estimate.search.search import search
from sweepscope.pipeline.estimate.search.whatif import (
    MESH,
    Choice,
    layouts_for,
    leanest,
    nearest_launchable,
    options,
    replicas_for,
    resolve,
    schedules_for,
)
from sweepscope.pipeline.reference.clusters import find_cluster
from sweepscope.pipeline.reference.models import find_model, shape_of
from tests.pipeline.estimate.search.test_search import every_layout, request
from tests.properties import draws

MIXTRAL = find_model("Mixtral 8x7B")
assert MIXTRAL is not None


def test_dp_and_gas_are_what_the_knobs_leave() -> None:
    at = layouts_for(request(gpus=16, gbs=64), [Choice(tp=2, pp=2, mbs=4)])
    assert (at.dp.item(), at.gas.item()) == (4.0, 4.0)
    assert (at.sequence_parallel.item(), at.schedule.item()) == (1.0, 1.0)


def test_each_knob_offers_what_goes_with_the_others() -> None:
    found = options(request(gpus=16, gbs=64), Choice(tp=4))
    assert found["tp"] == [1, 2, 4, 8, 16]
    assert found["pp"] == [1, 2, 4]  # 16 accelerators, 4 of them taken by TP
    assert found["ep"] == [1]
    assert found["vpp"] == [1]  # chunks need at least two stages
    assert found["mbs"] == [1, 2, 4, 8, 16]  # 64 sequences over DP4
    assert found["zero_stage"] == [0, 1, 2, 3]


def test_one_rank_has_nothing_to_shard() -> None:
    found = options(request(gpus=16, gbs=64), Choice(tp=16))
    assert found["zero_stage"] == [0]


def test_a_knob_that_no_longer_fits_goes_to_the_next_smaller_value() -> None:
    asked = request(gpus=16, gbs=64)
    assert nearest_launchable(asked, Choice(tp=1, mbs=16, zero_stage=3)) == Choice(tp=1, mbs=4, zero_stage=3)
    assert nearest_launchable(asked, Choice(tp=16, zero_stage=3)) == Choice(tp=16, zero_stage=0)
    assert nearest_launchable(asked, Choice(tp=3)) is None
    assert nearest_launchable(request(gpus=128, gbs=64), Choice()) is None  # DP128 with 64 sequences


def test_a_search_can_be_reached_by_its_knobs() -> None:
    asked = request(shape_of(MIXTRAL or {}), gpus=16, gbs=64)
    found = search(asked, top=5)
    for row in found.layouts.iter_rows(named=True):
        choice = Choice.of(row)
        assert nearest_launchable(asked, choice) == choice
        speed = estimate(asked.asked, layouts_for(asked, [choice])).tokens_per_s_per_gpu.item()
        assert speed == pytest.approx(row["est_tokens_per_s_per_gpu"], rel=1e-12)
        assert found.layouts["est_tokens_per_s_per_gpu"][found.rank(speed) - 1] == pytest.approx(speed)


@pytest.mark.parametrize("model", ["Llama 2 7B", "Llama 2 13B", "Llama 3 8B", "Llama 3 70B", "Mixtral 8x7B"])
@pytest.mark.parametrize("accelerator", ["V100-SXM-32GB", "A100-SXM-80GB"])
def test_the_fastest_layout_of_a_search_is_a_position_of_the_knobs(model: str, accelerator: str) -> None:
    """Chunks that a search tries, and knobs do not offer, made the knobs show another layout than the headline."""
    row, cluster = find_model(model), find_cluster(accelerator)
    assert row is not None
    assert cluster is not None
    asked = question_on(cluster, shape_of(row), 2048, "bf16", choose=choose_profile, framework=None)
    of = Request(asked, num_gpus=32 * cluster.gpus_per_node, gbs=2048)
    for found in search(of, top=40).layouts.rows(named=True):
        best = Choice.of(found)
        assert resolve(of, best, {}) == (best, [])


def test_places_count_every_layout_that_fits() -> None:
    found = search(request(gpus=8, gbs=32), top=3)
    assert found.speeds.size == found.fitting
    assert bool((np.diff(found.speeds) >= 0).all())
    assert found.rank(found.speeds[-1]) == 1
    assert found.rank(found.speeds[0] / 2) == found.fitting + 1


def test_wanted_knobs_are_set_together_where_only_that_works() -> None:
    asked = request(gpus=16, gbs=64)
    assert resolve(asked, Choice(pp=16, zero_stage=0), {"tp": 8, "pp": 2}) == (Choice(tp=8, pp=2), [])


def test_knobs_that_cannot_be_set_are_named() -> None:
    asked = request(gpus=16, gbs=64)
    assert resolve(asked, Choice(tp=2), {"tp": 5, "mbs": 2}) == (Choice(tp=2, mbs=2), ["tp"])


CHOICES = st.builds(
    Choice,
    tp=st.sampled_from([1, 2, 4, 8]),
    pp=st.sampled_from([1, 2, 4]),
    cp=st.sampled_from([1, 2]),
    mbs=st.integers(1, 64),
    zero_stage=st.integers(0, 3),
    recompute=st.sampled_from(["none", "full"]),
)


@settings(max_examples=draws(60), deadline=None)
@given(CHOICES)
def test_a_settled_layout_can_be_launched_and_so_can_every_offered_step(wanted: Choice) -> None:
    asked = request(gpus=16, gbs=64)
    at = nearest_launchable(asked, wanted)
    if at is None:
        assert 16 % (wanted.tp * wanted.pp * wanted.cp)
        return
    assert launch_codes(asked, layouts_for(asked, [at])).item() == 0
    for name, values in options(asked, at).items():
        assert getattr(at, name) in values
        for value in values:
            moved, left_out = resolve(asked, at, {name: value})
            assert not left_out
            assert getattr(moved, name) == value
            assert all(getattr(moved, other) == getattr(at, other) for other in MESH if other != name)


def test_the_leanest_layout_needs_least_of_all_that_can_be_launched() -> None:
    asked = request(gpus=8, gbs=8)
    names = ("dp", "tp", "pp", "cp", "ep", "mbs", "zero_stage", "recompute", "vpp")
    choices = []
    for key, code in every_layout(asked).items():
        row = dict(zip(names, key, strict=True))
        mode = ("none", "selective", "full")[row["recompute"]]
        if code == 0:
            choices.append(Choice.of({**row, "recompute": mode}))
    found = leanest(asked)
    assert found in choices
    needs = estimate(asked.asked, layouts_for(asked, choices)).stages.reserved
    least = estimate(asked.asked, layouts_for(asked, [found or Choice()])).stages.reserved.item()
    assert least == pytest.approx(needs.min(), rel=1e-12)


def test_without_a_layout_nothing_is_leanest() -> None:
    assert leanest(request(gpus=37, gbs=1)) is None


def test_a_pipeline_offers_the_schedules_that_its_micro_batches_allow() -> None:
    asked = request(gpus=16, gbs=64)
    assert schedules_for(asked, Choice(tp=4)) == ["1f1b"]  # no pipeline, no choice
    deep = Choice(tp=4, pp=4)
    assert schedules_for(asked, deep) == ["afab", "1f1b", "zb-h1", "zb-v", "dualpipe", "dualpipe-v"]
    few = Choice(tp=4, pp=4, mbs=16)  # 4 micro-batches in 4 stages: DualPipe wants 8
    assert schedules_for(asked, few) == ["afab", "1f1b", "zb-h1", "zb-v"]


def test_turning_a_schedule_takes_its_chunks_along_and_falls_back_without_a_pipeline() -> None:
    asked = request(gpus=16, gbs=64)
    at = nearest_launchable(asked, Choice(tp=4, pp=4, pipeline_schedule="zb-v"))
    assert at == Choice(tp=4, pp=4, vpp=2, pipeline_schedule="zb-v")
    assert layouts_for(asked, [at]).schedule.item() == SCHEDULES.index("zb-v")
    assert nearest_launchable(asked, Choice(tp=4, pipeline_schedule="zb-v")) == Choice(tp=4)


def test_states_have_as_many_copies_as_divide_the_ranks() -> None:
    asked = request(gpus=16, gbs=64)
    assert replicas_for(asked, Choice(tp=2, zero_stage=3)) == [1, 2, 4]  # 8 would shard over one rank
    assert replicas_for(asked, Choice(tp=2)) == [1]
    assert nearest_launchable(asked, Choice(tp=2, zero_stage=3, dp_replicate=3)) == Choice(
        tp=2, zero_stage=3, dp_replicate=2
    )


def test_a_schedule_that_cannot_be_launched_is_told() -> None:
    asked = request(gpus=16, gbs=64)
    assert resolve(asked, Choice(tp=4), {"pp": 4, "pipeline_schedule": "zb-v"})[1] == []
    few = resolve(asked, Choice(tp=4), {"pp": 4, "mbs": 16, "pipeline_schedule": "dualpipe"})
    assert few == (Choice(tp=4, pp=4, mbs=16), ["pipeline_schedule"])
