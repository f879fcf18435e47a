"""The fold for communicators: the ranks that form each, and how far each rank came.

A communicator is identified by its commId (2.16+), a split of 2.24+ by its parent, split count and colour. Others have
no identity: their ranks are gathered in the order of their lines (the n-th line of each rank is of the n-th
communicator of that size), which can mix communicators of one size (`is_exact` is false). Addresses are unique within a
process until it destroys the communicator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import polars as pl

from sweepscope.pipeline.nccl.lines.messages import NO_HOST

_ADDRESS = ["source", "host", "pid", "comm"]
_DEVICE = ["cuda_dev", "nvml_dev", "bus_id"]
"""Columns that the line with which a rank is ready may have and the one with which it began may lack."""
_LEAST = pl.Enum(["aborted", "started", "complete", "destroyed"])
"""The state of a communicator is the least that any of its ranks reached."""
_IS_OVER = pl.col("state").is_in(["destroyed", "aborted"])
_KEY = ["source", "comm_index"]


@dataclass(frozen=True)
class Communicators:
    """The communicators of files, numbered in each file by their first lines.

    Attributes:
        ranks: one row per rank of each: `source`, `comm_index`, `rank`, `nranks`, where it ran (`host`, `pid`, `comm`,
            devices), its `state`, the line it began at and the one it ended at, and `at`, which orders the rows.
        all: one row per communicator: `source`, `comm_index`, its identity, `ranks_seen`, `hosts`, `is_exact`, `state`.
        events: lines with which ranks begin or are ready, whose they are, and whether the rank never got further
            (`is_open`).
    """

    ranks: pl.DataFrame
    all: pl.DataFrame
    events: pl.DataFrame

    def incarnations(self) -> pl.DataFrame:
        """Lines from which (`line_no`) and to which (`ended_at`) an address of a process is that of a communicator."""
        rows = self.ranks.select(*_ADDRESS, "line_no", "ended_at", "comm_index", "rank", "nranks", "at")
        return rows.sort("line_no", "at").drop("at")


def gather(init: pl.DataFrame) -> Communicators:
    """The communicators in `init` facts; `communicator_rows` adds the facts of other lines."""
    lines = _with_incarnation(init.sort("source", "line_no", maintain_order=True).with_row_index("at"))
    born = (
        lines.filter("begins")
        .drop("begins", "is_ready", "incarnation")
        .with_columns(parent_incarnation=_parents(lines))
    )
    ready = lines.filter("is_ready").select(
        "incarnation", pl.col(_DEVICE).name.suffix("_ready"), is_up=pl.lit(value=True)
    )
    over = lines.filter(_IS_OVER).drop_nulls("incarnation").select("incarnation", ended="state", ended_at="line_no")
    ranks = (
        _with_first(born)
        .join(ready, left_on="at", right_on="incarnation", how="left", maintain_order="left")
        .join(over, left_on="at", right_on="incarnation", how="left", maintain_order="left")
        .with_columns(pl.coalesce(f"{name}_ready", name).alias(name) for name in _DEVICE)
        .with_columns(
            state=pl.coalesce("ended", pl.when("is_up").then(pl.lit("complete")), "state"),
            comm_index=pl.col("first").rank("dense").over("source").cast(pl.Int64),
        )
    )
    whose = ranks.select("at", "comm_index", is_open=pl.col("state") == "started")
    events = lines.filter(~_IS_OVER).join(whose, left_on="incarnation", right_on="at").sort("line_no", "at")
    return Communicators(
        ranks=ranks.sort("source", "comm_index", "rank"),
        all=_communicators(ranks),
        events=events.select(
            "source",
            "host",
            "pid",
            "tid",
            "line_no",
            "is_open",
            "comm_index",
            "rank",
            "nranks",
            is_ready=pl.col("state") == "complete",
        ),
    )


def _with_incarnation(lines: pl.DataFrame) -> pl.DataFrame:
    """`lines` with `incarnation`: `at` of the line with which the rank began; NULL where no rank has the address then.

    A rank begins with a line that it starts or, where that is missing, that it is ready.
    """
    before = lines.select(pl.col("state", "rank", "nranks").shift(1).over(_ADDRESS))
    is_same = (before["state"] == "started") & (before["rank"] == lines["rank"]) & (before["nranks"] == lines["nranks"])
    was_over = before["state"].is_null() | before["state"].is_in(["destroyed", "aborted"])
    return (
        lines.with_columns(is_ready=(pl.col("state") == "complete") & is_same.fill_null(value=False), was_over=was_over)
        .with_columns(begins=~_IS_OVER & ~pl.col("is_ready"))
        .with_columns(
            incarnation=pl.when(~(_IS_OVER & pl.col("was_over"))).then(
                pl.when("begins").then("at").forward_fill().over(_ADDRESS)
            )
        )
        .drop("was_over")
    )


def _parents(lines: pl.DataFrame) -> pl.Series:
    """For each line with which a rank begins: the rank that has the address of its parent then."""
    begins = lines.filter("begins").select("at", *_ADDRESS[:-1], comm="parent")
    if begins["comm"].is_null().all():
        return pl.repeat(None, len(begins), dtype=pl.UInt32, eager=True)
    # Strictly before: a row is not its own parent.
    owners = lines.select("at", *_ADDRESS, incarnation=pl.when(~_IS_OVER).then("incarnation"))
    return begins.join_asof(
        owners, on="at", by=_ADDRESS, strategy="backward", allow_exact_matches=False, check_sortedness=False
    )["incarnation"]


def _with_first(born: pl.DataFrame) -> pl.DataFrame:
    """`born` with `first`, the first rank of its communicator, and `is_exact`, whether it has an identity."""
    has_hash, has_parent = pl.col("comm_hash").is_not_null(), pl.col("parent_incarnation").is_not_null()
    # An identity may be used again, or be that of several: the n-th line of each rank is of the n-th of them.
    key = ["source", "nranks", "color", "comm_hash", "count", "is_split"]
    found = (
        born.with_columns(count=pl.when(~has_hash).then("split_count"), is_split=~has_hash & has_parent)
        .with_columns(nth=pl.int_range(pl.len()).over(*key, "rank"))
        .with_columns(
            first=pl.col("at").first().over(*key, "nth"),
            is_exact=has_hash | has_parent | (pl.col("nth").max().over(key) == 0),
        )
    )
    splits = found.filter("is_split")
    if splits.is_empty():
        return found
    firsts = _firsts_of_splits(
        splits.select("at", "parent_incarnation", "split_count", "color", "nranks", "rank").iter_rows(),
        dict(found.filter(~pl.col("is_split")).select("at", "first").iter_rows()),
    )
    first = pl.col("at").replace_strict(firsts, default=pl.col("first"), return_dtype=pl.UInt32)
    return found.with_columns(first=first)


def _firsts_of_splits(splits: Iterable[tuple[int, ...]], first_of: dict[int, int]) -> dict[int, int]:
    """`first` of splits, one at a time, since a parent may be a split itself; `first_of` has that of other ranks."""
    found: dict[int, int] = {}
    firsts: dict[Hashable, int] = {}
    times_seen: Counter[Hashable] = Counter()
    for at, parent, count, color, nranks, rank in splits:
        key = (found[parent] if parent in found else first_of[parent], count, color, nranks)
        times_seen[key, rank] += 1
        found[at] = firsts.setdefault((key, times_seen[key, rank]), at)
    return found


def _communicators(ranks: pl.DataFrame) -> pl.DataFrame:
    index_of = ranks.select("at", parent_comm_index="comm_index")
    return (
        ranks.sort("at")
        .group_by(_KEY, maintain_order=True)
        .agg(
            pl.col("line_no", "nranks", "comm_hash", "api", "color", "parent_incarnation", "is_exact").first(),
            ranks_seen=pl.len().cast(pl.Int64),
            hosts=pl.when(~pl.col("host").is_in([NO_HOST]).any()).then(pl.col("host").n_unique()).cast(pl.Int64),
            state=pl.col("state").cast(_LEAST).min().cast(pl.String),
        )
        .join(index_of, left_on="parent_incarnation", right_on="at", how="left", maintain_order="left")
        .sort(_KEY)
    )
