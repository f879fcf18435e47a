"""The graph: discovered -> parsed -> validated -> lake -> store -> marts, one batch of run directories per run.

A batch travels through memory as far as the lake, so the run uses the in-process executor; `store` and `marts` read
what is on disk. No partitions: a partition per run directory costs a hundred times the parsing; the `files` table is
the ledger of what has been read.

An asset takes its resources, calls functions of `ingest` and `store`, and says in metadata what came of it. What can be
computed without Dagster belongs there; when the graph runs is decided in `jobs`.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations of assets and configs at run time.
import logging
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import dagster as dg
import polars as pl
from pydantic import Field

from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.ingest import plan
from sweepscope.pipeline.ingest.batch import faulty_rows, merge_tables, validate_batch
from sweepscope.pipeline.ingest.bundled import (
    bundled_is_pending,
    bundled_tables,
    hardware_is_pending,
    hardware_tables,
)
from sweepscope.pipeline.ingest.dialect_files import in_force
from sweepscope.pipeline.ingest.discover import FOUND
from sweepscope.pipeline.ingest.parallel import parse_sharded
from sweepscope.pipeline.ingest.reconcile import reconcile, with_known_content
from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.io.fault_points import reach
from sweepscope.pipeline.io.process_pool import CORES_PER_READER, default_workers
from sweepscope.pipeline.io.spill import release
from sweepscope.pipeline.orchestration.batch_files import read_batch
from sweepscope.pipeline.orchestration.resources import HomeResource, ProgressResource, ReadersResource
from sweepscope.pipeline.orchestration.run_memory import one_sentence
from sweepscope.pipeline.orchestration.watched_paths import NOTHING_WATCHED, watched_paths, with_published
from sweepscope.pipeline.store import maintenance
from sweepscope.pipeline.store.publish import publish
from sweepscope.pipeline.store.published import connect, current
from sweepscope.schemas.registry import TABLES, VIEWS

_LOG = logging.getLogger(__name__)

MAX_REJECTED_SHARE = 0.5
"""A batch in which more rows of a table break their schema than pass it is a parser's fault, not bad data."""

_CHECKED = tuple(name for name in TABLES if name != "rejects")

OWNERS = ["team:sweepscope"]

FRESH = dg.FreshnessPolicy.time_window(warn_window=timedelta(days=1), fail_window=timedelta(days=7))
"""A store that shows nothing new for a day: either no training run wrote a line, or the watcher does not run."""

_RETRY = dg.RetryPolicy(max_retries=2, delay=1, backoff=dg.Backoff.EXPONENTIAL)
_FOUND_COLUMNS = dg.TableSchema([dg.TableColumn(name, str(dtype)) for name, dtype in FOUND.items()])


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
    size = int(found["bytes"].sum() or 0)
    units = found["unit"].n_unique()
    metadata = {"dagster/row_count": found.height, "files": found.height, "units": units, "bytes": size}
    return dg.Output(found, metadata={**metadata, "files_waiting": waiting})


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
    progress: ProgressResource,
) -> dg.Output[dict[str, pl.DataFrame]]:
    """Table name to its rows."""
    begin = time.perf_counter()
    with one_sentence():
        in_use = in_force(store_home.home, config.dialects)
        workers = config.workers or default_workers(cores_each=CORES_PER_READER)
        with readers.opened(store_home.home, workers) as cluster:
            tables = parse_sharded(
                with_known_content(discovered, store_home.lake.read("files")),
                now=plan.utc_now(),
                home=store_home.home,
                declared=in_use.declared,
                workers=workers,
                cluster=cluster,
                on_file=progress.on_file,
            )
        seconds = time.perf_counter() - begin
        reach("files.read")
        bundled = _bundled(config, store_home)
    size = int(tables["files"]["read_bytes"].sum() or 0)
    tables = merge_tables(tables, bundled)
    speed = {"bytes_read": size, "mb_per_s": round(size / 1e6 / max(seconds, 1e-9), 1)}
    return dg.Output(tables, metadata={**speed, **_row_counts(tables)})


def _bundled(config: BatchConfig, store_home: HomeResource) -> dict[str, pl.DataFrame]:
    """Bundled rows that the lake lacks: published results with the hardware, where wanted, or the hardware alone."""
    is_wanted = with_published() if config.with_published is None else config.with_published
    if is_wanted and bundled_is_pending(store_home.lake.read("files")):
        return bundled_tables()
    return hardware_tables() if hardware_is_pending(store_home.lake) else {}


def _row_counts(tables: Mapping[str, pl.DataFrame]) -> dict[str, int]:
    return {f"rows_{name}": frame.height for name, frame in tables.items()}


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
        for name in _CHECKED
    ],
)
def validated(parsed: dict[str, pl.DataFrame]) -> Any:
    """Table name to its valid rows, and one blocking check per table."""
    with one_sentence():
        tables = validate_batch(parsed)
    release()
    reach("rows.validated")
    event(_LOG, logging.INFO, "validated", **_row_counts(tables))
    yield dg.Output(tables, metadata={"rejects": tables["rejects"].height})
    for name in _CHECKED:
        offered = parsed.get(name, tables.get(name, TABLES[name].empty()))
        rejected = faulty_rows(TABLES[name], offered, tables.get(name, TABLES[name].empty()))
        yield dg.AssetCheckResult(
            check_name=f"schema_{name}",
            passed=rejected <= MAX_REJECTED_SHARE * offered.height,
            metadata={"rows": offered.height, "rejected": rejected},
        )


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
    tables = {**validated, "files": validated["files"].with_columns(batch_id=pl.lit(context.run.run_id))}
    with one_sentence():
        in_lake = store_home.lake
        committed, rows = in_lake.change(lambda: reconcile(tables, in_lake))
    release()
    event(_LOG, logging.INFO, "committed", release=committed.number, files=rows["files"].height)
    where = {"path": dg.MetadataValue.path(store_home.home.lake)}
    return dg.MaterializeResult(metadata={**where, "release": committed.number, **_row_counts(rows)}, value=dict(rows))


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
        done = publish(store_home.home)
        newest = store_home.lake.release()
        statuses = store_home.lake.read("files", ["status"])["status"]
        tidied = maintenance.tidy(store_home.home)
    facts = {"release": done.release, "version": done.version, "seconds": done.seconds}
    where: dict[str, dg.MetadataValue | bool] = {
        "path": dg.MetadataValue.path(done.path),
        "lake_compacted": tidied.is_compacted,
    }
    committed = newest.number if newest else done.release
    unread = int(statuses.is_in(["failed", "unread", "rejected"]).sum())
    checks = [
        _check("is_current", passed=done.release >= committed, shown=done.release, committed=committed),
        _check("inputs_are_read", passed=not unread, files=statuses.len(), not_read=unread),
    ]
    yield dg.MaterializeResult(metadata={**where, **facts}, check_results=checks)


def _check(name: str, *, passed: bool, **metadata: int) -> dg.AssetCheckResult:
    """A warning where it fails: another batch may have been committed meanwhile, a file may be read the next time."""
    return dg.AssetCheckResult(check_name=name, passed=passed, severity=dg.AssetCheckSeverity.WARN, metadata=metadata)


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
        connection = connect(current(store_home.home.path))
    try:
        # From the catalog: preparing every view takes longer than reading a small batch, and creating one does it.
        query = "SELECT table_name, count(*) FROM duckdb_columns() GROUP BY table_name"
        found = dict(connection.execute(query).fetchall())
    finally:
        connection.close()
    return dg.MaterializeResult(metadata={f"columns_{name}": int(found[name]) for name in VIEWS})


ASSETS = [discovered, parsed, validated, lake, store, marts]
