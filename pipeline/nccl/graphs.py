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
LINES = pl.Schema(
    {
        "source": pl.Int64, "line_no": pl.Int64, "host": pl.String, "pid": pl.Int64, "tid": pl.Int64,
        "text": pl.String, "is_cut": pl.Boolean, "thread": pl.UInt32, "segment": pl.Int64,
    }
)  # fmt: skip
"""Lines that tell of a ring or of trees. `is_cut`: the last number may be half of one. Lines of one communicator have
the same `thread` and `segment`."""
_LONGEST = 900
"""A text this long, which with its prefix fills NCCL's buffer, may have been cut in the middle of a number."""

_RING = r"^Channel (\d+)(?:/\d+)? :?\s+([\d\s]+)$"
_PLACE = r"^Ring (\d+) : (\d+) -> (\d+) -> (\d+)$"
_BRANCH = r"\[\d+\] -?\d+(?:/-?\d+/-?\d+)?->\d+->-?\d+(?:/-?\d+/-?\d+)?"
_CHILDREN_FIRST = r"^\[(\d+)\] -?\d+/-?\d+/-?\d+->(\d+)->(-?\d+)$"
_PARENT_FIRST = r"^\[(\d+)\] (-?\d+)->(\d+)->-?\d+/-?\d+/-?\d+$"
_KEY = ["source", "comm_index", "graph", "rank_from", "rank_to"]
_EDGE = ["graph", "rank_from", "rank_to", "of_ranks"]
_ANY_SIZE = pl.lit(None, pl.Int64)


def read_graph(message: Message) -> tuple[str, bool] | None:
    """`text` and `is_cut` of a line that tells of a ring or of trees."""
    text, has_owner = _OWNER_TEXT.subn("", message.text)
    if _PATH_TEXT.match(text) is None:
        return None
    return text, message.is_cut or (len(text) >= _LONGEST and not has_owner)


def read_graphs(rows: pl.DataFrame, prefixes: pl.DataFrame, notes: Notes) -> pl.DataFrame:
    """Whole columns of such lines; returns those that tell nothing.

    Args:
        rows: `source`, `line_no`, `prefix`, `text`, `thread`, `segment`.
        prefixes: `prefix`, `host`, `pid`, `tid`.
    """
    has_owner = rows["text"].str.contains(_OWNER)
    rows = rows.with_columns(
        pl.col("text").str.replace(_OWNER, ""), is_cut=~has_owner & (pl.col("text").str.len_chars() >= _LONGEST)
    )
    is_told = pl.col("text").str.contains(_PATH)
    told = rows.filter(is_told).join(prefixes.select("prefix", "host", "pid", "tid"), on="prefix")
    add_edges(told.select(LINES.names()), notes)
    return rows.filter(~is_told)


def add_edges(lines: pl.DataFrame, notes: Notes) -> None:
    """LINES to `graph` facts: what they say of who sends to whom, the channels of each pair together."""
    texts = lines.select("text", "is_cut").unique()
    edges = pl.concat([_of_rings(texts), _of_places(texts), _of_trees(texts)])
    found = lines.join(edges, on=["text", "is_cut"]).group_by("source", "thread", "segment", *_EDGE).agg(
        pl.col("host", "pid", "tid").first(), pl.col("line_no").min(), channels=pl.col("channel").sort()
    )  # fmt: skip
    notes.add_frame("graph", found)


def graph_rows(edges: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """The fold: rows of `nccl_graphs` by `source`, one per edge; edges of no known communicator are left out.

    Args:
        edges: `graph` facts. events: see `communicators.Communicators`.
    """
    owned = _with_communicator(edges, events)
    in_range = (pl.col("rank_from") < pl.col("nranks")) & (pl.col("rank_to") < pl.col("nranks"))
    is_known = pl.col("of_ranks").is_null() | (pl.col("of_ranks") == pl.col("nranks"))
    return (
        owned.filter(in_range & is_known)
        .group_by(_KEY)
        .agg(pl.col("channels").explode().unique().sort(), pl.col("line_no").min())
        .with_columns(
            num_graph_channels=pl.col("channels").list.len().cast(pl.Int64),
            graph_channels=pl.col("channels").cast(pl.List(pl.String)).list.join(","),
        )
        .drop("channels")
        .sort("line_no", *_KEY)
    )


def _with_communicator(edges: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """`comm_index` and `nranks` of the communicator that the thread is bringing up at each line.

    The lines stand before Init COMPLETE of the same thread. Where that is missing, the communicator that the thread
    has begun is meant.
    """
    thread, told = ["source", "host", "pid", "tid"], ["comm_index", "nranks"]
    ready = events.filter("is_ready").select("line_no", *thread, *told)
    begun = events.filter(~pl.col("is_ready")).select("line_no", *thread, pl.col(told).name.prefix("begun_"))
    placed = (
        edges.sort("line_no")
        .join_asof(ready, on="line_no", by=thread, strategy="forward", check_sortedness=False)
        .join_asof(begun, on="line_no", by=thread, strategy="backward", check_sortedness=False)
    )
    chosen = placed.with_columns(pl.coalesce(name, f"begun_{name}").alias(name) for name in told)
    return chosen.drop_nulls("comm_index")


def _of_rings(texts: pl.DataFrame) -> pl.DataFrame:
    """Edges between neighbours of a printed order.

    Only when it is whole is it closed and its last number no half of one: `of_ranks` is how many ranks the
    communicator has then.
    """
    rings = (
        texts.with_columns(found=pl.col("text").str.extract_groups(_RING))
        .unnest("found")
        .drop_nulls("2")
        .with_columns(
            channel=pl.col("1").cast(pl.Int64, strict=False),
            order=pl.col("2").str.extract_all(r"\d+").cast(pl.List(pl.Int64), strict=False),
        )
        .with_columns(
            rank_to=pl.concat_list(pl.col("order").list.slice(1), pl.col("order").list.first()),
            place=pl.int_ranges(pl.col("order").list.len()),
            num_ranks=pl.col("order").list.len(),
            of_ranks=pl.col("order").list.unique().list.len().cast(pl.Int64),
        )
        .explode("order", "rank_to", "place", empty_as_null=False)
    )
    is_sure = pl.col("place") + 2 < pl.col("num_ranks")
    edges = rings.with_columns(of_ranks=pl.when(~is_sure).then("of_ranks"))
    return _edges(edges, "ring", rank_from="order", rank_to="rank_to", of_ranks=pl.col("of_ranks"))


def _of_places(texts: pl.DataFrame) -> pl.DataFrame:
    """Edges from a rank to the next one of its rings."""
    found = (
        texts.filter(~pl.col("is_cut"))
        .with_columns(found=pl.col("text").str.extract_groups(_PLACE))
        .unnest("found")
        .drop_nulls("3")
        .with_columns(pl.col("1", "3", "4").cast(pl.Int64, strict=False))
    )
    return _edges(found.rename({"1": "channel"}), "ring", rank_from="3", rank_to="4")


def _of_trees(texts: pl.DataFrame) -> pl.DataFrame:
    """Edges from a rank to its parent."""
    branches = (
        texts.filter(pl.col("text").str.starts_with("Trees "))
        .with_columns(branch=pl.col("text").str.extract_all(_BRANCH))
        .with_columns(
            branch=pl.when(pl.col("is_cut") & pl.col("text").str.ends_with(pl.col("branch").list.last()))
            .then(pl.col("branch").list.head(pl.col("branch").list.len() - 1))
            .otherwise("branch")
        )
        .explode("branch", empty_as_null=False, keep_nulls=False)
    )
    up, down = pl.col("up").struct, pl.col("down").struct  # from child to parent, as printed from either side
    numbers = (
        branches.select(pl.col("branch").unique())
        .with_columns(
            up=pl.col("branch").str.extract_groups(_CHILDREN_FIRST),
            down=pl.col("branch").str.extract_groups(_PARENT_FIRST),
        )
        .select(
            "branch",
            channel=pl.coalesce(up["1"], down["1"]).cast(pl.Int64, strict=False),
            child=pl.coalesce(up["2"], down["3"]).cast(pl.Int64, strict=False),
            parent=pl.coalesce(up["3"], down["2"]).cast(pl.Int64, strict=False),
        )
    )
    return _edges(branches.join(numbers, on="branch"), "tree", rank_from="child", rank_to="parent")


def _edges(
    found: pl.DataFrame, graph: str, *, rank_from: str, rank_to: str, of_ranks: pl.Expr = _ANY_SIZE
) -> pl.DataFrame:
    told = found.select(
        "text", "is_cut", "channel", pl.col(rank_from).cast(pl.Int64).alias("rank_from"),
        pl.col(rank_to).cast(pl.Int64).alias("rank_to"), of_ranks=of_ranks, graph=pl.lit(graph),
    )  # fmt: skip
    is_edge = (pl.col("rank_from") >= 0) & (pl.col("rank_to") >= 0) & (pl.col("rank_from") != pl.col("rank_to"))
    return told.filter(pl.col("channel").is_not_null() & is_edge)
