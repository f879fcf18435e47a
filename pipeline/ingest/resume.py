"""Growing logs: each ingest reads only the lines that were added since the last one.

The facts of earlier lines come from a record (`pipeline.store.checkpoints`). A last line without a line feed may be
unfinished: it counts for the rows of this ingest and is read again by the next.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from sweepscope.pipeline.ingest.parser_versions import current_versions
from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.io.text_encoding import SNIFF_BYTES, may_be_transcoded
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.engine import serialise
from sweepscope.pipeline.logs.engine.extract import Extract
from sweepscope.pipeline.nccl.facts import SCHEMAS as NCCL_SCHEMAS
from sweepscope.pipeline.store.checkpoints import Record, Records

_LOG = logging.getLogger(__name__)


@dataclass
class ResumeState:
    """Records of the growing logs of one batch: those of earlier ingests, and those to save.

    `newest` is the modification time of each unit. Without `records`, every file is read from its beginning.
    """

    records: Records | None
    dialects: Sequence[Dialect]
    newest: Mapping[str, float]
    _identity: str = field(init=False)
    _to_save: dict[int, tuple[str, Record]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._identity = serialise.identity(current_versions(self.dialects), NCCL_SCHEMAS) if self.records else ""

    def resume(self, row: Mapping[str, object], reader: Reader) -> Record | None:
        """The record of a log that has only grown since, with `reader` positioned after it; else None."""
        size, newest = _size(row), self.newest[str(row["unit"])]
        if self.records is None or self.records.is_at_rest(newest):
            return None
        record = self.records.load(reader.path, self._identity)
        if record is None:
            return None
        if not (record.mark.offset <= size if record.can_grow else record.mark.offset == size):
            reason = "it has become smaller" if record.can_grow else "it cannot be read in parts"
        elif not reader.resume(record.mark):
            reason = "what was read before has changed"
        else:
            event(_LOG, logging.DEBUG, "resumed", path=reader.path, offset=record.mark.offset, bytes=size)
            return record
        event(_LOG, logging.INFO, "read_again", path=reader.path, reason=reason)
        return None

    def is_watched(self, row: Mapping[str, object], before: Record | None) -> bool:
        """Whether a record of the log is saved for the next ingest."""
        if self.records is None or _size(row) < self.records.min_bytes:
            return False
        return before is not None or self.records.may_grow(self.newest[str(row["unit"])])

    def note(self, source: int, reader: Reader, record: Record | None, before: Record | None) -> None:
        """Note how far a log was read; None: it is not watched, or the position cannot be found again."""
        if self.records is None:
            return
        if record is None:
            self.records.forget(reader.path)
        elif before is not None and record.end == before.end:
            self.records.keep(reader.path)
        else:
            self._to_save[source] = (reader.path, record)

    def unwatch(self, sources: Collection[int]) -> None:
        """Save no record of some sources, and drop those of earlier ingests: they are read from their beginning."""
        if self.records is None:
            return
        for source in self._to_save.keys() & set(sources):
            path, _ = self._to_save.pop(source)
            self.records.forget(path)

    @property
    def saved_sources(self) -> Collection[int]:
        """Sources whose records are to be saved."""
        return self._to_save.keys()

    def save(
        self, whole: Extract, network: Callable[[Collection[int]], Mapping[int, Mapping[str, pl.DataFrame]]]
    ) -> None:
        """Save the records of the watched logs. Raises StoreError.

        Args:
            whole: extract of the batch without unfinished last lines.
            network: NCCL facts of the given sources, by source and kind; without those lines, too.
        """
        if self.records is None:
            return
        frames = serialise.split(whole.condensed(), self._to_save) if self._to_save else {}
        nccl = network(self._to_save)
        for source, (path, record) in self._to_save.items():
            self.records.save(path, self._identity, replace(record, frames=frames[source], nccl=nccl[source]))
        self.records.tidy()


def can_grow(reader: Reader) -> bool:
    """Whether lines that are appended can be read alone: the file is neither compressed nor transcoded.

    Nor does it begin with NUL bytes: only the text after them tells a log from a binary file.
    """
    return not (reader.is_compressed or reader.head.startswith(b"\0") or may_be_transcoded(reader.head[:SNIFF_BYTES]))


def extract_of(record: Record, source: int, dialects: Sequence[Dialect]) -> Extract:
    """The extract that a record holds, renumbered to file `source` of the batch."""
    frames: dict[str, pl.DataFrame] = {name: serialise.numbered(frame, source) for name, frame in record.frames.items()}
    return serialise.unflatten(frames, dialects)


def _size(row: Mapping[str, object]) -> int:
    size = row["bytes"]
    return size if isinstance(size, int) else 0
