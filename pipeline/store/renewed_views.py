"""Stored views of a renewed store, computed again for the runs that changed and those that their rows rest on.

Where few runs changed, that costs what is new; the others of a store's stored views are computed as a whole, or for the
groups of runs that their rows compare (GROUPED), or not at all where no file that they are about is concerned (ABOUT).

A view that is `is_run_by_run` gives the rows of a region, runs that share no log, directory, unit or billed job with
any others, from the rows of that region alone. So it is created a second time over tables that show nothing else, and
its rows there replace those of the region.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

import duckdb

from sweepscope.pipeline.store import stored_views
from sweepscope.pipeline.store.exchange import Keys
from sweepscope.schemas.core import ddl
from sweepscope.schemas.registry import TABLES, VIEWS

MOST = 0.2
"""Share of the runs in a region above which computing all rows takes no longer."""

FACTS = ("nccl_files", "nccl_hangs", "flight_records")
"""Tables of files beside logs, which belong to the only run of their unit or directory."""

_PLACED = ("run_gpu_memory", "run_snapshots")
"""Stored views that say which run a memory artefact belongs to, by directories above each other: they are no region."""

GROUPED = {"ranked_layouts": ("origin", "num_nodes")}
"""Stored views that compare runs with equal values in these columns of `runs` only, which their rows have as well."""

ABOUT = {"nccl_findings": "nccl_files"}
"""Stored views about the files of a table: of `runs` and `files`, they read the rows of these files alone."""

_SCHEMA = "memory.region"

_JOB = "(origin, coalesce(sweep, ''), coalesce(job_id, ''))"
"""SQL of the job of a run: hours that a scheduler billed are shared out within it."""


def tables_read(views: Mapping[str, str]) -> set[str]:
    """Tables that the views which are computed run by run rest on."""
    names = [name for name in views if name in VIEWS and VIEWS[name].is_run_by_run]
    return set().union(*(stored_views.tables_of(name, views) for name in names))


def remember_runs(connection: duckdb.DuckDBPyConnection) -> None:
    """Keep which runs share a billed job, and the groups of all, for `compute_again`.

    To be called before tables of the store are changed.
    """
    columns = ", ".join(sorted({column for group in GROUPED.values() for column in group}))
    connection.execute(f"CREATE TEMP TABLE groups_before AS SELECT run_id, {columns} FROM runs")
    connection.execute(f"""
        CREATE TEMP TABLE jobs_before AS
        SELECT run_id, origin, coalesce(sweep, '') AS sweep, coalesce(job_id, '') AS job_id
        FROM runs
        QUALIFY count(allocated_gpu_hours) OVER (PARTITION BY {_JOB}) > 0
    """)


def compute_again(
    connection: duckdb.DuckDBPyConnection, views: Mapping[str, str], changed: Collection[str], keys: Keys | None
) -> None:
    """Bring the stored views of a store up to its tables.

    Args:
        connection: to the store, of which the tables are filled; `remember_runs` was called before.
        views: statements by view, of which the store has been built.
        changed: tables with other rows than when the views were computed.
        keys: what those rows name; None: everything is computed.
    """
    names = stored_views.outdated(views, changed)
    by_run = [name for name in names if VIEWS[name].is_run_by_run]
    placed = [name for name in names if name in _PLACED]
    if not by_run or keys is None:
        _compute_whole(connection, views, names)
        return
    for name in placed:
        connection.execute(f"CREATE TEMP TABLE before_{name} AS FROM {name}")
    _compute_whole(connection, views, placed)
    others = [name for name in names if name not in {*placed, *by_run}]
    if not _is_region_found(connection, keys, placed, [name for name in _PLACED if name in views]):
        _compute_whole(connection, views, [*by_run, *others])
        return
    _compute_region(connection, views, by_run)
    for name in others:
        if name in GROUPED:
            _compute_groups(connection, views, name)
        elif _is_concerned(connection, views, name, changed):
            _compute_whole(connection, views, [name])


def _compute_whole(connection: duckdb.DuckDBPyConnection, views: Mapping[str, str], names: Collection[str]) -> None:
    for name in names:
        connection.execute(f"BEGIN; {stored_views.as_rows(name, views[name])}; COMMIT")


def _compute_region(connection: duckdb.DuckDBPyConnection, views: Mapping[str, str], names: Collection[str]) -> None:
    with _region_shown(connection, views):
        for name in names:
            connection.execute(f"DELETE FROM store.main.{name} WHERE run_id IN (FROM region_runs)")
            connection.execute(f"INSERT INTO store.main.{name} FROM {_SCHEMA}.{name}")


def _compute_groups(connection: duckdb.DuckDBPyConnection, views: Mapping[str, str], name: str) -> None:
    """Compute the rows of the groups that runs of the region belong to, or belonged to before."""
    columns = ", ".join(GROUPED[name])
    connection.execute(f"""
        CREATE OR REPLACE TEMP TABLE region_groups AS
        SELECT DISTINCT {columns}
        FROM (SELECT run_id, {columns} FROM groups_before UNION ALL SELECT run_id, {columns} FROM store.main.runs)
        WHERE run_id IN (FROM region_runs)
    """)
    same = " AND ".join(f"part.{column} IS NOT DISTINCT FROM region_groups.{column}" for column in GROUPED[name])
    of_groups = f"EXISTS (FROM region_groups WHERE {same})"
    with _schema(connection):
        connection.execute(f"CREATE VIEW runs AS FROM store.main.runs AS part WHERE {of_groups}")
        connection.execute(stored_views.as_table(name, views[name]))
        connection.execute(f"DELETE FROM store.main.{name} AS part WHERE {of_groups}")
        connection.execute(f"INSERT INTO store.main.{name} FROM {_SCHEMA}.{name}")


def _is_concerned(
    connection: duckdb.DuckDBPyConnection, views: Mapping[str, str], name: str, changed: Collection[str]
) -> bool:
    """Whether a view that is not computed run by run may have other rows than before."""
    if name not in ABOUT or (stored_views.tables_of(name, views) - {"runs", "files"}) & set(changed):
        return True
    query = f"SELECT count(*) > 0 FROM {ABOUT[name]} WHERE source_path IN (FROM region_paths)"
    ((is_concerned,),) = connection.execute(query).fetchall()
    return bool(is_concerned)


def _is_region_found(
    connection: duckdb.DuckDBPyConnection, keys: Keys, computed: Collection[str], placed: Collection[str]
) -> bool:
    """Whether the region around the changed rows is small enough; temporary tables have it then.

    They are `region_runs`, `region_paths` (logs and files beside them), `region_dirs` and `region_units`.

    Args:
        keys: what the changed rows name.
        computed: views of `placed` that were computed again; `before_NAME` has their rows before.
        placed: those of _PLACED that the store has.
    """
    for name, found in (("runs", keys.runs), ("paths", keys.paths), ("dirs", keys.dirs), ("units", keys.units)):
        connection.register("seeds", found.rename("key").to_frame().to_arrow())
        connection.execute(f"CREATE OR REPLACE TEMP TABLE region_{name} AS FROM seeds")
        connection.unregister("seeds")
    for name in computed:
        sides = (f"FROM before_{name} EXCEPT FROM {name}", f"FROM {name} EXCEPT FROM before_{name}")
        for side in sides:
            _add(connection, "runs", f"SELECT run_id FROM ({side})")
    # Runs that are gone, or are of another job now, shared its hours with those that are still of it.
    of_region = "SELECT (origin, sweep, job_id) FROM jobs_before WHERE run_id IN (FROM region_runs)"
    _add(connection, "runs", f"SELECT run_id FROM runs WHERE {_JOB} IN ({of_region})")
    ((most,),) = connection.execute(f"SELECT count(*) * {MOST} FROM runs").fetchall()
    before = None
    while before != (now := _sizes(connection)):
        if now[0] > most:
            return False
        before = now
        _grow(connection, placed)
    return True


def _grow(connection: duckdb.DuckDBPyConnection, placed: Collection[str]) -> None:
    """Add what a region's rows share a log, directory, unit or billed job with."""
    _add(
        connection,
        "runs",
        "SELECT run_id FROM runs WHERE source_path IN (FROM region_paths) OR run_dir IN (FROM region_dirs)",
    )
    for name in placed:
        _add(connection, "runs", f"SELECT run_id FROM {name} WHERE source_path IN (FROM region_paths)")
    # Hours that a scheduler billed are shared out within a job: `run_outcomes` asks for the others of a billed run.
    _add(
        connection,
        "runs",
        f"""
        WITH near AS (
            SELECT run_id, origin, sweep, job_id, allocated_gpu_hours, run_id IN (FROM region_runs) AS is_in
            FROM runs
            WHERE {_JOB} IN (SELECT {_JOB} FROM runs WHERE run_id IN (FROM region_runs))
        )
        SELECT run_id FROM near
        WINDOW job AS (PARTITION BY origin, sweep, job_id)
        QUALIFY count(allocated_gpu_hours) OVER job > 0 AND bool_or(is_in) OVER job
        """,
    )
    _add(connection, "paths", "SELECT source_path FROM runs WHERE run_id IN (FROM region_runs)")
    _add(connection, "dirs", "SELECT run_dir FROM runs WHERE run_id IN (FROM region_runs)")
    for name in FACTS:
        here = "source_path IN (FROM region_paths) OR run_dir IN (FROM region_dirs)"
        _add(connection, "paths", f"SELECT source_path FROM {name} WHERE {here}")
        _add(connection, "dirs", f"SELECT run_dir FROM {name} WHERE source_path IN (FROM region_paths)")
    _add(connection, "units", "SELECT unit FROM files WHERE path IN (FROM region_paths)")
    _add(connection, "paths", "SELECT path FROM files WHERE unit IN (FROM region_units)")


def _add(connection: duckdb.DuckDBPyConnection, name: str, query: str) -> None:
    connection.execute(
        f"INSERT INTO region_{name} SELECT DISTINCT key FROM ({query}) AS t(key) "
        f"WHERE key IS NOT NULL AND key NOT IN (FROM region_{name})"
    )


def _sizes(connection: duckdb.DuckDBPyConnection) -> tuple[int, ...]:
    counts = (f"(SELECT count(*) FROM region_{name})" for name in ("runs", "paths", "dirs", "units"))
    (sizes,) = connection.execute(f"SELECT {', '.join(counts)}").fetchall()
    return tuple(sizes)


@contextmanager
def _region_shown(connection: duckdb.DuckDBPyConnection, views: Mapping[str, str]) -> Iterator[None]:
    """A schema with the tables of the region and what views give of them."""
    with _schema(connection):
        for name in sorted(tables_read(views)):
            if where := _where(name):
                connection.execute(f"CREATE VIEW {name} AS FROM store.main.{ddl.quote(name)} WHERE {where}")
        shown = stored_views.read_by([n for n in views if n in VIEWS and VIEWS[n].is_run_by_run], views)
        for name in (name for name in shown if name in _PLACED):
            connection.execute(f"CREATE VIEW {name} AS FROM store.main.{name} WHERE run_id IN (FROM region_runs)")
        for name in (name for name in shown if name not in _PLACED):
            # Rows, not a view: DuckDB takes most of the time to bind one, anew for each that reads it.
            connection.execute(stored_views.as_table(name, views[name]))
        yield


@contextmanager
def _schema(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """An empty schema in memory, in which names are looked for first."""
    connection.execute(f"CREATE SCHEMA {_SCHEMA}; SET search_path = '{_SCHEMA},store.main'")
    try:
        yield
    finally:
        connection.execute(f"USE store; DROP SCHEMA {_SCHEMA} CASCADE")


def _where(name: str) -> str:
    """Which rows of a table a region has; "": all of a reference table."""
    columns = TABLES[name].column_names
    if "run_id" in columns:
        return "run_id IN (FROM region_runs)"
    if name == "files":
        return "path IN (FROM region_paths)"
    if name in ("memory_snapshots", "memory_at_peak"):
        return "source_path IN (SELECT source_path FROM store.main.run_snapshots WHERE run_id IN (FROM region_runs))"
    return "source_path IN (FROM region_paths)" if "source_path" in columns else ""
