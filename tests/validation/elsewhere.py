"""Stand-ins for sweeps that are held back: tables judged by constants that were fitted on other tables only.

A table whose rows have a profile of their own is estimated as runs of a framework without one: by the constants of its
card's generation, pooled over the other tables. What the framework's source decides (`rows.stated_facts`), and what
nccl-tests measured of its cluster, is known.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from sweepscope.pipeline.estimate.calibration.pooled import without_table
from sweepscope.pipeline.estimate.calibration.published_tables import published_table
from sweepscope.pipeline.estimate.calibration.transfer_tables import transfers
from sweepscope.pipeline.estimate.learned.transfer import transfer_interval
from sweepscope.pipeline.estimate.physics.profile import choose_profile
from sweepscope.pipeline.estimate.rows.asking import OK, ChooseProfile
from sweepscope.pipeline.estimate.rows.ceiling import ceilings
from sweepscope.pipeline.estimate.rows.estimate_rows import estimate_frame
from tests.validation.cells import rank_cells
from tests.validation.knobs import worth
from tests.validation.noise import ceiling
from tests.validation.unseen import as_unknown

TABLES = (
    "bigscience_sweeps",
    "other_sweeps",
    "llm_foundry",
    "selene_megatron",
    "torchtitan",
    "simumax_b200",
    "mlperf_training",
    "ultrascale_playbook_all_runs",
)
_SWEEP = ("model", "accelerator", "num_gpus", "seq_len", "global_batch_tokens")
_LAYOUT = (
    *("dp", "tp", "pp", "cp", "micro_batch_size", "grad_accum", "zero_stage_or_fsdp", "recompute", "precision"),
    *("num_layers", "hidden_size", "num_heads"),
)
"""Columns of what runs of a sweep differ in."""


def _number(frame: pl.DataFrame, name: str) -> pl.Series:
    if name not in frame.columns:
        return pl.Series(name, [None] * frame.height, dtype=pl.Float64)
    return frame[name].cast(pl.Float64, strict=False)


def _estimated(table: str, choose: ChooseProfile | None = None) -> pl.DataFrame:
    frame = published_table(table)
    kept = estimate_frame(frame, choose or without_table(table))
    return kept.filter(pl.col("est_status") == OK)


def _completed(table: str) -> pl.DataFrame:
    """Estimated rows of runs that completed, with the seconds of their step as `s`."""
    frame = _estimated(table)
    is_done = frame["status"].is_in(["success", "completed"]).fill_null(True) if "status" in frame.columns else True
    return frame.with_columns(s=_number(frame, "step_time_s")).filter(is_done, pl.col("s") > 0)


def elsewhere() -> pl.DataFrame:
    """Per table: rank correlation and regret within its sweeps of at least eight runs, and the error of step times.

    Regret is the mean, the median, and the mean over the sweeps whose favourite took at most FAR times its estimate.
    """
    rows = []
    for table in TABLES:
        frame = _completed(table)
        measured, predicted = frame["s"].to_numpy(), frame["est_step_time_s"].to_numpy()
        names = [name for name in _SWEEP if name in frame.columns]
        sweeps = frame.select(names).rows()
        sizes = frame.group_by(names).len().filter(pl.col("len") >= 8).height if frame.height else 0
        error = np.abs(predicted / measured - 1)
        found = rank_cells(sweeps, predicted, measured) if sizes else None
        rows.append(
            (
                table,
                frame.height,
                100 * float(np.mean(error)) if frame.height else None,
                100 * float(np.median(error)) if frame.height else None,
                sizes,
                found.spearman if found else None,
                100 * found.pairs_right if found else None,
                100 * found.regret if found else None,
                100 * found.median_regret if found else None,
                100 * found.near_regret if found else None,
            )
        )
    ranks = ["Spearman", "pairs 10 % apart, right %"]
    regrets = ["regret %", "in the median %", "of near favourites %"]
    schema = ["table", "rows", "time MAPE %", "median %", "sweeps", *ranks, *regrets]
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    mean = frame.select(pl.lit("mean").alias("table"), pl.col("median %", *ranks, *regrets).mean())
    return pl.concat([frame, mean], how="diagonal")


def noise_ceilings() -> pl.DataFrame:
    """Per table with sweeps: what runs that should be equal leave of rank correlation and regret to any estimate.

    Equal are runs of one layout; without a pipeline under ZeRO-0 and 1, too, which differ in the optimizer's states.
    """
    rows = []
    for table in TABLES:
        frame = _completed(table)
        if "zero_stage_or_fsdp" not in frame.columns:
            frame = frame.with_columns(zero_stage_or_fsdp=pl.lit(None, pl.String))
        is_alike = (pl.col("pp") == "1") & (pl.col("zero_stage_or_fsdp") == "zero1")
        zero = pl.when(is_alike).then(pl.lit("zero0")).otherwise(pl.col("zero_stage_or_fsdp"))
        frame = frame.with_columns(zero_stage_or_fsdp=zero)
        cell, layout = ([name for name in names if name in frame.columns] for names in (_SWEEP, (*_SWEEP, *_LAYOUT)))
        found = ceiling(
            frame.select(cell).rows(), frame.select(layout).rows(), frame["num_gpus"].to_list(), frame["s"].to_numpy()
        )
        if found.cells:
            rows.append((table, found.pairs, 100 * found.apart, found.cells, found.spearman, 100 * found.regret))
    schema = ["table", "pairs of equal runs", "apart, median %", "sweeps", "Spearman at most", "regret at least %"]
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    mean = frame.select(pl.lit("mean").alias("table"), pl.col(*schema[-2:]).mean())
    return pl.concat([frame, mean], how="diagonal")


def settings() -> pl.DataFrame:
    """Per table with such pairs: what one setting is worth, measured and estimated (`knobs.worth`)."""
    found = []
    for table in TABLES:
        frame = _completed(table)
        stages, cards, host = (_number(frame, name) for name in ("pp", "num_gpus", "gpus_per_node"))
        of_runs = frame.with_columns(
            measured=pl.col("s"),
            estimated=pl.col("est_step_time_s"),
            leaves_node=((stages > 1) & (cards > host)).fill_null(False),
        )
        found.append(worth(of_runs).select(pl.lit(table).alias("table"), pl.all()))
    return pl.concat(found)


def fits() -> pl.DataFrame:
    """Runs that are known to have fitted or not: how often `est_fits` agrees, by constants in which the table has no
    say and by the framework's own, some of which were fitted to the peaks of these runs."""
    rows: list[tuple[str, str, int, float, float]] = []
    for table in ("bigscience_sweeps", "ultrascale_playbook_all_runs", "simumax_b200", "torchtitan", "llm_foundry"):
        frame, own = _estimated(table), _estimated(table, choose_profile)
        status = (
            frame["status"].fill_null("success") if "status" in frame.columns else pl.Series(["success"] * frame.height)
        )
        for name, words in (("ran", ("success", "completed")), ("out of memory", ("oom",))):
            chosen = frame.filter(status.is_in(words))
            if chosen.height:
                by_own = own.filter(status.is_in(words))
                shares = [100 * float((one["est_fits"] == (name == "ran")).mean() or 0.0) for one in (chosen, by_own)]
                rows.append((table, name, chosen.height, shares[0], shares[1]))
    total = sum(row[2] for row in rows)
    rows.append(
        ("all", "either", total, sum(r[2] * r[3] for r in rows) / total, sum(r[2] * r[4] for r in rows) / total)
    )
    schema = ["table", "what happened", "runs", "said so, %", "by own constants, %"]
    return pl.DataFrame(rows, schema=schema, orient="row")


def transfer() -> pl.DataFrame:
    """Per table, generation and precision: how far off its rows are as those of an unknown framework, and the share of
    all of them inside the intervals that the other bundled tables give; then the mean of each stratum, tables alike.
    Tables that are withheld (`unseen`) are judged as well."""
    known = transfers(without_table)
    judged = [*transfers(without_table, tuned=False), *as_unknown()]
    rows = []
    for what in ("time", "memory"):
        for one in judged:
            ratios = np.exp(getattr(one, what))
            others = transfer_interval(
                [other for other in known if other.table != one.table],
                what,
                one.generation,
                is_below_16_bit=one.is_below_16_bit,
            )
            if ratios.size and others is not None:
                inside = 100 * float(np.mean((ratios >= others.low) & (ratios <= others.high)))
                precision = "FP8, FP4" if one.is_below_16_bit else "16 bit"
                ends = (float(np.median(ratios)), others.low, others.high)
                rows.append((what, one.table, one.generation, precision, one.rows, *ends, inside))
    of_rows = ["measured / estimated", "from", "to"]
    schema = ["what", "table", "generation", "precision", "rows", *of_rows, "inside, % (80)"]
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    figures = pl.col("rows").sum(), pl.col("inside, % (80)").mean()
    strata = frame.group_by("what", "generation", "precision", maintain_order=True).agg(*figures)
    mean = strata.group_by("what", maintain_order=True).agg(*figures)
    every = frame.group_by("what", maintain_order=True).agg(*figures)
    ends = (strata, "stratum"), (mean, "all strata, each alike"), (every, "all tables, each alike")
    named = [one.with_columns(table=pl.lit(name)) for one, name in ends]
    return pl.concat([frame, *named], how="diagonal")


def refused() -> pl.DataFrame:
    """Per table as it is: rows, those that no assumption mends, those of them that did not fail in fact, and why most
    are refused."""
    rows = []
    for table in (*TABLES, "frontier_configs", "ultrascale_playbook_best", "ultrascale_playbook_scaling"):
        frame = estimate_frame(published_table(table), assumes=True)
        left = frame.filter(pl.col("est_status") != OK)
        ended = left["status"] if "status" in left.columns else pl.Series([None] * left.height, dtype=pl.String)
        commonest = left["est_status"].value_counts(sort=True)["est_status"].first() if left.height else None
        rows.append((table, frame.height, left.height, int((ended.fill_null("") != "failed").sum()), commonest))
    total, lacking, ran = (sum(row[place] for row in rows) for place in (1, 2, 3))
    rows.append(("all", total, lacking, ran, f"{100 * lacking / total:.1f} %, {100 * ran / total:.1f} % beside those"))
    schema = ["table", "rows", "refused", "not failed", "commonest reason"]
    return pl.DataFrame(rows, schema=schema, orient="row")


def frontier() -> pl.DataFrame:
    """Published runs of frontier models beside the fastest choice of what their sources leave open; nothing is fitted
    on them. An MFU of another kind (FP8 peak, derived, read off a chart) is left out."""
    found = ceilings(published_table("frontier_configs")).filter(pl.col("ceiling_status") == OK)
    comparable = found.filter(
        (pl.col("comparability") == "comparable") & (pl.col("verification") != "slides")
    ).with_columns(pl.col("mfu_pct").cast(pl.Float64), allowed=100 * pl.col("ceiling_mfu"))
    return (
        comparable.drop_nulls("mfu_pct")
        .select(
            "model",
            pl.col("num_gpus").cast(pl.Int64),
            "mfu_pct",
            pl.col("allowed").alias("estimate allows %"),
            (pl.col("mfu_pct") / pl.col("allowed")).alias("reached"),
            pl.col("ceiling_layout").alias("layout"),
        )
        .sort("reached", descending=True)
    )
