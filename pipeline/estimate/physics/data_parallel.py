"""Exchange of gradients and weights over data-parallel ranks: what each ZeRO stage moves, and what of it is exposed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sweepscope.pipeline.estimate.physics import collectives as comm
from sweepscope.pipeline.estimate.physics.layouts import Array, Layouts
from sweepscope.pipeline.estimate.physics.question import Question


def data_parallel_s(
    asked: Question, at: Layouts, *, layers: Array, dense: Array, experts: Array, forward_s: Array, backward_s: Array
) -> Array:
    """Exposed seconds of the gradient exchange (and of ZeRO's gathers) per step.

    What is exchanged (1910.02054, sections 5 and 7): ZeRO-0 reduces the gradients over all ranks. ZeRO-1 and 2 scatter
    them and gather the weights, in calls of a bucket; where a framework `reduces_whole`, ZeRO-1 reduces them over
    all ranks, too. ZeRO-3 gathers the weights of each layer for each forward and each backward pass, and scatters its
    gradients. Sharded gradients cannot wait for the last micro-batch: ZeRO-2 and 3 scatter those of every one, unless a
    pipeline keeps them (PyTorch's stages reduce once, `torch/distributed/pipelining/stage.py:
    backward_maybe_with_nosync`).

    Where it hides: scatters under the backward pass of their micro-batch, gathers under the forward pass before which
    they are wanted, up to `dp_hidden` of it and at `shard_contention` of what hides; see `_once_s` for chunks. The
    gather of ZeRO-1 and 2 hides only where the framework `hides_gather`, else it follows the optimizer.

    With replicas these run inside the sharding group, whose ranks are neighbours, and once a step the replicas reduce
    their shards of the gradients among them (2304.11277 section 3.2.2; MiCS, 2205.00119 section 3.4: two hops).
    """
    of = _exchange(asked, at, dense, ranks=at.batch_shards, stride=at.tp, layers=layers)
    if asked.shape.num_experts:
        more = _exchange(asked, at, experts, ranks=at.expert_shards, stride=at.ep * at.etp, layers=layers)
        of = Exchange(of.last + more.last, of.scatter + more.scatter, of.gather + more.gather)
    is_sharded = at.zero_stage >= 3
    weights = np.where(is_sharded, of.gather, 0.0)
    exposed = _once_s(asked, at, of.last + weights, backward_s)
    if is_sharded.any():
        exposed = exposed + at.gas * _exposed_s(asked, weights, forward_s)
    is_repeated = is_sharded | ((at.zero_stage >= 2) & (at.pp == 1))
    if is_repeated.any():
        each = np.where((at.zero_stage >= 2) & (at.pp == 1), of.scatter, 0.0) + weights
        exposed = exposed + (at.gas - 1.0) * _exposed_s(asked, each, backward_s)
    gather = np.where((at.zero_stage == 1) | (at.zero_stage == 2), of.gather, 0.0)
    return exposed + (_once_s(asked, at, gather, forward_s) if asked.profile.hides_gather else gather)


@dataclass(frozen=True)
class Exchange:
    """Seconds of the exchanges over data-parallel ranks: gradients after the last micro-batch (between replicas, too),
    gradients scattered after each, weights gathered."""

    last: Array
    scatter: Array
    gather: Array


def _exchange(asked: Question, at: Layouts, params: Array, *, ranks: Array, stride: Array, layers: Array) -> Exchange:
    """Seconds of each exchange of the gradients and weights of `params` parameters that `ranks` ranks hold."""
    profile = asked.profile
    grads, weights = profile.grad_bytes * params, profile.weight_bytes * params

    def in_buckets(data: Array, of_one: Callable[[Array], Array], least: Array | float = 1.0) -> Array:
        calls = np.maximum(np.maximum(data / profile.bucket_bytes, least), 1.0)
        return comm.in_calls(data, calls, of_one)

    everyone = comm.group_of(asked, stride, ranks)
    plain = in_buckets(grads, lambda data: comm.all_reduce_s(asked, everyone, data))
    has_replicas = bool((at.dp_replicate > 1).any())
    shards = np.maximum(ranks / at.dp_replicate, 1.0) if has_replicas else ranks
    group = comm.group_of(asked, stride, shards) if has_replicas else everyone

    def gather_s(data: Array) -> Array:
        return comm.all_gather_s(asked, group, data)

    scatter, gather = in_buckets(grads, gather_s), in_buckets(weights, gather_s)
    by_layer = in_buckets(weights, gather_s, layers)
    is_sharded = at.zero_stage >= 3
    scatter, gather = np.where(is_sharded, by_layer, scatter), np.where(is_sharded, by_layer, gather)
    last = scatter
    if has_replicas:
        copies = comm.group_of(asked, stride * shards, ranks / shards)
        last = last + in_buckets(grads / shards, lambda data: comm.all_reduce_s(asked, copies, data))
    is_whole = (at.zero_stage < 1) | reduces_whole(asked, at)
    return Exchange(np.where(is_whole, plain, last), scatter, gather)


def reduces_whole(asked: Question, at: Layouts) -> NDArray[np.bool_]:
    """Where every rank is given all gradients of its parameters, although ZeRO-1 shards their states."""
    is_first: NDArray[np.bool_] = at.zero_stage == 1
    return is_first & asked.profile.reduces_whole


def _exposed_s(asked: Question, spent: Array, window: Array) -> Array:
    """What `spent` seconds of exchange add to `window` seconds of compute that they run beside: what finds no room in
    `dp_hidden` of it, and `shard_contention` of what does."""
    return spent - (1.0 - asked.profile.shard_contention) * np.minimum(spent, asked.profile.dp_hidden * window)


def _once_s(asked: Question, at: Layouts, spent: Array, window: Array) -> Array:
    """What an exchange of once a step adds, beside one pass (`window`) of all chunks over a stage.

    The last chunk's hides under its own last pass; those of the others under the passes of min(pp, m) micro-batches
    through the chunks that come after them.
    """
    alone = _exposed_s(asked, spent, window)
    if not (at.vpp > 1).any():
        return alone
    behind = _exposed_s(asked, spent, np.minimum(at.pp, at.gas) * window)
    return behind + (alone - behind) / at.vpp
