"""What the page on one hang shows: how far each rank came, when it waited, and where the ranks' paths part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from sweepscope.dashboard.format.symbols import Mark
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.view_models.network import COUNTERS, rank_states

BEFORE, AFTER = 8, 3
"""Collectives shown before and after the one that hangs."""

STEP_STATE: dict[str, Mark] = {
    "ended": Mark("●", "ended", "hatch"),
    "waits": Mark("■", "waits in it", "hang"),
    "differs": Mark("◆", "another operation, size or type", "warning"),
    "absent": Mark("○", "did not join", "failed"),
    "lost": Mark("∘", "no longer in the buffer", "axis"),
}
"""State of a rank in one collective of its group."""


def file_and_line(text: str) -> tuple[str, int] | None:
    """File and line of an address of this page.

    >>> file_and_line("/logs/a:b.log:950"), file_and_line("/logs/a.log")
    (('/logs/a:b.log', 950), None)
    """
    path, _, line = text.rpartition(":")
    return (path, int(line)) if path and line.isdecimal() and len(line) < 16 else None


@dataclass(frozen=True)
class Span:
    """When a rank waited, in seconds from the first time in the lines; `begin` None: not printed."""

    rank: int
    state: str
    begin_s: float | None
    end_s: float
    text: str


def of_collective(lines: pl.DataFrame, hang: Row) -> pl.DataFrame:
    """`lines` about this collective: its timeouts, and of other kinds those of its group or of none."""
    is_same = (pl.col("op") == hang["op"]) & pl.col("seq").eq_missing(pl.lit(hang["seq"], pl.Int64))
    is_of_group = pl.col("process_group").is_null() | (pl.col("process_group") == (hang["process_group"] or ""))
    return lines.filter(pl.when(pl.col("hang_line_kind") == "timeout").then(is_same).otherwise(is_of_group))


def states(hang: Row, lines: pl.DataFrame, records: pl.DataFrame) -> pl.DataFrame:
    """One row per rank: `network.rank_states` with how far it came by watchdog lines and dumps.

    `ahead` counts collectives from the one that hangs to the last one enqueued: negative for a rank that is behind,
    NULL where unknown. `line_no` is the first line that the rank printed of it.

    Args:
        hang: a row of `nccl_hangs`.
        lines: rows of `queries.hang.lines`.
        records: rows of `queries.hang.records`.
    """
    by_dumps, by_lines = rank_states(hang, _of_dumps(records)), _of_lines(lines, hang)
    joined = by_dumps.join(by_lines, on="rank", how="left", maintain_order="left", suffix="_of_lines").with_columns(
        pl.coalesce(name, f"{name}_of_lines") for name in ("last_enqueued_seq", "last_completed_seq")
    )
    # -1: there was none yet, or that the backend does not report it.
    joined = joined.with_columns(pl.when(pl.col(name) >= 0).then(name).alias(name) for name in COUNTERS)
    hangs_at = pl.lit(hang["seq"], pl.Int64)
    is_in_it = (pl.col("state") == "waited") & pl.col("last_enqueued_seq").is_null()
    last = pl.when(is_in_it).then(hangs_at).otherwise("last_enqueued_seq")
    return joined.with_columns(ahead=last - hangs_at, waited_s=pl.col("ran_for_ms") / 1000).select(
        "rank", "state", "detail", *COUNTERS, "ahead", "waited_s", "source_path", "line_no"
    )


def _of_dumps(records: pl.DataFrame) -> pl.DataFrame:
    """How far each rank came by the flight recorder: `rank` and COUNTERS."""
    return records.group_by("rank").agg(
        pl.max_horizontal(pl.col("last_enqueued_seq").max(), pl.col("last_seq").max()).alias("last_enqueued_seq"),
        pl.col("last_started_seq", "last_completed_seq").max(),
    )


def _of_lines(lines: pl.DataFrame, hang: Row) -> pl.DataFrame:
    """What each rank printed of it: the last counters, how long it waited (`ran_for_ms`), and its first line."""
    return (
        of_collective(lines, hang)
        .drop_nulls("rank")
        .sort("line_no")
        .group_by("rank")
        .agg(
            pl.col("last_enqueued_seq", "last_completed_seq").drop_nulls().last(),
            pl.col("ran_for_ms").max(),
            pl.col("line_no", "source_path").first(),
        )
    )


def spans(lines: pl.DataFrame, states: pl.DataFrame, hang: Row) -> list[Span]:
    """When ranks waited and gave up, by lines that print their time; in the order of ranks.

    `lines` are rows of `queries.hang.lines`, `states` those of `states`.
    """
    state_of = dict(states.select("rank", "state").iter_rows())
    found = []
    timed = lines.filter(
        pl.col("printed_after_s").is_not_null()
        & pl.col("rank").is_not_null()
        & pl.col("hang_line_kind").is_in(["timeout", "dump", "stuck"])
    ).sort("rank", "printed_after_s")
    for row in timed.iter_rows(named=True):
        is_same = row["op"] == hang["op"] and row["seq"] == hang["seq"]
        waited = None if row["ran_for_ms"] is None else row["ran_for_ms"] / 1000
        end = row["printed_after_s"]
        what = f"{row['op']} seq {row['seq']}" if row["op"] else row["hang_line_kind"]
        state = "elsewhere" if row["op"] and not is_same else state_of.get(row["rank"], "unknown")
        found.append(Span(row["rank"], state, None if waited is None else end - waited, end, what))
    first = min((span.end_s if span.begin_s is None else span.begin_s for span in found), default=0.0)
    return [
        replace(span, begin_s=None if span.begin_s is None else span.begin_s - first, end_s=span.end_s - first)
        for span in found
    ]


def activity(records: pl.DataFrame) -> pl.DataFrame:
    """When each rank enqueued its last collectives: `rank`, `seq`, `op`, `at_s` from the first on, `is_last`."""
    timed = records.drop_nulls("created_ns").sort("rank", "seq")
    return timed.select(
        "rank",
        "seq",
        "op",
        at_s=(pl.col("created_ns") - pl.col("created_ns").min()) / 1e9,
        is_last=pl.col("seq") == pl.col("seq").max().over("rank"),
    )


@dataclass(frozen=True)
class Sequence2D:
    """Collectives of a group around a hang: `cells[rank][seq]` is a word of `STEP_STATE`."""

    ranks: tuple[int, ...]
    seqs: tuple[int, ...]
    cells: Mapping[int, Mapping[int, str]]
    names: Mapping[int, str]  # operation of most ranks, by sequence number
    records: Mapping[tuple[int, int], Row]


def sequence(records: pl.DataFrame, hang: Row) -> Sequence2D:
    """State of each rank with a dump in each collective around the one that hangs."""
    rows = {(row["rank"], row["seq"]): row for row in records.iter_rows(named=True)}
    seqs = [seq for seq in sorted({seq for _, seq in rows}) if hang["seq"] - BEFORE <= seq <= hang["seq"] + AFTER]
    ranks = sorted({rank for rank, _ in rows})
    first = {row["rank"]: row["first_seq"] for row in rows.values()}
    names, usual = {}, {}
    for seq in seqs:
        shapes = Counter(_shape(rows[rank, seq]) for rank in ranks if (rank, seq) in rows)
        usual[seq] = shapes.most_common(1)[0][0]
        names[seq] = str(usual[seq][0])
    cells = {
        rank: {seq: _state(rows.get((rank, seq)), usual[seq], first[rank] > seq) for seq in seqs} for rank in ranks
    }
    return Sequence2D(tuple(ranks), tuple(seqs), cells, names, rows)


def _shape(row: Row) -> tuple[Any, ...]:
    """What must agree over ranks; operations in which sizes differ by design are compared by their name alone."""
    op = str(row["op"])
    uneven = any(word in op for word in ("all_to_all", "alltoall", "scatter", "gather")) and "reduce" not in op
    return (op,) if uneven else (op, row["input_sizes"], row["output_sizes"], row["input_dtypes"], row["output_dtypes"])


def _state(row: Row | None, usual: tuple[Any, ...], is_overwritten: bool) -> str:
    if row is None:
        return "lost" if is_overwritten else "absent"
    if _shape(row) != usual:
        return "differs"
    is_gloo = str(row["profiling_name"]).startswith("gloo:")
    has_ended = row["is_retired"] if is_gloo else row["op_state"] == "completed"
    return "ended" if has_ended else "waits"


def variants(records: pl.DataFrame, seq: int) -> pl.DataFrame:
    """What ranks brought to one collective: a row per distinct operation, sizes and types, most ranks first."""
    keys = ["op", "input_sizes", "input_dtypes", "output_sizes", "output_dtypes", "op_state"]
    return (
        records.filter(pl.col("seq") == seq)
        .group_by(keys, maintain_order=True)
        .agg(ranks=pl.col("rank").sort().cast(pl.String).str.join(","), num_ranks=pl.len().cast(pl.Int64))
        .sort("num_ranks", descending=True, maintain_order=True)
    )


def last_stacks(records: pl.DataFrame, ranks: Sequence[int]) -> list[tuple[int, Row]]:
    """The last record of each of these ranks that holds a stack."""
    kept = records.filter(pl.col("rank").is_in(list(ranks)) & pl.col("stack").is_not_null()).sort("rank", "seq")
    return [(row["rank"], row) for row in kept.group_by("rank", maintain_order=True).last().iter_rows(named=True)]
