"""The fold for other lines on communicators: initialisation times, hosts, rings, channels, network.

These lines have a thread or the communicator's address; the communicator follows from the lines with which it begins
and is ready.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.nccl.facts import PARTS, Facts
from sweepscope.pipeline.nccl.tables.communicators import Communicators

_PROCESS = ["source", "host", "pid"]
_THREAD = [*_PROCESS, "tid"]
_KEY = ["source", "comm_index"]
_END = 1 << 62


def communicator_rows(comms: Communicators, timings: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    """Rows of `nccl_communicators`, but for what links and COLL lines add.

    Args:
        timings: see below.
        facts: those of the same files.
    """
    slowest = (
        comms.ranks.select(*_KEY, "rank", "at")
        .join(timings.drop_nulls("total"), on=[*_KEY, "rank"])
        .sort(*_KEY, "total", "at", descending=[False, False, True, False])
        .unique(_KEY, keep="first", maintain_order=True)
        .select(*_KEY, init_time_s="total", init_slowest_rank="rank", init_bootstrap_s="bootstrap")
    )
    parts = (
        slowest,
        _shapes(facts["shape"], comms.incarnations()),
        _first_notes(facts["ring"], comms.events, is_ring=True).select(*_KEY, ring_channels="most", ring_order="order"),
        _first_notes(facts["channels"], comms.events).select(
            *_KEY,
            coll_channels="coll",
            collnet_channels="collnet",
            nvls_channels="nvls",
            p2p_channels="p2p",
            p2p_channels_per_peer="per_peer",
        ),
        _first_notes(facts["network"], comms.events).select(*_KEY, "network"),
    )
    rows = comms.all
    for part in parts:
        rows = rows.join(part, on=_KEY, how="left", maintain_order="left")
    hosts_of_all = pl.when(pl.col("ranks_seen") == pl.col("nranks")).then("hosts")
    return rows.with_columns(num_nodes=pl.coalesce(pl.when(pl.col("nnodes") > 0).then("nnodes"), hosts_of_all)).rename(
        {"api": "comm_api", "color": "split_color", "is_exact": "is_membership_exact", "state": "init_state"}
    )


def rank_rows(comms: Communicators, timings: pl.DataFrame) -> pl.DataFrame:
    """Rows of `nccl_ranks`, but for what COLL lines add."""
    seconds = timings.select(*_KEY, "rank", init_time_s="total", **{f"init_{part}_s": pl.col(part) for part in PARTS})
    rows = comms.ranks.rename({"comm": "comm_pointer", "state": "init_state"})
    return rows.join(seconds, on=[*_KEY, "rank"], how="left", maintain_order="left")


def timings(rows: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """`timing` facts with `comm_index`: the communicator of that size in which the thread, or else the process, had
    come up last as that rank. Of several of one rank the last is kept."""
    located = rows.sort("line_no", maintain_order=True)
    for by, whose in ((_THREAD, "thread"), (_PROCESS, "process")):
        latest = events.select("line_no", *by, pl.col("comm_index", "rank", "nranks").name.prefix(f"{whose}_"))
        located = located.join_asof(latest, on="line_no", by=by, check_sortedness=False)
    owner = pl.when(_is_same("thread")).then("thread_comm_index").when(_is_same("process")).then("process_comm_index")
    return (
        located.with_columns(comm_index=owner)
        .drop_nulls("comm_index")
        .unique([*_KEY, "rank"], keep="last", maintain_order=True)
        .select(*_KEY, "rank", "total", *PARTS)
    )


def _is_same(whose: str) -> pl.Expr:
    return (pl.col("rank") == pl.col(f"{whose}_rank")) & (pl.col("nranks") == pl.col(f"{whose}_nranks"))


def _shapes(rows: pl.DataFrame, incarnations: pl.DataFrame) -> pl.DataFrame:
    """`source`, `comm_index`, `nnodes`: of the communicator that has the address then, or else gets it next."""
    by = [*_PROCESS, "comm"]
    owners = incarnations.select("line_no", *by, "ended_at", "comm_index")
    located = rows.select("line_no", *by, "nnodes").sort("line_no", maintain_order=True)
    located = located.join_asof(owners, on="line_no", by=by, strategy="backward", check_sortedness=False)
    located = located.join_asof(
        owners.drop("ended_at").rename({"comm_index": "next_index"}),
        on="line_no",
        by=by,
        strategy="forward",
        check_sortedness=False,
    )
    is_over = (pl.col("ended_at") <= pl.col("line_no")).fill_null(value=False)
    index = pl.when(pl.col("comm_index").is_not_null() & ~is_over).then("comm_index").otherwise("next_index")
    found = located.with_columns(comm_index=index).drop_nulls("comm_index")
    return found.group_by(_KEY).agg(pl.col("nnodes").last())


def _first_notes(rows: pl.DataFrame, events: pl.DataFrame, *, is_ring: bool = False) -> pl.DataFrame:
    """One line per communicator: the first of the thread that was ready first.

    A thread prints them before its communicator is ready; without that line they belong to the one it had begun.
    """
    ready = events.filter("is_ready").select(*_THREAD, "line_no", ready_at="line_no", ready_index="comm_index")
    begun = events.group_by(_THREAD, maintain_order=True).agg(pl.col("is_open", "comm_index").last())
    begun = begun.filter("is_open").select(*_THREAD, begun_index="comm_index")
    located = (
        rows.sort("line_no", maintain_order=True)
        .join_asof(ready, on="line_no", by=_THREAD, strategy="forward", check_sortedness=False)
        .join(begun, on=_THREAD, how="left", maintain_order="left")
        .with_columns(comm_index=pl.coalesce("ready_index", "begun_index"), ready_at=pl.col("ready_at").fill_null(_END))
        .drop_nulls("comm_index")
        .sort("source", "ready_at", "line_no", maintain_order=True)
    )
    # Until 2.4 the ring of a channel implies the number of channels up to it only.
    is_first = pl.col("ready_at") == pl.col("ready_at").first()
    most = {"most": pl.col("channels").filter(is_first).max()} if is_ring else {}
    return located.group_by(_KEY).agg(
        pl.col(name for name in rows.columns if name not in ("source", "line_no")).first(), **most
    )
