"""Bytes on the fullest accelerator, by component.

Model states follow ZeRO (Rajbhandari, 1910.02054 section 5): weights, gradients and optimizer states, each divided by
the sharding group (`zero_shards`: dp x cp, or a group of it) from its stage on. Activations count the tensors that the
backward pass needs (Korthikanti, 2205.05198, for the GPT layer; the same count for gated, grouped-query, latent and
expert layers). The worst of the first and the last pipeline stage is what counts: the first keeps the most micro-
batches alive, the last the logits.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from sweepscope.pipeline.estimate.physics.layouts import Array, Layouts, sum_parts
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.physics.schedule import copies, in_flight, is_v_shaped
from sweepscope.pipeline.estimate.physics.stages import Stages
from sweepscope.pipeline.reference.model_shape import ModelShape


@dataclass(frozen=True)
class Memory:
    """Bytes per component on one stage; `total` is their sum, the peak of allocated bytes."""

    weights: Array
    gradients: Array
    optimizer: Array
    activations: Array
    logits: Array
    buffers: Array

    @cached_property
    def total(self) -> Array:
        """Peak of allocated bytes."""
        return sum_parts([getattr(self, part.name) for part in fields(self)])


def sharding(at: Layouts, shards: Array, *, from_stage: int) -> Array:
    """Divisor of a state that ZeRO shards from `from_stage` on."""
    return np.where(at.zero_stage >= from_stage, shards, 1.0)


def attention_activation_bytes(asked: Question, at: Layouts) -> Array:
    """Bytes that one attention block keeps per token, without the norm before it.

    Input of the projections (2h, split by sequence parallelism), Q, K, V and what attention returns (2 bytes each, and
    again what rotary embedding copies), and the core: 4 bytes per head of statistics when fused; else softmax, its
    dropout and its mask, 5 a s (Korthikanti section 4.1). Selective recomputation drops the unfused core.
    """
    shape, profile = asked.shape, asked.profile
    h, a = shape.hidden_size, shape.num_heads
    core: Array | float = 4.0 * a
    if not profile.is_flash:
        core = np.where(at.recompute == 1, 0.0, (5.0 if profile.has_dropout else 4.0) * a * asked.seq_len)
    dropout = 1.0 if profile.has_dropout else 0.0
    if shape.kv_lora_rank:
        latents = 4.0 * (shape.q_lora_rank + shape.kv_lora_rank) + 2.0 * shape.rope_head_dim
        heads = 2.0 * (2 * shape.query_width + 2 * shape.value_width)
        return (2.0 * h + latents) / at.sigma + (heads + core) / at.tp
    heads = 4.0 * shape.query_width + 4.0 * shape.kv_width
    heads += 2.0 * profile.rotary_copies * (shape.query_width + shape.kv_width)
    return (2.0 + dropout) * h / at.sigma + (heads + core) / at.tp


def mlp_activation_bytes(asked: Question, at: Layouts, width: float) -> Array:
    """Bytes that one feed-forward block keeps per token: its input, and the hidden width before and after the gate."""
    shape, profile = asked.shape, asked.profile
    dropout = 1.0 if profile.has_dropout else 0.0
    kept = profile.mlp_bytes_gated if shape.gated_mlp else profile.mlp_bytes_plain
    return (2.0 + dropout) * shape.hidden_size / at.sigma + kept * width / at.tp


def expert_activation_bytes(asked: Question, at: Layouts) -> Array:
    """Bytes that the routed experts of one layer keep per token: `experts_per_token` copies in, hidden and out."""
    shape, profile = asked.shape, asked.profile
    kept = profile.mlp_bytes_gated if shape.gated_mlp else profile.mlp_bytes_plain
    copies = shape.experts_per_token * profile.expert_imbalance
    inner = copies * (4.0 * shape.hidden_size + kept * shape.expert_ffn_hidden_size)
    router = 8.0 * shape.num_experts
    shared = kept * shape.shared_ffn_hidden_size / at.tp
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
    norms = (profile.norm_bytes / at.sigma + gathered) * shape.hidden_size
    attention = attention_activation_bytes(asked, at) + norms
    dense = attention + mlp_activation_bytes(asked, at, shape.ffn_hidden_size)
    if not shape.num_experts:
        return dense, dense
    expert = attention + 2.0 * shape.hidden_size / at.sigma + expert_activation_bytes(asked, at)
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
    return tokens * np.where(at.recompute >= 2, checkpoints * alive + worst, kept * alive)


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


def stage_params(shape: ModelShape, at: Layouts, layers: Array, dense_layers: Array) -> tuple[Array, Array]:
    """Parameters of `layers` layers on one rank: (those replicated over dp x cp, routed experts)."""
    h = shape.hidden_size
    block = shape.attention_params / at.tp + 2.0 * h
    moe = layers - dense_layers
    dense = layers * block + (layers - moe) * shape.dense_mlp_params / at.tp
    shared = h * shape.mlp_matrices * shape.shared_ffn_hidden_size / at.tp + h * shape.num_experts
    return dense + moe * shared, moe * shape.num_experts * shape.expert_params / (at.ep * at.etp)


def _stage(asked: Question, at: Layouts, layers: Array, *, is_first: bool, is_last: bool) -> Memory:
    """Components on one stage."""
    shape, profile = asked.shape, asked.profile
    tokens = at.mbs * asked.seq_len / at.cp
    single = at.pp == 1
    dense_layers = layers
    if shape.num_experts:
        dense_layers = np.where(single | is_first, np.minimum(shape.num_dense_layers, layers), 0.0)
    dense, experts = stage_params(shape, at, layers, dense_layers)
    # Embedding and head are on the outer stages; a rank with both ends of a pipeline has both.
    both_ends = single | is_v_shaped(at)
    has_ends = both_ends if is_first else single
    apart = 1.0 if is_first else np.where(both_ends, 0.0, 1.0)
    matrices = np.where(has_ends, 1.0 if shape.tie_word_embeddings else 2.0, apart)
    dense = dense + matrices * shape.embedding_params / at.tp
    if is_first or shape.positions:
        dense = dense + shape.positions * shape.hidden_size
    # DualPipe's rank has two stages, mirror images of each other; the worse of both is counted twice.
    count = np.where(single, 1.0, copies(at))
    dense, experts = count * dense, count * experts
    by = at.zero_shards, at.expert_zero_shards

    def state(per_param: float, from_stage: int) -> Array:
        return per_param * (
            dense / sharding(at, by[0], from_stage=from_stage) + experts / sharding(at, by[1], from_stage=from_stage)
        )

    alive = in_flight(at, is_first=is_first)
    has_logits = np.where(has_ends, 1.0, np.where(both_ends, 0.0, 1.0) if is_last else 0.0)
    activations = stage_activation_bytes(asked, at, layers=layers, alive=alive, dense_layers=dense_layers)
    # With accumulation the logits of a micro-batch live until the next one's replace them, where nothing drops them.
    per_logit = profile.logit_bytes + np.where(at.gas > 1, profile.logit_kept_bytes, 0.0)
    head = per_logit * tokens * shape.vocab_size + profile.grad_fresh_bytes * shape.embedding_params
    logits = has_logits * head / at.tp
    working = np.maximum(layer_working_bytes(asked, at) - logits, 0.0)
    # Under ZeRO-3 the layer at work is gathered whole, and the next one is fetched meanwhile.
    layer = shape.attention_params + (shape.dense_mlp_params if not shape.num_experts else 0)
    gathered = np.where(at.zero_stage >= 3, 2.0 * profile.weight_bytes * layer / at.tp, 0.0)
    grown = profile.memory_growth
    weights, gradients = state(profile.weight_bytes, 3), state(profile.grad_held_bytes, 2)
    # Buckets of replicas' gradients in 16 bit beside the kept ones (PyTorch's DDP), where there are replicas.
    gradients = gradients + np.where(at.batch_shards > 1, profile.grad_bucket_bytes, 0.0) * (dense + experts)
    exchanged = np.where(at.tp > 1, profile.exchange_buffer_bytes, 0.0) * tokens * shape.hidden_size
    optimizer = state(profile.optimizer_bytes, 1)
    return Memory(
        weights=weights,
        gradients=gradients,
        optimizer=optimizer,
        activations=grown * activations,
        logits=grown * logits,
        buffers=gathered + exchanged + working + profile.context_bytes,
    )


@dataclass(frozen=True)
class StageMemory:
    """Components on the stages that can be worst."""

    first: Memory
    last: Memory
    fragmentation_share: float

    @cached_property
    def total(self) -> Array:
        """Peak of allocated bytes on the worse stage."""
        return np.maximum(self.first.total, self.last.total)

    @cached_property
    def reserved(self) -> Array:
        """What the allocator holds: the peak and the fragmentation allowance, which is no part of `total`."""
        return (1.0 + self.fragmentation_share) * self.total

    @property
    def fragmentation(self) -> Array:
        """The allowance between what tensors need and what the allocator reserves."""
        return self.fragmentation_share * self.total

    @property
    def worst(self) -> Memory:
        """Components on the worse stage."""
        is_first = self.first.total >= self.last.total
        return Memory(
            **{
                part.name: np.where(is_first, getattr(self.first, part.name), getattr(self.last, part.name))
                for part in fields(Memory)
            }
        )


def stage_memory(asked: Question, at: Layouts, stages: Stages) -> StageMemory:
    """Components on the first stage (with the most layers of any but the last) and on the last."""
    return StageMemory(
        first=_stage(asked, at, np.maximum(stages.first, stages.middle), is_first=True, is_last=False),
        last=_stage(asked, at, stages.last, is_first=False, is_last=True),
        fragmentation_share=asked.profile.fragmentation,
    )
