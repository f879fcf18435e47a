"""A store as large as years of sweeps make it, multiplied from a small one, and what each of its views costs to read.

`python -m tests.benchmarks.large_store STORE --runs 100000 --steps 10000000 --out FILE` writes it and prints a line per
view. With `--sweeps 30` copies are no other models: the models of the small store have all runs between them, in that
many sweeps, each on a cluster of its own, so that grids, rankings and cells are large.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import duckdb
import polars as pl

from sweepscope.pipeline.store.publish import VIEW_FOLDER, load_views
from sweepscope.pipeline.store.stored_views import as_stored
from sweepscope.schemas.core import ddl
from sweepscope.schemas.core.table import Table
from sweepscope.schemas.registry import TABLES, VIEWS
from sweepscope.schemas.tables.ledger import STORE_INFO

_SHARED = frozenset({"accelerators", "accelerator_links", "published_bandwidths", "published_runs"})
"""Tables of bundled facts: there are no more of them in a larger store."""
_IDENTITIES = frozenset({"run_id", "duplicate_of", "job_id"})
"""Columns whose values are other ones in each copy."""
_GROUPS = frozenset({"model", "sweep"})
"""The same: a copy is another sweep, of other models."""
_SHARED_GROUPS = frozenset({"sweep", "cluster"})
"""Columns that distinguish copies which share their models."""
_PATHS = frozenset({"source_path", "run_dir", "path", "file", "id_path", "unit", "part_of"})


def large_store(source: Path, target: Path, *, runs: int, steps: int = 0, sweeps: int = 0) -> int:
    """Copies of the runs of `source` that `target` holds; each has models, sweeps and folders of its own.

    With `sweeps`, copies keep the models of `source` and are of so many sweeps, each on a cluster of its own. Published
    runs are there once. Where the copies have fewer than `steps` steps, each run goes through its own again, under the
    numbers that follow. Raises duckdb.Error where `source` is no published store.
    """
    target.unlink(missing_ok=True)
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"ATTACH {ddl.literal(str(source))} AS small (READ_ONLY)")
        connection.execute(f"ATTACH {ddl.literal(str(target))} AS large")
        connection.execute("USE large")
        ((own,),) = connection.execute("SELECT count(*) FROM small.runs WHERE origin <> 'published'").fetchall()
        copies = max(1, runs // own)
        ((of_one,),) = connection.execute("SELECT count(*) FROM small.steps").fetchall()
        rounds = max(1, round(steps / (copies * max(of_one, 1))))
        for table in TABLES.values():
            connection.execute(ddl.create_table(table))
            _fill(connection, table, copies, rounds if table.name == "steps" else 1, sweeps)
        connection.execute(ddl.create_table(STORE_INFO))
        connection.execute("INSERT INTO store_info SELECT * FROM small.store_info")
        for statement in as_stored(load_views(VIEW_FOLDER)).values():
            connection.execute(statement)
        connection.execute("USE memory")
        connection.execute("DETACH large")
    return copies


def _fill(connection: duckdb.DuckDBPyConnection, table: Table, copies: int, rounds: int, sweeps: int) -> None:
    name = ddl.quote(table.name)
    columns = {column.name for column in table.columns}
    once = "true" if table.name in _SHARED else None
    if once is None and "run_id" in columns:
        once = "run_id IN (SELECT run_id FROM small.runs WHERE origin = 'published')"
    numbers = dict.fromkeys(_IDENTITIES, "copy")
    numbers |= dict.fromkeys(_SHARED_GROUPS, f"copy % {sweeps}") if sweeps else dict.fromkeys(_GROUPS, "copy")
    changed = [
        f"{_told_apart(column)} || '~' || {number} AS {ddl.quote(column)}"
        for column, number in sorted(numbers.items())
        if column in columns
    ]
    changed += ["step + round * (SELECT 1 + max(step) FROM small.steps) AS step"] if rounds > 1 else []
    changed += [f"'/copy' || copy || {ddl.quote(column)} AS {ddl.quote(column)}" for column in sorted(_PATHS & columns)]
    if once:
        connection.execute(f"INSERT INTO {name} SELECT * FROM small.{name} WHERE {once}")
    if once != "true":
        others = f"WHERE NOT ({once})" if once else ""
        replaced = f"REPLACE ({', '.join(changed)})" if changed else ""
        key = ", ".join(map(ddl.quote, table.primary_key))
        connection.execute(
            f"INSERT INTO {name} SELECT * EXCLUDE (copy, round) {replaced} "
            f"FROM small.{name}, range({copies}) AS c(copy), range({rounds}) AS r(round) {others} ORDER BY {key}"
        )


def _told_apart(column: str) -> str:
    """SQL of what a copy's number is added to; what is NULL stays so, but for the cluster, which few logs name."""
    return "coalesce(cluster, 'cluster')" if column == "cluster" else ddl.quote(column)


def view_seconds(store: Path) -> pl.DataFrame:
    """A row per view: its rows, and the seconds of the clock that reading all of them takes."""
    rows = []
    with duckdb.connect(str(store), read_only=True) as connection:
        for view in VIEWS:
            begin = time.perf_counter()
            frame = connection.sql(f"SELECT * FROM {ddl.quote(view)}").pl()
            rows.append((view, frame.height, round(time.perf_counter() - begin, 3)))
    return pl.DataFrame(rows, schema=["view", "rows", "seconds"], orient="row").sort("seconds", descending=True)


def main() -> int:
    """0 when the store has been written and its views were read."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.large_store", description=__doc__)
    parser.add_argument("store", type=Path, help="a published store")
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=0, help="of all runs, at least (default: those that they have)")
    parser.add_argument("--sweeps", type=int, default=0, help="that share the models (default: other models each)")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    begin = time.perf_counter()
    copies = large_store(args.store, args.out, runs=args.runs, steps=args.steps, sweeps=args.sweeps)
    seconds, megabytes = time.perf_counter() - begin, args.out.stat().st_size / 1e6
    sys.stdout.write(f"{copies:,} copies, {megabytes:,.0f} MB, in {seconds:.0f} s\n")
    with pl.Config(tbl_rows=-1, tbl_hide_column_data_types=True, tbl_hide_dataframe_shape=True):
        sys.stdout.write(f"{view_seconds(args.out)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
