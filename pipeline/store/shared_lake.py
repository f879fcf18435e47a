"""A lake on an object store, of which each home that uses it has a copy: several write to it, none can spoil it.

Objects are only ever created, with a condition that nobody has created them before; so there is no lock to lose. A
commit is prepared on the home's copy of the newest release. Then it uploads data files (their names are random), log
entries of the Delta tables, and the release last, which is the moment from which others see it. Whoever finds an entry
or a release there already has been overtaken: the copy forgets the commit and it is prepared again, on what is new.

Entries that a writer left behind which was overtaken or died belong to no release. They stay, and the next commit
restores the table to what is released before it adds its own. So a writer that was believed dead and goes on after an
hour does no harm either: what it creates is behind what is released, or refused.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import time
from typing import Any

from sweepscope.pipeline.errors import StoreError
from sweepscope.pipeline.io import remote
from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.io.fault_points import reach
from sweepscope.pipeline.store import release as releases
from sweepscope.pipeline.store.delta_table import LakeTable, added_files, is_log_file, log_version
from sweepscope.pipeline.store.durable_files import write_over
from sweepscope.pipeline.store.lake_location import STATE
from sweepscope.pipeline.store.object_folder import ObjectFolder
from sweepscope.pipeline.store.release import Release
from sweepscope.schemas.registry import TABLES

_LOG = logging.getLogger(__name__)

YOUNG_S = 86_400.0
"""What no release needs is removed only after a day: it may belong to a commit that is under way elsewhere."""

_RELEASES, _DELTA_LOG = "releases", "_delta_log"


@dataclass
class SharedLake:
    """The lake at `url`, and the copy of it in `folder`.

    The copy's own state, in `shared.json`: which lake it is of, and up to which log entry each table is the same.
    """

    url: str
    folder: Path
    _remote: ObjectFolder = field(init=False)

    def __post_init__(self) -> None:
        self._remote = ObjectFolder(self.url, self.folder)

    def pull(self) -> None:
        """Bring the copy up to the newest release, and take back what it has of commits that never got there.

        A lake of the home's own, which was not shared before, is put there instead where nothing is yet.

        Raises:
            StoreError: it cannot be reached, is another one than before, or cannot be shared safely.
        """
        with self._remote.reaching("read"):
            identity = self._remote.identity()
            state = self._state()
            if state is None and releases.numbers(self.folder / _RELEASES):
                self._adopt(identity)
                return
            if state is not None and state["lake"] != identity:
                raise StoreError(
                    f"{self.folder} is a copy of another lake than the one at {self.url} now. Use another home for it."
                )
            self._take_back(state["versions"] if state else {})
            while not self._pulled(identity):
                event(_LOG, logging.INFO, "listed_again", url=self.url)

    def _pulled(self, identity: str) -> bool:
        """Whether the copy is of one moment: a list that takes several requests may have a release in part only."""
        objects = self._remote.listed()
        versions = self._pull_logs(objects)
        names = [name for name in objects if name.startswith(f"{_RELEASES}/") and Path(name).stem.isdigit()]
        kept = sorted(names, key=lambda name: int(Path(name).stem))[-releases.KEPT :]
        self._keep_state(identity, versions)
        if kept:
            newest = releases.parsed(self._remote.content(kept[-1]))
            if any(versions.get(table, -1) < version for table, version in newest.versions.items()):
                return False
            self._remote.download(self._data_of(newest))
            self._remote.download(kept)
        return True

    def push(self, release: Release) -> None:
        """Make a commit of the copy that of the lake. The release is written to the copy afterwards, by the caller.

        Raises:
            OvertakenError: another commit came first. StoreError: the lake cannot be reached.
        """
        with self._remote.reaching("write to"):
            state = self._state() or {}
            self._push(release, state["lake"], state["versions"])

    def _push(self, release: Release, identity: str, versions: Mapping[str, int]) -> None:
        entries = self._new_entries(versions)
        added = {f"{table}/{name}" for table, paths in entries.items() for path in paths for name in added_files(path)}
        # Of a lake that was the home's own, some are removed again, and pruned.
        self._remote.upload(name for name in added if (self.folder / name).exists())
        reach("shared.data_pushed")
        for table, paths in entries.items():
            for path in paths:
                self._remote.create(f"{table}/{_DELTA_LOG}/{path.name}", path.read_bytes())
                reach("shared.entry_pushed")
        name = releases.path_of(Path(_RELEASES), release.number).as_posix()
        self._remote.create(name, releases.as_text(release).encode())
        reach("shared.release_made")
        self._remote.upload(self._checkpoints(entries))
        self._keep_state(identity, {**versions, **{name: log_version(paths[-1]) for name, paths in entries.items()}})
        event(_LOG, logging.INFO, "pushed", release=release.number, entries=sum(map(len, entries.values())))

    def prune(self, keep: Sequence[Release]) -> None:
        """Remove what none of the kept releases needs, nor any commit that may be under way, at the lake itself.

        Raises StoreError when it cannot be reached.
        """
        with self._remote.reaching("remove old files from"):
            objects, old = self._remote.listed(), time() - YOUNG_S
            pinned = {table: [one.versions[table] for one in keep if table in one.versions] for table in TABLES}
            needed = {
                f"{table}/{path.name}"
                for table, versions in pinned.items()
                for version in versions
                for path in LakeTable(self.folder / table, TABLES[table]).files(version)
            }
            starts = {
                table: _first_needed(objects, table, min(versions, default=-1)) for table, versions in pinned.items()
            }
            dead = [
                name
                for name, info in objects.items()
                if remote.modified(info) < old and _is_dead(name, needed, starts, keep)
            ]
            self._remote.remove(dead)
            event(_LOG, logging.INFO, "shared_lake_pruned", files=len(dead))

    def is_current(self) -> bool:
        """Whether the copy has the newest release. Raises StoreError when the lake cannot be reached."""
        with self._remote.reaching("read"):
            state = self._state()
            known = releases.numbers(self.folder / _RELEASES)
            if state is None or state["url"] != self.url or not known:
                return False
            found = [int(Path(name).stem) for name in self._remote.listed(_RELEASES) if Path(name).stem.isdigit()]
            return max(found, default=0) == known[-1]

    def _adopt(self, identity: str) -> None:
        """Put the home's own lake where nothing is yet. The copy's state comes last: what is killed begins anew."""
        if self._remote.listed(_RELEASES):
            raise StoreError(
                f"{self.folder} has a lake of its own, and there is another one at {self.url}. Use another home for "
                "that one, and ingest there what it lacks."
            )
        newest = releases.latest(self.folder / _RELEASES)
        if newest is not None:
            self._take_back(newest.versions)
            # Log entries may be gone that a checkpoint sums up, but none of the files that are in use.
            self._remote.upload(self._data_of(newest))
            event(_LOG, logging.INFO, "sharing_own_lake", release=newest.number, url=self.url)
            self._push(newest, identity, {})

    def _take_back(self, versions: Mapping[str, int]) -> None:
        """Forget log entries of the copy that the lake was never given."""
        for log in self.folder.glob(f"*/{_DELTA_LOG}"):
            known = versions.get(log.parent.name, -1)
            ours = sorted((path for path in log.iterdir() if is_log_file(path)), reverse=True)
            for path in ours:
                if log_version(path) > known:
                    path.unlink()
            (log / "_last_checkpoint").unlink(missing_ok=True)  # may point there; readers find the newest by listing

    def _pull_logs(self, objects: Mapping[str, Any]) -> dict[str, int]:
        """Newest log entry of each table, with all entries in the copy that lead to it."""
        wanted, newest = [], dict[str, int]()
        for name in objects:
            table, _, rest = name.partition(f"/{_DELTA_LOG}/")
            if rest and is_log_file(Path(rest)):
                version = log_version(Path(rest))
                newest[table] = max(version, newest.get(table, -1))
                log = self.folder / table / _DELTA_LOG
                begin = min((log_version(path) for path in log.glob("*") if is_log_file(path)), default=0)
                if version >= begin and not (log / rest).exists():
                    wanted.append(name)
        self._remote.download(sorted(wanted))
        return newest

    def _data_of(self, release: Release) -> list[str]:
        """Names of the data files of a release."""
        return [
            f"{table}/{path.name}"
            for table, version in release.versions.items()
            if table in TABLES
            for path in LakeTable(self.folder / table, TABLES[table]).files(version)
        ]

    def _new_entries(self, versions: Mapping[str, int]) -> dict[str, list[Path]]:
        """By table, the log entries (JSON) that the copy has beyond the lake's, oldest first."""
        found = {}
        for log in sorted(self.folder.glob(f"*/{_DELTA_LOG}")):
            known = versions.get(log.parent.name, -1)
            paths = [path for path in log.glob("*.json") if is_log_file(path) and log_version(path) > known]
            if paths:
                found[log.parent.name] = sorted(paths)
        return found

    def _checkpoints(self, entries: Mapping[str, list[Path]]) -> list[str]:
        """Names of summaries of the log that came with the entries: they say no more than these."""
        return [
            f"{table}/{_DELTA_LOG}/{path.name}"
            for table, paths in entries.items()
            for path in (self.folder / table / _DELTA_LOG).glob("*.checkpoint.parquet")
            if log_version(path) >= log_version(paths[0])
        ]

    def _state(self) -> dict[str, Any] | None:
        path = self.folder / STATE
        if not path.exists():
            return None
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found

    def _keep_state(self, identity: str, versions: Mapping[str, int]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        content = {"lake": identity, "url": self.url, "versions": dict(sorted(versions.items()))}
        write_over(self.folder / STATE, json.dumps(content, indent=2))


def _first_needed(objects: Iterable[str], table: str, version: int) -> int:
    """The log entry from which the version of a table can be read: of the last checkpoint before it."""
    log = f"{table}/{_DELTA_LOG}/"
    checkpoints = [
        log_version(Path(name)) for name in objects if name.startswith(log) and name.endswith(".checkpoint.parquet")
    ]
    return max((found for found in checkpoints if found <= version), default=0)


def _is_dead(name: str, needed: Collection[str], starts: Mapping[str, int], keep: Sequence[Release]) -> bool:
    """Whether an object of the lake is a data file, a log entry or a release that is not needed."""
    table, _, rest = name.partition("/")
    if table == _RELEASES:
        return Path(rest).stem.isdigit() and bool(keep) and int(Path(rest).stem) < keep[0].number
    if rest.startswith(f"{_DELTA_LOG}/"):
        return table in starts and is_log_file(Path(rest)) and log_version(Path(rest)) < starts[table]
    return table in starts and rest.endswith(".parquet") and name not in needed
