"""Bytes of activations: the tensors that the backward pass needs.

Korthikanti, 2205.05198, for the GPT layer; the same count for gated, grouped-query, latent and expert layers.
"""

from __future__ import annotations

import numpy as np

from sweepscope.pipeline.estimate.physics.elementwise import SCORES
from sweepscope.pipeline.estimate.physics.layouts import Array, Layouts
from sweepscope.pipeline.estimate.physics.profile import Profile, recomputes
from sweepscope.pipeline.estimate.physics.question import Question


def normed_bytes(profile: Profile) -> float:
    """Bytes per number of a norm's result, which the products behind it keep; none where the norm is computed again."""
    return 0.0 if recomputes(profile, "layernorm") else profile.kept_product_bytes


def inner_bytes(asked: Question, *, is_expert: bool) -> float:
    """Bytes per number of the hidden width that a feed-forward block keeps: before and after the activation function.

    The result is dropped where the activation function is computed again.
    """
    shape, profile = asked.shape, asked.profile
    kept = profile.mlp_bytes_gated if shape.gated_mlp else profile.mlp_bytes_plain
    dropped = 2.0 if is_expert and recomputes(profile, "moe_act") else 0.0
    return (kept - dropped) * profile.kept_product_bytes / 2.0


def attention_activation_bytes(asked: Question, at: Layouts) -> Array:
    """Bytes that one attention block keeps per token, without the norm before it.

    Input of the projections (2h, split by sequence parallelism), Q, K, V and what attention returns (2 bytes each, and
    again what rotary embedding copies), and the core: 4 bytes per head of statistics when fused; else softmax, its
    dropout and its mask, 5 a s (Korthikanti section 4.1). Selective recomputation drops the unfused core.
    """
    shape, profile = asked.shape, asked.profile
    h, a = shape.hidden_size, shape.num_heads
    core: Array | float = 4.0 * a
    dropout = 1.0 if profile.has_dropout else 0.0
    if not profile.is_flash:
        core = np.where(at.recompute == 1, 0.0, (SCORES[profile.softmax].kept + dropout) * a * asked.seq_len)
    if recomputes(profile, "core_attn"):
        core = 0.0
    if shape.kv_lora_rank:
        normed = normed_bytes(profile)
        latents = (2.0 + normed) * (shape.q_lora_rank + shape.kv_lora_rank) + 2.0 * shape.rope_head_dim
        expanded = 0.0 if recomputes(profile, "mla_up_proj") else 2.0 * (2 * shape.query_width + shape.value_width)
        heads = expanded + 2.0 * shape.value_width
        return (normed * h + latents) / at.sigma + (heads + core) / at.tp
    heads = 4.0 * shape.query_width + 4.0 * shape.kv_width
    heads += 2.0 * profile.rotary_copies * (shape.query_width + shape.kv_width)
    return (normed_bytes(profile) + dropout) * h / at.sigma + (heads + core) / at.tp


def mlp_activation_bytes(asked: Question, at: Layouts, width: float) -> Array:
    """Bytes that one feed-forward block keeps per token: its input, and the hidden width before and after the gate."""
    shape, profile = asked.shape, asked.profile
    dropout = 1.0 if profile.has_dropout else 0.0
    kept = 0.0 if recomputes(profile, "mlp") else inner_bytes(asked, is_expert=False)
    return (normed_bytes(profile) + dropout) * shape.hidden_size / at.sigma + kept * width / at.tp


def expert_activation_bytes(asked: Question, at: Layouts) -> Array:
    """Bytes that the routed experts of one layer keep per token: `experts_per_token` copies in, hidden and out.

    What comes out is kept for the gradient of the router's weights, unless they are applied in the activation function,
    as they are where that is computed again (Megatron-LM, `megatron/core/transformer/moe/experts.py`). None where all
    experts of a layer are.
    """
    shape, profile = asked.shape, asked.profile
    if recomputes(profile, "moe"):
        return np.zeros_like(at.tp)
    kept = inner_bytes(asked, is_expert=True)
    copies = shape.experts_per_token * profile.expert_imbalance
    out = 0.0 if recomputes(profile, "moe_act") else 2.0
    inner = copies * ((profile.kept_product_bytes + out) * shape.hidden_size + kept * shape.expert_ffn_hidden_size)
    router = 8.0 * shape.num_experts
    shared = 0.0 if recomputes(profile, "shared_experts") else kept * shape.shared_ffn_hidden_size / at.tp
    return inner / np.maximum(at.sigma / at.etp, 1.0) / at.etp + router / at.sigma + shared


def layer_activation_bytes(asked: Question, at: Layouts) -> tuple[Array, Array]:
    """Bytes per token of one dense and of one expert layer, kept until its backward pass (none recomputed fully).

    With the constants of GPT (dropout, no fused attention, feed-forward 4h) the dense layer is exactly
    h (10/sigma + 24/tp + 5 a s/(h tp)), equation 2 and section 4.2.2 of Korthikanti.
    """
    shape, profile = asked.shape, asked.profile
    # Inputs that sequence parallelism gathers are gathered again in the backward pass, unless the framework keeps them.
    is_kept = (at.sigma > 1) & ((at.pp == 1) | (profile.keeps_gathered == "always"))
    gathered = np.where(is_kept, profile.gathered_bytes, 0.0)
    of_norms = profile.norm_bytes + (profile.unfused_norm_kept_bytes if shape.gated_mlp else 0.0)
    norms = (of_norms / at.sigma + gathered) * shape.hidden_size
    attention = attention_activation_bytes(asked, at) + norms
    dense = attention + mlp_activation_bytes(asked, at, shape.ffn_hidden_size)
    if not shape.num_experts:
        return dense, dense
    expert = attention + normed_bytes(profile) * shape.hidden_size / at.sigma + expert_activation_bytes(asked, at)
    return dense, expert


def stage_activation_bytes(asked: Question, at: Layouts, *, layers: Array, alive: Array, dense_layers: Array) -> Array:
    """Activations of `layers` layers with `alive` micro-batches in flight.

    Full recomputation keeps the input of each layer (2h per token) and the working set of the layer being redone.
    """
    shape = asked.shape
    tokens = at.mbs * asked.seq_len / at.cp
    dense, expert = layer_activation_bytes(asked, at)
    kept = dense_layers * dense + (layers - dense_layers) * expert
    checkpoints = layers * 2.0 * shape.hidden_size / at.sigma
    worst = np.where(layers > dense_layers, np.maximum(dense, expert), dense)
    if asked.profile.selective == "products" and (at.recompute == 1).any():
        some = layers * np.minimum(selected_bytes(asked, at), worst) * alive + worst
        kept = np.where(at.recompute == 1, some / alive, kept)
    return tokens * np.where(at.recompute >= 2, checkpoints * alive + worst, kept * alive)


def selected_bytes(asked: Question, at: Layouts) -> Array:
    """Bytes per token and layer that remain where every second product, and all that is no product, is dropped.

    The layer's input, half of what its products return, and what fused attention returns (torchtitan's `_save_list`).
    """
    shape = asked.shape
    routed = shape.experts_per_token * shape.expert_ffn_hidden_size + shape.shared_ffn_hidden_size
    width = routed if shape.num_experts else shape.ffn_hidden_size
    products = shape.query_width + 2.0 * shape.kv_width + (shape.mlp_matrices - 1.0) * width
    attention = 2.0 * shape.value_width + 4.0 * shape.num_heads
    return (2.0 + 2.0) * shape.hidden_size / at.sigma + (products + attention) / at.tp


def layer_working_bytes(asked: Question, at: Layouts) -> Array:
    """Bytes that the backward pass of one feed-forward block needs for a moment.

    The fresh gradient of its larger matrix, before it is added to the kept ones, and the gradients of its hidden
    activations. It counts where it exceeds the head's working set: both are not alive at once.
    """
    shape, profile = asked.shape, asked.profile
    tokens = at.mbs * asked.seq_len / at.cp
    inner = (shape.mlp_matrices - 1) * shape.hidden_size * profile.grad_fresh_bytes
    hidden = (2.0 * shape.mlp_matrices + 2.0) * tokens
    dense = (inner + hidden) * shape.ffn_hidden_size / at.tp
    if not shape.num_experts:
        return dense
    local = np.maximum(shape.num_experts / at.ep, 1.0)
    experts = (inner * local + hidden * shape.experts_per_token) * shape.expert_ffn_hidden_size / at.etp
    return np.maximum(experts, dense if shape.num_dense_layers else 0.0)
