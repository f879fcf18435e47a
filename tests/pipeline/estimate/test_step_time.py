"""Laws of the time model, and the closed forms of its terms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.estimate.cluster import find_cluster
from pipeline.estimate.communication import all_reduce_s, ring_bytes_per_s
from pipeline.estimate.estimate import estimate
from pipeline.estimate.layouts import SCHEDULES, Layouts
from pipeline.estimate.models import LLAMA_2_7B, find_model, shape_of
from pipeline.estimate.profile import load_profiles
from pipeline.estimate.question import Question
from pipeline.estimate.schedule import bubble_share, in_flight

DEFAULT = load_profiles()["default"]
H100 = find_cluster("H100 SXM")
assert H100 is not None
DENSE = Question(LLAMA_2_7B, H100, DEFAULT, 4096)
MIXTRAL = Question(shape_of(find_model("Mixtral 8x7B") or {}), H100, DEFAULT, 4096)

POWERS = st.sampled_from([1.0, 2.0, 4.0, 8.0])
LAYOUT = st.fixed_dictionaries(
    {
        **dict.fromkeys(("tp", "pp", "dp", "cp", "mbs"), POWERS),
        "gas": st.integers(1, 64).map(float),
        "zero_stage": st.sampled_from([0.0, 1.0, 2.0, 3.0]),
        "sequence_parallel": st.sampled_from([0.0, 1.0]),
        "recompute": st.sampled_from([0.0, 1.0, 2.0]),
    }
)


def test_idle_time_is_that_of_the_papers() -> None:
    # 2104.04473 section 2.2: (p-1)/m of the ideal time, (p-1)/(v m) when interleaved; m = gas, not dp x gas
    quiet = replace(DEFAULT, head_bytes_per_logit=0.0, microbatch_s=0.0)
    shape = replace(LLAMA_2_7B, vocab_size=1, num_layers=48)
    at = Layouts.of(pp=8, gas=64, dp=4, vpp=np.array([1.0, 3.0]))
    spent = estimate(Question(shape, H100, quiet, 4096), at).time
    ideal = spent.linear + spent.attention + spent.elementwise
    assert spent.bubble / ideal == pytest.approx([7 / 64, 7 / (3 * 64)], rel=1e-3)


@pytest.mark.parametrize(
    ("schedule", "share"),
    [
        ("afab", 7.0),  # (p-1) (F+B), in units of F+B
        ("1f1b", 7.0),
        ("zero-bubble", 7 / 3),  # ZB1P: (p-1) (F+B-2W)
        ("dualpipe", 3 * 2 / 3),  # (p/2-1) (F&B + B - 3W)
    ],
)
def test_idle_time_of_table_2_of_deepseek_v3(schedule: str, share: float) -> None:
    # 2412.19437 table 2 at 8 stages, with B = 2F, W = F and F&B = F + B
    at = Layouts.of(pp=8, gas=64, schedule=SCHEDULES.index(schedule))
    assert bubble_share(at) * 7 == pytest.approx([share])


def test_micro_batches_alive() -> None:
    assert in_flight(Layouts.of(pp=8, gas=64, schedule=SCHEDULES.index("zero-bubble")), is_first=True) == [8]
    assert in_flight(Layouts.of(pp=8, gas=64, schedule=SCHEDULES.index("dualpipe")), is_first=True) == [9]
    assert in_flight(Layouts.of(pp=8, gas=64), is_first=True) == [8]
    assert in_flight(Layouts.of(pp=8, gas=4), is_first=True) == [4]
    assert in_flight(Layouts.of(pp=8, gas=64), is_first=False) == [1]
    # 2205.05198 section 4.2.3: 1 + (p-1)/(p m) with m interleaved stages
    assert in_flight(Layouts.of(pp=8, gas=64, vpp=3), is_first=True) == pytest.approx([8 * (1 + 7 / 24)])
    assert in_flight(Layouts.of(pp=8, gas=64, schedule=0), is_first=True) == [64]


def test_an_all_reduce_moves_twice_the_tensor_around_the_ring() -> None:
    size, tensor, rate = np.array([8.0]), np.array([1e9]), np.array([1e11])
    assert all_reduce_s(tensor, size, rate, np.zeros(1)) == pytest.approx(2 * 7 / 8 * 1e9 / 1e11)


def test_sequence_parallel_exchanges_take_the_ring_and_no_tree() -> None:
    # 64 ranks: 63 steps round the ring, 4 log2 64 = 24 up and down a tree; both halves of the exchange pay them.
    size, hop = np.array([64.0]), np.array([1e-5])
    tree, ring = (all_reduce_s(np.zeros(1), size, np.ones(1), hop, is_split=split) for split in (0.0, 1.0))
    assert tree == pytest.approx(2 * 24e-5)
    assert ring == pytest.approx(2 * 63e-5)


def test_exchanges_beside_a_pipeline_over_nodes_hold_the_processor() -> None:
    held = replace(DEFAULT, exchange_launch_s=2e-3, exchange_launch_growth=0.02)
    beside = Layouts.of(dp=4, tp=4, pp=4, gas=16, sequence_parallel=1)
    asked, free = (Question(LLAMA_2_7B, H100, profile, 4096) for profile in (held, DEFAULT))
    # 8 layers a stage: each takes what the processor needs, launches (3 x 30 x 8 us) and exchanges, whatever its work
    per_layer = 3 * 30 * DEFAULT.kernel_launch_s + 4 * 2e-3 * (1 + 0.02 * 4)
    step = estimate(asked, beside).time
    work = step.linear + step.attention + step.elementwise + step.tp + step.stall
    assert (step.stall > 0).all()
    assert work == pytest.approx(16 * 8 * per_layer)
    assert step.bubble == pytest.approx(estimate(free, beside).time.bubble)  # filling and draining is not held
    for apart in ({"pp": 1}, {"tp": 1}, {"dp": 1, "tp": 2}):  # no pipeline, no exchange, all in one node
        at = Layouts.of(**{"dp": 4, "tp": 4, "pp": 4, "gas": 16, "sequence_parallel": 1, **apart})
        assert estimate(asked, at).step_time_s == pytest.approx(estimate(free, at).step_time_s)


def test_a_ring_across_nodes_shares_the_cards_of_its_ranks_in_a_node() -> None:
    flat = Question(LLAMA_2_7B, H100, replace(DEFAULT, network_decay=0.0, network_share=1.0, link_share=1.0), 4096)
    one, eight = ring_bytes_per_s(flat, np.array([8.0, 1.0]), np.array([4.0, 32.0]))
    assert one == pytest.approx(50e9)  # one rank per node: one 400 Gb/s card
    assert eight == pytest.approx(400e9)  # eight ranks per node: eight cards, still below NVLink's 450


@settings(max_examples=120, deadline=None)
@given(layout=LAYOUT)
def test_parts_add_up_and_mfu_stays_below_one(layout: dict[str, float]) -> None:
    for asked in (DENSE, MIXTRAL):
        predicted = estimate(asked, Layouts.of(**layout))
        assert predicted.step_time_s == pytest.approx(predicted.time.total)
        assert 0 < predicted.mfu[0] < 1
        assert min(float(np.min(part)) for part in vars(predicted.time).values()) >= 0


@settings(max_examples=120, deadline=None)
@given(layout=LAYOUT, what=st.sampled_from(["link_bytes_per_s", "network_bytes_per_s", "memory_bytes_per_s"]))
def test_more_bandwidth_never_slows(layout: dict[str, float], what: str) -> None:
    for asked in (DENSE, MIXTRAL):
        faster = replace(asked, cluster=replace(asked.cluster, **{what: 2 * getattr(asked.cluster, what)}))
        at = Layouts.of(**layout)
        assert estimate(faster, at).step_time_s[0] <= estimate(asked, at).step_time_s[0] * (1 + 1e-9)


@settings(max_examples=60, deadline=None)
@given(layout=LAYOUT)
def test_recomputation_costs_at_most_a_forward_pass_more(layout: dict[str, float]) -> None:
    none = estimate(DENSE, Layouts.of(**{**layout, "recompute": 0.0}))
    full = estimate(DENSE, Layouts.of(**{**layout, "recompute": 2.0}))
    assert none.step_time_s[0] < full.step_time_s[0] < 1.6 * none.step_time_s[0]


def test_an_estimate_does_not_depend_on_its_neighbours() -> None:
    at = Layouts.of(dp=8, tp=np.array([1.0, 2.0, 8.0]), mbs=np.array([1.0, 4.0, 2.0]), gas=8)
    together = estimate(DENSE, at).step_time_s
    alone = [float(estimate(DENSE, at[slice(i, i + 1)]).step_time_s[0]) for i in range(3)]
    assert together == pytest.approx(alone)
