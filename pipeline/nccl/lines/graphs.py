"""Rings and trees of the channels: who sends to whom (src/graph/connect.cc, src/init.cc).

    Channel 00/16 :    0   1   2   3       the whole ring of a channel, by rank 0 alone
    Ring 00 : 3 -> 0 -> 1                  the rank between its neighbours, with the GRAPH subsystem
    Trees [0] 1/-1/-1->0->-1 [1] ...       children, the rank, its parent; the parent first in NCCL 2.4
    Trees [0] 1/-1/-1->0->-1|-1->0->1/-1/-1 ...   2.5 to 2.7: reduction up and broadcast down, which are mirrors

NCCL cuts each line at 1,024 bytes, which long rings and many channels reach: what may be half a number is left out, so
that the edges of a large communicator are a part of all.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from sweepscope.pipeline.nccl.facts import Notes
from sweepscope.pipeline.nccl.lines import transports
from sweepscope.pipeline.nccl.lines.distinct import coded, coded_rows
from sweepscope.pipeline.nccl.lines.info_lines import InfoLines

WORDS = r"Trees \[|Ring "
_PATH = (
    r"^(?:Channel [0-9]{1,4}(?:/[0-9]{1,9})? :?(?:[ \t]+[0-9]+)+|Ring [0-9]{1,4} : [0-9]+ -> [0-9]+ -> [0-9]+"
    r"|Trees \[[0-9].*)$"
)
_OWNER = r" comm 0x[0-9a-f]+ nRanks [0-9]+ busId [0-9a-f]+$"  # RCCL's
_BITS = 64
_LONGEST = 900
"""A text this long, which with its prefix fills NCCL's buffer, may have been cut in the middle of a number."""

_RING = r"^Channel ([0-9]+)(?:/[0-9]+)? :?\s+([0-9\s]+)$"
_NEIGHBOURS = r"^Ring ([0-9]+) : ([0-9]+) -> ([0-9]+) -> ([0-9]+)$"
_BRANCH = r"\[[0-9]+\] -?[0-9]+(?:/-?[0-9]+/-?[0-9]+)?->[0-9]+->-?[0-9]+(?:/-?[0-9]+/-?[0-9]+)?"
_CHILDREN_FIRST = r"^\[([0-9]+)\] -?[0-9]+/-?[0-9]+/-?[0-9]+->([0-9]+)->(-?[0-9]+)$"
_PARENT_FIRST = r"^\[([0-9]+)\] (-?[0-9]+)->([0-9]+)->-?[0-9]+/-?[0-9]+/-?[0-9]+$"


def read_rings_and_trees(lines: InfoLines, notes: Notes) -> np.ndarray:
    """`graph` facts, and `ring` facts of whole rings, of lines with their `span`; returns a mask of the texts that were
    understood."""
    text = lines.texts.str.replace(_OWNER, "")
    has_owner = text.str.len_bytes() != lines.texts.str.len_bytes()
    is_path = text.str.contains(_PATH)
    # The last number of a text that was cut may be half of one.
    is_cut = pl.Series(lines.is_cut) | (~has_owner & (text.str.len_chars() >= _LONGEST))
    texts = pl.DataFrame({"text": text, "is_cut": is_cut}).with_row_index("text_id").filter(is_path)
    _add_paths(lines, texts, notes)
    is_read: np.ndarray = is_path.to_numpy() | transports.read_rings(lines, notes)
    return is_read


def _add_paths(lines: InfoLines, texts: pl.DataFrame, notes: Notes) -> None:
    """`graph` facts: the paths that lines of a span name, with their channels.

    Args:
        texts: `text_id`, `text`, `is_cut` of the texts that describe rings or trees.
    """
    found = pl.concat([_rings(texts), _neighbours(texts), _trees(texts)])
    paths, path = coded_rows(found.select("graph", "ranks", "is_ring", sixty_fours=pl.col("channel") // _BITS))
    bit = np.left_shift(np.uint64(1), (found["channel"].to_numpy() % _BITS).astype(np.uint64))
    of_text = found.select("text_id", path=path, bit=bit)
    rows = lines.rows.select("text_id", "prefix_id", "line_no", "span").join(of_text, on="text_id")
    groups = rows.group_by("span", "path").agg(
        pl.col("prefix_id").first(), pl.col("line_no").min(), channels=pl.col("bit").bitwise_or()
    )
    ranks = pl.col("ranks").str.extract_all(r"[0-9]+").cast(pl.List(pl.Int32), strict=False)
    paths = paths.with_columns(ranks).with_columns(
        of_ranks=pl.when("is_ring").then(pl.col("ranks").list.unique().list.len().cast(pl.Int64))
    )
    threads = lines.with_prefix(groups, "source", "host", "pid", "tid")
    notes.add_frame("graph", pl.concat([threads, paths[groups["path"]]], how="horizontal"))


def _rings(texts: pl.DataFrame) -> pl.DataFrame:
    """Rings of several ranks as their text: `text_id`, `channel`, `graph`, `ranks`, `is_ring`."""
    found = texts.select("text_id", found=pl.col("text").str.extract_groups(_RING)).unnest("found").drop_nulls("2")
    return _paths(found, "ring", channel=pl.col("1"), ranks=pl.col("2"), is_ring=True)


def _neighbours(texts: pl.DataFrame) -> pl.DataFrame:
    """The same of a rank and its successor in a ring."""
    found = texts.filter(~pl.col("is_cut")).select("text_id", found=pl.col("text").str.extract_groups(_NEIGHBOURS))
    ranks = pl.format("{} {}", "3", "4")
    return _paths(found.unnest("found").drop_nulls("3"), "ring", channel=pl.col("1"), ranks=ranks)


def _trees(texts: pl.DataFrame) -> pl.DataFrame:
    """The same of a rank and its parent."""
    branches = (
        texts.filter(pl.col("text").str.starts_with("Trees "))
        .with_columns(branch=pl.col("text").str.extract_all(_BRANCH))
        .select(
            "text_id",
            branch=pl.when(pl.col("is_cut") & pl.col("text").str.ends_with(pl.col("branch").list.last()))
            .then(pl.col("branch").list.head(pl.col("branch").list.len() - 1))
            .otherwise("branch"),
        )
        .explode("branch", empty_as_null=False, keep_nulls=False)
    )
    names, name = coded(branches["branch"])
    # From child to parent, as printed from either side.
    up, down = (names.str.extract_groups(pattern).struct for pattern in (_CHILDREN_FIRST, _PARENT_FIRST))
    numbers = pl.select(
        channel=pl.coalesce(up["1"], down["1"]),
        child=pl.coalesce(up["2"], down["3"]).cast(pl.Int64, strict=False),
        parent=pl.coalesce(up["3"], down["2"]).cast(pl.Int64, strict=False),
    )
    found = branches.select("text_id").with_columns(numbers[name].get_columns())
    is_edge = (pl.col("child") >= 0) & (pl.col("parent") >= 0)
    ranks = pl.format("{} {}", "child", "parent")
    return _paths(found.filter(is_edge), "tree", channel=pl.col("channel"), ranks=ranks)


def _paths(found: pl.DataFrame, graph: str, *, channel: pl.Expr, ranks: pl.Expr, is_ring: bool = False) -> pl.DataFrame:
    paths = found.select(
        pl.col("text_id").cast(pl.UInt32),
        channel=channel.cast(pl.Int64, strict=False),
        graph=pl.lit(graph),
        ranks=ranks.str.strip_chars(),
        is_ring=pl.lit(is_ring),
    )
    return paths.filter(pl.col("channel").is_not_null() & pl.col("ranks").str.contains(r"\s"))
