"""The fold for rings and trees: which ranks of a communicator send to which, on which channels."""

from __future__ import annotations

import numpy as np
import polars as pl

from sweepscope.pipeline.nccl.lines.distinct import coded_rows
from sweepscope.pipeline.nccl.tables.asof import NONE, Events, owners, taken

_THREAD = ["source", "host", "pid", "tid"]
_EDGE = ["source", "comm_index", "graph", "rank_from", "rank_to"]
_BITS = 64


def graph_rows(paths: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """Rows of `nccl_graphs` by `source`, one per edge; paths whose communicator is unknown are left out.

    Args:
        paths: `graph` facts. events: see `communicators.Communicators`.
    """
    owned = _with_communicator(paths, events)
    whose, owner = coded_rows(owned.select("source", "comm_index", "graph", "sixty_fours"))
    edges = _edges(owned.with_columns(owner=pl.Series(owner)))
    found = edges.group_by("owner", "rank_from", "rank_to").agg(
        pl.col("line_no").min(), pl.col("channels").bitwise_or()
    )
    rows = found.drop("owner").with_columns(whose[found["owner"]].get_columns())
    # Few sets of channels are distinct.
    sets, which = coded_rows(rows.select("sixty_fours", "channels"))
    names = pl.Series([_listed(*row) for row in sets.iter_rows()], dtype=pl.String)
    rows = rows.select(
        *_EDGE,
        "line_no",
        "sixty_fours",
        num_graph_channels=pl.col("channels").bitwise_count_ones().cast(pl.Int64),
        graph_channels=names.gather(which),
    )
    return _together(rows).sort("line_no", *_EDGE)


def _listed(sixty_fours: int, channels: int) -> str:
    """
    >>> _listed(0, 0b1011)
    '0,1,3'
    """
    return ",".join(str(_BITS * sixty_fours + bit) for bit in range(_BITS) if channels >> bit & 1)


def _together(rows: pl.DataFrame) -> pl.DataFrame:
    """One row per edge, of those that have more than 64 channels, too."""
    if (rows["sixty_fours"] == 0).all():
        return rows.drop("sixty_fours")
    return (
        rows.sort("sixty_fours")
        .group_by(_EDGE, maintain_order=True)
        .agg(pl.col("line_no").min(), pl.col("num_graph_channels").sum(), pl.col("graph_channels").str.join(","))
    )


def _with_communicator(paths: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """`comm_index` and `nranks` of the communicator that the thread is bringing up at each line.

    The lines precede Init COMPLETE of the same thread. Where that is missing, they belong to the communicator that the
    thread has begun.
    """
    line_no = paths["line_no"].to_numpy()
    ready, begun = events.filter("is_ready"), events.filter(~pl.col("is_ready"))
    ((of_event, of_path),) = owners(events, paths, _THREAD)
    is_ready = events["is_ready"].to_numpy()
    following = Events(of_event[is_ready], of_path, ready["line_no"].to_numpy()).after(line_no)
    latest = Events(of_event[~is_ready], of_path, begun["line_no"].to_numpy()).before(line_no)
    columns = {
        name: np.where(following == NONE, taken(begun[name], latest), taken(ready[name], following))
        for name in ("comm_index", "nranks")
    }
    return paths.with_columns(pl.Series(name, values) for name, values in columns.items()).filter(
        pl.col("comm_index") != NONE
    )


def _edges(paths: pl.DataFrame) -> pl.DataFrame:
    """`owner`, `rank_from`, `rank_to`, `line_no`, `channels` of each step of each path.

    A ring that was cut is not closed, and its last number may be half of one. It is whole if it names as many ranks as
    its communicator has.
    """
    ranks, of_ranks = pl.col("ranks"), pl.col("of_ranks")
    steps = (
        pl.when(of_ranks.is_null())
        .then(ranks)
        .when(of_ranks == pl.col("nranks"))
        .then(pl.concat_list(ranks, ranks.list.first()))
        .otherwise(ranks.list.head(ranks.list.len() - 1))
    )
    taken_steps = paths.select(steps.alias("ranks"))["ranks"]
    values = taken_steps.explode(empty_as_null=False).fill_null(-1).to_numpy()
    path = np.repeat(np.arange(len(paths)), taken_steps.list.len().to_numpy())
    rank_from, rank_to, path = values[:-1], values[1:], np.where(path[:-1] == path[1:], path[:-1], -1)
    nranks = paths["nranks"].to_numpy()[path]
    is_edge = (path >= 0) & (rank_from >= 0) & (rank_to >= 0) & (rank_from != rank_to)
    is_edge &= (rank_from < nranks) & (rank_to < nranks)
    edges = pl.DataFrame({"rank_from": rank_from[is_edge], "rank_to": rank_to[is_edge]}).cast(pl.Int64)
    return edges.with_columns(paths.select("owner", "line_no", "channels")[path[is_edge]].get_columns())
