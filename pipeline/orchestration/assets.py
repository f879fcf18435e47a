"""The graph: discovered -> parsed -> validated -> lake -> store -> marts, one batch of run directories per run.

A batch travels through memory, so the run uses the in-process executor. No partitions: a partition per run directory
costs a hundred times the parsing; the `files` table is the ledger that says what has been read.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations of assets and configs at run time.
import time
from typing import Any

import dagster as dg
import polars as pl
from pydantic import Field

from sweepscope.pipeline.ingest import plan
from sweepscope.pipeline.ingest.batch import merge_tables, validate_batch
from sweepscope.pipeline.ingest.bundled import bundled_is_pending, bundled_tables, hardware_is_pending, hardware_tables
from sweepscope.pipeline.ingest.dialect_files import in_force
from sweepscope.pipeline.ingest.parallel import parse_sharded
from sweepscope.pipeline.io.process_pool import CORES_PER_READER, default_workers
from sweepscope.pipeline.orchestration.resources import HomeResource, ProgressResource, metadata
from sweepscope.pipeline.store import maintenance
from sweepscope.pipeline.store.publish import publish
from sweepscope.pipeline.store.published import connect
from sweepscope.schemas.registry import TABLES, VIEWS

MAX_REJECTED_SHARE = 0.5
"""A batch in which more rows of a table break their schema than pass it is a parser's fault, not bad data."""

_CHECKED = tuple(name for name in TABLES if name != "rejects")


class BatchConfig(dg.Config):
    """Which files a run reads: a batch file written by the sensor, or paths to look through."""

    batch_id: str = ""
    paths: list[str] = Field(default_factory=list)
    with_published: bool = True
    workers: int = Field(
        default=0,
        ge=0,
        description="Processes that read; 0: one per two cores, at most a few. Small batches need one only.",
    )
    dialects: dict[str, str] | None = Field(
        default=None,
        description="Path and content hash of each dialect file to read with; as the home remembers when left out.",
    )


@dg.asset(group_name="ingest", description="Files of this batch that are new or changed since they were last read.")
def discovered(config: BatchConfig, store_home: HomeResource) -> dg.Output[pl.DataFrame]:
    """FOUND rows of the batch."""
    if config.batch_id:
        found = pl.read_parquet(store_home.home.batches / f"{config.batch_id}.parquet")
    else:
        own = in_force(store_home.home, config.dialects)
        found = plan.pending(store_home.lake, config.paths, dialects=own.dialects)
    return dg.Output(
        found,
        metadata=metadata(files=found.height, units=found["unit"].n_unique(), bytes=int(found["bytes"].sum() or 0)),
    )


@dg.asset(group_name="ingest", description="Rows of every table, parsed and derived, not yet validated.")
def parsed(
    config: BatchConfig, discovered: pl.DataFrame, store_home: HomeResource, progress: ProgressResource
) -> dg.Output[dict[str, pl.DataFrame]]:
    """table name -> frame."""
    own = in_force(store_home.home, config.dialects)
    begin = time.perf_counter()
    now = plan.utc_now()
    tables = parse_sharded(
        discovered,
        now=now,
        home=store_home.home,
        dialect_files=own.files,
        workers=config.workers or default_workers(cores_each=CORES_PER_READER),
        on_file=progress.on_file,
    )
    seconds = time.perf_counter() - begin
    size = int(tables["files"]["read_bytes"].sum() or 0)
    if config.with_published and bundled_is_pending(store_home.lake.read("files")):
        tables = merge_tables(tables, bundled_tables())
    elif hardware_is_pending(store_home.lake):
        tables = merge_tables(tables, hardware_tables())
    rows = {f"rows_{name}": frame.height for name, frame in tables.items()}
    facts = metadata(bytes_read=size, mb_per_s=round(size / 1e6 / max(seconds, 1e-9), 1), **rows)
    return dg.Output(tables, metadata=facts)


@dg.asset(
    group_name="ingest",
    description="Rows that pass their schema; the others stand in `rejects` with a reason.",
    check_specs=[
        dg.AssetCheckSpec(
            f"schema_{name}", asset="validated", blocking=True, description=f"Rows of {name} pass their schema."
        )
        for name in _CHECKED
    ],
)
def validated(parsed: dict[str, pl.DataFrame]) -> Any:
    """table name -> valid frame, and one blocking check per table."""
    tables = validate_batch(parsed)
    yield dg.Output(tables, metadata=metadata(rejects=tables["rejects"].height))
    for name in _CHECKED:
        offered = parsed[name].height if name in parsed else 0
        rejected = offered - (tables[name].height if name in tables else 0)
        yield dg.AssetCheckResult(
            check_name=f"schema_{name}",
            passed=rejected <= MAX_REJECTED_SHARE * offered,
            metadata={"rows": offered, "rejected": rejected},
        )


@dg.asset(
    group_name="store",
    description="The Delta tables: one atomic release per batch.",
    retry_policy=dg.RetryPolicy(max_retries=2, delay=1, backoff=dg.Backoff.EXPONENTIAL),
)
def lake(
    context: dg.AssetExecutionContext, validated: dict[str, pl.DataFrame], store_home: HomeResource
) -> dg.Output[int]:
    """Number of the release."""
    tables = {**validated, "files": validated["files"].with_columns(batch_id=pl.lit(context.run.run_id))}
    release = store_home.lake.commit(tables)
    rows = {f"rows_{name}": frame.height for name, frame in validated.items()}
    return dg.Output(release.number, metadata=metadata(release=release.number, **rows))


@dg.asset(
    group_name="store",
    description="The DuckDB file that the dashboard and `sweepscope query` read.",
    retry_policy=dg.RetryPolicy(max_retries=2, delay=1, backoff=dg.Backoff.EXPONENTIAL),
)
def store(lake: int, store_home: HomeResource) -> dg.Output[str]:
    """Path of the published version."""
    done = publish(store_home.home)
    tidied = maintenance.tidy(store_home.home)
    facts = metadata(release=lake, version=done.version, seconds=done.seconds, lake_compacted=tidied)
    return dg.Output(str(done.path), metadata=facts)


@dg.asset(group_name="store", description="The views answer: cells, winners, findings.")
def marts(store: str) -> dg.MaterializeResult[None]:
    """Row count of every view of the published version; a view that fails fails the run."""
    connection = connect(store)
    try:
        rows = {name: connection.sql(f'SELECT count(*) FROM "{name}"').fetchall()[0][0] for name in VIEWS}
    finally:
        connection.close()
    return dg.MaterializeResult(metadata=metadata(**{f"rows_{name}": count for name, count in rows.items()}))


ASSETS = [discovered, parsed, validated, lake, store, marts]
