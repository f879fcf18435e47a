"""Laws of the time model, and the closed forms of its terms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweepscope.pipeline.estimate.physics.collectives import all_gather_s, group_of
from sweepscope.pipeline.estimate.physics.estimate import estimate
from sweepscope.pipeline.estimate.physics.layer_time import exchange_launch_s, launches_s
from sweepscope.pipeline.estimate.physics.layouts import SCHEDULES, Layouts
from sweepscope.pipeline.estimate.physics.profile import Profile, load_profiles
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.physics.schedule import bubble_share, in_flight
from sweepscope.pipeline.estimate.physics.volumes import sent_bytes
from sweepscope.pipeline.reference.clusters import find_cluster
from sweepscope.pipeline.reference.models import LLAMA_2_7B, find_model, shape_of
from tests.properties import draws

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


def test_experts_cost_the_same_however_their_products_are_cut() -> None:
    # All tokens visit `experts_per_token` experts: cut along their width or whole on fewer ranks, each rank has as much.
    even = replace(DEFAULT, gemm_wave_loss=1e-9, gemm_half_waves=0.0, gemm_half_depth=0.0)
    at = Layouts.of(tp=4, ep=2, dp=8, etp=np.array([1.0, 2.0, 4.0]), mbs=8, sequence_parallel=1.0)
    spent = estimate(replace(MIXTRAL, profile=even), at).time
    assert spent.linear == pytest.approx(spent.linear[0], rel=1e-3)


def test_exchanges_of_a_tensor_group_are_launched_like_kernels() -> None:
    asked = Question(LLAMA_2_7B, H100, DEFAULT, 4096)
    of_layer = [
        float(np.ravel(launches_s(asked, Layouts.of(dp=1, tp=tp, sequence_parallel=split), is_moe=False))[0])
        for tp, split in ((1, 0), (2, 0), (2, 1), (8, 1))
    ]
    assert np.array(of_layer) / DEFAULT.kernel_launch_s == pytest.approx([30, 32, 34, 34])
    # A small layer takes what its launches take, whatever the width of its slices.
    eager = replace(asked, profile=replace(DEFAULT, kernel_launch_s=DEFAULT.eager_launch_s))
    (seconds,) = estimate(eager, Layouts.of(tp=8, sequence_parallel=1.0)).step_time_s
    assert seconds > 3 * 34 * LLAMA_2_7B.num_layers * DEFAULT.eager_launch_s


def test_experts_launch_kernels_of_their_own() -> None:
    # short micro-batches of a narrow model wait for the processor: routing, and products of each expert on the rank
    narrow = replace(MIXTRAL, shape=replace(MIXTRAL.shape, hidden_size=512, expert_ffn_hidden_size=128, num_experts=64))
    at = Layouts.of(dp=8, ep=np.array([8.0, 4.0]), zero_stage=1.0, mbs=1)
    layer = (DEFAULT.kernel_launch_s * (30 + 30), 2 * DEFAULT.compiled_launch_s)
    for precision, each, casts in (("bf16", 1, 0), ("fp8", 2, 4)):
        short = replace(narrow, precision=precision)
        shared = layer[0] + casts * DEFAULT.kernel_launch_s
        launched = launches_s(short, at, is_moe=True)
        assert launched == pytest.approx([shared + each * layer[1] * local for local in (8, 16)])
        assert launches_s(short, at, is_moe=False) == pytest.approx((30 + 2 * casts) * DEFAULT.kernel_launch_s)
    few, many = estimate(replace(narrow, seq_len=128), at).time.total
    assert many - few > 3 * 32 * 8 * layer[1] / 2
    captured = replace(narrow, profile=replace(DEFAULT, kernel_launch_s=DEFAULT.graph_launch_s))
    assert (launches_s(captured, at, is_moe=True) < launches_s(narrow, at, is_moe=True) / 2).all()


def test_each_rank_sends_its_own_tokens_to_experts_and_those_that_share_one_gather_them() -> None:
    whole, cut = (Layouts.of(tp=4, ep=2, dp=8, etp=etp, mbs=8, sequence_parallel=1.0) for etp in (1.0, 4.0))
    sent_whole, sent_cut = sent_bytes(MIXTRAL, whole), sent_bytes(MIXTRAL, cut)
    assert sent_cut.ep == pytest.approx(sent_whole.ep)
    # One exchange of the attention block, and two experts of each token instead of none.
    assert sent_cut.tp / sent_whole.tp == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("schedule", "share"),
    [
        ("afab", 7.0),  # (p-1) (F+B), in units of F+B
        ("1f1b", 7.0),
        ("zb-h1", 7 / 3),  # ZB1P: (p-1) (F+B-2W)
        ("zb-v", 0.0),  # 2401.10241 section 6, at F = B = W
        ("dualpipe", 3 * 2 / 3),  # (p/2-1) (F&B + B - 3W)
        ("dualpipe-v", 7 / 2 * 2 / 3),  # twice as many stages of half the layers: (16/2-1) of them
    ],
)
def test_idle_time_of_table_2_of_deepseek_v3(schedule: str, share: float) -> None:
    # 2412.19437 table 2 at 8 stages, with B = 2F, W = F and F&B = F + B
    at = Layouts.of(pp=8, gas=64, schedule=SCHEDULES.index(schedule))
    assert bubble_share(at) * 7 == pytest.approx([share])


def test_micro_batches_alive() -> None:
    assert in_flight(Layouts.of(pp=8, gas=64, schedule=SCHEDULES.index("zb-h1")), stage=0) == [8]
    assert in_flight(Layouts.of(pp=8, gas=64, schedule=SCHEDULES.index("dualpipe")), stage=0) == [9]
    # 16 stages on 8 ranks: 17 micro-batches of half a rank's layers
    assert in_flight(Layouts.of(pp=8, gas=64, schedule=SCHEDULES.index("dualpipe-v")), stage=0) == [8.5]
    assert in_flight(Layouts.of(pp=8, gas=64, vpp=2, schedule=SCHEDULES.index("zb-v")), stage=0) == [8]
    assert in_flight(Layouts.of(pp=8, gas=64, vpp=2, schedule=SCHEDULES.index("zb-v")), stage=-1) == [8]
    assert in_flight(Layouts.of(pp=8, gas=64), stage=0) == [8]
    assert in_flight(Layouts.of(pp=8, gas=4), stage=0) == [4]
    assert in_flight(Layouts.of(pp=8, gas=64), stage=-1) == [1]
    # 2205.05198 section 4.2.3: 1 + (p-1)/(p m) with m interleaved stages
    assert in_flight(Layouts.of(pp=8, gas=64, vpp=3), stage=0) == pytest.approx([8 * (1 + 7 / 24)])
    assert in_flight(Layouts.of(pp=8, gas=8, vpp=3), stage=0) == [8]  # there are no more
    assert in_flight(Layouts.of(pp=8, gas=64, schedule=0), stage=0) == [64]
    # Stages between, and the last one of an interleaved pipeline: 2 (pp - r - 1) + (v - 1) pp + 1 chunks of 3 a stage.
    assert in_flight(Layouts.of(pp=8, gas=64), stage=1) == [7]
    assert in_flight(Layouts.of(pp=2, gas=64), stage=1) == in_flight(Layouts.of(pp=2, gas=64), stage=-1) == [1]
    assert in_flight(Layouts.of(pp=8, gas=64, vpp=3), stage=1) == pytest.approx([(12 + 16 + 1) / 3])
    assert in_flight(Layouts.of(pp=8, gas=64, vpp=3), stage=-1) == pytest.approx([17 / 3])


def test_exchanges_beside_a_pipeline_over_nodes_hold_the_processor() -> None:
    held = replace(DEFAULT, exchange_launch_s=2e-3, exchange_launch_growth=0.25)
    beside = Layouts.of(dp=4, tp=4, pp=4, gas=16, sequence_parallel=1)
    asked, free = (Question(LLAMA_2_7B, H100, profile, 4096) for profile in (held, DEFAULT))
    # 8 layers a stage: each takes what the processor needs, 34 launches and 4 ranks, whatever its work
    per_layer = 3 * (30 + 4) * DEFAULT.kernel_launch_s + 4 * 2e-3
    step = estimate(asked, beside).time
    work = step.linear + step.attention + step.elementwise + step.tp + step.stall
    assert (step.stall > 0).all()
    assert work == pytest.approx(16 * 8 * per_layer)
    assert step.bubble == pytest.approx(estimate(free, beside).time.bubble)  # filling and draining is not held
    for apart in ({"pp": 1}, {"tp": 1}, {"dp": 1, "tp": 2}):  # no pipeline, no exchange, all in one node
        at = Layouts.of(**{"dp": 4, "tp": 4, "pp": 4, "gas": 16, "sequence_parallel": 1, **apart})
        assert estimate(asked, at).step_time_s == pytest.approx(estimate(free, at).step_time_s)


def test_an_exchange_over_nodes_holds_the_processor_longer_per_rank() -> None:
    asked = Question(LLAMA_2_7B, H100, replace(DEFAULT, exchange_launch_s=2e-3, exchange_launch_growth=0.25), 4096)
    inside, over = (exchange_launch_s(asked, Layouts.of(dp=4, tp=tp, pp=4, gas=16)) for tp in (8, 32))
    assert inside == pytest.approx(8 * 2e-3)
    assert over == pytest.approx(32 * 2e-3 * (1 + 3 * 0.25))  # three nodes more


def test_a_step_waits_for_the_slowest_node() -> None:
    slow = replace(DEFAULT, slow_node_chance=0.01, slow_node_cost=0.5)
    waits, free = (Question(LLAMA_2_7B, H100, profile, 4096) for profile in (slow, DEFAULT))
    one, two, many = (Layouts.of(dp=dp, tp=8, gas=4, zero_stage=1) for dp in (1, 2, 4096))
    assert estimate(waits, one).time.stragglers == pytest.approx(0.0)
    step = estimate(free, two).step_time_s
    assert estimate(waits, two).time.stragglers == pytest.approx(0.5 * 0.01 * step)
    # However many nodes there are, no step waits for more than one slow one costs.
    assert estimate(waits, many).time.stragglers == pytest.approx(0.5 * estimate(free, many).step_time_s)


def test_a_gather_that_follows_the_optimizer_hides_behind_nothing() -> None:
    hidden = replace(DEFAULT, dp_hidden=0.9, shard_contention=0.0)
    after, under = (Question(LLAMA_2_7B, H100, replace(hidden, hides_gather=found), 4096) for found in (False, True))
    at = Layouts.of(dp=16, tp=8, gas=16, mbs=8, zero_stage=1)
    params = LLAMA_2_7B.params / 8 - 32 * 2 * 4096 * 7 / 8  # norms are held whole
    ranks = group_of(after, np.array([8.0]), np.array([16.0]))
    gather = all_gather_s(after, ranks, np.array([2.0 * params]))
    assert estimate(under, at).time.dp == pytest.approx(0.0)
    assert estimate(after, at).time.dp == pytest.approx(gather, rel=0.05)
    assert estimate(after, replace(at, zero_stage=np.array([0.0]))).time.dp == pytest.approx(0.0)


GROWING = st.fixed_dictionaries(
    {
        "dp": st.integers(1, 11).map(lambda power: 2.0**power),
        "tp": POWERS,
        "pp": st.sampled_from([1.0, 2.0, 8.0]),
        "vpp": st.sampled_from([1.0, 4.0]),
        "mbs": POWERS,
        "gas": st.integers(1, 32).map(float),
        "recompute": st.sampled_from([0.0, 2.0]),
    }
)


@settings(max_examples=draws(200), deadline=None)
@given(layout=GROWING, bucket=st.sampled_from([25e6, 1e9, 1e12]))
def test_more_sharding_never_exposes_less_communication(layout: dict[str, float], bucket: float) -> None:
    # 1910.02054 section 7: ZeRO-1 and 2 move what ZeRO-0 moves, ZeRO-3 half as much again, ZeRO-2 once a micro-batch.
    at = Layouts.of(**layout, zero_stage=np.array([1.0, 2.0, 3.0]), sequence_parallel=1)
    for plain in (DENSE, MIXTRAL):
        asked = replace(plain, profile=replace(plain.profile, bucket_bytes=bucket))
        one, two, three = estimate(asked, at).time.dp
        assert one <= two * (1 + 1e-9)
        assert two <= three * (1 + 1e-9)


def test_llama_2_7b_over_2048_gpus_in_one_micro_batch() -> None:
    # It was 8.0, 8.3 and 48.4 % of the peak: scatters paid a ring's latency, ZeRO-3's gathers a tree's.
    at = Layouts.of(dp=2048, zero_stage=np.array([1.0, 2.0, 3.0]))
    one, two, three = estimate(DENSE, at).mfu
    assert 0.15 < one < 0.35
    assert one == two  # a single micro-batch is reduced once
    assert 0.05 < three < one


@settings(max_examples=draws(60), deadline=None)
@given(layout=GROWING, zero=st.sampled_from([0.0, 1.0, 2.0, 3.0]))
def test_a_fixed_batch_on_more_replicas_is_no_more_efficient(layout: dict[str, float], zero: float) -> None:
    # Twice the accelerators, half the micro-batches of each: less to hide behind, more to wait for. A single one needs
    # no gradients added up, which can be worth more than that.
    if layout["gas"] % 2 or layout["gas"] < 4 or layout["dp"] * layout["tp"] * layout["pp"] < 8:
        return
    more = {**layout, "dp": 2 * layout["dp"], "gas": layout["gas"] / 2}
    for asked in (DENSE, MIXTRAL):
        few, many = (estimate(asked, Layouts.of(**which, zero_stage=zero)).mfu[0] for which in (layout, more))
        assert many <= few * (1 + 1e-9)


@settings(max_examples=draws(120), deadline=None)
@given(layout=LAYOUT)
def test_parts_add_up_and_mfu_stays_below_one(layout: dict[str, float]) -> None:
    for asked in (DENSE, MIXTRAL):
        predicted = estimate(asked, Layouts.of(**layout))
        assert predicted.step_time_s == pytest.approx(predicted.time.total)
        assert 0 < predicted.mfu[0] < 1
        assert min(float(np.min(part)) for part in vars(predicted.time).values()) >= 0


@settings(max_examples=draws(120), deadline=None)
@given(layout=LAYOUT, what=st.sampled_from(["link_bytes_per_s", "network_bytes_per_s", "memory_bytes_per_s"]))
def test_more_bandwidth_never_slows(layout: dict[str, float], what: str) -> None:
    for asked in (DENSE, MIXTRAL):
        faster = replace(asked, cluster=replace(asked.cluster, **{what: 2 * getattr(asked.cluster, what)}))
        at = Layouts.of(**layout)
        assert estimate(faster, at).step_time_s[0] <= estimate(asked, at).step_time_s[0] * (1 + 1e-9)


@settings(max_examples=draws(60), deadline=None)
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


ZB_H1, ZB_V, DUALPIPE = (float(SCHEDULES.index(word)) for word in ("zb-h1", "zb-v", "dualpipe"))


def test_a_zero_bubble_pipeline_idles_by_what_its_gradients_of_weights_leave_open() -> None:
    at = Layouts.of(pp=8, gas=64, vpp=np.array([1.0, 1.0, 2.0]), schedule=np.array([1.0, ZB_H1, ZB_V]))
    spent = estimate(DENSE, at).time
    others = spent.bubble[0] / 7  # one pass through a stage, F + B + W
    weights = spent.linear[0] / 3 / 64  # W of one micro-batch on the fullest stage, head excluded
    assert spent.bubble[1] == pytest.approx(7 * (others - 2 * weights), rel=0.05)
    assert spent.bubble[2] == pytest.approx(7 * (others - 3 * weights), rel=0.2)
    assert 0 < spent.bubble[2] < spent.bubble[1] < spent.bubble[0]


def test_a_single_micro_batch_fills_no_bubble() -> None:
    # It goes down and up alone: (p - 1) (F + B), whatever the schedule; W of others is what there is to fill with.
    for word in ("zb-h1", "zb-v"):
        at = Layouts.of(pp=8, gas=np.array([1.0, 4.0, 8.0, 64.0]), schedule=SCHEDULES.index(word))
        share = bubble_share(at, np.array([0.25]))
        assert share[0] == pytest.approx(0.75)
        assert share[1] > share[2] == share[3]


def test_dualpipe_hides_the_experts_exchange_under_the_other_direction() -> None:
    asked = replace(MIXTRAL, profile=replace(MIXTRAL.profile, shard_contention=0.0))
    at = {"dp": 8, "pp": 8, "gas": 64, "ep": 8}
    plain, hidden = (estimate(asked, Layouts.of(**at, schedule=code)).time for code in (1.0, DUALPIPE))
    assert plain.ep[0] > 0
    assert hidden.ep[0] == 0
    alone = Layouts.of(dp=64, pp=1, gas=64, ep=8, schedule=DUALPIPE)  # one stage has no other direction
    assert estimate(asked, alone).time.ep[0] > 0


def test_a_combined_schedule_hides_the_experts_exchange_of_all_but_the_first_micro_batches() -> None:
    profile = replace(MIXTRAL.profile, shard_contention=0.0, dispatch_bytes=0.5)  # so short that compute covers them
    plain, beside = (replace(MIXTRAL, profile=replace(profile, hides_experts=hides)) for hides in (False, True))

    def stays(**layout: float) -> float:
        at = Layouts.of(**{"dp": 8, "ep": 8, "gas": 64, **layout})
        return float(estimate(beside, at).time.ep[0] / estimate(plain, at).time.ep[0])

    assert stays() == pytest.approx(1 / 64)
    assert stays(gas=1) == 1  # no other micro-batch
    begun = 2 * (4 - 1) + (8 - 1) * 4 + 1  # chunks before the first backward pass, of 64 micro-batches in 8
    assert stays(pp=4, vpp=8, schedule=SCHEDULES.index("interleaved")) == pytest.approx(begun / (64 * 8), rel=0.02)


def _quiet() -> Question:
    """Nothing hidden, no latency but of calls, whole bandwidths: exchanges are bytes over bytes/s."""
    profile = replace(
        DEFAULT,
        network_decay=0.0,
        network_share=1.0,
        link_share=1.0,
        dp_hidden=0.0,
        shard_contention=0.0,
        link_latency_s=0.0,
        network_latency_s=0.0,
    )
    return Question(LLAMA_2_7B, H100, profile, 4096)


def test_replicas_reduce_their_shards_once_a_step() -> None:
    # MiCS, 2205.00119 section 3.4: scatter and gather inside the node, then an all-reduce of the shards over nodes.
    asked = _quiet()
    shape = asked.shape
    matrices = shape.num_layers * (shape.attention_params + shape.dense_mlp_params + 2 * shape.hidden_size)
    params = matrices + 2 * shape.embedding_params
    spent = estimate(asked, Layouts.of(dp=32, dp_replicate=4, gas=4, zero_stage=1)).time.dp[0]
    inside = 7 / 8 * (4 + 2) * params / 450e9  # NVLink, one direction
    between = 2 * 3 / 4 * 4 * params / 8 / 50e9  # one rank of each node on its own 400 Gb/s card
    assert spent == pytest.approx(inside + between, rel=5e-3)  # and NCCL's latency of each call


def test_groups_of_all_ranks_are_plain_sharding_and_replicas_of_one_rank_plain_replication() -> None:
    for zero in (1.0, 2.0, 3.0):
        plain = estimate(DENSE, Layouts.of(dp=32, gas=4, zero_stage=zero))
        assert (
            estimate(DENSE, Layouts.of(dp=32, gas=4, zero_stage=zero, dp_replicate=1)).step_time_s == plain.step_time_s
        )
    quiet = replace(_quiet(), profile=replace(_quiet().profile, bucket_bytes=1e12))
    alone = estimate(quiet, Layouts.of(dp=32, gas=4, zero_stage=1, dp_replicate=32)).time.dp
    assert alone == pytest.approx(estimate(quiet, Layouts.of(dp=32, gas=4)).time.dp)


@settings(max_examples=draws(60), deadline=None)
@given(layout=LAYOUT, schedule=st.sampled_from(SCHEDULES))
def test_no_schedule_idles_more_than_1f1b(layout: dict[str, float], schedule: str) -> None:
    chunks = 2.0 if schedule in ("interleaved", "zb-v", "dualpipe-v") else 1.0
    for asked in (DENSE, MIXTRAL):
        plain = estimate(asked, Layouts.of(**layout)).time.bubble[0]
        own = estimate(asked, Layouts.of(**layout, schedule=float(SCHEDULES.index(schedule)), vpp=chunks)).time.bubble[
            0
        ]
        assert 0 <= own <= plain * (1 + 1e-9)


@settings(max_examples=draws(60), deadline=None)
@given(layout=LAYOUT, copies=st.sampled_from([2.0, 4.0]))
def test_zero_3_within_nodes_never_exchanges_longer_than_over_them(layout: dict[str, float], copies: float) -> None:
    # Gathers of every micro-batch stay on faster links, for one all-reduce of a shard more.
    layout = {**layout, "tp": 1.0, "cp": 1.0, "pp": 1.0, "dp": 8 * copies, "zero_stage": 3.0, "gas": 8.0}
    over, inside = (estimate(_quiet(), Layouts.of(**layout, dp_replicate=count)).time.dp[0] for count in (1, copies))
    assert inside <= over * (1 + 1e-9)


def _attention_s(profile: Profile, heads: int, head_dim: int | None = None) -> float:
    shape = replace(LLAMA_2_7B, num_heads=heads, num_kv_heads=heads, head_dim=head_dim)
    return float(estimate(Question(shape, H100, profile, 4096), Layouts.of(dp=8)).time.attention[0])


def test_heads_that_are_not_aligned_leave_the_tensor_cores_where_attention_is_not_fused() -> None:
    unfused = replace(DEFAULT, is_flash=False)
    assert _attention_s(unfused, 36, 114) > 2 * _attention_s(unfused, 36, 112)
    assert _attention_s(DEFAULT, 36, 114) < 1.05 * _attention_s(DEFAULT, 36, 112)


def test_narrow_heads_are_slower_in_kernels_that_wait_for_exponentials() -> None:
    tuned = replace(DEFAULT, attention_half_width=43.0)
    assert _attention_s(DEFAULT, 64) == pytest.approx(_attention_s(DEFAULT, 32))
    assert _attention_s(tuned, 32) == pytest.approx(_attention_s(DEFAULT, 32))
    assert _attention_s(tuned, 64) / _attention_s(tuned, 32) == pytest.approx((1 + 43 / 64) / (1 + 43 / 128))


def test_ranks_that_hold_the_same_may_send_a_part_each() -> None:
    # 2104.04473 section 4.1: without sequence parallelism 1/tp over the network, and a gather over links, both ways
    at = Layouts.of(tp=8, pp=4, dp=8, gas=16, sequence_parallel=np.array([0.0, 1.0]))
    whole, forward, both = (
        estimate(replace(DENSE, profile=replace(DEFAULT, cut_sends=cut)), at).time.pp for cut in (0.0, 1.0, 2.0)
    )
    assert whole[0] > forward[0] > both[0]
    assert whole[0] - forward[0] == pytest.approx(forward[0] - both[0])
    assert both[0] > whole[1]  # what is already cut needs no gather
    assert whole[1] == forward[1] == both[1]
    alone = Layouts.of(pp=4, dp=8, gas=16)
    sent = [estimate(replace(DENSE, profile=replace(DEFAULT, cut_sends=cut)), alone).time.pp for cut in (0.0, 2.0)]
    assert sent[0] == sent[1]


def test_gradients_that_are_reduced_whole_move_twice_as_much_under_zero_1_alone() -> None:
    at = Layouts.of(dp=64, pp=2, gas=8, zero_stage=np.array([0.0, 1.0, 2.0]))
    quiet = replace(DEFAULT, bucket_bytes=1e12, dp_hidden=0.0)
    plain, whole = (
        estimate(replace(DENSE, profile=replace(quiet, reduces_whole=reduces)), at).time.dp for reduces in (False, True)
    )
    assert whole[1] > plain[1]
    assert list(whole[[0, 2]]) == list(plain[[0, 2]])
    sent = [
        sent_bytes(replace(DENSE, profile=replace(quiet, reduces_whole=reduces)), at).dp for reduces in (False, True)
    ]
    assert sent[1] - sent[0] == pytest.approx([0.0, sent[0][0] / 2.0, 0.0])
    # The weights are gathered beside it, as ZeRO-1 does.
    assert whole[1] > whole[0]
