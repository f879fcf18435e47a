"""Steps that took much longer from some step on.

The change point is that of Pettitt (1979), "A non-parametric approach to the change-point problem", Applied Statistics
28(2): with r_i the ranks of n costs, U_k = 2 * sum(r_1..r_k) - k (n + 1) is lowest where the costs rise, and for a rise
of K = -min U about p = exp(-6 K^2 / (n^3 + n^2)). By using ranks it ignores how slow a single step was, so checkpoints
and evaluations, a minority of the steps, are no slowdown. One is reported when p < SLOWDOWN_P_MAX, the median cost
after the change is SLOWDOWN_FACTOR times that before it, and SLOWDOWN_SIDE_STEPS steps lie on either side.

The cost of a step is the inverse of its tokens/s, so that a growing batch is no slowdown, else its time.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from sweepscope.pipeline.io.spill import SLICE_ROWS, release, stretches
from sweepscope.pipeline.logs.diagnostics.finding import FINDING, finding
from sweepscope.pipeline.logs.steady_state import MAX_WARMUP_STEPS, in_runs, warmup_steps
from sweepscope.pipeline.text.arrow_buffers import owned
from sweepscope.schemas.thresholds import (
    SLOWDOWN_COVERAGE,
    SLOWDOWN_FACTOR,
    SLOWDOWN_MIN_STEPS,
    SLOWDOWN_MOST_STEPS,
    SLOWDOWN_P_MAX,
    SLOWDOWN_SIDE_STEPS,
)

_QUANTITIES = ("tokens_per_s", "tokens_per_s_per_gpu", "step_time_s")


def slowdowns(steps: pl.DataFrame) -> pl.DataFrame:
    """FINDING rows of kind `slowdown`, at most one per run.

    `steps`: `run_id`, `source_path`, `line_no`, `ts`, `step`, `step_time_s`, `tokens_per_s`, `tokens_per_s_per_gpu`.
    """
    steps = in_runs(steps)
    numbered = _sampled(steps)
    parts = [_risen(numbered, quantity, runs) for quantity, runs in _covered(numbered).items()]
    if all(part.is_empty() for part in parts):
        return pl.DataFrame(schema=FINDING)
    rows = pl.concat(parts)
    of_step = numbered.select("row", "step", "step_time_s")
    rows = rows.join(of_step, on="row", maintain_order="left").with_columns(
        number=pl.int_range(1, pl.len() + 1).over("run"), n=pl.len().cast(pl.Int64).over("run")
    )
    number, n = pl.col("number"), pl.col("n")
    is_inner = number.is_between(SLOWDOWN_SIDE_STEPS, n - SLOWDOWN_SIDE_STEPS)
    # The test shows that costs rose. Where they did is the split with the least squares of the logarithms, after a
    # running median that removes single slow steps.
    level = pl.col("cost").rolling_median(SLOWDOWN_SIDE_STEPS, min_samples=1, center=True).log()
    rows = rows.with_columns(level=(level - level.mean()).over("run"))
    between = pl.col("level").cum_sum().over("run") / (number * (n - number)).sqrt()
    rows = rows.with_columns(split=number.sort_by(pl.when(is_inner).then(between), nulls_last=True).first().over("run"))
    is_after = number > pl.col("split")
    # To the very step: the split with fewest steps on the wrong side of the geometric mean of both medians.
    medians = [pl.col("cost").filter(side).median().over("run") for side in (~is_after, is_after)]
    side = pl.when(pl.col("cost") <= (medians[0] * medians[1]).sqrt()).then(-1).otherwise(1)
    rows = rows.with_columns(wrong=side.cum_sum().over("run"))
    rows = rows.with_columns(
        split=number.sort_by(pl.when(is_inner).then("wrong"), nulls_last=True, maintain_order=True).first().over("run")
    )
    changes = rows.group_by("run").agg(
        n=n.first(),
        split=pl.col("split").first(),
        before=pl.col("cost").filter(~is_after).median(),
        after=pl.col("cost").filter(is_after).median(),
        near_before=pl.col("cost").filter(~is_after).tail(SLOWDOWN_SIDE_STEPS).median(),
        near_after=pl.col("cost").filter(is_after).head(SLOWDOWN_SIDE_STEPS).median(),
        time_before=pl.col("step_time_s").filter(~is_after).median(),
        time_after=pl.col("step_time_s").filter(is_after).median(),
        since=pl.col("step").filter(is_after).first(),
        row=pl.col("row").filter(is_after).first(),
        stride=(pl.col("step").last() - pl.col("step").first()) / (n.first() - 1),
    )
    ratio = pl.col("after") / pl.col("before")
    slow = changes.filter(ratio >= SLOWDOWN_FACTOR).with_columns(ratio=ratio)
    lines = steps["run_id", "source_path", "line_no", "ts"][slow["row"]]
    return finding(slow.with_columns(*lines.iter_columns(), text=_text()), "slowdown")


def _sampled(steps: pl.DataFrame) -> pl.DataFrame:
    """`row`, `run`, `step` and quantities of the steps in order.

    Of a run with very many, some from everywhere and those to be left out as warm-up: a change that lasts shows in them
    as well, and ranks of all would take as much memory as the run is long.
    """
    read = steps["run", "step", *_QUANTITIES]
    lengths = stretches(steps["run"])["len"].to_numpy().astype(np.int64)
    if not (lengths > SLOWDOWN_MOST_STEPS).any():
        return read.with_row_index("row")
    stops = np.cumsum(lengths)
    kept = [
        np.unique(
            np.concatenate([np.arange(begin, min(begin + MAX_WARMUP_STEPS, stop)), np.arange(begin, stop, every)])
        )
        for begin, stop, every in zip(stops - lengths, stops, -(-lengths // SLOWDOWN_MOST_STEPS), strict=True)
    ]
    rows, parts = np.concatenate(kept), []
    for begin in range(0, steps.height, SLICE_ROWS):
        inner = rows[np.searchsorted(rows, begin) : np.searchsorted(rows, begin + SLICE_ROWS)] - begin
        parts.append(owned(read[begin : begin + SLICE_ROWS][inner]))
        release()
    return pl.concat(parts).with_columns(row=pl.Series(rows, dtype=pl.UInt32))


def _is_good(quantity: str) -> pl.Expr:
    return (pl.col(quantity) > 0) & pl.col(quantity).is_finite()


def _covered(steps: pl.DataFrame) -> dict[str, pl.Series]:
    """Numbers of runs with enough steps, by the first quantity that enough of their steady steps log."""
    logged = pl.len()
    covers = (_is_good(name).slice(warmup_steps(logged)).sum() >= SLOWDOWN_COVERAGE * logged for name in _QUANTITIES)
    first = pl.coalesce(pl.when(cover).then(pl.lit(name)) for name, cover in zip(_QUANTITIES, covers, strict=True))
    of_run = steps.group_by("run").agg(first=pl.when(logged >= SLOWDOWN_MIN_STEPS).then(first)).drop_nulls("first")
    return {name: part["run"] for (name,), part in of_run.partition_by("first", as_dict=True).items()}


def _risen(steps: pl.DataFrame, quantity: str, runs: pl.Series) -> pl.DataFrame:
    """`run`, `row`, `cost` of the steady steps with a cost, for those of `runs` in which Pettitt's test finds a rise.

    The test works run by run: columns with the costs and ranks of all steps would need as much memory again.
    """
    value = pl.col(quantity) if quantity == "step_time_s" else 1 / pl.col(quantity)
    steady = pl.when(_is_good(quantity)).then(value).slice(warmup_steps(pl.len()))
    cost = steady.drop_nulls()
    n = cost.len()
    minus_u = pl.int_range(1, n + 1) * (n + 1) - 2 * cost.rank("average").cum_sum()
    of_run = steps.group_by("run").agg(k=minus_u.max(), n=n.cast(pl.Float64))
    p = (-6 * pl.col("k") ** 2 / (pl.col("n") ** 3 + pl.col("n") ** 2)).exp()
    risen = of_run.filter((p < SLOWDOWN_P_MAX) & pl.col("run").is_in(runs.implode()))["run"]
    rows = steps.filter(pl.col("run").is_in(risen.implode())).group_by("run", maintain_order=True)
    return rows.agg(pl.col("row").slice(warmup_steps(pl.len())), cost=steady).explode("row", "cost").drop_nulls("cost")


def _text() -> pl.Expr:
    """The change in seconds per step where both sides log them, else as a ratio of tokens/s."""
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
    # The few steps around a jump show all of it, those around a gradual rise little.
    is_gradual = pl.col("near_after") / pl.col("near_before") < pl.col("ratio").sqrt()
    lost_s = (pl.col("time_after") - pl.col("time_before")) * sizes[0] * pl.col("stride")
    cost = pl.when(lost_s > 0).then(pl.format("; it cost about {} min", (lost_s / 60).round(1)))
    manner = pl.when(is_gradual).then(pl.lit("; it rose gradually rather than at once"))
    return pl.concat_str(pl.coalesce(in_time, in_tokens), manner, cost, ignore_nulls=True)
