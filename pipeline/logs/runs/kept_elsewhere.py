"""Runs of logs completed by what a tracker keeps of them in another folder: settings, rates, peaks and ending. Pure.

Like the facts of schedulers, it is added when a store is published: which file came first does not matter then. A log's
own values count before a tracker's; what both state differently is an event.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from sweepscope.pipeline.derive.complete import complete_runs
from sweepscope.pipeline.logs.runs.setting_precedence import NOT_EVIDENCE
from sweepscope.schemas.tables.runs import EVENTS, RUNS, SETTINGS

VERSION = 2
"""Raise it when the same rows would be completed differently: stores are then published anew."""

_NAMES = ("model", "model_logged", "framework", "framework_version")
"""Settings that logs and trackers spell differently."""

_RATES = ("step_time_s", "tokens_per_s", "tokens_per_s_per_gpu")
_OF_RATES = (
    *_RATES,
    "step_time_basis",
    "step_time_p10_s",
    "step_time_p90_s",
    "warmup_steps_dropped",
    "warmup_step_time_s",
)
"""Taken together, where a log has no rate: they are of the same steps."""
_EACH = ("mfu_logged", "tflops_per_gpu_logged", "mem_peak_allocated_bytes", "mem_peak_reserved_bytes")
_OUTCOME = ("status", "status_confidence", "status_evidence")
_OPEN = ("running", "truncated")
"""What a run is whose log just stops."""
_CAUSES = ("oom", "host_oom", "node_fail", "nccl_error", "hang")
"""What explains a crash of which the log has no more than that."""


@dataclass(frozen=True)
class Completed:
    """Rows that replace those of the same key, and rows to add, as in `scheduler.reconcile.Reconciled`."""

    runs: pl.DataFrame
    events: pl.DataFrame
    settings: pl.DataFrame
    settings_gone: pl.DataFrame


NOTHING = Completed(RUNS.empty(), EVENTS.empty(), SETTINGS.empty(), SETTINGS.empty().select(SETTINGS.primary_key))


def complete(runs: pl.DataFrame, same: pl.DataFrame, settings: pl.DataFrame) -> Completed:
    """The rows that files elsewhere change.

    Args:
        runs: rows of `runs`, both of logs and of files of steps.
        same: same_runs.SAME rows.
        settings: rows of `settings` of these runs.
    """
    pairs = same.select(run_id="duplicate_of", file_id="run_id").unique("run_id", keep="last", maintain_order=True)
    if pairs.is_empty():
        return NOTHING
    assumed = settings.filter(setting_source="assumed").join(pairs, on="run_id", how="semi")
    logs = _without_assumed(runs.join(pairs, on="run_id", maintain_order="left"), assumed)
    joined = logs.join(runs, left_on="file_id", right_on="run_id", suffix="_file", maintain_order="left")
    stated = _stated(settings, pairs)
    added, contradicted = [SETTINGS.empty()], [EVENTS.empty()]
    for name in sorted({*stated["name"]} & {*RUNS.column_names}):
        both = joined.join(stated.filter(name=name), on="run_id", maintain_order="left").filter(
            pl.col(f"{name}_file").is_not_null()
        )
        fills = both.filter(pl.col(name).is_null())
        added.append(SETTINGS.conform(_settings_rows(fills)))
        if name not in _NAMES:
            contradicted.append(_contradictions(both.filter(pl.col(name) != pl.col(f"{name}_file")), name))
    filled = pl.concat(added)
    names = filled["name"].unique().to_list()
    given = {name: _given(name, filled) for name in names} | _measured()
    completed = complete_runs(RUNS.conform(joined.with_columns(**given)))
    derived = completed.derived.join(joined.select("run_id", "source_path"), on="run_id")
    rows = pl.concat([filled, SETTINGS.conform(derived)]).with_columns(is_used=pl.lit(value=True))
    return Completed(
        runs=completed.runs,
        events=pl.concat(contradicted).unique(EVENTS.primary_key, keep="first", maintain_order=True),
        settings=rows.sort(SETTINGS.primary_key),
        settings_gone=assumed.select(SETTINGS.primary_key),
    )


def _without_assumed(logs: pl.DataFrame, assumed: pl.DataFrame) -> pl.DataFrame:
    """`logs` without documented defaults, which follow again where nothing better is known."""
    guesses = assumed.group_by("run_id").agg(guessed="name")
    marked = logs.join(guesses, on="run_id", how="left", maintain_order="left")
    is_guess = pl.col("guessed").list
    return marked.with_columns(
        pl.when(~is_guess.contains(name).fill_null(value=False)).then(name).alias(name)
        for name in assumed["name"].unique().to_list()
    ).drop("guessed")


def _stated(settings: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """`run_id` of the log, and `name`, `value`, `setting_source`, `file` and `file_line` of what its file states."""
    observed = settings.filter(pl.col("is_used") & ~pl.col("setting_source").is_in(NOT_EVIDENCE))
    return pairs.join(observed, left_on="file_id", right_on="run_id", maintain_order="left").select(
        "run_id", "name", "value", "setting_source", file="source_path", file_line="line_no"
    )


def _settings_rows(both: pl.DataFrame) -> pl.DataFrame:
    return both.select("run_id", "name", "value", "setting_source", source_path="file", line_no="file_line")


def _given(name: str, filled: pl.DataFrame) -> pl.Expr:
    """The file's value of a setting for the runs whose log lacks it."""
    runs = filled.filter(name=name)["run_id"]
    return pl.when(pl.col("run_id").is_in(runs.implode())).then(f"{name}_file").otherwise(name)


def _measured() -> dict[str, pl.Expr]:
    """Rates where the log has none, peaks that it does not print, and how the run ended where the log just stops."""
    is_silent = pl.all_horizontal(pl.col(name).is_null() for name in _RATES)
    is_known = ~pl.col("status_file").is_in(_OPEN) & pl.col("status_confidence_file").ne_missing("low")
    is_explained = (pl.col("status") == "crash") & pl.col("status_file").is_in(_CAUSES)
    is_ended = (pl.col("status").is_in(_OPEN) | is_explained) & is_known
    rates = {name: pl.when(is_silent).then(f"{name}_file").otherwise(name) for name in _OF_RATES}
    outcome = {name: pl.when(is_ended).then(f"{name}_file").otherwise(name) for name in _OUTCOME}
    return rates | outcome | {name: pl.coalesce(name, f"{name}_file") for name in _EACH}


def _contradictions(both: pl.DataFrame, name: str) -> pl.DataFrame:
    """EVENTS rows of runs whose log and file state a setting differently."""
    return EVENTS.conform(
        both.select(
            "run_id",
            source_path="file",
            line_no="file_line",
            kind=pl.lit("config_conflict"),
            text=pl.format(
                "{}: {} has {}, {} has {}; the former counts",
                pl.lit(name),
                _base("source_path"),
                pl.col(name).cast(pl.String),
                _base("file"),
                pl.col(f"{name}_file").cast(pl.String),
            ),
        )
    )


def _base(path: str) -> pl.Expr:
    return pl.col(path).str.extract(r"([^/]+)$")
