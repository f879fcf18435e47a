"""Bytes on the fullest accelerator, by component.

Model states follow ZeRO (Rajbhandari, 1910.02054 section 5): weights, gradients and optimizer states, each divided by
the sharding group (`zero_shards`: dp x cp, or a group of it) from its stage on; activations: see `activations`. The
worst of three stages is what counts: the first keeps the most micro-batches alive, the one after it may have more or
larger layers, the last has the logits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from sweepscope.pipeline.estimate.physics.activations import layer_working_bytes, stage_activation_bytes
from sweepscope.pipeline.estimate.physics.layouts import Array, Layouts, sum_parts
from sweepscope.pipeline.estimate.physics.profile import Profile
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.physics.schedule import copies, in_flight, is_v_shaped
from sweepscope.pipeline.estimate.physics.stages import Stages
from sweepscope.pipeline.reference.model_shape import ModelShape

FP4_COPIES = 2.0 * (4.0 + 8.0 / 16.0) / 8.0
"""Bytes per parameter of weights in FP4 beside those in 16 bit: four bits and a scale of eight per block of 16, for the
forward pass and again for the gradients of inputs, which read them the other way (2509.25149; Transformer Engine,
`tensor/nvfp4_tensor.py`)."""


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


def state_bytes_per_param(profile: Profile) -> float:
    """Bytes of weights, gradients and Adam's states per parameter, before any sharding (1910.02054 section 3.1).

    18 with gradients in 32 bit, 16 with 16: the one convention, which the store's macro of this name has too.
    """
    return profile.weight_bytes + profile.grad_held_bytes + profile.optimizer_bytes


def sharding(at: Layouts, shards: Array, *, from_stage: int) -> Array:
    """Divisor of a state that ZeRO shards from `from_stage` on."""
    return np.where(at.zero_stage >= from_stage, shards, 1.0)


def stage_params(shape: ModelShape, at: Layouts, layers: Array, dense_layers: Array) -> tuple[Array, Array]:
    """Parameters of `layers` layers on one rank: (those replicated over dp x cp, routed experts)."""
    h = shape.hidden_size
    block = shape.attention_params / at.tp + 2.0 * h
    moe = layers - dense_layers
    dense = layers * block + (layers - moe) * shape.dense_mlp_params / at.tp
    shared = h * shape.mlp_matrices * shape.shared_ffn_hidden_size / at.tp + h * shape.num_experts
    return dense + moe * shared, moe * shape.num_experts * shape.expert_params / (at.ep * at.etp)


def _stage(asked: Question, at: Layouts, layers: Array, *, stage: int) -> Memory:
    """Components on one stage: 0 is the first, 1 the one after it, -1 the last."""
    shape, profile = asked.shape, asked.profile
    is_first, is_last = stage == 0, stage < 0
    tokens = at.mbs * asked.seq_len / at.cp
    single = at.pp == 1
    dense_layers = layers
    if shape.num_experts:
        dense_layers = np.where(single | is_first, np.minimum(shape.num_dense_layers, layers), 0.0)
    dense, experts = stage_params(shape, at, layers, dense_layers)
    # Embedding and head are on the outer stages; a rank with both ends of a pipeline has both.
    both_ends = single | is_v_shaped(at)
    has_ends = both_ends if is_first else single
    apart = 1.0 if is_first else np.where(both_ends, 0.0, 1.0) if is_last else 0.0
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

    alive = in_flight(at, stage=stage)
    if profile.hides_experts and shape.num_experts:
        # A chunk more meets the first backward pass (`schedule.paired_share`).
        alive = np.minimum(alive + 1.0 / at.vpp, at.gas)
    has_logits = np.where(has_ends, 1.0, np.where(both_ends, 0.0, 1.0) if is_last else 0.0)
    activations = stage_activation_bytes(asked, at, layers=layers, alive=alive, dense_layers=dense_layers)
    # With accumulation the logits of a micro-batch live until the next one's replace them, where nothing drops them.
    per_logit = profile.logit_bytes + np.where(at.gas > 1, profile.logit_kept_bytes, 0.0)
    loss = per_logit * tokens * shape.vocab_size / (1.0 if profile.gathers_logits else at.tp)
    logits = has_logits * (loss + profile.grad_fresh_bytes * shape.embedding_params / at.tp)
    working = np.maximum(layer_working_bytes(asked, at) - logits, 0.0)
    # Under ZeRO-3 the layer at work is gathered whole, and the next one is fetched meanwhile.
    layer = shape.attention_params + (shape.dense_mlp_params if not shape.num_experts else 0)
    gathered = np.where(at.zero_stage >= 3, 2.0 * profile.weight_bytes * layer / at.tp, 0.0)
    grown = profile.memory_growth
    weight_bytes = profile.weight_bytes + (FP4_COPIES if asked.precision == "fp4" else 0.0)
    weights, gradients = state(weight_bytes, 3), state(profile.grad_held_bytes, 2)
    # Stages of a pipeline scatter their gradients after the last micro-batch: until then they hold them whole. Chunks
    # whose micro-batches all pass in one turn are done with one after the other.
    whole = profile.grad_held_bytes * (dense + experts)
    in_turn = (at.zero_stage >= 2) & (at.vpp > 1) & (at.gas <= at.pp)
    whole = np.where(in_turn, np.maximum(np.minimum(2.0 / at.vpp, 1.0) * whole, gradients), whole)
    gradients = np.where((at.pp > 1) & (at.gas > 1), whole, gradients)
    if profile.frees_gradients:
        # One replica without accumulation has no gradients in its forward pass; each comes where activations go.
        is_alone = (at.batch_shards == 1) & (at.pp == 1) & (at.gas == 1)
        gradients = np.where(is_alone, np.maximum(gradients - grown * (activations + logits), 0.0), gradients)
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
    second: Memory
    last: Memory
    fragmentation_share: float

    @cached_property
    def total(self) -> Array:
        """Peak of allocated bytes on the worst stage."""
        most = np.maximum(self.first.total, self.last.total)
        return most if self.second is self.first else np.maximum(most, self.second.total)

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
        """Components on the worst stage."""
        return _worse(_worse(self.first, self.second), self.last)

    def map(self, each: Callable[[Memory], Memory]) -> StageMemory:
        """The same of every stage."""
        first = each(self.first)
        second = first if self.second is self.first else each(self.second)
        return replace(self, first=first, second=second, last=each(self.last))


def _worse(one: Memory, other: Memory) -> Memory:
    """Components of whichever needs more, layout by layout; `one` where both need the same."""
    if one is other:
        return one
    is_one = one.total >= other.total
    return Memory(
        **{part.name: np.where(is_one, getattr(one, part.name), getattr(other, part.name)) for part in fields(Memory)}
    )


def stage_memory(asked: Question, at: Layouts, stages: Stages) -> StageMemory:
    """Components on the first stage, the fullest of those between (taken as the one after the first), and the last.

    With even layers of one kind the first is worse than any between: then that is not computed.
    """
    first = _stage(asked, at, stages.first, stage=0)
    is_even = not asked.shape.num_dense_layers and not bool((stages.middle > stages.first).any())
    return StageMemory(
        first=first,
        second=first if is_even else _stage(asked, at, stages.middle, stage=1),
        last=_stage(asked, at, stages.last, stage=-1),
        fragmentation_share=asked.profile.fragmentation,
    )
