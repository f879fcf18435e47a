"""Runs that stretched: steps that took much longer from some step on.

The change point is that of Pettitt (1979), "A non-parametric approach to the change-point problem", Applied Statistics
28(2): with r_i the ranks of n costs, U_k = 2 * sum(r_1..r_k) - k (n + 1) is lowest where the costs rise, and for a rise
of K = -min U about p = exp(-6 K^2 / (n^3 + n^2)). Ranks make it blind to how slow a single slow step was, so
checkpoints and evaluations that are a minority of the steps do not make a slow-down. One is reported when p < P_MAX,
the median cost behind the change is SLOWER times that before it, and MIN_STEPS steps stand on either side.

The cost of a step is the inverse of its tokens/s, so that a batch that grows is no slow-down, else its time.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.diagnostics.finding import FINDING, finding
from sweepscope.pipeline.logs.steady_state import in_runs, warmup_steps

SLOWER = 1.5
P_MAX = 1e-3
MIN_STEPS = 5
STEPS = 20
_QUANTITIES = ("tokens_per_s", "tokens_per_s_per_gpu", "step_time_s")
_COVER = 0.8  # share of the steps that must log a quantity for it to count


def slowdowns(steps: pl.DataFrame) -> pl.DataFrame:
    """FINDING rows of kind `slowdown`, at most one per run.

    `steps`: `run_id`, `source_path`, `line_no`, `ts`, `step`, `step_time_s`, `tokens_per_s`, `tokens_per_s_per_gpu`.
    """
    numbered = in_runs(steps).with_row_index("row")
    parts = [_risen(numbered, quantity, runs) for quantity, runs in _covered(numbered).items()]
    if all(part.is_empty() for part in parts):
        return pl.DataFrame(schema=FINDING)
    rows = pl.concat(parts)
    of_step = numbered.select("row", "run_id", "source_path", "line_no", "ts", "step", "step_time_s")
    rows = rows.join(of_step, on="row", maintain_order="left").with_columns(
        place=pl.int_range(1, pl.len() + 1).over("run"), n=pl.len().cast(pl.Int64).over("run")
    )
    place, n = pl.col("place"), pl.col("n")
    is_inner = place.is_between(MIN_STEPS, n - MIN_STEPS)
    # Where: ranks see that costs rose, not how far apart they are. The split with the least squares of the logarithms,
    # after a running median that takes single slow steps away, does.
    level = pl.col("cost").rolling_median(MIN_STEPS, min_samples=1, center=True).log()
    rows = rows.with_columns(level=(level - level.mean()).over("run"))
    between = pl.col("level").cum_sum().over("run") / (place * (n - place)).sqrt()
    rows = rows.with_columns(split=place.sort_by(pl.when(is_inner).then(between), nulls_last=True).first().over("run"))
    is_after = place > pl.col("split")
    # And to the step: where fewest stand on the wrong side of the geometric mean of both medians.
    medians = [pl.col("cost").filter(side).median().over("run") for side in (~is_after, is_after)]
    side = pl.when(pl.col("cost") <= (medians[0] * medians[1]).sqrt()).then(-1).otherwise(1)
    rows = rows.with_columns(wrong=side.cum_sum().over("run"))
    rows = rows.with_columns(
        split=place.sort_by(pl.when(is_inner).then("wrong"), nulls_last=True, maintain_order=True).first().over("run")
    )
    changes = rows.group_by("run").agg(
        pl.col("run_id").first(),
        n=n.first(),
        split=pl.col("split").first(),
        before=pl.col("cost").filter(~is_after).median(),
        after=pl.col("cost").filter(is_after).median(),
        near_before=pl.col("cost").filter(~is_after).tail(MIN_STEPS).median(),
        near_after=pl.col("cost").filter(is_after).head(MIN_STEPS).median(),
        time_before=pl.col("step_time_s").filter(~is_after).median(),
        time_after=pl.col("step_time_s").filter(is_after).median(),
        since=pl.col("step").filter(is_after).first(),
        source_path=pl.col("source_path").filter(is_after).first(),
        line_no=pl.col("line_no").filter(is_after).first(),
        ts=pl.col("ts").filter(is_after).first(),
        stride=(pl.col("step").last() - pl.col("step").first()) / (n.first() - 1),
    )
    ratio = pl.col("after") / pl.col("before")
    slow = changes.filter(ratio >= SLOWER).with_columns(ratio=ratio)
    return finding(slow.with_columns(text=_text()), "slowdown")


def _is_good(quantity: str) -> pl.Expr:
    return (pl.col(quantity) > 0) & pl.col(quantity).is_finite()


def _covered(steps: pl.DataFrame) -> dict[str, pl.Series]:
    """Runs long enough, by the first quantity that enough of their steady steps log."""
    logged = pl.len()
    covers = (_is_good(name).slice(warmup_steps(logged)).sum() >= _COVER * logged for name in _QUANTITIES)
    first = pl.coalesce(pl.when(cover).then(pl.lit(name)) for name, cover in zip(_QUANTITIES, covers, strict=True))
    of_run = steps.group_by("run").agg(first=pl.when(logged >= STEPS).then(first)).drop_nulls("first")
    return {name: part["run"] for (name,), part in of_run.partition_by("first", as_dict=True).items()}


def _risen(steps: pl.DataFrame, quantity: str, runs: pl.Series) -> pl.DataFrame:
    """Costs of the steady steps that have one, of those of `runs` in which Pettitt's test sees a rise.

    The test looks at the rows of one run at a time: columns of the costs and places of all steps would be new memory.
    """
    value = pl.col(quantity) if quantity == "step_time_s" else 1 / pl.col(quantity)
    steady = pl.when(_is_good(quantity)).then(value).slice(warmup_steps(pl.len()))
    cost = steady.drop_nulls()
    n = cost.len()
    minus_u = pl.int_range(1, n + 1) * (n + 1) - 2 * cost.rank("average").cum_sum()
    of_run = steps.group_by("run").agg(k=minus_u.max(), n=n.cast(pl.Float64))
    p = (-6 * pl.col("k") ** 2 / (pl.col("n") ** 3 + pl.col("n") ** 2)).exp()
    risen = of_run.filter((p < P_MAX) & pl.col("run").is_in(runs.implode()))["run"]
    rows = steps.filter(pl.col("run").is_in(risen.implode())).group_by("run", maintain_order=True)
    return rows.agg(pl.col("row").slice(warmup_steps(pl.len())), cost=steady).explode("row", "cost").drop_nulls("cost")


def _text() -> pl.Expr:
    """In seconds a step where both sides log them, else as a ratio of tokens/s."""
    sizes = [pl.col("n") - pl.col("split"), pl.col("split")]
    in_time = pl.format(
        "from step {} on a step takes {} s, before it {} s: {} times as long (medians of {} and {} logged steps)",
        "since",
        pl.col("time_after").round(3),
        pl.col("time_before").round(3),
        (pl.col("time_after") / pl.col("time_before")).round(2),
        *sizes,
    )
    in_tokens = pl.format(
        "from step {} on tokens/s are 1/{} of those before (medians of {} and {} logged steps)",
        "since",
        pl.col("ratio").round(2),
        *sizes,
    )
    # A jump shows in the few steps around it; of a creep they show little.
    is_creep = pl.col("near_after") / pl.col("near_before") < pl.col("ratio").sqrt()
    lost_s = (pl.col("time_after") - pl.col("time_before")) * sizes[0] * pl.col("stride")
    cost = pl.when(lost_s > 0).then(pl.format("; it cost about {} min", (lost_s / 60).round(1)))
    creep = pl.when(is_creep).then(pl.lit("; it crept up rather than jumped"))
    return pl.concat_str(pl.coalesce(in_time, in_tokens), creep, cost, ignore_nulls=True)
