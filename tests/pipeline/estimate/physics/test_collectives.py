"""Laws of collectives, their closed forms, and the bandwidths that others published."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweepscope import data
from sweepscope.pipeline.estimate.physics.collectives import (
    all_gather_s,
    all_reduce_s,
    all_to_all_s,
    group_of,
    reduce_scatter_s,
    ring_bytes_per_s,
    send_s,
)
from sweepscope.pipeline.estimate.physics.layouts import Array
from sweepscope.pipeline.estimate.physics.profile import load_profiles
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.reference.clusters import find_cluster
from sweepscope.pipeline.reference.models import LLAMA_2_7B
from tests.properties import draws

DEFAULT = load_profiles()["default"]
KINDS = {"all-reduce": all_reduce_s, "all-gather": all_gather_s, "all-to-all": all_to_all_s, "send": send_s}
CARDS = ("V100-SXM-32GB", "A100", "H100", "H100-PCIe-80GB", "B200", "GB200", "GB300", "MI300X")


def question(card: str = "H100", **facts: float) -> Question:
    cluster = find_cluster(card)
    assert cluster is not None
    return Question(LLAMA_2_7B, replace(cluster, **facts), DEFAULT, 4096)


def seconds(kind: str, asked: Question, *, size: float, nbytes: float, stride: float = 1.0) -> float:
    group = group_of(asked, np.array([stride]), np.array([size]))
    return float(KINDS[kind](asked, group, np.array([nbytes]))[0])


CARD = st.sampled_from(CARDS)
KIND = st.sampled_from(sorted(KINDS))
COLLECTIVE = st.sampled_from(["all-reduce", "all-gather", "all-to-all"])
SIZE = st.integers(1, 12).map(lambda power: 2.0**power)
STRIDE = st.integers(0, 4).map(lambda power: 2.0**power)
BYTES = st.floats(0, 35).map(lambda power: 2.0**power)


@settings(max_examples=draws(200), deadline=None)
@given(card=CARD, kind=KIND, size=SIZE, stride=STRIDE, sizes=st.lists(BYTES, min_size=2, max_size=2).map(sorted))
def test_more_bytes_never_take_less_time(card: str, kind: str, size: float, stride: float, sizes: list[float]) -> None:
    few, many = (seconds(kind, question(card), size=size, stride=stride, nbytes=nbytes) for nbytes in sizes)
    assert few <= many * (1 + 1e-9)


@settings(max_examples=draws(200), deadline=None)
@given(card=CARD, kind=KIND, size=SIZE, stride=STRIDE)
def test_more_ranks_never_have_less_latency(card: str, kind: str, size: float, stride: float) -> None:
    asked = question(card)
    few, many = (seconds(kind, asked, size=count, stride=stride, nbytes=0.0) for count in (size, 2.0 * size))
    assert few <= many * (1 + 1e-9)


@settings(max_examples=draws(200), deadline=None)
@given(card=CARD, kind=COLLECTIVE, size=SIZE, stride=STRIDE, nbytes=BYTES)
def test_no_collective_beats_its_links(card: str, kind: str, size: float, stride: float, nbytes: float) -> None:
    asked = question(card)
    links, network = asked.cluster.link_bytes_per_s, asked.cluster.network_bytes_per_s
    group = group_of(asked, np.array([stride]), np.array([size]))
    domains, ranks = float(group.domains[0]), float(group.ranks_in_domain[0])
    # What each rank must receive over its links, and each domain over its cards, however it is arranged.
    share = (size - 1.0) / size
    over_links = {"all-reduce": 1.0, "all-gather": share, "all-to-all": (ranks - 1.0) / size}[kind]
    between = (domains - 1.0) / domains
    over_cards = {"all-reduce": between, "all-gather": between, "all-to-all": ranks * between}[kind]
    if domains > 1 and kind != "all-to-all":
        over_links = 0.0  # the network's limit is the one in question
    bound = max(over_links * nbytes / links, over_cards * nbytes / (network * ranks))
    assert seconds(kind, asked, size=size, stride=stride, nbytes=nbytes) >= bound * (1 - 1e-9)


@settings(max_examples=draws(100), deadline=None)
@given(card=CARD, size=SIZE, stride=STRIDE, nbytes=BYTES)
def test_an_all_reduce_is_never_slower_than_a_scatter_and_a_gather(
    card: str, size: float, stride: float, nbytes: float
) -> None:
    asked = question(card)
    asked = replace(asked, cluster=replace(asked.cluster, has_multicast=False))
    group = group_of(asked, np.array([stride]), np.array([size]))
    if float(group.domains[0]) == size > 1:
        return  # PAT serves scatters and gathers alone
    both = 2.0 * float(reduce_scatter_s(asked, group, np.array([nbytes]))[0])
    assert seconds("all-reduce", asked, size=size, stride=stride, nbytes=nbytes) <= both * (1 + 1e-9)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_one_rank_exchanges_nothing(kind: str) -> None:
    assert seconds(kind, question(), size=1.0, nbytes=1e9) == 0


def test_large_messages_move_round_the_ring() -> None:
    asked = question(has_multicast=False)
    ring = DEFAULT.link_share * asked.cluster.link_bytes_per_s
    assert seconds("all-gather", asked, size=8, nbytes=1e11) == pytest.approx(7 / 8 * 1e11 / ring, rel=1e-3)
    assert seconds("all-reduce", asked, size=8, nbytes=1e11) == pytest.approx(2 * 7 / 8 * 1e11 / ring, rel=1e-3)


def on(card: str, gpus_per_node: int) -> Question:
    cluster = find_cluster(card, gpus_per_node=gpus_per_node)
    assert cluster is not None
    return Question(LLAMA_2_7B, cluster, DEFAULT, 4096)


@pytest.mark.parametrize(
    ("card", "gpus_per_node", "size", "links"),
    [
        *(("MI300X", 8, 2.0, 1 / 7), ("MI300X", 8, 4.0, 3 / 7), ("MI300X", 8, 8.0, 1.0), ("Gaudi2", 8, 2.0, 1 / 7)),
        *(("V100", 4, 2.0, 1 / 3), ("V100", 4, 4.0, 1.0), ("GH200-96GB", 4, 2.0, 1 / 3)),
        *(("V100", 8, 2.0, 1 / 6), ("V100", 8, 4.0, 2 / 3), ("V100", 8, 8.0, 1.0)),
        *(("V100", 16, 2.0, 1.0), ("H100", 8, 2.0, 1.0), ("GB200", 4, 2.0, 1.0)),
        *(("A100-40GB", 4, 2.0, 1 / 3), ("H200", 4, 2.0, 1 / 3), ("H100", 4, 4.0, 1.0), ("A100", 2, 2.0, 1.0)),
    ],
)
def test_without_switches_a_group_has_the_links_between_its_ranks_alone(
    card: str, gpus_per_node: int, size: float, links: float
) -> None:
    asked = on(card, gpus_per_node)
    rate = DEFAULT.link_share * asked.cluster.link_bytes_per_s
    share = (size - 1.0) / size
    assert seconds("all-gather", asked, size=size, nbytes=1e12) == pytest.approx(
        share * 1e12 / (links * rate), rel=1e-3
    )
    assert seconds("all-to-all", asked, size=size, nbytes=1e12) == pytest.approx(
        share * 1e12 / (links * rate), rel=1e-3
    )


def test_what_a_stage_sends_goes_over_the_links_to_one_peer() -> None:
    for card, links in (("MI300X", 1 / 7), ("H100", 1.0)):
        asked = on(card, 8)
        rate = links * DEFAULT.link_share * asked.cluster.link_bytes_per_s
        assert seconds("send", asked, size=8.0, nbytes=1e11) == pytest.approx(1e11 / rate, rel=1e-3)


def test_a_rank_alone_in_its_host_has_the_network_whatever_joins_the_host() -> None:
    mesh, switched = on("MI300X", 8), on("MI300X", 8)
    switched = replace(switched, cluster=replace(switched.cluster, direct_peers=0))
    across = [seconds("all-gather", asked, size=4.0, stride=8.0, nbytes=1e9) for asked in (mesh, switched)]
    assert across[0] == across[1]


def test_short_messages_of_many_ranks_take_a_tree() -> None:
    asked = question(has_multicast=False)
    tree, ring = (seconds(kind, asked, size=2048, nbytes=1024.0) for kind in ("all-reduce", "all-gather"))
    assert tree < ring / 4


def test_switches_that_reduce_make_an_all_reduce_faster() -> None:
    plain, switched = (question(has_multicast=found) for found in (False, True))
    for size in (8.0, 16.0):
        times = [seconds("all-reduce", asked, size=size, nbytes=1e9) for asked in (plain, switched)]
        assert times[1] < times[0]
        gathers = [seconds("all-gather", asked, size=size, nbytes=1e9) for asked in (plain, switched)]
        assert gathers[0] == gathers[1]


def test_a_ring_across_domains_shares_the_cards_of_its_ranks_in_a_domain() -> None:
    flat = replace(question(), profile=replace(DEFAULT, network_decay=0.0, network_share=1.0, link_share=1.0))
    one, eight = (
        float(ring_bytes_per_s(flat, group_of(flat, np.array([stride]), np.array([size])))[0])
        for stride, size in ((8.0, 4.0), (1.0, 32.0))
    )
    assert one == pytest.approx(50e9)  # one rank per node: one 400 Gb/s card
    assert eight == pytest.approx(400e9)  # eight ranks per node: eight cards, still below NVLink's 450


def test_a_rack_of_hosts_is_one_domain() -> None:
    rack, hosts = question("GB200"), question("GB200", gpus_per_domain=4)
    assert float(group_of(rack, np.array([1.0]), np.array([64.0])).domains[0]) == 1
    # 256 neighbours: four racks with 64 each, none with 72
    assert group_of(rack, np.array([1.0]), np.array([256.0])).ranks_in_domain == 64
    within, over = (seconds("all-to-all", asked, size=64, nbytes=1e9) for asked in (rack, hosts))
    assert 8 < over / within < 900 / 50


def test_time_of_many_groups_is_that_of_each() -> None:
    asked = question()
    sizes, nbytes = np.array([1.0, 2.0, 8.0, 64.0, 4096.0]), np.array([1e3, 1e6, 1e9, 1e10, 1e7])
    for kind, of_group in KINDS.items():
        together: Array = of_group(asked, group_of(asked, np.ones(1), sizes), nbytes)
        alone = [seconds(kind, asked, size=size, nbytes=some) for size, some in zip(sizes, nbytes, strict=True)]
        assert together == pytest.approx(alone)


def test_published_bandwidths() -> None:
    # data/network/published_bandwidths.csv: a busy cluster of H100. Its best runs (95th percentile) are what the model
    # is held against: never below two thirds of them, and above them by what a shared network costs large groups.
    asked = question()
    kinds = {"AllReduce": ("all-reduce", 2.0), "AllGather": ("all-gather", 1.0), "ReduceScatter": ("all-gather", 1.0)}
    found = []
    for row in pl.read_csv(data.NETWORK / "published_bandwidths.csv").iter_rows(named=True):
        kind, passes = kinds[row["op"]]
        size, nbytes = float(row["nranks"]), float(row["message_bytes"])
        spent = seconds(kind, asked, size=size, nbytes=nbytes)
        bus = passes * (size - 1) / size * nbytes / spent
        found.append(bus / row["bandwidth_p95_bytes_per_s"])
    assert min(found) > 2 / 3
    assert max(found) < 2
    assert np.median(found) == pytest.approx(1.3, abs=0.15)


def test_tokens_that_go_to_a_node_once_are_spread_there_over_links() -> None:
    asked = question("H800")
    group, data = group_of(asked, np.array([1.0]), np.array([64.0])), np.array([1e9])
    card = DEFAULT.network_share * asked.cluster.network_bytes_per_s
    copied, once = (all_to_all_s(asked, group, data, more)[0] for more in (None, data / 2))
    assert copied - once == pytest.approx(7 / 8 * 0.5e9 / card)
    links = 7 / 8 * 1e9 / (DEFAULT.link_share * asked.cluster.link_bytes_per_s)
    few = all_to_all_s(asked, group, data, data / 100)[0]
    assert few - all_to_all_s(asked, group, 0 * data)[0] == pytest.approx(links)
    inside = group_of(asked, np.array([1.0]), np.array([8.0]))
    assert all_to_all_s(asked, inside, data, data / 8) == all_to_all_s(asked, inside, data)


@pytest.mark.parametrize(
    ("card", "ranks", "published"),
    [
        ("H800", 8, 155e9),
        ("H800", 16, 43e9),
        ("H800", 32, 57e9),
        ("H800", 64, 50e9),
        ("H100", 16, 85e9),
        ("H100", 32, 61e9),
        ("B200", 8, 696e9),
    ],
)
def test_dispatch_runs_at_the_rates_that_deepep_publishes(card: str, ranks: int, published: float) -> None:
    """Bytes per second that arrive over links in a node, over cards beyond one, from own rank and node included: means
    of dispatch and combine, 4,096 tokens of 7,168 numbers to 8 experts on at most four nodes (deepseek-ai/DeepEP,
    docs/legacy.md for H800, README.md for SM90 and SM100)."""
    asked = question(card)
    group = group_of(asked, np.ones(1), np.array([float(ranks)]))
    tokens = np.array([4096 * 7168.0])
    nodes = min(ranks // 8, 4)
    to_ranks, to_nodes = (places * (1 - (1 - 1 / places) ** 8) * tokens for places in (8 * nodes, nodes))
    sent = to_nodes if nodes > 1 else to_ranks
    spent = all_to_all_s(asked, group, to_ranks, to_nodes if nodes > 1 else None)
    assert float((sent / spent)[0]) == pytest.approx(published, rel=0.2)
