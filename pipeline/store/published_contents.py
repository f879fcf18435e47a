"""The rows of each table as a published store shows them: the lake's, reconciled with the schedulers' tables.

Runs of which a log and a file of steps both have rows are marked here, too, and the log's completed by what the file
holds; so are those of which the output of their job reports the end, and files of steps that end together. Which of
them came first does not matter then.

Publishing and verifying both take them from here, so that a store can be compared with the lake behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import polars as pl

from sweepscope.pipeline.logs.facts import EVIDENCE
from sweepscope.pipeline.logs.runs import kept_elsewhere
from sweepscope.pipeline.logs.runs.driver_logs import is_of_driver, of_drivers, without_steps
from sweepscope.pipeline.logs.runs.ended_together import IS_OF_RECORDS, ended_together
from sweepscope.pipeline.logs.runs.job_outputs import job_outputs, may_be_output, of_one_job
from sweepscope.pipeline.logs.runs.listed_runs import listed_runs
from sweepscope.pipeline.logs.runs.rank_logs import rank_logs, states_rank
from sweepscope.pipeline.logs.runs.same_runs import LAYOUT, RATES, SAME, near_each_other, same_runs
from sweepscope.pipeline.scheduler.match_jobs import match
from sweepscope.pipeline.scheduler.reconcile import changes, reconcile
from sweepscope.pipeline.store import lake_sql
from sweepscope.pipeline.store.lake import Lake, Release
from sweepscope.schemas.core.ddl import quote
from sweepscope.schemas.registry import TABLES
from sweepscope.schemas.tables.runs import EVENTS, SETTINGS

Changes = dict[str, tuple[pl.DataFrame, pl.DataFrame]]

DIFFERENT = frozenset({"runs", "events", "settings"})
"""Tables of which `Contents.different` may have rows."""


@dataclass(frozen=True)
class Contents:
    """What a store shows of a release.

    Attributes:
        different: by table, keys of rows of the lake that are left out, and rows that replace or join them.
    """

    lake: Lake
    release: Release
    different: Changes

    @property
    def reconciled_runs(self) -> pl.DataFrame:
        """`run_id` of runs with different rows, and `content`, a hash of these."""
        named = [part for name in sorted(DIFFERENT) for part in self.different.get(name, ())]
        # Their widths differ, so that equal values of two parts have different hashes.
        parts = [part.select("run_id", hash=part.hash_rows(part.width)) for part in named if "run_id" in part.columns]
        parts.append(pl.DataFrame(schema={"run_id": pl.String, "hash": pl.UInt64}))
        runs = pl.concat(parts).group_by("run_id").agg(content=pl.col("hash").sum().cast(pl.String))
        return runs.sort("run_id")

    def select(self, connection: duckdb.DuckDBPyConnection, name: str) -> tuple[str, dict[str, Any]]:
        """A SELECT of a table's rows, and its parameters. `connection` must be allowed to read files."""
        table = TABLES[name]
        query, parameters = lake_sql.select(connection, table, self.lake.files(name, self.release))
        if name not in self.different:
            return query, parameters
        gone, new = self.different[name]
        connection.register(f"gone_{name}", gone.to_arrow())
        connection.register(f"new_{name}", new.to_arrow())
        same = " AND ".join(f"kept.{quote(key)} IS NOT DISTINCT FROM gone.{quote(key)}" for key in table.primary_key)
        stay = f"SELECT * FROM ({query}) AS kept WHERE NOT EXISTS (FROM {quote(f'gone_{name}')} AS gone WHERE {same})"
        columns = ", ".join(map(quote, table.column_names))
        return f"{stay} UNION ALL SELECT {columns} FROM {quote(f'new_{name}')}", parameters


def contents(lake: Lake, release: Release) -> Contents:
    """What a store shows of a release. Raises StoreError when the lake is damaged."""
    return Contents(lake, release, _changed(lake, release))


def _changed(lake: Lake, release: Release) -> Changes:
    """By table: keys of rows of the lake that are left out, and rows that replace or join them."""
    jobs = lake.read("scheduler_jobs", release=release)
    histories = _files(lake, release, "history", "tracker")
    tables = _files(lake, release, "bench_csv")
    ranks = lake.read("arguments", ["run_id", "name", "value"], states_rank(), release=release)
    records = lake.read("runs", ["run_id"], IS_OF_RECORDS, release=release)
    has_sources = not all(frame.is_empty() for frame in (jobs, histories, tables, ranks, records))
    if not has_sources and not _has_outputs(lake, release):
        return {}
    runs = lake.read("runs", predicate=pl.col("origin") != "published", release=release)
    outputs = _outputs(runs, jobs)
    again = pl.concat(
        [
            _repeated_runs(lake, release, runs, histories),
            _listed_runs(lake, release, runs, tables),
            rank_logs(runs, ranks),
            outputs,
        ]
    ).unique("run_id", keep="first", maintain_order=True)
    runs = runs.join(again, on="run_id", how="left", maintain_order="left", suffix="_found")
    runs = runs.with_columns(duplicate_of=pl.coalesce("duplicate_of", "duplicate_of_found")).drop("duplicate_of_found")
    ended = ended_together(runs)
    if jobs.is_empty() and again.is_empty() and ended.is_empty():
        return {}
    runs = runs.update(ended, on="run_id")
    kept = kept_elsewhere.complete(runs, again, _settings_of(lake, release, again))
    runs = _replaced(runs, kept.runs, ["run_id"])
    assumed = lake.read("settings", predicate=pl.col("setting_source") == "assumed", release=release)
    assumed = assumed.join(kept.settings_gone, on=SETTINGS.primary_key, how="anti", maintain_order="left")
    of_trainings = runs.join(outputs, on="run_id", how="anti", maintain_order="left")
    found = reconcile(of_trainings, jobs, pl.concat([assumed, kept.settings.filter(setting_source="assumed")]))
    marked = runs.join(pl.concat([again.select("run_id"), ended.select("run_id")]), on="run_id", how="semi")
    marked = marked.join(kept.runs, on="run_id", how="anti", maintain_order="left")
    found = replace(
        found,
        runs=_replaced(pl.concat([kept.runs, marked]), found.runs, ["run_id"]),
        events=_replaced(kept.events, found.events, EVENTS.primary_key),
        settings=_replaced(
            kept.settings.join(found.settings_gone, on=SETTINGS.primary_key, how="anti", maintain_order="left"),
            found.settings,
            SETTINGS.primary_key,
        ),
        settings_gone=pl.concat([kept.settings_gone, found.settings_gone]).unique(),
    )
    return {name: parts for name, parts in changes(found).items() if parts[0].height}


def _replaced(rows: pl.DataFrame, new: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """`rows` with those of `new` in place of rows with their keys, and beside the others."""
    return pl.concat([rows.join(new, on=list(keys), how="anti", maintain_order="left", nulls_equal=True), new])


def _settings_of(lake: Lake, release: Release, again: pl.DataFrame) -> pl.DataFrame:
    """Rows of `settings` of files of steps, and of the logs whose runs they hold."""
    ids = pl.concat([again["run_id"], again["duplicate_of"]]).unique()
    return lake.read("settings", predicate=pl.col("run_id").is_in(ids.implode()), release=release)


def _files(lake: Lake, release: Release, *kinds: str) -> pl.Series:
    """Paths of files: of steps, as of transformers' Trainer and of trackers, or of tables of runs."""
    return lake.read("files", ["path"], pl.col("kind").is_in(kinds), release=release)["path"]


def _repeated_runs(lake: Lake, release: Release, runs: pl.DataFrame, histories: pl.Series) -> pl.DataFrame:
    """same_runs.SAME rows of runs that a file of steps and a log both have, two logs of one job, or a driver's log."""
    alone = runs.filter(pl.col("duplicate_of").is_null())
    counting = alone.filter(pl.col("steps_logged") > 0)
    is_file = pl.col("source_path").is_in(histories.implode())
    files, logs = (counting.filter(which).select("run_id", "run_dir") for which in (is_file, ~is_file))
    pairs = near_each_other(files, logs)
    for others in (of_one_job(counting), of_drivers(counting)):
        pairs = pl.concat([pairs, others.join(pairs, on=["run_id", "log_id"], how="anti")])
    if pairs.is_empty():
        return pl.DataFrame(schema=SAME)
    ids = pl.concat([pairs["run_id"], pairs["log_id"]]).unique()
    columns = ["run_id", "step", "loss", *RATES]
    steps = lake.read("steps", columns, pl.col("run_id").is_in(ids.implode()), release=release)
    found = same_runs(pairs, steps, counting)
    return pl.concat([found, without_steps(alone, found)])


def _has_outputs(lake: Lake, release: Release) -> bool:
    """Whether a log may be of runs that log elsewhere: the output of a job, with steps or without, or a driver's."""
    columns = ["parser", "job_id", "source_path", *LAYOUT]
    runs = lake.read("runs", columns, pl.col("origin") != "published", release=release)
    has_jobs = (runs["parser"] == EVIDENCE).any() or runs["job_id"].drop_nulls().is_duplicated().any()
    return bool(has_jobs) or not runs.filter(is_of_driver()).is_empty()


def _outputs(runs: pl.DataFrame, jobs: pl.DataFrame) -> pl.DataFrame:
    """same_runs.SAME rows of outputs of jobs, each with the run whose end it reports."""
    if runs.filter(may_be_output()).is_empty():
        return pl.DataFrame(schema=SAME)
    return job_outputs(runs, match(runs, jobs).select("run_id", "job_id"))


def _listed_runs(lake: Lake, release: Release, runs: pl.DataFrame, tables: pl.Series) -> pl.DataFrame:
    """same_runs.SAME rows of runs that a table of results and a log both have."""
    counting = runs.filter(pl.col("duplicate_of").is_null())
    is_listed = pl.col("source_path").is_in(tables.implode())
    listed = counting.filter(is_listed)
    if listed.is_empty():
        return pl.DataFrame(schema=SAME)
    of_listed = pl.col("run_id").is_in(listed["run_id"].implode())
    names = lake.read("arguments", ["run_id", "value"], of_listed, release=release)
    return listed_runs(listed, counting.filter(~is_listed), names)
