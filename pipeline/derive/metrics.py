"""Derived performance of `runs`: throughput, MFU, GPU-hours, and what may not be ranked.

MFU here is model FLOPs utilisation as in PaLM (Chowdhery et al. 2022, appendix B): the training FLOPs that the model
needs, without recomputation, over the dense peak at the precision of the matrix products. It is always recomputed;
what a log or a paper prints stays in `mfu_logged`.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.derive.flops import FORMULA, model_flops
from sweepscope.pipeline.reference.accelerators import (
    SIXTEEN_BIT,
    has_eight_bit_peak,
    highest_peak_tflops,
    is_known,
    peak_tflops,
)
from sweepscope.schemas.tables.runs import RUNS
from sweepscope.schemas.thresholds import HFU_MARGIN, SIXTEEN_BIT_MFU, STAMPED_SHARE

_col = pl.col

# polars divides one row and many rows by a number with different kernels, which differ in the last bit. It multiplies
# them alike, and a run must get the same figures whatever it is read together with.
_HOURS_PER_S = 1 / 3600


def _step_tokens() -> pl.Expr:
    """Tokens of a step; NULL where the numbers of its steps, and so their times, are those of epochs."""
    return pl.when(_col("step_basis").fill_null("step") != "whole_epoch").then("gbs_tokens")


def _fill_throughput(runs: pl.DataFrame) -> pl.DataFrame:
    """Step time, tokens/s and tokens/s/GPU from each other; a logged value is never replaced."""
    return runs.with_columns(
        tokens_per_s=pl.coalesce(
            "tokens_per_s", _col("tokens_per_s_per_gpu") * _col("num_gpus"), _step_tokens() / _col("step_time_s")
        )
    ).with_columns(
        tokens_per_s_per_gpu=pl.coalesce("tokens_per_s_per_gpu", _col("tokens_per_s") / _col("num_gpus")),
        step_time_s=pl.coalesce(
            "step_time_s", pl.when(_col("tokens_per_s") > 0).then(_step_tokens() / _col("tokens_per_s"))
        ),
        step_time_basis=pl.coalesce(
            "step_time_basis",
            pl.when(_col("step_time_s").is_null() & (_col("tokens_per_s") > 0) & _step_tokens().is_not_null()).then(
                pl.lit("throughput")
            ),
        ),
    )


def _basis(peak: pl.Expr) -> pl.Expr:
    """How `mfu` was computed, or the first reason why it could not be."""
    precision = (
        pl.when(_col("precision").is_null())
        .then(pl.lit("16-bit, precision not stated"))
        .when(_col("precision").is_in(SIXTEEN_BIT))
        .then(pl.lit("16-bit"))
        .otherwise(_col("precision").str.to_uppercase())
    )
    return (
        pl.when(_col("tokens_per_s_per_gpu").is_null() & _col("tokens_per_s").is_not_null())
        .then(pl.lit("not computed: number of GPUs unknown"))
        .when(_col("tokens_per_s_per_gpu").is_null())
        .then(pl.lit("not computed: no throughput"))
        .when(_col("flops_per_token").is_null())
        .then(pl.lit("not computed: parameters unknown"))
        .when(_col("accelerator").is_null())
        .then(pl.lit("not computed: accelerator unknown"))
        .when(~is_known())
        .then(pl.format("not computed: {} is not in the accelerators table", "accelerator"))
        .when(_col("precision") == "unclear")
        .then(pl.lit("not computed: precision not stated, 8-bit or lower possible"))
        .when(_is_beyond_sixteen_bit())
        .then(
            pl.format(
                "not computed: {} TFLOP/s is more than 16-bit products reach on {}, and the precision is not stated",
                _col("model_tflops_per_gpu").round(0).cast(pl.Int64),
                "accelerator",
            )
        )
        .when(peak.is_null())
        .then(pl.format("not computed: no {} peak for {}", _col("precision").fill_null("16-bit"), "accelerator"))
        .otherwise(pl.format("{}; peak {} TFLOP/s ({})", FORMULA, peak.cast(pl.Int64), precision))
    )


def _is_beyond_sixteen_bit() -> pl.Expr:
    """Whether a run that states no precision is too fast to have used 16 bits, on a card that has fewer."""
    is_too_fast = _col("model_tflops_per_gpu") > SIXTEEN_BIT_MFU * peak_tflops()
    return (_col("precision").is_null() & has_eight_bit_peak() & is_too_fast).fill_null(value=False)


def _impossible() -> pl.Expr:
    """Why the figures of a completed run contradict each other; NULL for every other run.

    TFLOP/s that a framework prints are no evidence: their formulas leave out gates, attention or heads. HFU counts more
    work than MFU, so one far below it means that tokens/s, batch or step time are wrong.
    """
    degrees = _col("dp") * _col("tp") * _col("pp") * _col("cp").fill_null(1)
    reason = (
        pl.when(degrees != _col("num_gpus"))
        .then(pl.format("the layout needs {} accelerators, the run had {}", degrees, "num_gpus"))
        .when(_col("model_tflops_per_gpu") > highest_peak_tflops())
        .then(pl.format("{} TFLOP/s is above the accelerator's peak", _col("model_tflops_per_gpu").round(0)))
        .when(_col("mfu") > HFU_MARGIN * _col("hfu"))
        .then(
            pl.format(
                "tokens/s imply an MFU of {} %, the printed HFU is {} %",
                (100 * _col("mfu")).round(1),
                (100 * _col("hfu")).round(1),
            )
        )
    )
    return pl.when(_col("status") == "completed").then(reason)


def steps_done() -> pl.Expr:
    """Steps from the first logged one to the last; NULL where the numbers of the logged values count something else."""
    counted = _col("last_step") - _col("first_step") + 1
    return pl.when(_col("step_basis").fill_null("step") != "ordinal").then(counted)


def fill_gpu_hours(runs: pl.DataFrame) -> pl.DataFrame:
    """`gpu_hours` and `gpu_hours_basis`; a given value is never replaced.

    A log shows its run from its first to its last timestamp. Where that is one moment, or ends long before the steps do
    (only the launcher's lines carry a time), steps times median step time is the better lower bound.
    """
    stamped_s = (_col("ended_at") - _col("started_at")).dt.total_milliseconds() * 1e-3
    stamped_s = pl.when(stamped_s > 0).then(stamped_s)  # a single timestamp spans nothing: unknown, not 0
    stepped_s = steps_done() * _col("step_time_s")
    is_stamped = stamped_s.is_not_null() & (stamped_s >= STAMPED_SHARE * stepped_s).fill_null(value=True)
    seconds = pl.when(is_stamped).then(stamped_s).otherwise(stepped_s)
    known = seconds.is_not_null() & _col("num_gpus").is_not_null()
    basis = (
        pl.when(_col("gpu_hours").is_not_null())
        .then(pl.lit("given"))
        .when(known & is_stamped)
        .then(pl.lit("timestamps"))
        .when(known)
        .then(pl.lit("steps"))
    )
    return runs.with_columns(
        gpu_hours=pl.coalesce("gpu_hours", seconds * _col("num_gpus") * _HOURS_PER_S),
        gpu_hours_basis=pl.coalesce("gpu_hours_basis", basis),
    )


def add_metrics(runs: pl.DataFrame) -> pl.DataFrame:
    """Recompute throughput, FLOPs, MFU, GPU-hours and quarantine of a `runs` frame that was normalised.

    `mfu` is NULL, with the reason in `mfu_basis`, when any factor is unknown; a lower bound where `flops_basis` is
    `parameters`, which leaves attention out.
    """
    runs = fill_gpu_hours(_fill_throughput(RUNS.conform(runs)))
    peak = pl.when(~_is_beyond_sixteen_bit()).then(peak_tflops())
    return (
        runs.with_columns(model_flops(runs).get_columns())
        .with_columns(model_tflops_per_gpu=_col("flops_per_token") * _col("tokens_per_s_per_gpu") * 1e-12)
        .with_columns(peak_tflops=peak, mfu_basis=_basis(peak))
        .with_columns(mfu=_col("model_tflops_per_gpu") / _col("peak_tflops"))
        .with_columns(quarantine_reason=pl.coalesce("quarantine_reason", _impossible()))
        .drop(FORMULA)
    )
