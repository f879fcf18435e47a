"""Where sweepscope keeps its data: one directory with the lake, the published store and Dagster's records."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from sweepscope.pipeline.errors import StoreError, UsageError
from sweepscope.pipeline.store.durable_files import storing
from sweepscope.pipeline.store.home_access import restrict

_REMEDY = "Give another directory with --home, or set SWEEPSCOPE_HOME."
# delta-rs takes paths for URLs: it panics on the first two, loses its way at the third, takes the fourth for a slash
# and refuses control characters. DuckDB expands the others.
_UNUSABLE = "[]%\\*?"
OPERATIONS_VARIABLE = "SWEEPSCOPE_OPERATIONS"
"""Environment variable that names the settings of operations, where they are not in the home."""


@dataclass(frozen=True)
class Home:
    """The directory layout. Nothing but these properties spells out a path below the home."""

    path: Path

    @classmethod
    def resolve(cls, explicit: str | None, *, for_writing: bool = True) -> Home:
        """The home to use: `explicit`, else SWEEPSCOPE_HOME, else the XDG data directory.

        Args:
            explicit: what the user gave with --home.
            for_writing: create it when it is missing and check that files can be written there; a reader does neither.

        Raises:
            UsageError: it is empty, not a directory, not local, or its path has a character that the lake cannot hold.
            StoreError: it cannot be created or written to.
        """
        if explicit == "":
            raise UsageError(f"The home is an empty name: is a variable unset? {_REMEDY}")
        given = explicit or os.environ.get("SWEEPSCOPE_HOME") or str(_data_directory() / "sweepscope")
        if "://" in given:
            raise UsageError(f"The home {given} is a URL; it has to be a local directory. {_REMEDY}")
        path = Path(given).expanduser().absolute()
        if unusable := sorted(mark for mark in set(str(path)) if mark in _UNUSABLE or not mark.isprintable()):
            shown = " or ".join(mark if mark.isprintable() else repr(mark) for mark in unusable)
            raise UsageError(f"The home {str(path)!r} cannot have {shown} in its path. {_REMEDY}")
        try:
            is_new = not path.exists()
            if for_writing:
                path.mkdir(parents=True, exist_ok=True)
            elif path.exists() and not path.is_dir():
                raise NotADirectoryError(path)
        except (FileExistsError, NotADirectoryError) as error:
            raise UsageError(f"The home {path} is not a directory. {_REMEDY}") from error
        except OSError as error:
            raise StoreError(f"The home {path} cannot be created: {error.strerror}. {_REMEDY}") from error
        if for_writing and not os.access(path, os.W_OK | os.X_OK):
            raise StoreError(f"The home {path} is not writable for you. {_REMEDY}")
        home = cls(path)
        if for_writing:
            with storing(path, "restrict access to"):
                restrict(path, home.contents, is_new=is_new)
        return home

    @property
    def settings(self) -> Path:
        """File with settings of the home, which the user writes."""
        return self.path / "config" / "sweepscope.toml"

    @property
    def lake(self) -> Path:
        """Folder of the Delta tables: the lake itself, or a copy of one that is shared."""
        return self.path / "lake"

    def table(self, name: str) -> Path:
        """Folder of one Delta table."""
        return self.lake / name

    @property
    def releases(self) -> Path:
        """Folder of the release files, each of which pins one version of every table."""
        return self.lake / "releases"

    @property
    def lake_lock(self) -> Path:
        """Lock file of the process that writes to the lake."""
        return self.lake / "writer.lock"

    @property
    def store(self) -> Path:
        """Folder of the published DuckDB files."""
        return self.path / "store"

    @property
    def link(self) -> Path:
        """Symbolic link to the published version that counts."""
        return self.store / "results.duckdb"

    @property
    def store_lock(self) -> Path:
        """Lock file of the process that publishes."""
        return self.store / "publish.lock"

    @property
    def publications(self) -> Path:
        """File of when versions were published, and how long that took."""
        return self.store / "publications.json"

    @property
    def batches(self) -> Path:
        """Folder of batches that wait for, or are being read by, a run."""
        return self.path / "batches"

    @property
    def dialects(self) -> Path:
        """Folder of the dialect files that every ingest reads with."""
        return self.path / "dialects"

    @property
    def stated(self) -> Path:
        """Folder of what the user states of runs whose logs do not say it."""
        return self.path / "stated"

    @property
    def statements(self) -> Path:
        """File of these statements."""
        return self.stated / "statements.toml"

    @property
    def records(self) -> Path:
        """Folder of the facts read so far from logs that may still grow."""
        return self.path / "records"

    @property
    def dagster(self) -> Path:
        """DAGSTER_HOME of our instance."""
        return self.path / "dagster"

    @property
    def watcher_lock(self) -> Path:
        """Lock file of the process that watches for new runs."""
        return self.dagster / "watcher.lock"

    @property
    def servers_lock(self) -> Path:
        """Lock file that the servers of that process hold, too."""
        return self.dagster / "servers.lock"

    @property
    def heartbeat(self) -> Path:
        """File with the last sign of life of the watcher's sensor."""
        return self.dagster / "heartbeat.json"

    @property
    def operations(self) -> Path:
        """Settings of retention and alerts; the user writes them."""
        return self.path / "operations.toml"

    @property
    def alerts(self) -> Path:
        """Folder of what has been alerted on, so that nothing is sent twice."""
        return self.path / "alerts"

    @property
    def own_folders(self) -> tuple[Path, ...]:
        """What we write: never input, even where the home lies in a directory that is ingested."""
        return (
            self.lake,
            self.store,
            self.batches,
            self.dialects,
            self.stated,
            self.records,
            self.dagster,
            self.alerts,
        )

    @property
    def contents(self) -> tuple[Path, ...]:
        """Everything that a home has: the above, settings, what `demo` simulates, and fitted profiles."""
        return (
            *self.own_folders,
            self.operations,
            *(self.path / name for name in ("demo-sweep", ".demo-sweep", "calibration")),
        )


def home_option(path: Path) -> str:
    """What names the home `path` on a command line: " --home DIR", or "" for the one that is used without it."""
    return "" if path == _data_directory() / "sweepscope" else f" --home {shlex.quote(str(path))}"


def _data_directory() -> Path:
    given = os.environ.get("XDG_DATA_HOME")
    return Path(given) if given else Path.home() / ".local" / "share"
