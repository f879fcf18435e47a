"""Log lines on a hang, one row each, as the page on an incident shows them."""

from __future__ import annotations

from collections import defaultdict

import polars as pl

from sweepscope.pipeline.nccl.tables.hangs import moment

_OF_A_HANG = ("timeout", "status", "dump", "stuck")
_SAME = ["source", "kind", "rank", "op", "seq", "group"]


def hang_lines(facts: pl.DataFrame) -> pl.DataFrame:
    """Rows of `nccl_hang_lines` for `watchdog` facts with their `unit`; none of units without a line on a hang.

    PyTorch repeats a timeout in the exception and in `what():`; the first line of each rank and collective is
    kept. What a rank printed as it failed is kept beside timeouts only: elsewhere it is an event of the run.
    """
    hung = facts.filter(pl.col("kind").is_in(_OF_A_HANG))["unit"].unique()
    kept = facts.filter(pl.col("unit").is_in(hung.implode()), pl.col("kind") != "world")
    first_lines = kept.sort("source", "line_no", maintain_order=True).unique(_SAME, keep="first", maintain_order=True)
    stamps: dict[str, list[str | None]] = defaultdict(list)
    for unit, stamp in first_lines.select("unit", "stamp").iter_rows():
        stamps[unit].append(stamp)
    seconds = {unit: iter(_seconds(of_unit)) for unit, of_unit in stamps.items()}
    printed_after_s = pl.Series([next(seconds[unit]) for unit in first_lines["unit"]], dtype=pl.Float64)
    return first_lines.select(**_columns()).with_columns(printed_after_s=printed_after_s)


def _seconds(stamps: list[str | None]) -> list[float | None]:
    """Seconds from the first printed time on. glog prints no year, so its times are not compared with full dates."""
    is_glog = any(stamp and "-" not in stamp for stamp in stamps)
    moments = [moment(stamp) if stamp and ("-" not in stamp) == is_glog else None for stamp in stamps]
    first = min((at for at in moments if at is not None), default=None)
    return [None if at is None or first is None else (at - first).total_seconds() for at in moments]


def _columns() -> dict[str, pl.Expr]:
    """Garbage that old builds print as the last completed collective is unknown (see `hangs`)."""
    completed = pl.col("completed")
    return {
        "source": pl.col("source"),
        "line_no": pl.col("line_no"),
        "hang_line_kind": pl.col("kind"),
        "rank": pl.col("rank"),
        "op": pl.col("op"),
        "seq": pl.col("seq"),
        "process_group": pl.col("group"),
        "ran_for_ms": pl.col("ran_for_ms"),
        "timeout_ms": pl.col("timeout_ms"),
        "last_enqueued_seq": pl.col("enqueued"),
        "last_completed_seq": pl.when(completed <= pl.col("enqueued")).then(completed),
        "printed_at": pl.col("stamp"),
        "text": pl.col("text"),
    }
