"""The fold for links: whose `via` lines they are.

The thread that brings a communicator up prints them before its Init COMPLETE. With NCCL_RUNTIME_CONNECT (2.22 on) they
come later, with the first collective and often by another thread: then they are of the communicator that the thread,
or else the process, had brought up last. RCCL names the communicator's address.
"""

from __future__ import annotations

import polars as pl

from pipeline.nccl.communicators import Communicators

_THREAD, _PROCESS = ["source", "host", "pid", "tid"], ["source", "host", "pid"]
_KEY = ["source", "comm_index", "rank_from", "rank_to", "direction", "transport"]
_TOGETHER = 250_000


def link_rows(links: pl.DataFrame, comms: Communicators) -> pl.DataFrame:
    """Rows of `nccl_links`: lines of one pair, end and transport together.

    Args:
        links: `link` facts of files.
        comms: the communicators of the files.
    """
    # Each line is judged by itself, at the cost of several times its size.
    ordered = links.sort("line_no")
    owned = pl.concat(_with_owner(piece, comms) for piece in list(ordered.iter_slices(_TOGETHER)) or [ordered])
    return (
        owned.sort("source", "line_no")
        .group_by(_KEY, maintain_order=True)
        .agg(
            net_devices=pl.col("device").drop_nulls().unique().sort().str.join(", "),
            link_channels=pl.col("lines").sum(),
            line_no=pl.col("line_no").min(),
        )
        .with_columns(pl.col("net_devices").replace("", None))
    )


def transports(rows: pl.DataFrame) -> pl.DataFrame:
    """`transports` of each `source` and `comm_index`, from rows of `nccl_links`."""
    return (
        rows.drop_nulls("comm_index")
        .group_by("source", "comm_index")
        .agg(transports=pl.col("transport").unique().sort().str.join(", "))
    )


def _with_owner(links: pl.DataFrame, comms: Communicators) -> pl.DataFrame:
    """`links` with `comm_index`: NULL where nothing tells it."""
    events, kept = comms.events.drop("is_open"), links.columns
    rows = _after(links, comms.lives(), ["source", "host", "pid", "comm"], "named")
    is_alive = pl.col("named_ended_at").is_null() | (pl.col("named_ended_at") > pl.col("line_no"))
    rows = rows.select(*kept, named=pl.when(is_alive).then("named_comm_index"))
    # The next line of the thread about a communicator: that it is ready, or that another one begins.
    rows = rows.join_asof(
        _renamed(events, _THREAD, "next").with_columns(next_line=pl.col("line_no")),
        on="line_no", by=_THREAD, strategy="forward", check_sortedness=False,
    )  # fmt: skip
    rows = rows.select(*kept, "named", "next_line", "next_is_ready", next=_index_of("next"))
    rows = _after(rows, events, _THREAD, "thread").with_columns(thread=_index_of("thread"))
    rows = rows.select(
        *(name for name in kept if name != "line_no"), "named", "next_is_ready", "next", "thread",
        line_no=pl.col("next_line").fill_null(_END) - 1, place="line_no",
    ).sort("line_no")  # fmt: skip
    rows = _after(rows, events, _PROCESS, "process").with_columns(process=_index_of("process"))
    settled = pl.when("next_is_ready").then("next").otherwise(pl.coalesce("thread", "process"))
    return rows.select(
        *(name for name in kept if name != "line_no"), line_no="place", comm_index=pl.coalesce("named", settled)
    )


_END = 1 << 62


def _index_of(whose: str) -> pl.Expr:
    """The communicator, if the rank is an end of the link and the communicator has both ends."""
    rank, ends = pl.col(f"{whose}_rank"), pl.max_horizontal("rank_from", "rank_to")
    is_end = (pl.col("rank_from") == rank) | (pl.col("rank_to") == rank)
    return pl.when(is_end & (ends < pl.col(f"{whose}_nranks"))).then(f"{whose}_comm_index")


def _after(rows: pl.DataFrame, events: pl.DataFrame, by: list[str], whose: str) -> pl.DataFrame:
    """`rows` with the columns of the last event before each."""
    return rows.join_asof(
        _renamed(events, by, whose), on="line_no", by=by, strategy="backward", check_sortedness=False
    )  # fmt: skip


def _renamed(events: pl.DataFrame, by: list[str], whose: str) -> pl.DataFrame:
    told = [name for name in events.columns if name not in (*_THREAD, "comm", "line_no")]
    return events.select("line_no", *by, *(pl.col(name).alias(f"{whose}_{name}") for name in told))
