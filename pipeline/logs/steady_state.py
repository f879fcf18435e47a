"""Steady-state figures of a run from its logged steps."""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.figures import ROW, ROWS, drawn, first, last_known, least, most, of_runs, total

MAX_WARMUP_STEPS = 3
"""The number that picotron's extract_metrics.py drops."""


def warmup_steps(logged: pl.Expr) -> pl.Expr:
    """Number of leading logged steps left out of the medians: a fifth, at least one of several, at most three.

    The first logged step includes compilation and allocator warm-up in every framework.

    >>> pl.select(warmup_steps(pl.lit(10))).item()
    2
    """
    return pl.when(logged < 2).then(0).otherwise((logged // 5).clip(1, MAX_WARMUP_STEPS)).cast(pl.Int64)


def in_runs(steps: pl.DataFrame) -> pl.DataFrame:
    """`steps` sorted by run and step, with a number `run`: grouping by it costs a tenth of grouping by a text.

    Sorted only if needed, since a sort copies every column. Steps with a column `run` are returned as they are.

    >>> in_runs(pl.DataFrame({"run_id": ["b", "b", "a"], "step": [1, 2, 1]}))["run"].to_list()
    [0, 0, 1]
    >>> in_runs(pl.DataFrame({"run_id": ["b", "a", "b"], "step": [2, 1, 1]}))["step"].to_list()
    [1, 1, 2]
    >>> in_runs(pl.DataFrame({"run": [7, 7], "step": [2, 3]}))["run"].to_list()
    [7, 7]
    """
    if "run" in steps.columns:
        return steps
    numbered = steps.with_columns(run=pl.col("run_id").rle_id().set_sorted())
    is_back = (pl.col("step").diff() < 0) & (pl.col("run").diff() == 0)
    stretches = steps["run_id"].rle().struct.field("value")
    if stretches.n_unique() < stretches.len() or numbered.select(is_back.any()).item():
        return in_runs(steps.sort("run_id", "step"))
    return numbered


def summarise(steps: pl.DataFrame) -> pl.DataFrame:
    """One row per `run_id`: counts, first and last step, last finite loss, steady medians and spread.

    `steps` has the columns of the `steps` table. Medians ignore the warm-up steps and steps that did not log the
    quantity; the memory columns are the largest value of any step.
    """
    medians = ("step_time_s", "tokens_per_s", "tokens_per_s_per_gpu", "tflops_per_gpu_logged", "mfu_logged")
    is_steady = pl.col(ROW) >= warmup_steps(pl.col(ROWS))
    step_time = pl.col("step_time_s").fill_nan(None)
    time = step_time.filter(is_steady)
    figures = of_runs(
        in_runs(steps),
        run_id=first(pl.col("run_id")),
        **{name: drawn(pl.col(name).fill_nan(None).filter(is_steady), pl.Expr.median) for name in medians},
        steps_logged=first(pl.col(ROWS)),
        first_step=least(pl.col("step")),
        last_step=most(pl.col("step")),
        # The surest word comes first: a run is as sure as the least sure of its steps.
        step_basis=most(pl.col("step_basis").fill_null("step")),
        last_loss=last_known(pl.col("loss").filter(pl.col("loss").is_finite())),
        warmup_steps_dropped=first(warmup_steps(pl.col(ROWS))),
        timed_steps=total(time.is_not_null()),
        step_time_p10_s=drawn(time, lambda values: values.quantile(0.1, "linear")),
        step_time_p90_s=drawn(time, lambda values: values.quantile(0.9, "linear")),
        warmup_step_time_s=first(step_time),
        mem_peak_allocated_bytes=most(pl.col("mem_allocated_bytes")),
        mem_peak_reserved_bytes=most(pl.col("mem_reserved_bytes")),
    )
    is_timed = pl.col("timed_steps") > 0
    return figures.with_columns(
        pl.col("step_basis").cast(pl.String), step_time_basis=pl.when(is_timed).then(pl.lit("steps"))
    ).drop("run", "timed_steps")
