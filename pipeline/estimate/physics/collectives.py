"""Collectives: seconds of an exchange by its bytes and by how its group lies on links and network.

One model for all terms, that of NCCL's tuner (NVIDIA/nccl, `src/graph/tuning.cc`): an algorithm and a protocol cost
their latency and the bytes over their bandwidth, and the cheapest is taken. Rings and trees run with the protocols LL,
LL128 and Simple; switches that reduce (NVLS) and PAT join them where there are such. Bandwidths are those that
nccl-tests reach (shares of a profile), hops take NCCL's own times, scaled to what is measured.

Ranks are laid out as Megatron and nanotron do: tensor parallelism innermost, then context, data, pipeline. A group
stays in a domain of links when its stride times its size does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sweepscope.pipeline.estimate.physics.layouts import Array
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.reference.nccl_tuning import Protocol, load_nccl_tuning

_SMALLEST = 64.0
"""Bytes of the first of a protocol's corrections by size."""


@dataclass(frozen=True)
class Group:
    """Ranks that exchange: how many, and over how many domains of links, the same number in each."""

    size: Array
    domains: Array

    @property
    def ranks_in_domain(self) -> Array:
        """Ranks of the group in one domain."""
        return self.size / self.domains

    @property
    def is_over_network(self) -> NDArray[np.bool_]:
        """Whether the group spans domains."""
        return self.domains > 1


def group_of(asked: Question, stride: Array, size: Array) -> Group:
    """The group of `size` ranks that are `stride` apart.

    It takes as few domains as hold it, evenly: 256 neighbours lie on four racks of 72 with 64 each.
    """
    return Group(size, np.minimum(np.ceil(stride * size / asked.cluster.gpus_per_domain), size))


def link_bytes_per_s(asked: Question, ranks: Array) -> Array:
    """What a rank sends over its links to others of a group of so many `ranks` in its domain, in bytes/s."""
    return asked.profile.link_share * asked.cluster.link_bytes_per_s * asked.cluster.links_among(ranks)


def ring_bytes_per_s(asked: Question, group: Group) -> Array:
    """Bandwidth of a ring over a group, in bytes/s and direction.

    In a domain that of a rank's links to others of the group. Across domains the smaller of links and network, where
    the group's ranks in one domain drive their cards together. Large groups lose a little per doubling of domains, as
    measured rings do.
    """
    link = link_bytes_per_s(asked, group.ranks_in_domain)
    network = asked.profile.network_share * asked.cluster.network_bytes_per_s * group.ranks_in_domain
    spread = 1.0 + asked.profile.network_decay * np.log2(np.maximum(group.domains / 2.0, 1.0))
    return np.where(group.is_over_network, np.minimum(link, network) / spread, link)


def _link_hop_s(asked: Question, protocol: Protocol) -> float:
    """A hop over links: `link_latency_s` for a Simple ring, NCCL's proportions of it for the others."""
    return asked.profile.link_latency_s * protocol.link_hop_s / load_nccl_tuning().ring["simple"].link_hop_s


def _network_step_s(asked: Question, protocol: Protocol) -> float:
    """What posting a message to the network takes, three messages for Simple (NCCL's `netOverhead`)."""
    return (3.0 if protocol.is_simple else 1.0) * asked.profile.network_latency_s


def _network_hop_s(asked: Question, protocol: Protocol) -> float:
    """A hop over the network: NCCL's figure, or where the network is slower what posting to it takes."""
    return max(protocol.network_hop_s, _network_step_s(asked, protocol))


def _rate(asked: Question, group: Group, protocol: Protocol, *, full: Array, data: Array) -> Array:
    """Bus bandwidth of a protocol, from that of a Simple ring, for messages of `data` bytes."""
    rate = protocol.bandwidth_share * full
    if protocol.is_ll:
        most = load_nccl_tuning().ll_most_bytes_per_s
        inside = most.get(asked.cluster.generation, most["ampere"])
        rate = np.minimum(rate, np.where(group.is_over_network, most["network"], inside))
    if protocol.correction:
        doublings = np.log2(np.maximum(data / _SMALLEST, 1.0))
        rate = rate * np.interp(doublings, np.arange(len(protocol.correction)), protocol.correction)
    return rate


def _ring_s(asked: Question, group: Group, data: Array, full: Array, *, passes: float) -> Array:
    """Round the ring once (scatter or gather) or twice (reduce): (n-1)/n of the bytes and n-1 hops each time.

    In a ring that goes over the network, each of the n-1 steps posts a message to it: no hop takes less than that. So
    measured all-gathers of 8, 32 and 2,160 ranks on Polaris take 8 us for each rank, of 80 H100 on InfiniBand 5 to 12.
    """
    across = passes * (group.domains - 1.0)
    inside = passes * (group.size - 1.0) - across
    over = group.is_over_network
    volume = passes * (group.size - 1.0) / group.size * data
    spent = np.full(1, np.inf)
    for protocol in load_nccl_tuning().ring.values():
        link_s = _link_hop_s(asked, protocol)
        inside_s = np.where(over, max(link_s, _network_step_s(asked, protocol)), link_s)
        latency = protocol.base_s + inside * inside_s + across * _network_hop_s(asked, protocol)
        spent = np.minimum(spent, latency + volume / _rate(asked, group, protocol, full=full, data=data))
    return spent


def _tree_s(asked: Question, group: Group, data: Array, full: Array) -> Array:
    """Up and down a tree: through the ranks of a domain, and over log2 of the domains."""
    inside, across = 2.0 * (group.ranks_in_domain - 1.0), 2.0 * np.log2(group.domains)
    spent = np.full(1, np.inf)
    for protocol in load_nccl_tuning().tree.values():
        links_s, network_s = inside * _link_hop_s(asked, protocol), across * _network_hop_s(asked, protocol)
        latency = protocol.base_s + links_s + network_s
        spent = np.minimum(spent, latency + 2.0 * data / _rate(asked, group, protocol, full=full, data=data))
    return spent


def _switched_s(asked: Question, group: Group, data: Array) -> Array:
    """Reduced by the switches of each domain, and between domains along a tree (NVLS and NVLSTree).

    Each rank sends and receives the tensor once over its links, at `multicast_share` of them; the cards of a domain
    send and receive it twice, once where there are two domains.
    """
    network = asked.profile.network_share * asked.cluster.network_bytes_per_s * group.ranks_in_domain
    link = asked.profile.multicast_share * asked.cluster.link_bytes_per_s
    between = np.where(group.is_over_network, network / np.where(group.domains > 2, 2.0, 1.0), np.inf)
    protocol = load_nccl_tuning().nvls
    levels = 2.0 * np.log2(group.domains)
    latency = protocol.base_s + _link_hop_s(asked, protocol) + levels * _network_hop_s(asked, protocol)
    return latency + data / np.minimum(link, between)


def _pat_s(asked: Question, group: Group, data: Array, full: Array) -> Array:
    """PAT: log2 steps, for groups with one rank in each domain."""
    protocol = load_nccl_tuning().pat
    steps = protocol.base_s + group.size * protocol.link_hop_s
    latency = steps + np.log2(group.size) * _network_hop_s(asked, protocol)
    volume = (group.size - 1.0) / group.size * data
    return np.where(group.domains == group.size, latency + volume / (protocol.bandwidth_share * full), np.inf)


def all_gather_s(asked: Question, group: Group, data: Array) -> Array:
    """All-gather to, or reduce-scatter from, a tensor of `data` bytes on each rank; 0 for a group of one."""
    full = ring_bytes_per_s(asked, group)
    spent = _ring_s(asked, group, data, full, passes=1.0)
    alone = group.is_over_network & (group.domains == group.size)
    if alone.any():
        spent = np.minimum(spent, np.where(alone, _pat_s(asked, group, data, full), np.inf))
    return np.where(group.size > 1, spent, 0.0)


reduce_scatter_s = all_gather_s
"""The same steps in the other direction."""


def all_reduce_s(asked: Question, group: Group, data: Array) -> Array:
    """All-reduce of a tensor of `data` bytes on each rank; 0 for a group of one."""
    full = ring_bytes_per_s(asked, group)
    spent = np.minimum(
        _ring_s(asked, group, data, full, passes=2.0),
        _tree_s(asked, group, data, full),
    )
    if asked.cluster.has_multicast:
        # Two ranks gain nothing: each sends the other its half.
        can = group.ranks_in_domain > 2
        spent = np.where(can, np.minimum(spent, _switched_s(asked, group, data)), spent)
    return np.where(group.size > 1, spent, 0.0)


def all_to_all_s(asked: Question, group: Group, rank_bytes: Array, once_bytes: Array | None = None) -> Array:
    """All-to-all in which each rank sends (n-1)/n of `rank_bytes`; what leaves the domain goes over its own card.

    Each peer costs a hop of LL128 over links: 4 us and more in nccl-tests of 8 and 80 ranks. With `once_bytes`, what
    several ranks of a domain want is sent to it once, so many bytes in all, and spread there over links (DeepSeek-V3,
    2412.19437 section 3.2.2; deepseek-ai/DeepEP).
    """
    card = asked.profile.network_share * asked.cluster.network_bytes_per_s
    over = (group.size - group.ranks_in_domain) / group.size
    link = link_bytes_per_s(asked, group.ranks_in_domain)
    inside = (group.ranks_in_domain - 1.0) / group.size * rank_bytes / link
    outside = over * rank_bytes / card
    if once_bytes is not None:
        spread = (group.ranks_in_domain - 1.0) / group.ranks_in_domain * rank_bytes / link
        inside, outside = np.where(group.is_over_network, spread, inside), over * once_bytes / card
    protocol = load_nccl_tuning().ring["ll128"]
    latency = protocol.base_s + (group.size - 1.0) * _link_hop_s(asked, protocol)
    return np.where(group.size > 1.0, np.maximum(inside, outside) + latency, 0.0)


def send_s(asked: Question, group: Group, data: Array) -> Array:
    """Sending `data` bytes to the next rank of a group, while all others of the domain do so to theirs.

    To one peer: without switches over the links between the two alone.
    """
    card = asked.profile.network_share * asked.cluster.network_bytes_per_s
    rate = np.where(group.is_over_network, card, link_bytes_per_s(asked, np.full_like(group.size, 2.0)))
    return np.where(group.size > 1.0, hop_s(asked, group) + data / rate, 0.0)


def hop_s(asked: Question, group: Group) -> Array:
    """Latency of a send to the next rank, over the network where the group spans domains."""
    simple = load_nccl_tuning().ring["simple"]
    inside, across = _link_hop_s(asked, simple), _network_hop_s(asked, simple)
    return simple.base_s + np.where(group.is_over_network, across, inside)


def in_calls(data: Array, calls: Array, of_one: Callable[[Array], Array]) -> Array:
    """Seconds of `data` bytes in so many equal calls, of which `of_one` gives the seconds of one by its bytes."""
    return calls * of_one(data / calls)
