"""Sentences of the picture of a communicator, each computed from what is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath

import polars as pl

from sweepscope.dashboard.format.numbers import count, number, shortened
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.view_models.network import size_text
from sweepscope.dashboard.view_models.topology import ALL_LINKS, NO_HOST, TRANSPORT, crossings
from sweepscope.dashboard.view_models.topology_picture import Picture, counted

NONE = (
    "No file here shows which ranks are connected: NCCL_DEBUG=INFO prints links and rings as a communicator comes up."
)
NO_TRAFFIC = (
    "No COLL lines in this file. Set **NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH,COLL** for a few steps to see what moves."
)
DERIVED = (
    "**Derived.** Bytes between nodes are what the printed rings would carry had each collective run as a ring: twice "
    "(n−1)/n of the buffer per edge for AllReduce, once for AllGather and ReduceScatter. Trees, NVLS and SHARP move "
    "less between nodes; sends go to their destination."
)
ALL_WORD = "all links"
_MAX_NAME = 46


def communicator_option(row: Row) -> str:
    """One communicator in a list."""
    short = shortened(PurePath(row["source_path"]).name, _MAX_NAME, keeps_end=True)
    nodes = "" if row["num_nodes"] is None else f", {count(row['num_nodes'], 'node')}"
    return f"{count(row['nranks'], 'rank')}{nodes} · {short}"


def show_option(option: str, graphs: Mapping[str, str]) -> str:
    """What to draw."""
    return ALL_WORD if option == ALL_LINKS else graphs[option]


def legend(found: Picture) -> list[tuple[str, str]]:
    """Kind and text of each kind of transport on the picture."""
    return [(kind, f"{TRANSPORT[kind].word}: {number(edges)}") for kind, edges in counted(found)]


def alt(found: Picture, row: Row) -> str:
    """The picture in one sentence."""
    kinds = "; ".join(text for _, text in legend(found)) or "no link is printed"
    unit = "hosts" if found.is_by_host else "ranks"
    return f"{count(row['nranks'], 'rank')} drawn as {count(len(found.nodes), unit[:-1])}: {kinds}."


def notes(found: Picture, row: Row, ranks: pl.DataFrame, order: Sequence[int], graphs: pl.DataFrame) -> list[str]:
    """What the picture does not show: how the ring crosses nodes, and what is missing.

    Args:
        found: the picture.
        row: its communicator, of `queries.topology.communicators`.
        ranks: rows of `queries.topology.ranks`.
        order: ranks along the ring.
        graphs: rows of `queries.topology.graphs`.
    """
    sentences = []
    if found.inside:
        within = ", ".join(f"{TRANSPORT[kind].word}: {number(links)}" for kind, links in found.inside.items())
        sentences.append(f"Drawn by host. Inside the hosts: {within}.")
    host_of = dict(ranks.select("rank", "host").drop_nulls().iter_rows())
    hosts = len(set(host_of.values()))
    is_whole = len(host_of) == row["nranks"]
    if is_whole and hosts > 1 and graphs.height:
        times = crossings(order, host_of)
        least = "as few as can be" if times == hosts else f"{number(hosts)} would do"
        sentences.append(f"Ring 0 crosses from host to host {number(times)} times for {count(hosts, 'host')}: {least}.")
    if not is_whole:
        missing = row["nranks"] - len(host_of)
        sentences.append(
            f"{count(missing, 'rank')} of {number(row['nranks'])} printed no initialisation into this file: drawn as "
            f"“{NO_HOST}”."
        )
    if not row["is_membership_exact"]:
        sentences.append(
            "This version prints no identity: ranks of communicators of one size are identified by line order alone."
        )
    return sentences


def traffic_answer(rows: pl.DataFrame) -> str:
    """What the collectives moved."""
    total = int(rows["total_bytes"].sum() or 0)
    top = rows.row(0, named=True)
    share = "" if not total else f" {number((top['total_bytes'] or 0) / total * 100)} % of it by {top['op']}."
    calls = count(int(rows["collectives"].sum() or 0), "collective")
    return f"{calls} moved {size_text(total)}.{share}"
