"""Laws of whole estimates, on random layouts of several models over eight accelerators."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweepscope.pipeline.estimate.physics.estimate import estimate
from sweepscope.pipeline.estimate.physics.layouts import Layouts
from sweepscope.pipeline.estimate.physics.profile import choose_profile
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.reference.clusters import find_cluster
from sweepscope.pipeline.reference.models import find_model, shape_of
from tests.properties import draws

CARDS = ("A100", "H100", "H200-SXM-141GB", "B200", "GB200", "MI300X", "V100", "H800")
MODELS = ("Llama 2 7B", "Llama 3 70B", "GPT-3 175B", "DeepSeek-V3")
RESOURCES = ("peak_flops", "memory_bytes_per_s", "link_bytes_per_s", "network_bytes_per_s", "memory_bytes")
MANY = 400
"""Layouts per example: they are estimated together."""


def question(model: str, card: str) -> Question:
    cluster, row = find_cluster(card), find_model(model)
    assert cluster is not None
    assert row is not None
    return Question(shape_of(row), cluster, choose_profile(cluster.generation, None), 4096)


def some_layouts(asked: Question, seed: int, *, least_gas: int = 1) -> Layouts:
    """Random layouts, each axis by itself."""
    draw = np.random.default_rng(seed)
    choices = {
        **{"tp": [1, 2, 4, 8], "pp": [1, 2, 4, 8], "dp": [1, 2, 8, 64, 256], "cp": [1, 1, 2, 4], "mbs": [1, 2, 4]},
        **{"gas": [gas for gas in (1, 2, 4, 8, 16, 32, 64) if gas >= least_gas], "zero_stage": [0, 1, 2, 3]},
        **{"sequence_parallel": [0, 1], "recompute": [0, 2], "vpp": [1, 1, 2, 4]},
    }
    columns = {name: draw.choice(values, MANY).astype(float) for name, values in choices.items()}
    if asked.shape.num_experts:
        columns["ep"] = np.minimum(columns["dp"], 8.0)
    return Layouts.of(**columns)


SEED = st.integers(0, 10**6)
CARD, MODEL = st.sampled_from(CARDS), st.sampled_from(MODELS)


@settings(max_examples=draws(60), deadline=None)
@given(card=CARD, model=MODEL, seed=SEED, what=st.sampled_from(RESOURCES), factor=st.sampled_from([1.1, 1.3, 2.0]))
def test_more_of_any_resource_is_never_slower_and_never_loses_a_fit(
    card: str, model: str, seed: int, what: str, factor: float
) -> None:
    asked = question(model, card)
    at = some_layouts(asked, seed)
    cluster = replace(asked.cluster, **{what: factor * getattr(asked.cluster, what)})
    if what == "peak_flops":
        cluster = replace(
            cluster,
            peak_flops_fp8=factor * cluster.peak_flops_fp8,
            peak_flops_fp4=factor * cluster.peak_flops_fp4,
        )
    before, after = estimate(asked, at), estimate(replace(asked, cluster=cluster), at)
    assert (after.step_time_s <= before.step_time_s * (1 + 1e-9)).all()
    assert not (before.fits & ~after.fits).any()


@pytest.mark.parametrize(
    ("model", "card", "what"), [("Llama 2 7B", "GB200", "peak_flops"), ("Llama 2 7B", "B200", "link_bytes_per_s")]
)
def test_exchanges_hide_in_the_wait_for_launches_and_behind_one_thing_once(model: str, card: str, what: str) -> None:
    # Both had been slower with more: keys and values waited for attention that launches outlast; sends between chunks
    # and gradients hid behind the same compute.
    asked = question(model, card)
    more = replace(asked, cluster=replace(asked.cluster, **{what: 2 * getattr(asked.cluster, what)}))
    at = Layouts.of(
        tp=np.array([4.0, 8.0]),
        pp=np.array([1.0, 8.0]),
        dp=np.array([64.0, 8.0]),
        cp=np.array([4.0, 1.0]),
        mbs=np.array([1.0, 2.0]),
        gas=32,
        zero_stage=np.array([1.0, 3.0]),
        vpp=np.array([2.0, 4.0]),
        recompute=np.array([0.0, 2.0]),
        sequence_parallel=0,
    )
    assert (estimate(more, at).step_time_s <= estimate(asked, at).step_time_s * (1 + 1e-9)).all()


@settings(max_examples=draws(40), deadline=None)
@given(card=CARD, model=MODEL, seed=SEED)
def test_zero_3_is_never_faster_than_zero_1(card: str, model: str, seed: int) -> None:
    asked = question(model, card)
    at = some_layouts(asked, seed)
    one, three = (estimate(asked, replace(at, zero_stage=np.full(MANY, stage))) for stage in (1.0, 3.0))
    assert (three.step_time_s >= one.step_time_s * (1 - 1e-9)).all()
    assert (three.mem_bytes - three.memory.buffers <= one.mem_bytes - one.memory.buffers + 1.0).all()


@settings(max_examples=draws(40), deadline=None)
@given(card=CARD, model=MODEL, seed=SEED)
def test_mfu_of_a_fixed_batch_falls_with_accelerators(card: str, model: str, seed: int) -> None:
    """As long as gradients are still accumulated: what need not be added up any more is saved.

    Without switches, from where the exchanging ranks fill a domain: more of them have more links until then.
    """
    asked = question(model, card)
    at = some_layouts(asked, seed, least_gas=4)
    twice = replace(at, dp=2 * at.dp, gas=at.gas / 2)
    fills = at.tp * at.cp * at.dp >= asked.cluster.gpus_per_domain
    applies = fills | (asked.cluster.direct_peers == 0)
    assert (estimate(asked, twice).mfu <= estimate(asked, at).mfu * (1 + 1e-9))[applies].all()


@settings(max_examples=draws(20), deadline=None)
@given(card=CARD, seed=SEED)
def test_the_order_of_layouts_changes_nothing(card: str, seed: int) -> None:
    asked = question("Llama 3 70B", card)
    at = some_layouts(asked, seed)
    order = np.random.default_rng(seed).permutation(MANY)
    assert estimate(asked, at[order]).step_time_s == pytest.approx(estimate(asked, at).step_time_s[order], rel=1e-12)
