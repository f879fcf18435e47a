"""The steps of one batch, in order: parse, validate, commit, publish, look at the views. No Dagster in here.

Each is a function of what the one before gave. `assets` shows them to Dagster, and `run` does them one after another
for `sweepscope ingest`, so that both read, check and store alike.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import polars as pl

from sweepscope.pipeline.ingest import plan
from sweepscope.pipeline.ingest.batch import Tables, faulty_rows, merge_tables, validate_batch
from sweepscope.pipeline.ingest.bundled import bundled_is_pending, hardware_is_pending, hardware_tables
from sweepscope.pipeline.ingest.dialect_files import InForce
from sweepscope.pipeline.ingest.parallel import Cluster, parse_sharded
from sweepscope.pipeline.ingest.prepared import prepared_tables
from sweepscope.pipeline.ingest.reconcile import CONTENT, reconcile, with_known_content
from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.io.fault_points import reach
from sweepscope.pipeline.io.spill import release
from sweepscope.pipeline.store import maintenance
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from sweepscope.pipeline.store.publish import publish
from sweepscope.pipeline.store.published import connect, current
from sweepscope.schemas.registry import TABLES, VIEWS

_LOG = logging.getLogger(__name__)

Value = TypeVar("Value")
OnFile = Callable[[str, int], None]

CHECKED = tuple(name for name in TABLES if name != "rejects")
"""Tables whose rows have a check: more of them must pass their schema than break it."""

MAX_REJECTED_SHARE = 0.5
"""A batch in which more rows of a table break their schema than pass it is a parser's fault, not bad data."""


@dataclass(frozen=True)
class Check:
    """Whether something holds of what a step gave, and the counts by which that was decided.

    `is_blocking`: where it fails, no further step is done.
    """

    name: str
    passed: bool
    counts: Mapping[str, int]
    is_blocking: bool = False


@dataclass(frozen=True)
class Step(Generic[Value]):
    """What a step gave: the value for the next one, facts for the record of the run, and checks."""

    value: Value
    facts: Mapping[str, str | int | float] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True)
class Parsed:
    """Rows of the batch's files, not yet validated, and valid rows of bundled tables that the lake lacks."""

    tables: Tables
    bundled: Tables = field(default_factory=dict)


def found(batch: pl.DataFrame, *, files_waiting: int = 0) -> Step[pl.DataFrame]:
    """The batch to read, discover.FOUND rows.

    Args:
        batch: of whole units.
        files_waiting: files that are new and left to another batch.
    """
    size, units = int(batch["bytes"].sum() or 0), batch["unit"].n_unique()
    facts = {"files": batch.height, "units": units, "bytes": size, "files_waiting": files_waiting}
    return Step(batch, {"dagster/row_count": batch.height, **facts})


def parse(
    batch: pl.DataFrame,
    home: Home,
    *,
    in_use: InForce,
    with_published: bool,
    workers: int,
    cluster: Cluster | None,
    on_file: OnFile = lambda _path, _size: None,
) -> Step[Parsed]:
    """Rows of every table, parsed from the batch's files and completed, and those of bundled tables.

    Args:
        batch: discover.FOUND rows of whole units.
        home: whose lake is added to.
        in_use: dialects to read with.
        with_published: add the bundled results, where the lake lacks them; without them, the hardware alone.
        workers: processes that read, this one included.
        cluster: reads in their place.
        on_file: called with each path and its size.

    Raises:
        SweepscopeError: as reading does.
    """
    begin = time.perf_counter()
    lake = Lake(home)
    tables = parse_sharded(
        with_known_content(batch, lake.read("files", CONTENT, pl.col("path").is_in(batch["path"].implode()))),
        now=plan.utc_now(),
        home=home,
        declared=in_use.declared,
        workers=workers,
        cluster=cluster,
        on_file=on_file,
    )
    seconds = time.perf_counter() - begin
    reach("files.read")
    size = int(tables["files"]["read_bytes"].sum() or 0)
    parsed = Parsed(tables, _bundled(lake, with_published=with_published))
    counts = _counts(merge_tables(parsed.tables, parsed.bundled))
    return Step(parsed, {"bytes_read": size, "mb_per_s": round(size / 1e6 / max(seconds, 1e-9), 1), **counts})


def validate(parsed: Parsed) -> Step[Tables]:
    """Rows that pass their schema, `rejects` for the others, and a blocking check per table."""
    valid = validate_batch(parsed.tables)
    checks = tuple(_schema_check(name, parsed.tables, valid) for name in CHECKED)
    tables = merge_tables(valid, parsed.bundled)
    release()
    reach("rows.validated")
    event(_LOG, logging.INFO, "validated", **_counts(tables))
    return Step(tables, {"rows": sum(map(len, tables.values())), "rejects": tables["rejects"].height}, checks)


def commit(validated: Tables, home: Home, *, batch_id: str) -> Step[Tables]:
    """The rows as they were committed to the lake, in one release. Raises StoreError."""
    tables = {**validated, "files": validated["files"].with_columns(batch_id=pl.lit(batch_id))}
    lake = Lake(home)
    committed, rows = lake.change(lambda: reconcile(tables, lake))
    release()
    event(_LOG, logging.INFO, "committed", release=committed.number, files=rows["files"].height)
    return Step(dict(rows), {"path": str(home.lake), "release": committed.number, **_counts(rows)})


def publish_newest(home: Home) -> Step[str]:
    """Path of the published store, which shows the newest release; the lake is tidied where it needs it.

    A check that fails is a warning: another batch may have been committed meanwhile, a file may be read the next time.

    Raises:
        StoreError: as publishing does.
    """
    done = publish(home)
    lake = Lake(home)
    newest = lake.release()
    statuses = lake.read("files", ["status"])["status"]
    tidied = maintenance.tidy(home)
    committed = newest.number if newest else done.release
    unread = int(statuses.is_in(["failed", "unread", "rejected"]).sum())
    checks = (
        Check("is_current", done.release >= committed, {"shown": done.release, "committed": committed}),
        Check("inputs_are_read", not unread, {"files": statuses.len(), "not_read": unread}),
    )
    facts: dict[str, str | int | float] = {
        "path": str(done.path),
        "lake_compacted": tidied.is_compacted,
        "release": done.release,
        "version": done.version,
        "seconds": done.seconds,
    }
    return Step(str(done.path), facts, checks)


def count_view_columns(home: Home) -> Step[None]:
    """Number of columns of each view of the published store. Raises KeyError for a view that it lacks."""
    connection = connect(current(home.path))
    try:
        # From the catalog: preparing every view takes longer than reading a small batch, and creating one does it.
        # A stored view is a table there. A row for each column would take ten times as long.
        query = """SELECT view_name, column_count FROM duckdb_views()
UNION ALL SELECT table_name, column_count FROM duckdb_tables()"""
        columns = dict(connection.execute(query).fetchall())
    finally:
        connection.close()
    return Step(None, {f"columns_{name}": int(columns[name]) for name in VIEWS})


def _bundled(lake: Lake, *, with_published: bool) -> Tables:
    """Valid bundled rows that the lake lacks: published results with the hardware, where wanted, or that alone."""
    if with_published and bundled_is_pending(lake):
        return prepared_tables()
    return hardware_tables() if hardware_is_pending(lake) else {}


def _counts(tables: Mapping[str, pl.DataFrame]) -> dict[str, int]:
    return {f"rows_{name}": frame.height for name, frame in tables.items()}


def _schema_check(name: str, parsed: Tables, valid: Tables) -> Check:
    offered = parsed.get(name, valid.get(name, TABLES[name].empty()))
    rejected = faulty_rows(TABLES[name], offered, valid.get(name, TABLES[name].empty()))
    counts = {"rows": offered.height, "rejected": rejected}
    return Check(f"schema_{name}", rejected <= MAX_REJECTED_SHARE * offered.height, counts, is_blocking=True)
