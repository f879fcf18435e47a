"""What differs between two releases of the lake: files of tables, and the runs, paths and directories in their rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import polars as pl

from sweepscope.pipeline.store import lake_sql
from sweepscope.pipeline.store.lake import Lake, Release
from sweepscope.schemas.core.table import Table
from sweepscope.schemas.registry import TABLES


@dataclass(frozen=True)
class Exchange:
    """Files of one lake table that a release has no more, and those that it has anew.

    Attributes:
        is_whole: no file is in both releases: the table is to be filled anew.
    """

    gone: tuple[Path, ...] = ()
    new: tuple[Path, ...] = ()
    is_whole: bool = False

    @property
    def paths(self) -> tuple[Path, ...]:
        """All of them, but for a table that is filled anew."""
        return () if self.is_whole else (*self.gone, *self.new)


NOTHING = Exchange()


_KEYS = ("run_id", "path", "run_dir", "unit")


@dataclass(frozen=True)
class Keys:
    """Runs, paths, run directories and units that exchanged rows name, without NULL and each once."""

    runs: pl.Series
    paths: pl.Series
    dirs: pl.Series
    units: pl.Series


def exchanges(lake: Lake, before: Release, after: Release) -> dict[str, Exchange]:
    """What differs between two releases, by table; tables without a difference are left out. Raises StoreError."""
    found = {}
    for name in TABLES:
        if before.versions.get(name) != after.versions.get(name):
            old, new = (lake.files(name, release) for release in (before, after))
            kept = set(old) & set(new)
            gone, come = (tuple(path for path in files if path not in kept) for files in (old, new))
            found[name] = Exchange(gone, come, is_whole=not kept)
    return found


def changed_keys(
    connection: duckdb.DuckDBPyConnection,
    exchanged: Mapping[str, Exchange],
    reconciled: pl.Series,
    *,
    of: Collection[str],
) -> Keys | None:
    """What the rows that differ name; None where a table differs as a whole, or has rows that name neither.

    Args:
        connection: may read files.
        exchanged: by table, as `exchanges` gives them.
        reconciled: ids of further runs whose rows differ.
        of: tables that count.
    """
    frames = []
    for name in exchanged.keys() & set(of):
        if exchanged[name].is_whole or not _keys_of(TABLES[name]):
            return None
        frames.append(_differing(connection, TABLES[name], exchanged[name]))
    frames.append(pl.DataFrame({"run_id": reconciled.cast(pl.String)}))
    rows = pl.concat([pl.DataFrame(schema=dict.fromkeys(_KEYS, pl.String)), *frames], how="diagonal")
    return Keys(*(rows[name].drop_nulls().unique() for name in _KEYS))


def runs_of(connection: duckdb.DuckDBPyConnection, paths: Collection[Path]) -> pl.Series:
    """Runs with rows in files of the lake."""
    if not paths:
        return pl.Series("run_id", [], dtype=pl.String)
    query = "SELECT DISTINCT run_id FROM read_parquet($files, union_by_name = true)"
    runs: pl.Series = connection.sql(query, params={"files": [str(path) for path in paths]}).pl()["run_id"]
    return runs


def _keys_of(table: Table) -> list[str]:
    """SQL of the columns by which rows of a table belong to runs, files, directories or units."""
    named = {**dict(zip(_KEYS, _KEYS, strict=True)), "source_path": "source_path AS path"}
    return [text for name, text in named.items() if name in table.column_names]


def _differing(connection: duckdb.DuckDBPyConnection, table: Table, exchange: Exchange) -> pl.DataFrame:
    """Keys of the rows that are in one of the sides only: a file that lost a row is written anew with all others.

    Of rows that have only come, or gone, the keys suffice; a hash of each would read all columns.
    """
    keys = ", ".join(_keys_of(table))
    if not (exchange.gone and exchange.new):
        query, parameters = lake_sql.select(connection, table, exchange.gone or exchange.new)
        only: pl.DataFrame = connection.sql(f"SELECT DISTINCT {keys} FROM ({query})", params=parameters).pl()
        return only
    sides = []
    for files in (exchange.gone, exchange.new):
        query, parameters = lake_sql.select(connection, table, files)
        sides.append(
            connection.sql(
                f"SELECT DISTINCT {keys}, hash(rows) AS content FROM ({query}) AS rows", params=parameters
            ).pl()
        )
    gone, new = sides
    both = [
        gone.join(new, on=gone.columns, how="anti", nulls_equal=True),
        new.join(gone, on=new.columns, how="anti", nulls_equal=True),
    ]
    found: pl.DataFrame = pl.concat(both).drop("content")
    return found
