"""Laws of the ratios that decide, on random layouts, and their figures by hand where a hand can compute them."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings

from sweepscope.pipeline.estimate.physics.estimate import Estimate, estimate
from sweepscope.pipeline.estimate.physics.layouts import Layouts
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.physics.ratios import (
    DIMENSIONS,
    Communication,
    Ratios,
    backward_s,
    communication,
    compute_s,
    ratios,
)
from sweepscope.pipeline.estimate.physics.volumes import sent_bytes
from tests.pipeline.estimate.physics.test_laws import CARD, MODEL, SEED, question, some_layouts
from tests.properties import draws


def all_of(asked: Question, at: Layouts) -> tuple[Estimate, Communication, Ratios]:
    predicted, comm = estimate(asked, at), communication(asked, at)
    return predicted, comm, ratios(asked, at, predicted, comm)


@settings(max_examples=draws(40), deadline=None)
@given(card=CARD, model=MODEL, seed=SEED)
def test_what_shows_of_an_exchange_is_a_part_of_it(card: str, model: str, seed: int) -> None:
    asked = question(model, card)
    at = some_layouts(asked, seed)
    predicted, comm, _ = all_of(asked, at)
    for name in DIMENSIONS:
        whole, shown = getattr(comm, name), getattr(predicted.time, name)
        assert (shown <= whole * (1 + 1e-9) + 1e-12).all(), name
        assert ((whole > 0) == (np.asarray(shown) > 0)).all(), name  # what hides still costs some


@settings(max_examples=draws(40), deadline=None)
@given(card=CARD, model=MODEL, seed=SEED)
def test_perfect_overlap_bounds_mfu_and_shares_lie_between_none_and_all(card: str, model: str, seed: int) -> None:
    asked = question(model, card)
    predicted, _, found = all_of(asked, some_layouts(asked, seed))
    assert (found.mfu_overlapped >= predicted.mfu * (1 - 1e-9)).all()
    assert ((found.bubble_fraction >= 0) & (found.bubble_fraction < 1)).all()
    for entry in fields(Ratios):
        values = np.asarray(getattr(found, entry.name))
        assert not np.isinf(values).any(), entry.name
        assert (values[~np.isnan(values)] >= 0).all(), entry.name


@settings(max_examples=draws(40), deadline=None)
@given(card=CARD, model=MODEL, seed=SEED)
def test_no_volume_moves_faster_than_the_wire(card: str, model: str, seed: int) -> None:
    """Bytes and seconds are counted in two places: together they never imply more than the links carry."""
    asked = question(model, card)
    cluster = replace(asked.cluster, has_multicast=False)
    asked = replace(asked, cluster=cluster)
    at = some_layouts(asked, seed)
    comm, sent = communication(asked, at), sent_bytes(asked, at)
    passes = np.where(at.recompute >= 2, 1.5, 1.0)  # recomputation sends again, in a part of its own
    fastest = max(cluster.link_bytes_per_s, cluster.network_bytes_per_s * cluster.gpus_per_domain)
    for name, again in (("tp", passes), ("cp", 1.0), ("dp", 1.0), ("pp", 1.0), ("ep", passes)):
        volume, spent = getattr(sent, name), getattr(comm, name)
        # Volumes are means over stages; times are those of the fullest, which has at least as much.
        assert (volume <= spent * again * fastest * (1 + 1e-9)).all(), name
        assert ((np.asarray(volume) > 0) == (np.asarray(spent) > 0)).all(), name


@settings(max_examples=draws(40), deadline=None)
@given(card=CARD, model=MODEL, seed=SEED)
def test_intensity_of_a_fixed_batch_falls_with_replicas(card: str, model: str, seed: int) -> None:
    """Fewer FLOPs per accelerator, as many bytes of gradients."""
    asked = question(model, card)
    at = some_layouts(asked, seed, least_gas=4)
    twice = replace(at, dp=2 * at.dp, gas=at.gas / 2)
    before, after = all_of(asked, at)[2], all_of(asked, twice)[2]
    known = ~np.isnan(before.flops_per_comm_byte)
    assert (after.flops_per_comm_byte[known] <= before.flops_per_comm_byte[known] * (1 + 1e-9)).all()


def test_ratios_by_hand() -> None:
    asked = question("Llama 2 7B", "H100")
    at = Layouts.of(dp=16, tp=8, pp=4, mbs=1, gas=8, zero_stage=1, sequence_parallel=1)
    predicted, comm, found = all_of(asked, at)
    time, shape = predicted.time, asked.shape
    compute = sum(getattr(time, name) for name in ("linear", "attention", "elementwise", "head", "recompute"))
    assert compute_s(time) == pytest.approx(compute)
    assert backward_s(time) == pytest.approx(2 / 3 * compute)
    assert found.rho_tp == pytest.approx(compute / comm.tp)
    assert found.compute_per_comm == pytest.approx(compute / (comm.tp + comm.dp + comm.pp))
    assert found.bubble_fraction == pytest.approx(time.bubble / predicted.step_time_s)
    assert found.dp_per_pass == pytest.approx(comm.dp / (2 / 3 * compute / 8))
    assert found.pp_break_even_gas == np.ceil(compute / 2 / time.dp)
    sent = sent_bytes(asked, at)
    tensor = 2 * 4096 * shape.hidden_size
    assert sent.tp == pytest.approx(8 * 4 * shape.num_layers / 4 * 2 * 7 / 8 * tensor)
    assert sent.pp == pytest.approx(8 * 2 * 3 / 4 * tensor / 8)
    share = asked.profile.grad_bytes + asked.profile.weight_bytes
    assert sent.dp == pytest.approx(15 / 16 * share * shape.params / 32, rel=0.01)


def test_one_accelerator_has_no_ratio_of_what_it_does_not_send() -> None:
    found = all_of(question("Llama 2 7B", "H100"), Layouts.of(mbs=1, gas=4))[2]
    for name in ("rho_tp", "compute_per_comm", "flops_per_comm_byte", "dp_per_pass", "pp_break_even_gas"):
        assert np.isnan(getattr(found, name)).all(), name
    assert found.bubble_fraction == 0


def test_a_faster_network_hides_what_a_slow_one_shows() -> None:
    asked = question("Llama 2 7B", "H100")
    at = Layouts.of(dp=64, tp=2, mbs=1, gas=1, zero_stage=1)
    slow, fast = (
        all_of(
            replace(asked, cluster=replace(asked.cluster, network_bytes_per_s=asked.cluster.network_bytes_per_s * f)),
            at,
        )[2]
        for f in (0.1, 1.0)
    )
    assert slow.dp_per_pass > fast.dp_per_pass
    assert slow.dp_per_pass > 1
    assert slow.compute_per_comm < fast.compute_per_comm
