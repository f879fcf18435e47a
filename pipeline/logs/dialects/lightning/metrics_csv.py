"""`metrics.csv` of Lightning's CSVLogger: a row a call of log(), empty where that call had no such name.

Format: lightning/pytorch/loggers/csv_logs.py; callbacks/throughput_monitor.py for the names below `train/`. The step
counts optimizer steps from 0; but litgpt, which logs the number of each micro batch as `iter`, counts those
(litgpt/pretrain.py fit: `log_dict(metrics, step=state["iter_num"] - 1)`).
"""

from __future__ import annotations

import io
from collections.abc import Sequence

import polars as pl

from sweepscope.pipeline.io.bounded import check_table
from sweepscope.pipeline.logs.dialects.huggingface.rates import with_rates
from sweepscope.pipeline.logs.facts import STEP_BASIS, STEP_FACTS, conform
from sweepscope.pipeline.logs.trackers.tracked_run import Row, TrackedRun, is_wanted
from sweepscope.pipeline.logs.trackers.tracked_run import steps as tracked_steps
from sweepscope.pipeline.text.quantities import number

_NEMO = ("reduced_train_loss", "train_step_timing in s")
_LOSSES = (
    *("reduced_train_loss", "train/loss_step", "train_loss_step", "train/loss", "train_loss", "loss_step", "loss"),
)
_COLUMNS = {
    "step_time_s": ("train_step_timing in s",),
    "tokens_per_s": ("train/items_per_sec",),
    "tokens_per_s_per_gpu": ("tokens_per_sec_per_gpu", "train/device/items_per_sec"),
    "tflops_per_gpu_logged": ("TFLOPS_per_GPU",),
    "mfu_logged": ("train/device/mfu",),
    "mem_reserved_bytes": ("max_memory_reserved",),
    "mem_allocated_bytes": ("max_memory_allocated",),
    "grad_norm": ("grad_norm",),
    "learning_rate": ("lr",),
    "seconds": ("elapsed_time", "train/time"),  # since the beginning
    "tokens": ("num_tokens", "train/lengths"),
}


def read(text: str) -> pl.DataFrame:
    """Steps of a custom script. Raises ValueError for other tables, NeMo's among them."""
    table = _table(text)
    if set(_NEMO) & set(table.columns):
        raise ValueError("the table is NeMo's")
    return _with_own_names(_steps_of(table), table)


def _with_own_names(steps: pl.DataFrame, table: pl.DataFrame) -> pl.DataFrame:
    """`steps` with what the script logged under names of its own, as trackers' are read: `train/tokens_per_sec`."""
    fixed = {"step", "iter", *_LOSSES, *(name for names in _COLUMNS.values() for name in names)}
    names = [name for name in table.columns if name not in fixed and is_wanted(name)]
    if not names or "iter" in table.columns:  # litgpt's, whose times are those of micro batches
        return steps
    values = table.select(number(pl.col(name)) for name in ("step", *names))
    scalars = (
        {name: value for name, value in row.items() if value is not None} for row in values.iter_rows(named=True)
    )
    rows = [Row(at, int(one["step"]), None, one) for at, one in enumerate(scalars, 2) if "step" in one and len(one) > 1]
    try:
        own = tracked_steps(TrackedRun(rows))
    except ValueError:  # nothing of a training's steps among them
        return steps
    joined = steps.join(own, on="step", how="left", suffix="_own", maintain_order="left")
    return joined.select(
        pl.coalesce(name, f"{name}_own") if f"{name}_own" in joined.columns else name for name in steps.columns
    )


def read_nemo(text: str) -> pl.DataFrame:
    """Steps as NeMo leaves them. Raises ValueError for other tables."""
    table = _table(text)
    if not set(_NEMO) & set(table.columns):
        raise ValueError("no name of NeMo's in its header")
    return _steps_of(table)


def _table(text: str) -> pl.DataFrame:
    header = text.split("\n", 1)[0].strip().split(",")
    if "step" not in header or not set(header) & {*_LOSSES, *_NEMO}:
        raise ValueError("no table of steps with their loss")
    check_table(columns=len(header), rows=text.count("\n"), size=len(text))
    return pl.read_csv(io.StringIO(text), infer_schema=False, truncate_ragged_lines=True)


def _steps_of(table: pl.DataFrame) -> pl.DataFrame:
    """A step may stand in several rows: one per call of log()."""

    def first_known(names: Sequence[str]) -> pl.Expr:
        return pl.coalesce(*(number(pl.col(name)) for name in names if name in table.columns), pl.lit(None, pl.Float64))

    is_batch = number(pl.col("iter")) == number(pl.col("step")) + 1 if "iter" in table.columns else pl.lit(value=False)
    rows = table.select(
        step_basis=pl.when(is_batch).then(pl.lit("batch")).cast(STEP_BASIS),
        line_no=pl.int_range(pl.len(), dtype=pl.Int64) + 2,
        step=number(pl.col("step")).cast(pl.Int64, strict=False),
        loss=first_known(_LOSSES),
        **{column: first_known(names) for column, names in _COLUMNS.items()},
    )
    merged = (
        rows.drop_nulls("step")
        .group_by("step", maintain_order=True)
        .agg(
            pl.col("line_no").min(),
            pl.col("step_basis").first(),
            *(pl.col(name).drop_nulls().first() for name in ("loss", *_COLUMNS)),
        )
    )
    measured = merged.filter(pl.any_horizontal(pl.col(name).is_not_null() for name in ("loss", "step_time_s")))
    exact = {"seconds_off": pl.lit(0.0), "tokens_off": pl.lit(0.0), "part": pl.lit(0), "source": pl.lit(0, pl.Int64)}
    stated = measured.sort("line_no").with_columns(**exact, stated_s="step_time_s", stated_rate="tokens_per_s")
    timed = with_rates(stated).with_columns(
        source=None,
        step_time_s=pl.coalesce("stated_s", "step_time_s"),
        tokens_per_s=pl.coalesce("stated_rate", "tokens_per_s"),
        consumed_tokens=pl.col("tokens"),
    )
    return conform(timed, STEP_FACTS)
