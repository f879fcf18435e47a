"""Rings and trees of the channels: who sends to whom (src/graph/connect.cc, src/init.cc).

    Channel 00/16 :    0   1   2   3       the whole ring of a channel, by rank 0 alone
    Ring 00 : 3 -> 0 -> 1                  the rank's own place in it, with the GRAPH subsystem
    Trees [0] 1/-1/-1->0->-1 [1] ...       children, the rank, its parent; the parent first in NCCL 2.4
    Trees [0] 1/-1/-1->0->-1|-1->0->1/-1/-1 ...   2.5 to 2.7: reduction up and broadcast down, which are mirrors

NCCL cuts each line at 1,024 bytes, which long rings and many channels reach: what may be half a number is left out, so
that the edges of a large communicator are a part of all.
"""

from __future__ import annotations

import re

import polars as pl

from pipeline.nccl.facts import Notes
from pipeline.nccl.messages import Message

WORDS = ("Trees [", "Ring ")
# In the syntax of both Python's `re` and polars.
_PATH = (
    r"^(?:Channel [0-9]{1,4}(?:/[0-9]{1,9})? :?(?:[ \t]+[0-9]+)+|Ring [0-9]{1,4} : [0-9]+ -> [0-9]+ -> [0-9]+"
    r"|Trees \[[0-9].*)$"
)
_OWNER = r" comm 0x[0-9a-f]+ nRanks [0-9]+ busId [0-9a-f]+$"  # RCCL's
_PATH_TEXT, _OWNER_TEXT = re.compile(_PATH), re.compile(_OWNER)
_LONGEST = 900
"""A text this long, which with its prefix fills NCCL's buffer, may have been cut in the middle of a number."""

_RING = r"^Channel (\d+)(?:/\d+)? :?\s+([\d\s]+)$"
_PLACE = r"^Ring (\d+) : (\d+) -> (\d+) -> (\d+)$"
_BRANCH = r"\[\d+\] -?\d+(?:/-?\d+/-?\d+)?->\d+->-?\d+(?:/-?\d+/-?\d+)?"
_CHILDREN_FIRST = r"^\[(\d+)\] -?\d+/-?\d+/-?\d+->(\d+)->(-?\d+)$"
_PARENT_FIRST = r"^\[(\d+)\] (-?\d+)->(\d+)->-?\d+/-?\d+/-?\d+$"
_KEY = ["source", "comm_index", "graph", "rank_from", "rank_to"]


def read_graph(message: Message, line_no: int, notes: Notes) -> bool:
    """Keep a line that tells of a ring or of trees; `is_cut`: its last number may be half of one."""
    text, has_owner = _OWNER_TEXT.subn("", message.text)
    if _PATH_TEXT.match(text) is None:
        return False
    is_cut = message.is_cut or (len(text) >= _LONGEST and not has_owner)
    notes.add("graph", line_no, message.host, message.pid, message.tid, text, is_cut)
    return True


def read_graphs(rows: pl.DataFrame, prefixes: pl.DataFrame, notes: Notes) -> pl.DataFrame:
    """Whole columns of such lines (`source`, `line_no`, `prefix`, `text`); returns those that tell nothing."""
    has_owner = rows["text"].str.contains(_OWNER)
    rows = rows.with_columns(
        pl.col("text").str.replace(_OWNER, ""), is_cut=~has_owner & (pl.col("text").str.len_chars() >= _LONGEST)
    )
    is_told = pl.col("text").str.contains(_PATH)
    told = rows.filter(is_told).join(prefixes.select("prefix", "host", "pid", "tid"), on="prefix")
    notes.add_frame("graph", told)
    return rows.filter(~is_told)


def graph_rows(lines: pl.DataFrame, init: pl.DataFrame, ranks: pl.DataFrame) -> pl.DataFrame:
    """The fold: rows of `nccl_graphs` by `source`, one per edge; lines of no known communicator are left out.

    Args:
        lines: `graph` facts. init: `init` facts.
        ranks: rows of `nccl_ranks`: which communicator an address meant from which line on.
    """
    owned = _with_communicator(lines.unique(["source", "line_no"], keep="first"), init, ranks)
    edges = pl.concat([_of_rings(owned), _of_places(owned), _of_trees(owned)])
    in_range = (pl.col("rank_from") < pl.col("nranks")) & (pl.col("rank_to") < pl.col("nranks"))
    return (
        edges.filter(in_range & (pl.col("rank_from") != pl.col("rank_to")))
        .group_by(_KEY)
        .agg(pl.col("channel").unique().sort(), pl.col("line_no").min())
        .with_columns(
            num_graph_channels=pl.col("channel").list.len().cast(pl.Int64),
            graph_channels=pl.col("channel").cast(pl.List(pl.String)).list.join(","),
        )
        .drop("channel")
        .sort("line_no", *_KEY)
    )


def _with_communicator(lines: pl.DataFrame, init: pl.DataFrame, ranks: pl.DataFrame) -> pl.DataFrame:
    """`comm_index` and `nranks` of the communicator that the thread is bringing up at each line.

    The lines stand before Init COMPLETE of the same thread. Where that is missing, the communicator that the thread
    has begun is meant.
    """
    thread = ["source", "host", "pid", "tid"]
    told = init.select("line_no", *thread, "comm", "state").sort("line_no")
    ready = told.filter(pl.col("state") == "complete").drop("state")
    begun = told.filter(pl.col("state") == "started").drop("state").rename({"comm": "begun"})
    placed = (
        lines.sort("line_no")
        .join_asof(ready, on="line_no", by=thread, strategy="forward", check_sortedness=False)
        .join_asof(begun, on="line_no", by=thread, strategy="backward", check_sortedness=False)
        .with_columns(comm_pointer=pl.coalesce("comm", "begun"))
    )
    # An address is used again: of several ranks that had it, the one that the line is nearest to.
    owners = ranks.select("source", "line_no", "host", "pid", "comm_pointer", "comm_index", "nranks").sort("line_no")
    by = ["source", "host", "pid", "comm_pointer"]
    before = placed.join_asof(owners, on="line_no", by=by, strategy="backward", check_sortedness=False)
    after = placed.join_asof(owners, on="line_no", by=by, strategy="forward", check_sortedness=False)
    # With Init START the rank's row stands before the line; without, it is its COMPLETE line, behind.
    has_start = before["begun"].is_not_null()
    columns = ["comm_index", "nranks"]
    chosen = before.with_columns(pl.when(has_start).then(before[name]).otherwise(after[name]) for name in columns)
    return chosen.drop_nulls(columns).select("source", "line_no", "text", "is_cut", *columns)


def _of_rings(lines: pl.DataFrame) -> pl.DataFrame:
    """Edges between neighbours of a printed order; it is closed only when it is whole."""
    rings = (
        lines.with_columns(found=pl.col("text").str.extract_groups(_RING))
        .unnest("found")
        .drop_nulls("2")
        .with_columns(
            channel=pl.col("1").cast(pl.Int64, strict=False),
            order=pl.col("2").str.extract_all(r"\d+").cast(pl.List(pl.Int64), strict=False),
        )
    )
    is_whole = pl.col("order").list.unique().list.len() == pl.col("nranks")
    known = pl.when(is_whole).then("order").otherwise(pl.col("order").list.head(pl.col("order").list.len() - 1))
    paired = rings.with_columns(order=known).with_columns(
        rank_to=pl.concat_list(
            pl.col("order").list.slice(1),
            pl.when(is_whole).then(pl.col("order").list.first()).otherwise(pl.lit(None, pl.Int64)),
        )
    )
    edges = paired.filter(pl.col("order").list.len() == pl.col("rank_to").list.len()).explode("order", "rank_to")
    return _edges(edges, "ring", rank_from="order", rank_to="rank_to")


def _of_places(lines: pl.DataFrame) -> pl.DataFrame:
    """Edges from a rank to the next one of its rings."""
    found = (
        lines.filter(~pl.col("is_cut"))
        .with_columns(found=pl.col("text").str.extract_groups(_PLACE))
        .unnest("found")
        .drop_nulls("3")
        .with_columns(pl.col("1", "3", "4").cast(pl.Int64, strict=False))
    )
    return _edges(found.rename({"1": "channel"}), "ring", rank_from="3", rank_to="4")


def _of_trees(lines: pl.DataFrame) -> pl.DataFrame:
    """Edges from a rank to its parent."""
    branches = (
        lines.filter(pl.col("text").str.starts_with("Trees "))
        .with_columns(branch=pl.col("text").str.extract_all(_BRANCH))
        .with_columns(
            branch=pl.when(pl.col("is_cut") & pl.col("text").str.ends_with(pl.col("branch").list.last()))
            .then(pl.col("branch").list.head(pl.col("branch").list.len() - 1))
            .otherwise("branch")
        )
        .explode("branch", empty_as_null=False, keep_nulls=False)
    )
    numbers = branches.with_columns(
        up=pl.col("branch").str.extract_groups(_CHILDREN_FIRST), down=pl.col("branch").str.extract_groups(_PARENT_FIRST)
    ).with_columns(
        channel=pl.coalesce(pl.col("up").struct.field("1"), pl.col("down").struct.field("1")).cast(
            pl.Int64, strict=False
        ),
        child=pl.coalesce(pl.col("up").struct.field("2"), pl.col("down").struct.field("3")).cast(
            pl.Int64, strict=False
        ),
        parent=pl.coalesce(pl.col("up").struct.field("3"), pl.col("down").struct.field("2")).cast(
            pl.Int64, strict=False
        ),
    )
    return _edges(numbers, "tree", rank_from="child", rank_to="parent")


def _edges(found: pl.DataFrame, graph: str, *, rank_from: str, rank_to: str) -> pl.DataFrame:
    return found.select(
        "source", "line_no", "comm_index", "nranks", "channel",
        pl.col(rank_from).cast(pl.Int64).alias("rank_from"), pl.col(rank_to).cast(pl.Int64).alias("rank_to"),
        graph=pl.lit(graph),
    ).filter(pl.col("channel").is_not_null() & (pl.col("rank_from") >= 0) & (pl.col("rank_to") >= 0))  # fmt: skip
