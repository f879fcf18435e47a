"""Seconds of one layer and micro-batch: its products, its exchanges, and what the processor spends on launches."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from sweepscope.pipeline.estimate.physics import collectives as comm
from sweepscope.pipeline.estimate.physics.compute import (
    KERNELS_OF_CASTS,
    KERNELS_OF_EXCHANGES,
    KERNELS_OF_ROUTING,
    KERNELS_PER_EXPERT,
    KERNELS_PER_LAYER,
    Machine,
    attention_linear_s,
    attention_s,
    elementwise_s,
    expand_latents_s,
    experts_linear_s,
    mlp_linear_s,
)
from sweepscope.pipeline.estimate.physics.layouts import Array, Layouts, sum_parts
from sweepscope.pipeline.estimate.physics.profile import Profile, recomputes
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.physics.schedule import is_dual, paired_share
from sweepscope.pipeline.reference.model_shape import ModelShape


@dataclass(frozen=True)
class LayerTime:
    """Seconds of one layer and micro-batch, forward and backward together; `recompute` is what is run again.

    In `stall` the processor is busy with launching exchanges beside a pipeline, and all else waits. `forward` is the
    forward pass alone, which is no part of the sum.
    """

    linear: Array
    attention: Array
    elementwise: Array
    recompute: Array
    tp: Array
    cp: Array
    ep: Array
    stall: Array
    forward: Array

    @property
    def total(self) -> Array:
        """Seconds per layer."""
        return sum_parts([getattr(self, part.name) for part in fields(self) if part.name != "forward"])


def layer_time(asked: Question, on: Machine, at: Layouts, *, is_moe: bool) -> LayerTime:
    """One layer. Backward: twice the products, `attention_backward` times the attention, 2.2 times the elementwise."""
    shape, profile = asked.shape, asked.profile
    tokens = at.mbs * asked.seq_len / at.cp
    beside_routed: Array | float = 0.0
    if is_moe:
        shared = shape.shared_ffn_hidden_size / at.tp
        if shape.shared_ffn_hidden_size:
            beside_routed = mlp_linear_s(on, shape, tokens, shared)
        routed = experts_linear_s(on, shape, tokens / np.maximum(at.sigma / at.etp, 1.0), at.ep, at.etp)
        feed_forward = beside_routed + routed
        copies = shape.experts_per_token / np.maximum(at.sigma / at.etp, 1.0)
        width = shared + copies * (shape.expert_ffn_hidden_size + 2.0 * shape.hidden_size) / at.etp
    else:
        width = shape.ffn_hidden_size / at.tp
        feed_forward = mlp_linear_s(on, shape, tokens, width)
    linear = attention_linear_s(on, shape, tokens, at.tp) + feed_forward
    forward, backward = attention_s(on, shape, tokens, at.tp, asked.seq_len)
    passes_only = elementwise_s(on, shape, tokens, tp=at.tp, sigma=at.sigma, width=width)
    tensor = 2.0 * tokens * shape.hidden_size
    exchange = tensor_exchange_s(asked, at, tensor)
    tp_forward = (1.0 + (experts_gathered(shape, at) if is_moe else 1.0)) * exchange
    # The backward pass has two products per exchange to hide it behind.
    tp_backward = tp_forward - profile.tp_hidden * np.minimum(tp_forward, 2.0 * linear)
    ep = experts_exchange_s(asked, at, tokens) if is_moe else np.zeros_like(tokens)
    if is_moe:
        ep = _exposed_s(asked, at, ep, 3.0 * linear + forward + backward)

    # The processor launches kernels one by one: where they are short, it sets the pace of everything on the device.
    launches = launches_s(asked, at, is_moe=is_moe)
    busy = linear + forward + passes_only + tp_forward + ep / 2.0
    busy_backward = 2.0 * linear + backward + 2.2 * passes_only + tp_backward + ep / 2.0
    idle, idle_backward = np.maximum(launches - busy, 0.0), np.maximum(2.0 * launches - busy_backward, 0.0)
    passes, passes_backward = passes_only + idle, 2.2 * passes_only + idle_backward
    # Keys and values travel beside attention, and while the device waits for launches.
    cp = context_s(asked, at, tokens, forward + backward + idle + idle_backward)
    spent = np.maximum(busy, launches) + np.maximum(busy_backward, 2.0 * launches)
    stall = np.maximum(3.0 * launches + exchange_launch_s(asked, at) - spent, 0.0) * (exchange_launch_s(asked, at) > 0)

    once = _ForwardTime(linear, attention=forward, elementwise=passes, tp=tp_forward, ep=ep / 2.0)
    again = _recompute_s(asked, at, once)
    if profile.recomputed_modules:
        parts = _ForwardParts(feed_forward, beside_routed, attention=forward, ep=ep / 2.0, width=width)
        beside = modules_again_s(asked, on, at, tokens, parts, is_moe=is_moe)
        again = again + np.where(at.recompute >= 2, 0.0, beside)
    return LayerTime(
        linear=3.0 * linear,
        attention=forward + backward,
        elementwise=passes + passes_backward,
        recompute=again,
        tp=tp_forward + tp_backward,
        cp=cp,
        ep=ep,
        stall=stall,
        forward=np.maximum(busy, launches) + cp / 3.0,
    )


def launches_s(asked: Question, at: Layouts, *, is_moe: bool) -> Array | float:
    """Seconds that the processor spends on launching a layer's forward pass: its kernels and exchanges one by one, and
    of experts the router's and dispatcher's too, and those of each expert on the rank from within a call, as fast as
    compiled code."""
    profile, shape = asked.profile, asked.shape
    is_short = asked.precision != "bf16"
    casts = KERNELS_OF_CASTS * is_short
    sent = np.where(at.sequence_parallel > 0, KERNELS_OF_EXCHANGES[True], KERNELS_OF_EXCHANGES[False])
    dense = KERNELS_PER_LAYER[shape.gated_mlp] + casts + np.where(at.tp > 1, sent, 0.0)
    if not is_moe:
        return (dense + casts) * profile.kernel_launch_s
    each = KERNELS_PER_EXPERT[is_short] * np.maximum(shape.num_experts / at.ep, 1.0)
    inside = min(profile.kernel_launch_s, profile.compiled_launch_s)
    routed: Array = (dense + KERNELS_OF_ROUTING) * profile.kernel_launch_s + each * inside
    return routed


@dataclass(frozen=True)
class _ForwardTime:
    """Seconds of the forward pass of one layer and micro-batch, by what they are spent on."""

    linear: Array
    attention: Array
    elementwise: Array
    tp: Array
    ep: Array


def _recompute_s(asked: Question, at: Layouts, once: _ForwardTime) -> Array:
    """Seconds that recomputation runs a layer again: all of its forward pass, or by the profile's `selective` a part.

    "products" repeats half of the products and exchanges, and all passes; otherwise attention, whose flash kernels
    repeat it in any case, so that nothing is added.
    """
    profile = asked.profile
    if profile.selective == "products":
        some = profile.full_recompute_cost * (once.linear / 2.0 + once.elementwise + once.tp / 2.0)
    else:
        some = np.zeros(1) if profile.is_flash else once.attention
    return np.where(
        at.recompute >= 2,
        profile.full_recompute_cost * (once.linear + once.attention + once.elementwise + once.tp + once.ep),
        np.where(at.recompute == 1, some, 0.0),
    )


@dataclass(frozen=True)
class _ForwardParts:
    """Seconds of what a layer may compute again by itself, and the local width of its feed-forward block: that block,
    the shared experts in it, attention between its projections, exchanges of experts."""

    feed_forward: Array
    shared: Array | float
    attention: Array
    ep: Array
    width: Array


def modules_again_s(
    asked: Question, on: Machine, at: Layouts, tokens: Array, of: _ForwardParts, *, is_moe: bool
) -> Array:
    """Seconds that `recomputed_modules` take again: of norms and activation functions their traffic.

    Attention that is not fused is in `_recompute_s` where recomputation is selective.
    """
    shape, profile = asked.shape, asked.profile
    has_block = recomputes(profile, "moe" if is_moe else "mlp")
    traffic = np.zeros(1)
    if recomputes(profile, "layernorm"):
        traffic = 8.0 * tokens * shape.hidden_size / at.sigma
    if has_block or (is_moe and recomputes(profile, "moe_act")):
        traffic = traffic + 2.0 * shape.mlp_matrices * tokens * of.width
    spent: Array = profile.elementwise_passes * traffic / on.memory_bytes_per_s
    if has_block:
        spent = spent + of.feed_forward + (of.ep if is_moe else 0.0)
    elif is_moe and recomputes(profile, "shared_experts"):
        spent = spent + of.shared
    if recomputes(profile, "core_attn"):
        spent = spent + (of.attention if profile.is_flash else np.where(at.recompute == 1, 0.0, of.attention))
    return spent + (expand_latents_s(on, shape, tokens, at.tp) if recomputes(profile, "mla_up_proj") else 0.0)


def tensor_exchange_s(asked: Question, at: Layouts, data: Array) -> Array:
    """Seconds of one exchange of a tensor of `data` bytes over the tensor group: an all-reduce, or a reduce-scatter and
    an all-gather under sequence parallelism."""
    ranks = comm.group_of(asked, np.ones_like(at.tp), at.tp)
    split = at.sequence_parallel > 0
    spent = np.zeros(1)
    if split.any():
        spent = 2.0 * comm.all_gather_s(asked, ranks, data)
    if not split.all():
        spent = np.where(split, spent, comm.all_reduce_s(asked, ranks, data))
    return spent


def exchange_launch_s(asked: Question, at: Layouts) -> Array:
    """Seconds that the exchanges keep the processor busy of one layer, forward and backward, beside a pipeline.

    Seen in nanotron's runs whose pipeline leaves the node: a layer never takes less than this, whatever the model's
    width and the micro-batch (1.3 to 8.9 B, 4 to 64 thousand tokens), and it grows with the tensor group: 8.5 ms at
    tp 2, 13 at 4, 21 at 8, 47 at 16, 115 at 32. Hence a cost per rank, `exchange_launch_s`, in proportion to the
    group inside a node, that grows by `exchange_launch_growth` for every further node that the group spans.
    """
    profile = asked.profile
    beyond = np.maximum(at.tp / asked.cluster.gpus_per_domain - 1.0, 0.0)
    busy = profile.exchange_launch_s * at.tp * (1.0 + profile.exchange_launch_growth * beyond)
    stages = comm.group_of(asked, at.tp * at.cp * at.dp, at.pp)
    is_beside = (at.pp > 1) & (at.tp > 1) & stages.is_over_network
    return np.where(is_beside, busy, 0.0)


def context_s(asked: Question, at: Layouts, tokens: Array, attention: Array) -> Array:
    """Exchange of keys and values over the context group that attention does not hide, forward and backward.

    Each rank receives the keys and values of the others (ring or all-gather), and backward their gradients too:
    three times (cp-1) T 2 kv_width 2 bytes. With latent attention the expanded keys and values travel.
    """
    shape = asked.shape
    width = (2 * shape.kv_width or shape.query_width + shape.value_width) / at.tp
    volume = 3.0 * (at.cp - 1.0) * tokens * width * 2.0
    ranks = comm.group_of(asked, at.tp, at.cp)
    spent = volume / comm.ring_bytes_per_s(asked, ranks) + 3.0 * (at.cp - 1.0) * comm.hop_s(asked, ranks)
    return np.where(at.cp > 1.0, np.maximum(spent - attention, (1.0 - asked.profile.cp_hidden) * spent), 0.0)


def _exposed_s(asked: Question, at: Layouts, exchanges: Array, compute: Array) -> Array:
    """Seconds of the experts' exchanges that stay where one micro-batch's forward pass runs under another's backward
    pass: what compute does not cover, and of what it covers its share of processors.

    DualPipe runs all so (2412.19437 section 3.2.1), Megatron-LM's combined 1F1B, which a row states (`hides_experts`),
    all but the first and the last (`core/models/common/model_chunk_schedule_plan.py`).
    """
    profile = asked.profile
    dual = is_dual(at) & (at.pp > 1)
    if not profile.hides_experts and not dual.any():
        return exchanges
    paired = np.where(dual, 1.0, paired_share(at) if profile.hides_experts else 0.0)
    return exchanges - paired * (1.0 - profile.shard_contention) * np.minimum(exchanges, compute)


def experts_gathered(shape: ModelShape, at: Layouts) -> Array:
    """Exchanges of the tensor group that experts need in a pass, in units of those of a dense block; none at etp 1.

    The ranks that share an expert gather the copies of tokens that each was sent, and reduce what it returns
    (Megatron-LM, core/transformer/moe/token_dispatcher.py: MoEAlltoAllTokenDispatcher).
    """
    return np.where(at.etp > 1, shape.experts_per_token / np.maximum(at.sigma / at.etp, 1.0), 0.0)


def experts_exchange_s(asked: Question, at: Layouts, tokens: Array) -> Array:
    """Four all-to-alls of the dispatched tokens: there and back, forward and backward. Each rank of a sequence-parallel
    group sends its own part of the sequence."""
    shape, profile = asked.shape, asked.profile
    token_bytes = profile.dispatch_bytes * tokens * shape.hidden_size / at.sigma
    sent = float(shape.experts_per_token)
    ranks = comm.group_of(asked, at.etp, at.ep)
    # What sends a token once to each domain sends it once to each rank, too (deepseek-ai/DeepEP: `is_token_in_rank`).
    to_ranks = expected_distinct(shape.experts_per_token, at.ep) if profile.sends_once_per_domain else sent
    rank_bytes = profile.expert_imbalance * to_ranks * token_bytes
    copies = domains_reached(profile, shape.experts_per_token, ranks.domains)
    outside = None if copies is None else profile.expert_imbalance * copies * token_bytes
    return 4.0 * comm.all_to_all_s(asked, ranks, rank_bytes, outside)


def domains_reached(profile: Profile, experts: int, domains: Array) -> Array | None:
    """Domains that a token is sent to, once each; None where a copy goes to each of its `experts`.

    Where routing does not limit them, those that as many draws reach.
    """
    limit = min(profile.nodes_per_token, experts)
    if not limit and not profile.sends_once_per_domain:
        return None
    expected = expected_distinct(experts, domains)
    return np.minimum(expected, limit) if limit else expected


def expected_distinct(draws: int, places: Array) -> Array:
    """Expected number of different `places` among so many draws of equal chance.

    >>> float(expected_distinct(8, np.array([8.0]))[0].round(2))
    5.25
    """
    return places * (1.0 - (1.0 - 1.0 / places) ** draws)
