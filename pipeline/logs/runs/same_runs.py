"""Runs that a file of steps tells of again: those of a log elsewhere in the same sweep, by their values. Pure.

Within a run directory `readings` joins them. Where names do not tell which log a file of steps belongs to (logs of all
runs in one folder, their outputs in others, `wandb/`, `mlruns/` or `runs/` beside the sweep), values do, if they are
those of one log alone, or of logs that go on from each other: a training that was taken up from a checkpoint keeps its
steps in one file. Runs of one seed have the same losses in several layouts: of logs that agree alike, the one counts
whose settings contradict the file's least, whose path has the name of the file's run, and whose rates agree most.
"""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from sweepscope.pipeline.logs.runs.agreement import agree, tolerances

VERSION = 3
"""Raise it when other runs of the same rows would be found: stores are then published anew."""

SAME = pl.Schema({"run_id": pl.String, "duplicate_of": pl.String})
"""One row per run that holds what another one holds."""

_PAIRS = pl.Schema({"run_id": pl.String, "log_id": pl.String, "level": pl.Int32})

_LEVELS = 3
"""Levels above the folder of a file of steps: its log may lie below any of them."""

_DEEPEST = 8
"""Levels below such a folder that logs are looked for."""

_MIN_STEPS = 3
_MIN_SHARE = 0.9
"""So many steps agree, and this share of those in common."""

LAYOUT = ("num_gpus", "dp", "tp", "pp", "cp", "ep", "zero_stage", "mbs", "gas", "gbs", "seq_len")
"""Columns of `runs` in which runs of one seed differ."""

RATES = ("step_time_s", "tokens_per_s", "tokens_per_s_per_gpu", "grad_norm")
"""Columns of `steps` that tell such runs apart where both were given the same values."""

_MAX_PAIRS = 40_000
"""A folder with more pairs of files and logs is left alone: comparing them would take minutes."""


def near_each_other(
    files: pl.DataFrame, logs: pl.DataFrame, *, levels: Iterable[int] = range(1, _LEVELS + 1)
) -> pl.DataFrame:
    """`run_id`, `log_id`, `level`: runs of files of steps, and those of logs below one of the folders above.

    Args:
        files: `run_id` and `run_dir` of runs that only a file of steps tells of.
        logs: the same of others.
        levels: how far above its own a folder may be.
    """
    above = pl.concat(_above(files, level).with_columns(level=pl.lit(level)) for level in levels)
    if above.is_empty():
        return pl.DataFrame(schema=_PAIRS)
    logs = logs.filter(pl.col("run_dir").str.contains_any(above["folder"].unique().to_list()))  # few of very many
    inside = pl.concat(_above(logs, level) for level in range(_DEEPEST + 1)).join(above, on="folder", how="semi")
    pairs = above.join(inside.rename({"run_id": "log_id"}), on="folder")
    pairs = pairs.filter(pl.len().over("folder") <= _MAX_PAIRS)
    return pairs.group_by("run_id", "log_id").agg(pl.col("level").min())


def _above(runs: pl.DataFrame, level: int) -> pl.DataFrame:
    """`run_id` and the `folder` so many levels above its own, as far as there is one."""
    folder = pl.col("run_dir").str.extract(rf"^(.*[^/])(?:/[^/]+){{{level}}}$")
    return runs.select("run_id", folder=folder).drop_nulls()


def same_runs(pairs: pl.DataFrame, steps: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """SAME rows: files of steps with the losses of one log, or of several that go on from each other: of the last.

    None of them has the losses of another file of its form; one training may be in W&B and in TensorBoard.

    Args:
        pairs: rows of `near_each_other`.
        steps: `run_id`, `step`, `loss` and RATES of all of these runs.
        runs: their rows of `runs`.
    """
    losses = _measured(steps, "loss")
    alike = _alike(pairs, losses, shifts=(0,))
    others = pairs.join(alike, on="run_id", how="anti")
    alike = pl.concat([alike, _alike(others, losses, shifts=(-1, 1))])
    nearest = alike.filter(pl.col("level") == pl.col("level").min().over("run_id"))
    chosen = _likeliest(nearest, steps, runs)
    reach = losses.group_by(log_id="run_id").agg(first=pl.col("step").min(), last=pl.col("step").max())
    by_steps = chosen.join(reach, on="log_id").sort("run_id", "last")
    by_steps = by_steps.with_columns(
        goes_on=pl.all_horizontal((pl.col("first", "last").diff().over("run_id") > 0).fill_null(value=True)),
        is_shared=pl.len().over("log_id", "form") > 1,
    )
    is_known = (pl.col("goes_on") & ~pl.col("is_shared")).all().over("run_id")
    known = by_steps.filter(is_known).unique("run_id", keep="last", maintain_order=True)
    return known.select("run_id", duplicate_of="log_id").sort("run_id")


def _measured(steps: pl.DataFrame, column: str) -> pl.DataFrame:
    """`run_id`, `step`, `loss` and `tolerance` of the values of a column."""
    values = steps.select("run_id", "step", loss=column).drop_nulls("loss")
    return tolerances(values.rename({"run_id": "reading"})).rename({"reading": "run_id"})


def _alike(pairs: pl.DataFrame, losses: pl.DataFrame, shifts: tuple[int, ...]) -> pl.DataFrame:
    """The pairs whose losses agree, with `shift`: how far the log's counter is ahead of the file's."""
    found = pl.concat(_agreeing(pairs, losses, shift) for shift in shifts)
    is_same = (
        (pl.col("agreeing") >= _MIN_STEPS)
        & (pl.col("different") >= _MIN_STEPS)  # a loss that stays the same proves nothing
        & (pl.col("agreeing") >= _MIN_SHARE * pl.col("common"))
    )
    same = found.filter(is_same).sort("run_id", "log_id", "agreeing", "shift", descending=[False, False, True, True])
    return same.unique(["run_id", "log_id"], keep="first", maintain_order=True)


def _agreeing(pairs: pl.DataFrame, values: pl.DataFrame, shift: int) -> pl.DataFrame:
    """By pair: how many values are in `common`, how many agree, and how many `different` ones of these there are."""
    of_logs = values.select(pl.col("step") - shift, log_id="run_id", loss_log="loss", tolerance_log="tolerance")
    both = (
        pairs.join(values, on="run_id")
        .join(of_logs, on=["log_id", "step"])
        .with_columns(agrees=agree("loss", "loss_log", pl.max_horizontal("tolerance", "tolerance_log")))
    )
    return both.group_by("run_id", "log_id", "level").agg(
        common=pl.len(),
        agreeing=pl.col("agrees").sum(),
        different=pl.col("loss").filter("agrees").n_unique(),
        shift=pl.lit(shift),
    )


def _likeliest(alike: pl.DataFrame, steps: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """`alike` with `form`, and without pairs than which another one of the same file or log is likelier."""
    facts = runs.select("run_id", "source_path", "run_dir", *LAYOUT)
    paired = alike.join(facts, on="run_id").join(facts, left_on="log_id", right_on="run_id", suffix="_log")
    equal = [pl.col(name) == pl.col(f"{name}_log") for name in LAYOUT]
    marked = paired.select(
        *alike.columns,
        form=_form(),
        contradictions=pl.sum_horizontal((~each).fill_null(value=False) for each in equal),
        is_other_name=~_has_name(),
        unconfirmed=pl.sum_horizontal(~each.fill_null(value=False) for each in equal),
    )
    for evidence in ("contradictions", "is_other_name", "unconfirmed"):
        marked = _least(marked, evidence)
    is_open = (pl.len().over("run_id") > 1) | (pl.len().over("log_id", "form") > 1)
    doubtful = marked.filter(is_open)
    if doubtful.is_empty():
        return marked
    pairs = doubtful.select("run_id", "log_id", "level", "shift")
    rates = pl.concat(
        _agreeing(part.drop("shift"), _measured(steps, name), shift)
        for (shift,), part in pairs.group_by("shift")
        for name in RATES
    )
    agreeing = rates.group_by("run_id", "log_id").agg(rates=pl.col("agreeing").sum())
    ranked = marked.join(agreeing, on=["run_id", "log_id"], how="left", maintain_order="left")
    return _least(ranked.with_columns(-pl.col("rates").cast(pl.Int64).fill_null(0)), "rates")


def _least(pairs: pl.DataFrame, evidence: str) -> pl.DataFrame:
    """The pairs with the least of some evidence of all of their file, and then of all of their log."""
    of_files = pairs.filter(pl.col(evidence) == pl.col(evidence).min().over("run_id"))
    return of_files.filter(pl.col(evidence) == pl.col(evidence).min().over("log_id", "form"))


def _form() -> pl.Expr:
    """What kind of file it is, by its name: event files have no suffix."""
    is_events = pl.col("source_path").str.contains("tfevents", literal=True)
    return pl.when(is_events).then(pl.lit("tfevents")).otherwise(pl.col("source_path").str.extract(r"\.([^./]+)$"))


def _has_name() -> pl.Expr:
    """Whether the path of the log has the name of the file's run: the last folder, without a database's number."""
    name = pl.col("run_dir").str.extract(r"(?:^|/)(?:\d+-)?([^/]+)$")
    path = pl.format("/{}/", pl.col("source_path_log").str.replace(r"\.[^./]+$", ""))
    return path.str.contains(pl.format("/{}/", name), literal=True).fill_null(value=False)
