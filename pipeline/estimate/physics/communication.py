"""Communication: bandwidth of each parallel dimension by where its group lies, and seconds of each exchange.

Ranks are laid out as Megatron and nanotron do: tensor parallelism innermost, then context, data, pipeline. A group
stays inside a node when its stride times its size does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sweepscope.pipeline.estimate.physics.layouts import Array
from sweepscope.pipeline.estimate.physics.question import Question


def leaves_node(asked: Question, stride: Array, size: Array) -> NDArray[np.bool_]:
    """Whether a group of `size` ranks, `stride` apart, spans nodes."""
    return stride * size > asked.cluster.gpus_per_node


def ring_bytes_per_s(asked: Question, stride: Array, size: Array, *, share: float | None = None) -> Array:
    """Bandwidth of a ring over a group, in bytes/s and direction.

    Inside a node the link. Across nodes the smaller of link and network, where the group's ranks in one node share
    their cards: NIC x max(gpus_per_node / stride, 1) (one card per rank). Large groups lose a little per doubling of
    nodes, as measured rings do.

    Args:
        asked: the cluster and the constants.
        stride: distance between neighbours of the group, in ranks.
        size: ranks of the group.
        share: what is achieved of the network, where it is not `network_share`.
    """
    link = asked.profile.link_share * asked.cluster.link_bytes_per_s
    ranks_in_node = np.clip(asked.cluster.gpus_per_node / stride, 1.0, size)
    nodes = np.maximum(size / ranks_in_node, 1.0)
    network = (share or asked.profile.network_share) * asked.cluster.network_bytes_per_s * ranks_in_node
    spread = 1.0 + asked.profile.network_decay * np.log2(np.maximum(nodes / 2.0, 1.0))
    return np.where(leaves_node(asked, stride, size), np.minimum(link, network) / spread, link)


def latency_s(asked: Question, stride: Array, size: Array) -> Array:
    """Latency of one hop, in seconds, of a group of `size` ranks that are `stride` apart."""
    return np.where(leaves_node(asked, stride, size), asked.profile.network_latency_s, asked.profile.link_latency_s)


def hops(size: Array) -> Array:
    """Latency steps of an exchange over a group: a ring's, or a tree's where that is shorter (NCCL chooses)."""
    return np.minimum(size - 1.0, 4.0 * np.log2(np.maximum(size, 1.0)))


def all_reduce_s(
    full_bytes: Array, size: Array, bytes_per_s: Array, hop_s: Array, *, is_split: Array | float = 0.0
) -> Array:
    """All-reduce of a tensor of `full_bytes`: twice (d-1)/d of it over each link (d the group's size).

    `is_split`: it is done as a reduce-scatter and an all-gather (sequence parallelism), which NCCL runs round a ring;
    a plain all-reduce may take a tree.
    """
    steps = np.where(np.asarray(is_split) > 0, size - 1.0, hops(size))
    return 2.0 * ((size - 1.0) / size * full_bytes / bytes_per_s + steps * hop_s)


def all_to_all_s(asked: Question, rank_bytes: Array, *, stride: Array, size: Array, hop_s: Array) -> Array:
    """All-to-all in which each rank sends (size-1)/size of `rank_bytes`; what leaves the node goes over one card."""
    in_node = np.clip(asked.cluster.gpus_per_node / stride, 1.0, size)
    inside = (in_node - 1.0) / size * rank_bytes / (asked.profile.link_share * asked.cluster.link_bytes_per_s)
    outside = (size - in_node) / size * rank_bytes / (asked.profile.network_share * asked.cluster.network_bytes_per_s)
    return np.where(size > 1.0, np.maximum(inside, outside) + hop_s * np.log2(np.maximum(size, 1.0)), 0.0)
