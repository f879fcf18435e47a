"""The fold for what else lines say of communicators: time to come up, hosts, rings, channels, network.

The lines name their thread or the communicator's address; whose they are follows from the lines with which
communicators begin and are ready (`communicators.events`, `communicators.lives`).
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from pipeline.nccl.communicators import Communicators, events, lives
from pipeline.nccl.facts import SCHEMAS, Facts

_PROCESS = ["source", "host", "pid"]
_THREAD = [*_PROCESS, "tid"]
_NOTES = ("ring", "channels", "network")
_END = 1 << 62


def tell(comms: Mapping[int, Communicators], facts: Facts) -> None:
    """Add to the communicators of files what their other lines say."""
    marks = events(comms)
    by_index = {source: {comm.index: comm for comm in of_file.all} for source, of_file in comms.items()}
    names = list(SCHEMAS["timing"])
    for row in _timings(facts["timing"], marks).iter_rows(named=True):
        rank = by_index[row["source"]][row["owner"]].ranks[row["rank"]]
        rank.timing = {name: row[name] for name in names}
    for source, index, nnodes in _shapes(facts["shape"], lives(comms)).iter_rows():
        by_index[source][index].nnodes = nnodes
    for kind in _NOTES:
        for row in _first_notes(facts[kind], marks, is_ring=kind == "ring").iter_rows(named=True):
            by_index[row["source"]][row["owner"]].notes[kind] = row


def _timings(rows: pl.DataFrame, marks: pl.DataFrame) -> pl.DataFrame:
    """With `owner`: the communicator of that size in which the thread, or else the process, had come up last as that
    rank. In the order of the lines: the last one counts."""
    told = rows.sort("line_no", maintain_order=True)
    for by, whose in ((_THREAD, "thread"), (_PROCESS, "process")):
        latest = marks.select("line_no", *by, pl.col("comm_index", "rank", "nranks").name.prefix(f"{whose}_"))
        told = told.join_asof(latest, on="line_no", by=by, check_sortedness=False)
    owner = pl.when(_is_same("thread")).then("thread_comm_index").when(_is_same("process")).then("process_comm_index")
    return told.with_columns(owner=owner).drop_nulls("owner").sort("source", "line_no", maintain_order=True)


def _is_same(whose: str) -> pl.Expr:
    return (pl.col("rank") == pl.col(f"{whose}_rank")) & (pl.col("nranks") == pl.col(f"{whose}_nranks"))


def _shapes(rows: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """`source`, `comm_index`, `nnodes`: of the communicator that has the address then, or else gets it next."""
    by = [*_PROCESS, "comm"]
    owners = known.select("line_no", *by, "ended_at", "comm_index")
    told = rows.select("line_no", *by, "nnodes").sort("line_no", maintain_order=True)
    told = told.join_asof(owners, on="line_no", by=by, strategy="backward", check_sortedness=False)
    told = told.join_asof(
        owners.drop("ended_at").rename({"comm_index": "next_index"}),
        on="line_no", by=by, strategy="forward", check_sortedness=False,
    )  # fmt: skip
    is_over = (pl.col("ended_at") <= pl.col("line_no")).fill_null(value=False)
    index = pl.when(pl.col("comm_index").is_not_null() & ~is_over).then("comm_index").otherwise("next_index")
    found = told.with_columns(comm_index=index).drop_nulls("comm_index").sort("source", "line_no", maintain_order=True)
    return found.group_by("source", "comm_index", maintain_order=True).agg(pl.col("nnodes").last())


def _first_notes(rows: pl.DataFrame, marks: pl.DataFrame, *, is_ring: bool) -> pl.DataFrame:
    """One line per communicator, its `owner`: the first of the thread that was ready first.

    A thread prints them before its communicator is ready; without that line they are of the one it had begun.
    """
    ready = marks.filter("is_ready").select(*_THREAD, "line_no", ready_at="line_no", ready_index="comm_index")
    begun = marks.group_by(_THREAD, maintain_order=True).agg(pl.col("is_open", "comm_index").last())
    begun = begun.filter("is_open").select(*_THREAD, begun_index="comm_index")
    told = (
        rows.sort("line_no", maintain_order=True)
        .join_asof(ready, on="line_no", by=_THREAD, strategy="forward", check_sortedness=False)
        .join(begun, on=_THREAD, how="left", maintain_order="left")
        .with_columns(owner=pl.coalesce("ready_index", "begun_index"), ready_at=pl.col("ready_at").fill_null(_END))
        .drop_nulls("owner")
        .sort("source", "ready_at", "line_no", maintain_order=True)
    )
    # Until 2.4 each channel's ring tells of those before it only.
    is_first = pl.col("ready_at") == pl.col("ready_at").first()
    most = {"most": pl.col("channels").filter(is_first).max()} if is_ring else {}
    found = told.group_by("source", "owner", maintain_order=True).agg(
        pl.col(name for name in rows.columns if name != "source").first(), **most
    )  # fmt: skip
    return found.with_columns(channels="most") if is_ring else found
