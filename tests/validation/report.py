"""The tables of the validation report, each a frame. Every accuracy is of rows whose group the fit had not seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from sweepscope.pipeline.commands.output import note
from sweepscope.pipeline.estimate.calibration.cross_validate import Unseen, cross_validate, fit_recipe
from sweepscope.pipeline.estimate.calibration.fit import figures, predict, with_constants
from sweepscope.pipeline.estimate.calibration.learn import cell_folds, look, needed_unseen, penalised_unseen
from sweepscope.pipeline.estimate.calibration.published_tables import published_table
from sweepscope.pipeline.estimate.calibration.recipe_rows import Rows, gather_rows
from sweepscope.pipeline.estimate.calibration.recipes import RECIPES
from sweepscope.pipeline.estimate.physics.estimate import allocated_bytes, estimate, step_seconds
from sweepscope.pipeline.estimate.physics.layouts import Array, Layouts
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.schemas.thresholds import PENALISED_RATIO
from tests.validation.cells import Ranking, rank_cells
from tests.validation.naive import naive_memory_bytes, naive_step_s
from tests.validation.nested import beaten, near_runs

PLAYBOOK = "hopper-nanotron"


def validate_all() -> dict[str, Unseen]:
    """Cross-validated predictions of every recipe, by profile."""
    found = {}
    for recipe in RECIPES:
        found[recipe.profile] = cross_validate(gather_rows(recipe, published_table(recipe.dataset)), note)
    return found


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _goal(what: str, prototype: str, limit: float, reached: float, split: str) -> tuple[object, ...]:
    return what, prototype, f"<= {100 * limit:.1f} %", _percent(reached), split, reached <= limit


def healthy(unseen: Unseen) -> Array:
    """Predictions of runs at most PENALISED_RATIO times slower than predicted; NaN for the others."""
    return near_runs(unseen.rows, unseen.step_time_s)


def goals(found: dict[str, Unseen]) -> pl.DataFrame:
    """The goals of the specification beside what is reached, and the split."""
    foundry = [found["ampere-composer"], found["hopper-composer"]]
    rates = figures(
        np.concatenate([1 / one.step_time_s for one in foundry]),
        np.concatenate([1 / one.rows.step_time_s for one in foundry]),
    )
    selene, b200, play = found["ampere-megatron"], found["blackwell-megatron"], found[PLAYBOOK]
    near = figures(healthy(play), play.rows.step_time_s)
    ranking, early = ranked(play), beaten(play.rows, play.step_time_s)
    b200_time, b200_mem = figures(b200.step_time_s, b200.rows.step_time_s), figures(b200.mem_bytes, b200.rows.mem_bytes)
    model, kind, cell = "leave one model out", "leave one kind out", "leave one cell out"
    nested = "leave one model out, nested"
    errors, with_penalty = learned(play.rows)
    top5 = f"{ranking.top5} of {ranking.cells}"
    entries = [
        _goal("llm-foundry: MFU MAPE", "3.8 %", 0.035, rates["mape"], "5 folds of rows"),
        _goal("Selene table 5: step time MAPE", "4.5 %", 0.035, mape(selene), model),
        _goal("playbook, healthy runs: median APE", "5.9 %", 0.045, near["median"], nested),
        _goal("playbook, healthy runs: MAPE", "9.7 %", 0.075, near["mape"], nested),
        _goal("playbook, best quarter of each cell: median APE", "7.7 %", 0.05, ranking.best_quarter_median, nested),
        _goal("playbook: more than 10 % faster than estimated", "3.7 %", 0.03, early, nested),
        ("playbook: cells with the best in the top 5", "15 of 25", ">= 20", top5, nested, ranking.top5 >= 20),
        _goal("playbook, learned penalty, all runs: median APE", "-", 0.15, errors["median"], cell),
        (
            "playbook, learned penalty: Spearman per cell",
            "0.62",
            ">= 0.90",
            f"{with_penalty.spearman:.2f}",
            cell,
            with_penalty.spearman >= 0.9,
        ),
        (
            "playbook, learned penalty: best in the top 5",
            "-",
            ">= 23",
            f"{with_penalty.top5} of {with_penalty.cells}",
            cell,
            with_penalty.top5 >= 23,
        ),
        _goal("playbook memory, physics alone: MAPE", "17 %", 0.08, mem(play)["mape"], model),
        _goal(
            "playbook memory, with what comparable runs needed: MAPE", "17 %", 0.08, learned_memory(play.rows), model
        ),
        _goal("B200 (EP, CP, MLA): step time MAPE", "-", 0.08, b200_time["mape"], kind),
        _goal("B200 (EP, CP, MLA): memory MAPE", "-", 0.03, b200_mem["mape"], kind),
    ]
    rows = [(*entry[:-1], "yes" if entry[-1] else "no") for entry in entries]
    return pl.DataFrame(rows, schema=["what", "prototype", "goal", "reached", "split", "met"], orient="row")


def populations(unseen: Unseen) -> pl.DataFrame:
    """The healthy runs of the playbook, apart by what sets their pace, and by how many nodes they ran on.

    Runs in which exchanges beside a pipeline over nodes hold the processor counted as slow before that was a term; the
    figures of the others are comparable to those of estimates without it.
    """
    pp, tp, gpus = (pl.col(name).cast(pl.Int64) for name in ("pp", "tp", "num_gpus"))
    is_held = (pp > 1) & (tp > 1) & (gpus > 8)
    groups = {
        "all": pl.lit(True),
        "no exchange beside a pipeline over nodes": ~is_held,
        "exchanges beside a pipeline over nodes": is_held,
        "at most 16 nodes": gpus <= 128,
        "32 nodes": gpus == 256,
        "64 nodes": gpus == 512,
    }
    near = healthy(unseen)
    measured = unseen.rows.step_time_s
    estimable = np.isfinite(unseen.step_time_s) & np.isfinite(measured)
    rows = []
    for name, group in groups.items():
        mask = unseen.rows.table.select(group.alias("m"))["m"].to_numpy()
        mask = np.broadcast_to(mask, near.shape) & estimable
        found = figures(np.where(mask, near, np.nan), measured)
        rows.append((name, int(mask.sum()), found["rows"], 100 * found["median"], 100 * found["mape"]))
    return pl.DataFrame(rows, schema=["runs", "count", "healthy", "median %", "MAPE %"], orient="row")


def repeats(rows: Rows) -> pl.DataFrame:
    """Noise of repeated runs: pairs of runs that differ in nothing, or in ZeRO-0 against 1 alone."""
    key = ["model", "num_gpus", "dp", "tp", "pp", "micro_batch_size", "grad_accum"]
    stage = "zero_stage_or_fsdp"
    table = rows.table.select(*key, stage, s=pl.Series(rows.step_time_s)).filter(pl.col("s").is_finite())
    same = table.group_by(*key, stage).agg(pl.col("s").max() / pl.col("s").min(), n=pl.len()).filter(pl.col("n") > 1)
    both = table.filter(pl.col(stage) == "zero0").join(table.filter(pl.col(stage) == "zero1"), on=key, suffix="_1")
    pairs = both.filter(pl.col("pp") == "1").with_columns(
        nodes=(pl.col("num_gpus").cast(pl.Int64) // 8).clip(1), apart=(pl.col("s") / pl.col("s_1")).log().abs()
    )
    parts = [
        same.select(
            pairs=pl.lit("the same run again"),
            nodes=pl.lit("any"),
            count=pl.len(),
            median=100 * (pl.col("s").median() - 1),
            p90=100 * (pl.col("s").quantile(0.9) - 1),
        ),
        pairs.group_by("nodes")
        .agg(count=pl.len(), median=100 * pl.col("apart").median(), p90=100 * pl.col("apart").quantile(0.9))
        .sort("nodes")
        .select(
            pairs=pl.lit("ZeRO-0 and ZeRO-1 without a pipeline"),
            nodes=pl.col("nodes").cast(pl.String),
            count="count",
            median="median",
            p90="p90",
        ),
    ]
    return pl.concat([part.cast({"count": pl.Int64}) for part in parts])


def memory_oracle(unseen: Unseen) -> pl.DataFrame:
    """How much of the memory's error comes from one setting that the table does not hold.

    Gathered inputs of tensor-parallel products are either kept for the backward pass or gathered again
    (nanotron's `tp_recompute_allgather`). Each run is estimated both ways; the oracle takes the nearer.
    """
    rows = unseen.rows
    constants = fit_recipe(rows)

    def memory(**changes: float | str) -> Array:
        batches = [replace(b, asked=with_constants(b.asked, {**constants, **changes})) for b in rows.batches]  # type: ignore[dict-item]
        return predict(batches, {}, rows.table.height, allocated_bytes)

    kept, again = memory(keeps_gathered="always"), memory(gathered_bytes=0.0)
    is_kept = np.abs(np.log(kept / rows.mem_bytes)) < np.abs(np.log(again / rows.mem_bytes))
    entries = {
        "as estimated, unseen models: kept without a pipeline only": unseen.mem_bytes,
        "kept everywhere": kept,
        "gathered again everywhere": again,
        "oracle: the nearer of both": np.where(is_kept, kept, again),
    }
    found = [(name, figures(values, rows.mem_bytes)) for name, values in entries.items()]
    return pl.DataFrame(
        [(name, 100 * error["mape"], 100 * error["median"]) for name, error in found],
        schema=["gathered inputs", "MAPE %", "median %"],
        orient="row",
    )


def mape(unseen: Unseen) -> float:
    """Of step times."""
    return float(figures(unseen.step_time_s, unseen.rows.step_time_s)["mape"])


def mem(unseen: Unseen) -> dict[str, float]:
    """Figures of peak memory."""
    return figures(unseen.mem_bytes, unseen.rows.mem_bytes)


def ranked(unseen: Unseen) -> Ranking:
    """Ranking of the layouts within each cell."""
    return rank_cells(unseen.rows.cells, unseen.step_time_s, unseen.rows.step_time_s)


def learned(rows: Rows) -> tuple[dict[str, float], Ranking]:
    """All runs with the learned penalty: (errors, ranking), each cell predicted without its own runs.

    The physics' constants are those fitted on all rows; neither the penalty nor the choice of its settings has seen the
    cell (nested cross-validation).
    """
    seen = look(rows, fit_recipe(rows))
    usable = np.isfinite(seen.step_time_s) & np.isfinite(rows.step_time_s)
    predicted_s = penalised_unseen(rows, seen, usable, cell_folds(rows))
    return figures(predicted_s, rows.step_time_s), rank_cells(rows.cells, predicted_s, rows.step_time_s)


def learned_memory(rows: Rows) -> float:
    """MAPE of peak memory with the learned factor; constants, factor and its settings have not seen the model."""
    features = look(rows, fit_recipe(rows)).features
    return float(figures(needed_unseen(rows, features), rows.mem_bytes)["mape"])


def tables(found: dict[str, Unseen]) -> pl.DataFrame:
    """Every table: unseen rows by the fit, the seed document's formulas, and the uncalibrated profile."""
    rows = []
    for name, unseen in found.items():
        given = unseen.rows
        is_bound = given.recipe.is_bound
        measured = np.where(np.isfinite(healthy(unseen)), given.step_time_s, np.nan) if is_bound else given.step_time_s
        naive_time, naive_mem = np.full(given.table.height, np.nan), np.full(given.table.height, np.nan)
        for batch in given.batches:
            naive_time[batch.indices] = naive_step_s(batch)
            naive_mem[batch.indices] = naive_memory_bytes(batch)
        ours, theirs = figures(unseen.step_time_s, measured), figures(naive_time, measured)
        entry = {
            "profile": name,
            "table": given.recipe.dataset,
            "split": f"leave {given.recipe.split}",
            "rows": ours["rows"],
            "time MAPE": _percent(ours["mape"]),
            "median": _percent(ours["median"]),
            "002 as written": _percent(theirs["mape"]),
            "memory MAPE": "",
            "002 memory": "",
        }
        if np.isfinite(given.mem_bytes).any():
            entry["memory MAPE"] = _percent(mem(unseen)["mape"])
            entry["002 memory"] = _percent(figures(naive_mem, given.mem_bytes)["mape"])
        rows.append(entry)
    return pl.DataFrame(rows)


def strategy() -> pl.Expr:
    """Where a layout's parallelism lies."""
    pp, tp, nodes = (pl.col(name).cast(pl.Int64) for name in ("pp", "tp", "num_nodes"))
    return (
        pl.when((pp > 1) & (nodes > 1))
        .then(pl.lit("PP over nodes"))
        .when(pp > 1)
        .then(pl.lit("PP in a node"))
        .when(tp > 8)
        .then(pl.lit("TP over nodes"))
        .otherwise(pl.lit("DP and TP in a node"))
    )


def by_group(unseen: Unseen, name: str, group: pl.Expr) -> pl.DataFrame:
    """Errors of healthy runs, share of the others, and memory, by a group of rows."""
    frame = unseen.rows.table.select(group.alias(name)).with_columns(
        ratio=pl.Series(unseen.rows.step_time_s / unseen.step_time_s),
        memory=pl.Series(np.abs(unseen.mem_bytes / unseen.rows.mem_bytes - 1)),
    )
    near = (1 / pl.col("ratio").filter(pl.col("ratio") <= PENALISED_RATIO) - 1).abs()
    return (
        frame.filter(pl.col("ratio").is_finite())
        .group_by(name)
        .agg(
            runs=pl.len(),
            healthy=(100 * (pl.col("ratio") <= PENALISED_RATIO).mean()).round(1),
            median=(100 * near.median()).round(1),
            mape=(100 * near.mean()).round(1),
            median_slowdown=pl.col("ratio").median().round(2),
            memory_mape=(100 * pl.col("memory").filter(pl.col("memory").is_finite()).mean()).round(1),
        )
        .sort(pl.col(name).cast(pl.Int64, strict=False), name)
    )


def playbook_groups(unseen: Unseen) -> list[pl.DataFrame]:
    """By model, nodes and strategy. All figures but runs and slowdown are percent."""
    return [
        by_group(unseen, "model", pl.col("model")),
        by_group(unseen, "nodes", pl.col("num_nodes")),
        by_group(unseen, "strategy", strategy()),
    ]


def ablation(rows: Rows) -> pl.DataFrame:
    """What one term is worth: the fitted estimate with the term switched off, on the runs that are healthy with it.

    Constants are not refitted; fitted on all rows, so these are differences and no accuracies.
    """
    constants = fit_recipe(rows)
    full = predict(rows.batches, constants, rows.table.height, step_seconds)
    near = np.where(rows.step_time_s <= PENALISED_RATIO * full, rows.step_time_s, np.nan)

    def without(**changes: float | str | bool) -> Array:
        batches = [replace(b, asked=with_constants(b.asked, {**constants, **changes})) for b in rows.batches]  # type: ignore[dict-item]
        return predict(batches, {}, rows.table.height, step_seconds)

    def less(part: str) -> Array:
        def rest_s(asked: Question, at: Layouts) -> Array:
            predicted = estimate(asked, at)
            return predicted.step_time_s - getattr(predicted.time, part)

        return predict(rows.batches, constants, rows.table.height, rest_s)

    variants = {
        "everything": full,
        "no wave quantisation": without(gemm_wave_loss=1e-9, gemm_half_waves=0.0),
        "no depth dependence": without(gemm_half_depth=0.0),
        "no kernel launches": without(kernel_launch_s=0.0),
        "no elementwise traffic": without(elementwise_passes=0.0),
        "no hold by exchanges": without(exchange_launch_s=0.0),
        "no latency": without(link_latency_s=0.0, network_latency_s=0.0),
        "no loss in wide networks": without(network_decay=0.0),
        "even placement of layers": without(placement="even"),
        **{f"no {part}": less(part) for part in ("head", "tp", "dp", "bubble", "pp", "optimizer", "rest")},
    }
    cells = rows.cells
    entries = []
    for name, predicted in variants.items():
        found, ranking = figures(predicted, near), rank_cells(cells, predicted, rows.step_time_s)
        entries.append((name, 100 * found["median"], 100 * found["mape"], ranking.spearman, ranking.top5))
    return pl.DataFrame(entries, schema=["term", "median %", "MAPE %", "Spearman", "top 5"], orient="row")


def worst(unseen: Unseen, guess: pl.Expr, count: int = 10) -> pl.DataFrame:
    """The healthy rows with the largest error, and a guess why."""
    names = [
        n
        for n in (
            "model",
            "num_gpus",
            "dp",
            "tp",
            "pp",
            "grad_accum",
            "micro_batch_size",
            "seq_len",
            "zero_stage_or_fsdp",
            "recompute",
            "precision",
        )
        if n in unseen.rows.table.columns
    ]
    error = np.abs(unseen.rows.step_time_s / unseen.step_time_s - 1)
    frame = unseen.rows.table.select(
        *names,
        guess.alias("guess"),
        measured_over_estimate=pl.Series((unseen.rows.step_time_s / unseen.step_time_s).round(2)),
        error=pl.Series(error),
    )
    limit = PENALISED_RATIO if unseen.rows.recipe.is_bound else np.inf
    near = frame.filter(pl.col("error").is_finite() & (pl.col("measured_over_estimate") <= limit))
    return near.sort("error", descending=True).head(count).drop("error")
