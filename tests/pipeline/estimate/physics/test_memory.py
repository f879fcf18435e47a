"""Bytes against closed forms of the papers, and laws that hold for any layout."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweepscope.pipeline.estimate.physics.activations import layer_activation_bytes
from sweepscope.pipeline.estimate.physics.layouts import Layouts
from sweepscope.pipeline.estimate.physics.memory import Memory, StageMemory, stage_memory, stage_params
from sweepscope.pipeline.estimate.physics.profile import Profile, load_profiles
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.physics.schedule import DUALPIPE, INTERLEAVED, ONE_F_ONE_B, ZB_H1, ZB_V
from sweepscope.pipeline.estimate.physics.stages import stage_layers
from sweepscope.pipeline.reference.clusters import find_cluster
from sweepscope.pipeline.reference.model_shape import ModelShape
from sweepscope.pipeline.reference.models import LLAMA_2_7B, find_model, shape_of
from tests.properties import draws

DEFAULT = load_profiles()["default"]
GPT = replace(
    DEFAULT,
    has_dropout=True,
    is_flash=False,
    norm_bytes=4.0,
    rotary_copies=0.0,
    mlp_bytes_plain=4.0,
    gathered_bytes=0.0,
    memory_growth=1.0,
)
"""What Korthikanti counts: dropout, attention not fused, GELU of width 4h."""
STATES_ONLY = replace(DEFAULT, grad_held_bytes=2.0, grad_fresh_bytes=0.0, context_bytes=0.0, memory_growth=0.0)
"""Model states of mixed precision Adam, 2 + 2 + 12 bytes, and nothing else."""

GPT_22B = ModelShape(48, 6144, 64, 64, 4 * 6144, 51200, gated_mlp=False, tie_word_embeddings=True)
DENSE_80B = ModelShape(80, 8192, 64, 64, 28672, 131072, gated_mlp=True, tie_word_embeddings=False)
MOE = ModelShape(
    8,
    1024,
    16,
    16,
    4096,
    32000,
    gated_mlp=True,
    tie_word_embeddings=False,
    num_experts=16,
    experts_per_token=2,
    expert_ffn_hidden_size=1024,
)


H100 = find_cluster("H100 SXM")
assert H100 is not None


def held(shape: ModelShape, at: Layouts, profile: Profile = DEFAULT, seq_len: int = 4096) -> Memory:
    asked = Question(shape, H100, profile, seq_len)
    return stage_memory(asked, at, stage_layers(shape, at.pp, placement="even")).worst


def kept_per_token(at: Layouts) -> float:
    dense, _ = layer_activation_bytes(Question(GPT_22B, H100, GPT, 2048), at)
    return float(dense[0])


@pytest.mark.parametrize(("tp", "sp"), [(1, 0), (8, 0), (8, 1)])
def test_gpt_layer_is_korthikantis_formula(tp: int, sp: int) -> None:
    # 2205.05198 equations 1, 2 and 4: sbh (10/sigma + 24/tp + 5as/(h tp))
    s, h, a = 2048, GPT_22B.hidden_size, GPT_22B.num_heads
    got = kept_per_token(Layouts.of(tp=tp, sequence_parallel=sp))
    sigma = tp if sp else 1
    assert got == pytest.approx(h * (10 / sigma + 24 / tp + 5 * a * s / (h * tp)), rel=1e-12)


def test_selective_recomputation_drops_the_attention_core() -> None:
    # 2205.05198 section 5: sbh 34/t with sequence parallelism
    got = kept_per_token(Layouts.of(tp=8, sequence_parallel=1, recompute=1))
    assert got == pytest.approx(34 * GPT_22B.hidden_size / 8, rel=1e-12)


def test_selective_recomputation_of_products_keeps_every_second_one() -> None:
    # torchtitan, _get_custom_policy: outputs of attention and of half of the products, and the layer's input
    profile = replace(DEFAULT, selective="products")
    none, some, full = (held(LLAMA_2_7B, Layouts.of(recompute=mode), profile).activations[0] for mode in (0, 1, 2))
    h, ff, a, layers = 4096, 11008, 32, 32
    kept = 4 * h + (3 * h + 2 * ff) + (2 * h + 4 * a)
    again = float(layer_activation_bytes(Question(LLAMA_2_7B, H100, profile, 4096), Layouts.of())[0][0])
    assert some == pytest.approx(4096 * (layers * kept + again), rel=1e-12)
    assert full < some < none


def test_full_recomputation_keeps_inputs_and_one_layer() -> None:
    at = Layouts.of(recompute=2)
    got = held(GPT_22B, at, GPT, 2048).activations[0]
    assert got == pytest.approx(2048 * (48 * 2 * GPT_22B.hidden_size + kept_per_token(Layouts.of())), rel=1e-12)


@pytest.mark.parametrize(
    ("zero", "bytes_per_param"),
    [(0, 16.0), (1, 4 + 12 / 8), (2, 2 + 14 / 8), (3, 16 / 8)],  # 1910.02054 figure 1, K = 12
)
def test_zero_stages_shard_what_the_paper_says(zero: int, bytes_per_param: float) -> None:
    at = Layouts.of(dp=8, zero_stage=zero)
    parts = held(LLAMA_2_7B, at, STATES_ONLY)
    states = parts.weights + parts.gradients + parts.optimizer
    assert states[0] / LLAMA_2_7B.params == pytest.approx(bytes_per_param, rel=1e-4)


def test_stages_of_a_pipeline_hold_their_gradients_whole_until_the_last_micro_batch() -> None:
    # torch/distributed/pipelining/stage.py: backward_maybe_with_nosync
    for zero in (2, 3):
        alone, piped, single = (
            held(LLAMA_2_7B, Layouts.of(dp=8, zero_stage=zero, **choice), STATES_ONLY)
            for choice in ({"gas": 8}, {"pp": 2, "gas": 8}, {"pp": 2, "gas": 1})
        )
        assert alone.gradients[0] == pytest.approx(2 * LLAMA_2_7B.params / 8, rel=1e-3)
        assert piped.gradients[0] == pytest.approx(8 * single.gradients[0])


def test_worked_examples_of_the_seed_documents() -> None:
    # 7B on 8 GPUs under ZeRO-3: 16 x 7e9 / 8 = 14 GB. 80B on 32 GPUs: 40 GB.
    seven = replace(LLAMA_2_7B, ffn_hidden_size=11665)  # 7.0B
    assert seven.params == pytest.approx(7.0e9, rel=2e-3)
    for shape, dp, gigabytes in ((seven, 8, 14.0), (DENSE_80B, 32, 40.0)):
        at = Layouts.of(dp=dp, zero_stage=3)
        parts = held(shape, at, STATES_ONLY)
        assert (parts.weights + parts.gradients + parts.optimizer)[0] / 1e9 == pytest.approx(gigabytes, rel=3e-3)


def test_eighty_billion_on_thirty_two_gpus_do_not_fit_with_activations() -> None:
    at = Layouts.of(dp=32, zero_stage=3, mbs=1)
    assert held(DENSE_80B, at).total[0] > 80e9


def test_deepseek_v3_batch_and_expert_groups() -> None:
    # 2412.19437 section 3.2: 2,048 GPUs, PP 16, EP 64 over 8 nodes, inside DP 128.
    at = Layouts.of(dp=128, pp=16, ep=64, zero_stage=1)
    assert at.num_gpus[0] == 2048
    assert at.expert_shards[0] == 2


def test_llama_3_batch_is_not_multiplied_by_cp() -> None:
    # 2407.21783 table 4: 16,384 GPUs, TP8 CP16 PP16 DP8, 131,072 tokens, 16 sequences per DP rank: 16M tokens.
    at = Layouts.of(dp=8, tp=8, cp=16, pp=16, gas=16, mbs=1)
    assert at.num_gpus[0] == 16_384
    assert at.global_batch_tokens(131_072)[0] == 16_777_216


def test_parts_add_up_to_the_total() -> None:
    got = held(LLAMA_2_7B, Layouts.of(dp=8))
    parts = sum(getattr(got, part.name) for part in fields(Memory))
    assert parts == pytest.approx(got.total)


def test_shards_sum_to_the_whole() -> None:
    # Without norms and router, which every rank holds, tp x ep shards add up to all matrices of the layers.
    at = Layouts.of(dp=4, tp=2, ep=4, etp=2)
    layers = np.full(1, float(MOE.num_layers))
    dense, experts = stage_params(MOE, at, layers, np.zeros(1))
    per_layer_replicated = 2 * MOE.hidden_size + MOE.hidden_size * MOE.num_experts
    whole = MOE.num_layers * (MOE.attention_params + MOE.num_experts * MOE.expert_params)
    assert (dense - layers * per_layer_replicated)[0] * 2 + experts[0] * 2 * 4 == whole


POWERS = st.sampled_from([1.0, 2.0, 4.0, 8.0])
LAYOUT = st.fixed_dictionaries(
    {
        **dict.fromkeys(("tp", "pp", "dp", "cp", "mbs"), POWERS),
        "gas": st.integers(1, 64).map(float),
        "zero_stage": st.sampled_from([0.0, 1.0, 3.0]),
        "sequence_parallel": st.sampled_from([0.0, 1.0]),
        "recompute": st.sampled_from([0.0, 1.0, 2.0]),
    }
)


@settings(max_examples=draws(150), deadline=None)
@given(layout=LAYOUT, which=st.sampled_from(["tp", "pp", "dp", "cp"]))
def test_memory_never_grows_with_a_degree(layout: dict[str, float], which: str) -> None:
    # With too few micro-batches for the pipeline its depth only spreads weights; activations stay level at worst.
    more = {**layout, which: 2 * layout[which]}
    # ZeRO-3's gradients are sharded without a pipeline and whole with one: there they are left out.
    left_out = ("gradients",) if which == "pp" and layout["pp"] == 1 and layout["zero_stage"] >= 2 else ()
    for shape in (DENSE_80B, LLAMA_2_7B):
        before, after = (
            sum(getattr(parts, part.name)[0] for part in fields(Memory) if part.name not in left_out)
            for parts in (held(shape, Layouts.of(**which_layout)) for which_layout in (layout, more))
        )
        assert after <= before * (1 + 1e-9)


@settings(max_examples=draws(80), deadline=None)
@given(layout=LAYOUT)
def test_model_states_never_grow_with_the_zero_stage(layout: dict[str, float]) -> None:
    states = [held(DENSE_80B, Layouts.of(**{**layout, "zero_stage": float(z)}), STATES_ONLY) for z in range(4)]
    sums = [float((s.weights + s.gradients + s.optimizer)[0]) for s in states]
    assert sums == sorted(sums, reverse=True)


def test_what_nanotron_keeps_beside_the_published_tensors() -> None:
    kept = replace(DEFAULT, grad_bucket_bytes=2.0, logit_kept_bytes=4.0, exchange_buffer_bytes=4.0)
    at = {"dp": 2, "tp": 2, "mbs": 2, "gas": 2}

    def more(**changes: float) -> float:
        layout = Layouts.of(**{**at, **changes})
        return float((held(LLAMA_2_7B, layout, kept).total - held(LLAMA_2_7B, layout).total)[0])

    tokens, h, vocabulary = 2 * 4096, LLAMA_2_7B.hidden_size, LLAMA_2_7B.vocab_size
    buckets, logits, buffers = 2 * LLAMA_2_7B.params / 2, 4 * tokens * vocabulary / 2, 4 * tokens * h
    assert more() == pytest.approx(buckets + logits + buffers, rel=1e-4)
    assert more(dp=1) == pytest.approx(logits + buffers)  # no replicas, no buckets
    assert more(gas=1) == pytest.approx(buckets + buffers, rel=1e-4)  # nothing follows that could overlap
    assert more(tp=1) == pytest.approx(2 * buckets + 2 * logits, rel=1e-4)  # nothing is exchanged


def test_a_combined_schedule_holds_a_chunk_more_of_experts() -> None:
    beside = replace(DEFAULT, hides_experts=True)
    mixtral = shape_of(find_model("Mixtral 8x7B") or {})

    def more(shape: ModelShape, **layout: float) -> float:
        at = Layouts.of(**{"gas": 16, **layout})
        return float((held(shape, at, beside).activations / held(shape, at).activations)[0])

    assert more(mixtral) == pytest.approx(2)
    assert more(mixtral, gas=1) == 1
    assert more(mixtral, pp=4, vpp=2, schedule=INTERLEAVED) == pytest.approx((2 * 4 - 1 + 4 + 1) / (2 * 4 - 1 + 4))
    assert more(LLAMA_2_7B) == 1


def test_dualpipe_holds_its_parameters_twice() -> None:
    once, twice = (held(LLAMA_2_7B, Layouts.of(pp=4, gas=16, schedule=code)) for code in (ONE_F_ONE_B, DUALPIPE))
    assert twice.weights == pytest.approx(2 * once.weights)
    assert twice.optimizer == pytest.approx(2 * once.optimizer)
    assert twice.activations == pytest.approx(5 / 4 * once.activations)  # pp + 1 micro-batches instead of pp
    alone = held(LLAMA_2_7B, Layouts.of(pp=1, gas=16, schedule=DUALPIPE))
    assert alone.weights == pytest.approx(held(LLAMA_2_7B, Layouts.of(pp=1, gas=16)).weights)


def _stages(schedule: int, shape: ModelShape = LLAMA_2_7B, **layout: float) -> StageMemory:
    at = Layouts.of(**{"pp": 8, "gas": 32, "schedule": schedule, **layout})
    return stage_memory(Question(shape, H100, DEFAULT, 4096), at, stage_layers(shape, at.pp, placement="even"))


def test_zb_h1_peaks_as_1f1b_does_on_the_first_stage_and_keeps_weights_gradients_waiting_on_the_last() -> None:
    # 2401.10241 section 2.3: worker i holds (p - i + 1) M_B + (i - 1) M_W, with M_W / M_B = 32 / 34 (table 1)
    plain, zero = _stages(ONE_F_ONE_B), _stages(ZB_H1)
    assert zero.first.total == pytest.approx(plain.first.total)
    assert zero.last.activations == pytest.approx((1 + 7 * 32 / 34) * plain.last.activations)


def test_zb_v_has_embedding_and_head_on_its_first_rank_and_the_same_activations_on_all() -> None:
    plain, shaped = _stages(ONE_F_ONE_B), _stages(ZB_V, vpp=2)
    matrix = 2 * LLAMA_2_7B.embedding_params
    assert shaped.first.activations == pytest.approx(plain.first.activations)
    assert shaped.last.activations == pytest.approx(8 * plain.last.activations)
    assert shaped.first.weights - plain.first.weights == pytest.approx(matrix)
    assert plain.last.weights - shaped.last.weights == pytest.approx(matrix)
    assert shaped.first.logits == pytest.approx(plain.last.logits)
    assert not shaped.last.logits.any()


def test_states_are_sharded_over_the_group_alone() -> None:
    # 7 B on 32 ranks in groups of 8: 16 P / 8 = 14 GB of states under ZeRO-3, four times what all 32 would leave.
    grouped = held(LLAMA_2_7B, Layouts.of(dp=32, dp_replicate=4, zero_stage=3), STATES_ONLY)
    alone = held(LLAMA_2_7B, Layouts.of(dp=8, zero_stage=3), STATES_ONLY)
    states = grouped.weights + grouped.gradients + grouped.optimizer
    assert states == pytest.approx(2 * LLAMA_2_7B.params, rel=1e-3)
    assert states == pytest.approx(alone.weights + alone.gradients + alone.optimizer)


def test_groups_of_experts_shard_what_the_experts_ranks_leave() -> None:
    # dp 16 with ep 4: 4 ranks hold the same experts; two copies of the shards leave groups of 2.
    at = {"dp": 16, "ep": 4, "zero_stage": 1}
    whole, grouped = (held(MOE, Layouts.of(**at, dp_replicate=copies), STATES_ONLY) for copies in (1, 2))
    assert grouped.optimizer == pytest.approx(2 * whole.optimizer)


@settings(max_examples=draws(80), deadline=None)
@given(layout=LAYOUT, copies=st.sampled_from([1, 2, 4]))
def test_more_replicas_never_need_less_memory_and_all_of_them_are_no_sharding(
    layout: dict[str, float], copies: float
) -> None:
    ranks = layout["dp"] * layout["cp"]
    fewer, more, every = (
        held(DENSE_80B, Layouts.of(**layout, dp_replicate=min(count, ranks))) for count in (copies, 2 * copies, ranks)
    )
    assert fewer.total[0] <= more.total[0] * (1 + 1e-12)
    none = held(DENSE_80B, Layouts.of(**{**layout, "zero_stage": 0.0}))
    for part in ("weights", "gradients", "optimizer"):
        assert getattr(every, part) == pytest.approx(getattr(none, part))


def test_the_stage_after_the_first_counts_where_it_has_more_layers() -> None:
    # 30 layers on 4 stages are 7, 8, 8, 7: the second has no embedding, and a micro-batch less alive.
    shape = replace(LLAMA_2_7B, num_layers=30)
    found = _stages(ONE_F_ONE_B, shape, pp=4)
    assert found.first.activations == pytest.approx(4 * 7 / 30 * held(shape, Layouts.of()).activations)
    assert found.second.activations == pytest.approx(3 * 8 / 30 * held(shape, Layouts.of()).activations)
    assert found.second.weights == pytest.approx(found.first.weights - 2 * shape.embedding_params + 2 * LAYER_PARAMS)
    assert found.total == np.maximum(np.maximum(found.first.total, found.second.total), found.last.total)
    even = _stages(ONE_F_ONE_B, pp=4)
    assert even.second is even.first


LAYER_PARAMS = (LLAMA_2_7B.params - 2 * LLAMA_2_7B.embedding_params - LLAMA_2_7B.hidden_size) / 32


def test_chunks_that_pass_in_one_turn_hold_two_of_their_gradients_at_a_time() -> None:
    def gradients(**layout: float) -> float:
        at = {"pp": 4, "gas": 4, "dp": 64, "zero_stage": 2, "vpp": 4, "schedule": 2, **layout}
        return float(held(LLAMA_2_7B, Layouts.of(**at), STATES_ONLY).gradients[0])

    whole = gradients(zero_stage=1)
    assert gradients() == pytest.approx(whole / 2)
    assert gradients(gas=8) == whole  # a second turn adds to the gradients of the first
    assert gradients(vpp=1) == gradients(vpp=2) == whole


def test_modules_that_are_computed_again_keep_nothing_of_what_they_make() -> None:
    latent = replace(MOE, kv_lora_rank=512, q_lora_rank=1536, rope_head_dim=64, head_dim=128)
    at = Layouts.of(ep=8, dp=8)

    def per_token(modules: str = "", **constants: float) -> float:
        profile = replace(DEFAULT, recomputed_modules=modules, **constants)  # type: ignore[arg-type] # all numbers
        return float(layer_activation_bytes(Question(latent, H100, profile, 4096), at)[1][0])

    h, copies = latent.hidden_size, 2
    assert per_token() - per_token("layernorm") == 2 * 2 * h + 2 * (1536 + 512)
    assert per_token() - per_token("mla_up_proj") == 2 * (2 * latent.query_width + latent.value_width)
    assert per_token() - per_token("moe_act") == copies * (2 * 1024 + 2 * h)  # and what comes out of an expert
    assert per_token("layernorm,moe_act") == per_token() - 4 * h - 2 * 2048 - copies * (2 * 1024 + 2 * h)
    assert per_token(kept_product_bytes=1.0) == per_token() - 2 * h - 2048 - copies * (h + 3 * 1024)
