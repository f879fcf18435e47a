"""The lake: one Delta table per table of the registry, changed together, release by release.

`commit` writes the tables first and the release file last. Until that file exists no reader sees what was written,
and the next writer rewinds it; from then on all readers see all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path

import polars as pl
from deltalake.exceptions import DeltaError

from sweepscope.pipeline.errors import StoreError
from sweepscope.pipeline.io.fault_points import reach
from sweepscope.pipeline.store import release as releases
from sweepscope.pipeline.store.delta_table import LakeTable
from sweepscope.pipeline.store.durable_files import reading, storing, sync
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake_location import shared_lake_url
from sweepscope.pipeline.store.lock import exclusive
from sweepscope.pipeline.store.object_folder import undisturbed
from sweepscope.pipeline.store.release import Release
from sweepscope.pipeline.store.replacement import Replacement, replacement
from sweepscope.pipeline.store.shared_lake import SharedLake
from sweepscope.schemas.core.table import Table
from sweepscope.schemas.registry import TABLES

__all__ = ["Lake", "Release"]

Change = tuple[Mapping[str, pl.DataFrame], Collection[str]]
"""Rows by table, and paths to forget."""


def remedy(lake: Path) -> str:
    """What helps when a part of a lake is damaged: its tables name each other's rows, so that none goes alone."""
    return f"Put a copy back, or move all of {lake} away and ingest everything again"


class Lake:
    """The lake of one home, or the home's copy of one that several share. Reading needs no lock.

    One process of a home writes at a time. Homes that share a lake write at the same time: where another one was
    faster, a commit is prepared anew, on what that one has committed.
    """

    def __init__(self, home: Home) -> None:
        self.home = home

    @cached_property
    def _shared(self) -> SharedLake | None:
        url = shared_lake_url(self.home)
        return SharedLake(url, self.home.lake) if url else None

    def refresh(self) -> None:
        """Bring the copy of a shared lake up to its newest release; does nothing for a home's own one.

        Raises:
            StoreError: the lake cannot be reached. UsageError: what names it is wrong.
        """
        if self._shared and not self._shared.is_current():
            with exclusive(self.home.lake_lock, "reading the shared lake"), storing(self.home.lake, "write to"):
                self._shared.pull()

    def release(self) -> Release | None:
        """The newest release, or None before the first commit. Raises StoreError when its file is damaged."""
        return releases.latest(self.home.releases)

    def read(
        self,
        table: str,
        columns: Collection[str] | None = None,
        predicate: pl.Expr | None = None,
        *,
        release: Release | None = None,
    ) -> pl.DataFrame:
        """Rows of a table as a release pins it.

        Args:
            table: name in the registry.
            columns: which columns, in this order; all of them by default.
            predicate: a filter over any of the table's columns.
            release: the newest one by default.

        Raises:
            StoreError: the lake is damaged.
        """
        release = release or self.release()
        delta = self._table(TABLES[table])
        if release is None or table not in release.versions:
            return TABLES[table].empty().select(list(columns) if columns is not None else pl.all())
        with reading(delta.folder, DeltaError, pl.exceptions.PolarsError, remedy=remedy(self.home.lake)):
            return delta.read(release.versions[table], columns, predicate)

    def files(self, table: str, release: Release) -> list[Path]:
        """Parquet files of a table as a release pins it; none when it has no rows yet. Raises StoreError."""
        if table not in release.versions:
            return []
        delta = self._table(TABLES[table])
        with reading(delta.folder, DeltaError, remedy=remedy(self.home.lake)):
            return delta.files(release.versions[table])

    def commit(self, tables: Mapping[str, pl.DataFrame], *, forget: Collection[str] = ()) -> Release:
        """Make rows of any tables visible at once, in place of what their units had before (`replacement.replacement`).

        A reference table is replaced as a whole. Committing nothing new gives no new release.

        Args:
            tables: registry name -> validated rows. Ledger rows with a status of `replacement.KEPT` stand for rows that
                the lake has already; an `overwritten` one renames those of its `former_path`.
            forget: further paths of the ledger whose rows go, and those of their runs.

        Raises:
            StoreError: another writer holds the lake, or the disk does not take it. The lake is as it was before.
            ValueError: a name that the registry does not have.
        """
        return self.change(lambda: (tables, forget))[0]

    def change(self, prepare: Callable[[], Change]) -> tuple[Release, Mapping[str, pl.DataFrame]]:
        """As `commit`, of rows that depend on what the lake has.

        Args:
            prepare: tables and paths to forget, from the newest release of this lake, which stays the newest until the
                commit. Called again where a home that shares the lake was faster.

        Returns:
            The release, and the tables as they were prepared.
        """
        return undisturbed(partial(self._change, prepare))

    def _change(self, prepare: Callable[[], Change]) -> tuple[Release, Mapping[str, pl.DataFrame]]:
        with self._writing("committing") as before:
            tables, forget = prepare()
            if unknown := sorted(set(tables) - set(TABLES)):
                raise ValueError(f"no such table: {', '.join(unknown)}")
            frames = {name: TABLES[name].conform(frame) for name, frame in tables.items()}
            versions = dict(before.versions) if before else {}
            files = frames.get("files", TABLES["files"].empty())
            known = (self.read("files", ["path", "unit", "status"], release=before), self._runs(before))
            change = replacement(files, forget, *known)
            for table in TABLES.values():
                version = self._write(table, frames.get(table.name, table.empty()), change, before)
                if version is not None:
                    versions[table.name] = version
                    reach("lake.table_written")
            reach("lake.tables_written")
            if before is not None and versions == before.versions:
                return before, tables
            batch_ids = tuple(files["batch_id"].drop_nulls().unique().sort())
            return self._pin(versions, before, batch_ids=batch_ids), tables

    def compact(self, *, min_files: int = 2) -> Release | None:
        """Merge the small files of every table that has at least `min_files`; a new release when there was one.

        Raises:
            StoreError: as `commit`.
        """
        return undisturbed(partial(self._compact, min_files))

    def _compact(self, min_files: int) -> Release | None:
        with self._writing("compacting") as before:
            if before is None:
                return None
            versions = dict(before.versions)
            for name, version in before.versions.items():
                delta = self._table(TABLES[name])
                if len(delta.files(version)) >= min_files:
                    base = delta.newest()
                    delta.compact()
                    delta.sync(base)
                    versions[name] = delta.newest() or version
                    reach("lake.table_written")
            return before if versions == before.versions else self._pin(versions, before, batch_ids=())

    def vacuum(self) -> tuple[int, int]:
        """Delete what none of the last three releases needs; returns the number of files and their bytes.

        Raises:
            StoreError: as `commit`.
        """
        # Publishing reads the files of a release that may by then not be among the last ones: wait for its end.
        with exclusive(self.home.store_lock, "removing old files"), self._writing("removing old files"):
            keep = releases.kept(self.home.releases)
            files = size = 0
            for table in TABLES.values():
                delta = self._table(table)
                if delta.folder.exists():
                    versions = {release.versions[table.name] for release in keep if table.name in release.versions}
                    count, freed = delta.prune(versions)
                    reach("lake.pruned")
                    files, size = files + count, size + freed
            for number in releases.numbers(self.home.releases)[: -releases.KEPT]:
                releases.path_of(self.home.releases, number).unlink()
            if self._shared:
                self._shared.prune(keep)
            return files, size

    def verify(self) -> list[str]:
        """What is wrong with the newest release, in words: files missing or damaged, keys empty or repeated."""
        release = self.release()
        return (
            []
            if release is None
            else [problem for table in TABLES.values() for problem in self._faults(table, release)]
        )

    def _faults(self, table: Table, release: Release) -> Iterator[str]:
        try:
            rows = self.read(table.name, list(dict.fromkeys((*table.primary_key, *table.required))), release=release)
        except StoreError as error:
            yield str(error)
            return
        repeated = rows.height - rows.select(pl.struct(table.primary_key).n_unique()).item()
        if repeated:
            yield f"{table.name}: {repeated} rows repeat a key ({', '.join(table.primary_key)})"
        for name in table.required:
            if empty := rows[name].null_count():
                yield f"{table.name}: {empty} rows without {name}"

    def _table(self, table: Table) -> LakeTable:
        return LakeTable(self.home.table(table.name), table)

    @contextmanager
    def _writing(self, doing: str) -> Iterator[Release | None]:
        """Lock the lake, undo what a writer left that died before its release, hand over the newest release."""
        with exclusive(self.home.lake_lock, doing), storing(self.home.lake, "write to", DeltaError):
            if self._shared:
                self._shared.pull()
            release = self.release()
            for table in TABLES.values():
                delta = self._table(table)
                pinned = release.versions.get(table.name) if release else None
                newest = delta.newest()
                if release is None and newest and not self._shared:
                    # A first commit that died leaves version 0; more than that was released once.
                    raise StoreError(
                        f"{self.home.releases} has no release, but {delta.folder} has rows of several. "
                        "Put the release files back, or move the lake folder away and ingest again."
                    )
                if newest is not None and (pinned is None or newest > pinned):
                    delta.withdraw(pinned) if self._shared else delta.rewind(pinned)
            yield release

    def _runs(self, before: Release | None) -> pl.DataFrame:
        return self.read("runs", ["run_id", "source_path"], release=before)

    def _write(self, table: Table, frame: pl.DataFrame, change: Replacement, before: Release | None) -> int | None:
        """Write one table's part of a commit; its new version, or None when nothing changes."""
        pinned = before.versions.get(table.name) if before else None
        if frame.is_empty() and (pinned is None or change.stale.is_empty()):
            return None
        delta = self._table(table)
        base = delta.newest()
        if table.layer == "reference":
            if frame.is_empty() or self._is_content(table, frame, before):
                return None
            delta.replace_all(frame)
            delta.sync(base)
            return delta.newest()
        keys = change.keys(table, frame)
        has_rows_to_drop = pinned is not None and not keys.is_empty()
        if frame.is_empty() and not has_rows_to_drop:
            return None
        if has_rows_to_drop:
            # The ledger's own rows are whole: those of files that stay come with the commit.
            rows = frame if table.name == "files" else self._with_rows_that_stay(table, frame, change, before)
            delta.drop(keys)
            if "run_id" in table.column_names and not change.forgotten_runs.is_empty():
                delta.drop(change.forgotten_runs, column="run_id")
        else:
            rows = frame
        if not rows.is_empty():
            delta.append(rows)
        delta.sync(base)
        return delta.newest()

    def _with_rows_that_stay(
        self, table: Table, frame: pl.DataFrame, change: Replacement, before: Release | None
    ) -> pl.DataFrame:
        """New rows of a table, and those of replaced files that a commit keeps, under the names that these get."""
        read = partial(self.read, table.name, None, release=before)
        frame = pl.concat([frame, change.kept_rows(table, frame, read)])
        return pl.concat([frame, change.spared_rows(table, frame, read)])

    def _is_content(self, table: Table, frame: pl.DataFrame, before: Release | None) -> bool:
        if before is None or table.name not in before.versions:
            return False
        key = list(table.primary_key)
        return self.read(table.name, release=before).sort(key).equals(frame.sort(key))

    def _pin(self, versions: Mapping[str, int], before: Release | None, *, batch_ids: tuple[str, ...]) -> Release:
        number = before.number + 1 if before else 1
        release = Release(number, versions, datetime.now(UTC), batch_ids)
        sync(self.home.lake)
        if self._shared:
            self._shared.push(release)
        releases.write(self.home.releases, release)
        reach("release.made")
        return release
