"""Ranks and hosts that were slower than the others, from straggler detectors and from step lines of several ranks.

- Megatron's StragglerDetector reports the fastest and the slowest rank of each log interval with their time per
  iteration (core/utils.py). A rank is a straggler if it was the slowest in at least STRAGGLER_REPORTS_SHARE of the
  reports, by STRAGGLER_FACTOR.
- nvidia-resiliency-ext scores ranks between 0 and 1 (1 = as fast as the best, or as its own best) and warns of those
  below its threshold. Every rank that it names is one.
- Where ranks print their own step lines, a rank is one whose cost is STRAGGLER_FACTOR times the median over ranks of
  the same step, in the median over at least STRAGGLER_MIN_STEPS steps that at least STRAGGLER_MIN_RANKS ranks print.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.diagnostics.finding import FINDING, finding
from sweepscope.pipeline.logs.evidence.symptoms import MEGATRON_SLOWEST, NRX_SCORE
from sweepscope.schemas.thresholds import (
    STRAGGLER_FACTOR,
    STRAGGLER_MIN_RANKS,
    STRAGGLER_MIN_STEPS,
    STRAGGLER_REPORTS_SHARE,
)

_MOST_RANKS = 5
"""Ranks per run that become findings, those reported most often first."""

_WARNED = r"StragglerId\(rank=(\d+), node='?([^',)]*)'?"
_WARNED_PLAIN = r"Affected ranks: [\[{]([\d, ]+)[\]}]"


def reported(lines: pl.DataFrame) -> pl.DataFrame:
    """FINDING rows of kind `straggler` from the lines of detectors (FINDING rows of that kind)."""
    if lines.is_empty():
        return pl.DataFrame(schema=FINDING)
    return pl.concat([_megatron(lines), _scored(lines)])


def _megatron(lines: pl.DataFrame) -> pl.DataFrame:
    text = pl.col("text")
    rows = lines.filter(text.str.contains(MEGATRON_SLOWEST)).with_columns(
        fast_ms=text.str.extract(MEGATRON_SLOWEST, 1).cast(pl.Float64, strict=False),
        slow_ms=text.str.extract(MEGATRON_SLOWEST, 3).cast(pl.Float64, strict=False),
        rank=text.str.extract(MEGATRON_SLOWEST, 4).cast(pl.Int64, strict=False),
        reports=pl.len().over("run_id"),
    )
    ranks = rows.group_by("run_id", "rank", maintain_order=True).agg(
        times=pl.len(),
        reports=pl.col("reports").first(),
        fast_ms=pl.col("fast_ms").median(),
        slow_ms=pl.col("slow_ms").median(),
        ratio=(pl.col("slow_ms") / pl.col("fast_ms")).median(),
        source_path=pl.col("source_path").first(),
        line_no=pl.col("line_no").first(),
        ts=pl.col("ts").first(),
    )
    slow = ranks.filter(
        (pl.col("ratio") >= STRAGGLER_FACTOR) & (pl.col("times") >= STRAGGLER_REPORTS_SHARE * pl.col("reports"))
    )
    text = pl.format(
        "rank {} was the slowest in {} of {} reports: {} ms an iteration against {} ms of the fastest rank, {} times",
        "rank",
        "times",
        "reports",
        pl.col("slow_ms").round(1),
        pl.col("fast_ms").round(1),
        pl.col("ratio").round(2),
    )
    return finding(slow.with_columns(text=text, host=pl.lit(None, pl.String)), "straggler")


def _scored(lines: pl.DataFrame) -> pl.DataFrame:
    """FINDING rows for ranks of score lines and of warnings, with their node and lowest score."""
    text = pl.col("text")
    line = ("run_id", "source_path", "line_no", "ts")
    scores = lines.filter(text.str.contains(NRX_SCORE)).select(
        *line,
        text.str.extract(NRX_SCORE, 1).alias("r"),
        text.str.extract(NRX_SCORE, 2).alias("host"),
        score=text.str.extract(NRX_SCORE, 3).cast(pl.Float64, strict=False),
        is_warned=pl.lit(value=False),
    )
    warned = (
        lines.select(*line, hit=text.str.extract_all(_WARNED))
        .explode("hit")
        .drop_nulls("hit")
        .select(
            *line,
            pl.col("hit").str.extract(_WARNED, 1).alias("r"),
            pl.col("hit").str.extract(_WARNED, 2).alias("host"),
            score=pl.lit(None, pl.Float64),
            is_warned=pl.lit(value=True),
        )
    )
    plain = (
        lines.select(*line, r=text.str.extract(_WARNED_PLAIN).str.split(","))
        .explode("r")
        .drop_nulls("r")
        .select(
            *line,
            pl.col("r").str.strip_chars(),
            host=pl.lit(None, pl.String),
            score=pl.lit(None, pl.Float64),
            is_warned=pl.lit(value=True),
        )
    )
    rows = pl.concat([scores, warned, plain]).with_columns(rank=pl.col("r").cast(pl.Int64, strict=False))
    ranks = (
        rows.drop_nulls("rank")
        .group_by("run_id", "rank", maintain_order=True)
        .agg(
            times=pl.col("line_no").n_unique(),
            warnings=pl.col("is_warned").sum(),
            score=pl.col("score").min(),
            host=pl.col("host").drop_nulls().first(),
            source_path=pl.col("source_path").first(),
            line_no=pl.col("line_no").first(),
            ts=pl.col("ts").first(),
        )
    )
    text = pl.concat_str(
        pl.format("rank {}", "rank"),
        pl.format(" on {}", "host"),
        pl.lit(" is slower than the others"),
        pl.format(": its score fell to {} (1 is full speed)", "score"),
        pl.when(pl.col("warnings") > 0).then(pl.format("; warnings: {}", "warnings")),
        ignore_nulls=True,
    )
    named = ranks.sort("run_id", "times", "score", "rank", descending=[False, True, False, False], nulls_last=True)
    return finding(named.with_columns(text=text).group_by("run_id", maintain_order=True).head(_MOST_RANKS), "straggler")


def printing(steps: pl.DataFrame) -> pl.DataFrame:
    """FINDING rows of kind `straggler` for ranks whose own step lines are slower than those of the others.

    `steps`: parsed STEP_FACTS rows of all ranks with `run_id` and `source_path`.
    """
    cost = pl.coalesce("step_time_s", 1 / pl.col("tokens_per_s_per_gpu"))
    rows = steps.drop_nulls("rank").with_columns(cost=pl.when(cost.is_finite() & (cost > 0)).then(cost))
    rows = rows.drop_nulls("cost").unique(["run_id", "step", "rank"], keep="first", maintain_order=True)
    at_step = ["run_id", "step"]
    rows = rows.filter(pl.len().over(at_step) >= STRAGGLER_MIN_RANKS)
    if rows.is_empty():
        return pl.DataFrame(schema=FINDING)
    ratio = pl.col("cost") / pl.col("cost").median().over(at_step)
    ranks = (
        rows.with_columns(ratio=ratio)
        .group_by("run_id", "rank", maintain_order=True)
        .agg(
            n=pl.len(),
            ratio=pl.col("ratio").median(),
            source_path=pl.col("source_path").first(),
            line_no=pl.col("line_no").first(),
            ts=pl.col("ts").first(),
        )
    )
    slow = ranks.filter((pl.col("ratio") >= STRAGGLER_FACTOR) & (pl.col("n") >= STRAGGLER_MIN_STEPS))
    slow = slow.sort("run_id", "ratio", "rank", descending=[False, True, False])
    text = pl.format(
        "rank {} takes {} times the median rank's time for a step (median over {} steps that several ranks print)",
        "rank",
        pl.col("ratio").round(2),
        "n",
    )
    return finding(slow.with_columns(text=text).group_by("run_id", maintain_order=True).head(_MOST_RANKS), "straggler")
