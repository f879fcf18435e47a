"""The graph: discovered -> parsed -> validated -> lake -> store -> marts, one batch of run directories per run.

A batch travels through memory as far as the lake, so the run uses the in-process executor; `store` and `marts` read
what is on disk. No partitions: a partition per run directory costs a hundred times the parsing; the `files` table is
the ledger of what has been read.

An asset takes its resources, does its step of `steps`, and shows Dagster what came of it. When the graph runs is
decided in `jobs`.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations of assets and configs at run time.
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import dagster as dg
import polars as pl
from pydantic import Field

from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.ingest import plan
from sweepscope.pipeline.ingest.dialect_files import in_force
from sweepscope.pipeline.ingest.discover import FOUND
from sweepscope.pipeline.io.process_pool import CORES_PER_READER, default_workers
from sweepscope.pipeline.orchestration import steps
from sweepscope.pipeline.orchestration.batch_files import read_batch
from sweepscope.pipeline.orchestration.resources import HomeResource, ReadersResource
from sweepscope.pipeline.orchestration.run_memory import one_sentence
from sweepscope.pipeline.orchestration.watched_paths import NOTHING_WATCHED, watched_paths, with_published

OWNERS = ["team:sweepscope"]

FRESH = dg.FreshnessPolicy.time_window(warn_window=timedelta(days=1), fail_window=timedelta(days=7))
"""A store that shows nothing new for a day: either no training run wrote a line, or the watcher does not run."""

_RETRY = dg.RetryPolicy(max_retries=2, delay=1, backoff=dg.Backoff.EXPONENTIAL)
_MEANING = {
    "path": "path or URL of the file",
    "unit": "directory that is read, and replaced in the store, as a whole",
    "job": "scheduler job id, from the file's name",
    "kind": "what the file is, a word of vocab.FILE_KIND",
    "bytes": "size of the file",
    "mtime": "when it was last written, in seconds since 1970",
    "run_dir": "directory that holds the run's files",
    "sweep": "directory, or published study, that the run belongs to",
    "launch": "folder of one attempt, below that of the run",
    "origin": "measured, published or simulated",
    "linked_path": "the real path, where `path` is a link or leads through one",
    "part_of": "path of the log that this file is a rotated part of",
    "part": "which part of that log, from the oldest on",
    "stated": "what you stated of the file's runs, as JSON",
}
_FOUND_COLUMNS = dg.TableSchema(
    [dg.TableColumn(name, str(dtype), description=_MEANING[name]) for name, dtype in FOUND.items()]
)


class BatchConfig(dg.Config):
    """Which files a run reads: a batch that the sensor stored, or else what is new under some paths."""

    batch_id: str = Field(default="", description="A batch that the sensor stored; kept for 7 days.")
    paths: list[str] = Field(
        default_factory=list, description="Paths and URLs to look through; those that are watched when left out."
    )
    with_published: bool | None = Field(
        default=None, description="Load the bundled results; as `sweepscope watch` was started when left out."
    )
    workers: int = Field(
        default=0,
        ge=0,
        description="Processes that read; 0: one per two cores, at most a few. Small batches need one only.",
    )
    dialects: dict[str, str] | None = Field(
        default=None,
        description="Path and content hash of each dialect file to read with; as the home remembers when left out.",
    )


@dg.asset(
    group_name="ingest",
    kinds={"polars", "file"},
    owners=OWNERS,
    description="Files that are new or have changed since they were last read: those of the batch in the "
    "configuration; without one, the first batch of what is new under the watched paths.",
    metadata={"dagster/column_schema": _FOUND_COLUMNS},
    retry_policy=_RETRY,
)
def discovered(config: BatchConfig, store_home: HomeResource) -> dg.Output[pl.DataFrame]:
    """FOUND rows of the batch."""
    with one_sentence():
        found, waiting = (
            (read_batch(store_home.home, config.batch_id), 0) if config.batch_id else _first_batch(config, store_home)
        )
    return _output(steps.found(found, files_waiting=waiting))


def _first_batch(config: BatchConfig, store_home: HomeResource) -> tuple[pl.DataFrame, int]:
    """FOUND rows of the first batch of what is new, and the number of files that wait for another run."""
    if not (paths := config.paths or watched_paths()):
        raise UsageError(NOTHING_WATCHED)
    in_use = in_force(store_home.home, config.dialects)
    pending = plan.pending(store_home.lake, paths, dialects=in_use.dialects, are_watched=not config.paths)
    first = next(iter(plan.batches(pending)), pending)
    return first, pending.height - first.height


@dg.asset(
    group_name="ingest",
    kinds={"polars", "python"},
    owners=OWNERS,
    description="Rows of every table, parsed from the batch's files and completed, not yet validated.",
)
def parsed(
    config: BatchConfig,
    discovered: pl.DataFrame,
    store_home: HomeResource,
    readers: ReadersResource,
) -> dg.Output[steps.Parsed]:
    """Table name to its rows, those of files and the bundled ones."""
    with one_sentence():
        workers = config.workers or default_workers(cores_each=CORES_PER_READER)
        is_wanted = with_published() if config.with_published is None else config.with_published
        with readers.opened(store_home.home, workers) as cluster:
            step = steps.parse(
                discovered,
                store_home.home,
                in_use=in_force(store_home.home, config.dialects),
                with_published=is_wanted,
                workers=workers,
                cluster=cluster,
            )
    return _output(step)


@dg.asset(
    group_name="ingest",
    kinds={"polars", "pandera"},
    owners=OWNERS,
    description="Rows that pass their schema; `rejects` names the others with the reason. One blocking check per table "
    "fails when a parser must be wrong: more than half of its rows were left out or have words of no vocabulary.",
    check_specs=[
        dg.AssetCheckSpec(
            f"schema_{name}", asset="validated", blocking=True, description=f"Rows of {name} pass their schema."
        )
        for name in steps.CHECKED
    ],
)
def validated(parsed: steps.Parsed) -> Any:
    """Table name to its valid rows, and one blocking check per table."""
    with one_sentence():
        step = steps.validate(parsed)
    yield _output(step)
    for check in step.checks:
        yield dg.AssetCheckResult(check_name=check.name, passed=check.passed, metadata=check.counts)


@dg.asset(
    group_name="store",
    kinds={"deltalake"},
    owners=OWNERS,
    description="The Delta tables: one atomic release per batch.",
    retry_policy=_RETRY,
)
def lake(
    context: dg.AssetExecutionContext, validated: dict[str, pl.DataFrame], store_home: HomeResource
) -> dg.MaterializeResult[dict[str, pl.DataFrame]]:
    """Commits the batch as one release; the value is what was committed, by table."""
    with one_sentence():
        step = steps.commit(validated, store_home.home, batch_id=context.run.run_id)
    return dg.MaterializeResult(metadata=as_metadata(step.facts), value=step.value)


@dg.asset(
    group_name="store",
    kinds={"duckdb"},
    owners=OWNERS,
    description="The DuckDB file that the dashboard and `sweepscope query` read, built from the lake's newest release.",
    deps=[lake],
    freshness_policy=FRESH,
    retry_policy=_RETRY,
    check_specs=[
        dg.AssetCheckSpec("is_current", asset="store", description="The store shows the lake's newest release."),
        dg.AssetCheckSpec("inputs_are_read", asset="store", description="Every file could be read the last time."),
    ],
)
def store(store_home: HomeResource) -> Iterator[dg.MaterializeResult[None]]:
    """Publishes the newest release, and tidies the lake where many small files or old releases have gathered."""
    with one_sentence():
        step = steps.publish_newest(store_home.home)
    checks = [
        dg.AssetCheckResult(
            check_name=check.name, passed=check.passed, severity=dg.AssetCheckSeverity.WARN, metadata=check.counts
        )
        for check in step.checks
    ]
    yield dg.MaterializeResult(metadata=as_metadata(step.facts), check_results=checks)


@dg.asset(
    group_name="store",
    kinds={"duckdb", "sql"},
    owners=OWNERS,
    description="The views of the published store (cells, winners, findings), as publishing bound them to its tables.",
    deps=[store],
)
def marts(store_home: HomeResource) -> dg.MaterializeResult[None]:
    """Number of columns of each view of the published version; one that is missing fails the run."""
    with one_sentence():
        step = steps.count_view_columns(store_home.home)
    return dg.MaterializeResult(metadata=as_metadata(step.facts))


def as_metadata(facts: Mapping[str, str | int | float]) -> dict[str, Any]:
    """Facts of a step as Dagster's page shows them: `path` can be copied there."""
    return {name: dg.MetadataValue.path(str(fact)) if name == "path" else fact for name, fact in facts.items()}


def _output(step: steps.Step[Any]) -> dg.Output[Any]:
    return dg.Output(step.value, metadata=as_metadata(step.facts))


ASSETS = [discovered, parsed, validated, lake, store, marts]
