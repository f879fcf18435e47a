"""Records of logs that may still grow: the facts read from them so far, one file per log, below the home.

A record holds the facts of the whole lines before a mark, and nothing that was concluded from them. It is a function of
those bytes and of the parsers, and is used only for a file that still has the mark and by the same parsers. So a record
can be lost, be older or newer than the lake, or stem from an ingest that died: the rows are the same, only the reading
takes longer. Nothing here has to be in step with a release, and deleting the folder is always safe.

A mark does not see a change in the middle of what was read. Therefore a log that was read in parts is read once more
from its beginning when it has come to rest (`pipeline.ingest.plan.plan`), and the ledger learns its hash then.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl

from sweepscope.pipeline.io.fault_points import reach
from sweepscope.pipeline.io.spill import SLICE_ROWS
from sweepscope.pipeline.io.stream import ResumePoint
from sweepscope.pipeline.store.durable_files import storing
from sweepscope.pipeline.text.secret_columns import hide_frame
from sweepscope.schemas.thresholds import STALE_AFTER

REST_AFTER = timedelta(hours=6)
"""A run whose files were not written to for so long is at rest."""

MIN_BYTES = 1 << 20
"""A smaller log is sooner read again than its record."""

_MAX_RECORD_BYTES = 64 << 20
_MAX_FOLDER_BYTES = 1 << 30
_UNUSED_FOR = timedelta(days=7)


@dataclass(frozen=True)
class Record:
    """What was read of one log.

    Attributes:
        mark: where to read on, behind the last whole line.
        end: the mark of everything that was read, the unfinished line included.
        sha256: hash of all bytes up to `end`, if they were read in one go.
        can_grow: whether one can read on; of a compressed file, a record only holds as long as it stays as it is.
        next_line: number of the line behind the mark.
        cut_lines: lines too long to be held: (number, bytes left out).
        frames: the facts, as `extract_frames.flatten` names them.
        nccl: what the lines say about the network, by kind (`pipeline.nccl.facts`).
    """

    mark: ResumePoint
    end: ResumePoint
    sha256: str | None
    can_grow: bool
    next_line: int
    cut_lines: tuple[tuple[int, int], ...]
    frames: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    nccl: Mapping[str, pl.DataFrame] = field(default_factory=dict)


@dataclass(frozen=True)
class Records:
    """The records in a folder, one file each. `now` decides which logs may still grow."""

    folder: Path
    now: datetime
    min_bytes: int = MIN_BYTES

    def may_grow(self, newest: float) -> bool:
        """Whether a log is being written to whose unit was written to last at `newest` (seconds since 1970)."""
        return newest > _seconds(self.now - STALE_AFTER)

    def is_at_rest(self, newest: float) -> bool:
        """Whether nothing more is to be expected of a unit that was written to last at `newest`."""
        return newest <= _seconds(self.now - REST_AFTER)

    def load(self, path: str, identity: str) -> Record | None:
        """The record of a log by the parsers of that identity; None without one, or when it is damaged."""
        try:
            with zipfile.ZipFile(self._file(path)) as archive:
                about = json.loads(archive.read(_ABOUT))
                if (about.pop("path"), about.pop("identity")) != (path, identity):
                    return None
                return Record(
                    mark=ResumePoint(**about.pop("mark")),
                    end=ResumePoint(**about.pop("end")),
                    cut_lines=tuple((line, size) for line, size in about.pop("cut_lines")),
                    frames=_frames(archive, "frames"),
                    nccl=_frames(archive, "nccl"),
                    **about,
                )
        except (OSError, zipfile.BadZipFile, ValueError, KeyError, TypeError, pl.exceptions.PolarsError):
            return None

    def save(self, path: str, identity: str, record: Record) -> None:
        """Keep a record in place of the one before, whole or not at all; too large a one is not kept.

        Raises:
            StoreError: the disk does not take it.
        """
        about = {name: value for name, value in vars(record).items() if name not in _GROUPS}
        about |= {"path": path, "identity": identity, "mark": vars(record.mark), "end": vars(record.end)}
        file = self._file(path)
        temporary = file.with_suffix(f".{os.getpid()}")
        with storing(file, "write"):
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                is_kept = _is_packed(temporary, about, record)
                if is_kept:
                    self._date(temporary)
                    temporary.replace(file)
            finally:
                temporary.unlink(missing_ok=True)
        if not is_kept:
            self.forget(path)
            return
        reach("record.saved")

    def forget(self, path: str) -> None:
        """Drop the record of a log."""
        self._file(path).unlink(missing_ok=True)

    def keep(self, path: str) -> None:
        """Note that the record of a log was of use."""
        with suppress(FileNotFoundError):
            self._date(self._file(path))

    def tidy(self, *, unused_for: timedelta = _UNUSED_FOR) -> tuple[int, int]:
        """Drop what was not used for so long, and the oldest ones above a gigabyte; returns their number and bytes."""
        stats: dict[Path, os.stat_result] = {}
        for file in self.folder.glob("*"):
            with suppress(FileNotFoundError):  # other processes of this ingest rename and tidy here, too
                stats[file] = file.stat()
        excess = sum(stat.st_size for stat in stats.values()) - _MAX_FOLDER_BYTES
        count = freed = 0
        for file, stat in sorted(stats.items(), key=lambda one: one[1].st_mtime):
            if stat.st_mtime < _seconds(self.now - unused_for) or freed < excess:
                file.unlink(missing_ok=True)
                count, freed = count + 1, freed + stat.st_size
        return count, freed

    def _date(self, file: Path) -> None:
        os.utime(file, times=(_seconds(self.now), _seconds(self.now)))

    def _file(self, path: str) -> Path:
        return self.folder / f"{hashlib.sha256(path.encode()).hexdigest()[:32]}.zip"


_ABOUT = "about.json"
_GROUPS = ("frames", "nccl")


def _is_packed(file: Path, about: Mapping[str, object], record: Record) -> bool:
    """Write a record to a file; False once that is too large.

    Slice by slice: the facts of a long log would else be in memory, packed, and perhaps for nothing.
    """
    with file.open("wb") as packed, zipfile.ZipFile(packed, "w") as archive:  # checks a sum over each when it is read
        archive.writestr(_ABOUT, json.dumps(about))
        for group in _GROUPS:
            for name, frame in getattr(record, group).items():
                parts = frame.iter_slices(SLICE_ROWS) if frame.height else [frame]
                for number, rows in enumerate(map(hide_frame, parts)):
                    with archive.open(f"{group}/{name}/{number:06}", "w") as member:
                        rows.write_ipc(member, compression="zstd")
                    if packed.tell() > _MAX_RECORD_BYTES:
                        return False
    return True


def _frames(archive: zipfile.ZipFile, group: str) -> dict[str, pl.DataFrame]:
    parts: dict[str, list[pl.DataFrame]] = {}
    for name in archive.namelist():
        if name.startswith(f"{group}/"):
            frame, _, _number = name.removeprefix(f"{group}/").rpartition("/")
            parts.setdefault(frame, []).append(pl.read_ipc(archive.read(name)))
    return {name: pl.concat(found) for name, found in parts.items()}


def _seconds(moment: datetime) -> float:
    return moment.replace(tzinfo=UTC).timestamp()
