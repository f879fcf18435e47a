"""The state of a batch while its files are read: lines wait until there are enough of them for one pass."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from sweepscope.pipeline.ingest.nccl_collector import NcclCollector
from sweepscope.pipeline.ingest.resume import ResumeState, extract_of
from sweepscope.pipeline.io.malloc import give_back
from sweepscope.pipeline.io.spill import on_disk
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.engine import extract
from sweepscope.pipeline.logs.engine.prefilter import FilteredBlock, prefilter, text_bytes
from sweepscope.pipeline.logs.trackers.entries import Entry
from sweepscope.pipeline.logs.trackers.folders import FolderParts
from sweepscope.pipeline.store.checkpoints import Record
from sweepscope.pipeline.text import lines
from sweepscope.pipeline.text.arrow_buffers import owned
from sweepscope.pipeline.text.secret_columns import hide_frame
from sweepscope.schemas.limits import BLOCK_LINES, SPILL_BYTES

BLOCK_BYTES = 4 << 20
"""A piece of a file of this size is filtered at once: the blocks of a large file."""

MANY_BYTES = 24 << 20
"""Lines of many small files are filtered together up to this size."""

READ_BYTES = 6 << 20
"""Candidate lines of several blocks are extracted together from this size on."""

UNDECIDED_BYTES = 32 << 20
"""Lines of files without an owner wait up to this size. A longer file is read once more if it gets one; that it grows
does not help to read it: what no dialect owns is inferred from all of it."""


@dataclass
class BatchAccumulator:
    """What was read of the files so far, and lines that wait to be read.

    Lines of logs go through three stages, because a pass over many costs hardly more than one over few: `pending` bytes
    are filtered together, `filtered` candidates extracted together, `extracts` merged in the end. Other files give
    their rows at once. A source is a file's number in the batch.

    Attributes:
        dialects: those to read with.
        resume_state: decides which logs are read on from where the last ingest stopped.
        pending: source, bytes and number of the first line of pieces that are not filtered yet.
        pending_bytes, pending_lines: their size.
        filtered: candidate lines that are not extracted yet.
        extracts: facts of the lines so far.
        on_disk: number of `extracts` whose steps are on disk.
        undecided: candidate lines of files in several pieces that no dialect owns yet.
        unfinished: source, bytes and number of the last line of logs that may grow.
        unfinished_nccl: the same for NCCL's output.
        dropped: sources of which undecided lines were dropped.
        partial: sources of which more may follow than one piece has.
        decided: dialects by source, where a piece was enough to tell.
        unread: sources that became unreadable; their facts are dropped.
        sidecars: rows of settings in configurations.
        own_settings: the same of configurations that no reader knows, under the usual names.
        documents: rows of the same shape: every value of a configuration under its own name.
        histories: dialect and STEP_FACTS of files in which trainers keep their steps.
        tracked: runs in files of trackers: the source of the file, the path that its own source gets, and the run.
        tracked_parts: files of runs of trackers that are folders, by folder.
        tables: rows of `runs` from tables with one run per row.
        table_arguments: rows of `arguments` of these runs: what their tables have of each under its own name.
        files: a note per file (see `read_file`).
        rejects: rows of `rejects`.
        other: frames of further tables, by name.
        nccl: facts of NCCL.
    """

    dialects: Sequence[Dialect]
    resume_state: ResumeState
    pending: list[tuple[int, bytes, int]] = field(default_factory=list)
    pending_bytes: int = 0
    pending_lines: int = 0
    filtered: list[FilteredBlock] = field(default_factory=list)
    extracts: list[extract.Extract] = field(default_factory=list)
    on_disk: int = 0
    undecided: list[pl.DataFrame] = field(default_factory=list)
    unfinished: list[tuple[int, bytes, int]] = field(default_factory=list)
    unfinished_nccl: list[tuple[int, bytes, int]] = field(default_factory=list)
    dropped: set[int] = field(default_factory=set)
    partial: set[int] = field(default_factory=set)
    decided: dict[int, str] = field(default_factory=dict)
    unread: set[int] = field(default_factory=set)
    sidecars: list[dict[str, str]] = field(default_factory=list)
    own_settings: list[dict[str, str]] = field(default_factory=list)
    documents: list[dict[str, str]] = field(default_factory=list)
    histories: list[tuple[str, pl.DataFrame]] = field(default_factory=list)
    tracked: list[tuple[int, str, Entry]] = field(default_factory=list)
    tracked_parts: dict[str, FolderParts] = field(default_factory=dict)
    tables: list[pl.DataFrame] = field(default_factory=list)
    table_arguments: list[pl.DataFrame] = field(default_factory=list)
    files: list[dict[str, object]] = field(default_factory=list)
    rejects: list[dict[str, object]] = field(default_factory=list)
    other: dict[str, list[pl.DataFrame]] = field(default_factory=dict)
    nccl: NcclCollector = field(default_factory=NcclCollector)

    def add(self, source: int, data: bytes, first_line: int, *, only_nccl: bool = False) -> None:
        """Add whole lines of a log, or, with `only_nccl`, of a file in which only NCCL's lines count."""
        if only_nccl:
            self.nccl.add(source, data, first_line)
            return
        number = lines.count(data)
        is_full = self.pending_bytes + len(data) > MANY_BYTES or self.pending_lines + number > BLOCK_LINES
        if self.pending and is_full:
            if self.pending[-1][0] == source:
                self.partial.add(source)
            self.flush()
        self.pending.append((source, data, first_line))
        self.pending_bytes += len(data)
        self.pending_lines += number
        if len(data) >= BLOCK_BYTES:
            self.partial.add(source)  # more of the file may follow; a block is not kept until that is known
            self.flush()

    def restore(self, source: int, record: Record) -> None:
        """Add the facts of the lines that an earlier ingest read."""
        extracted = extract_of(record, source, self.dialects)
        self.extracts.append(extracted)
        self.decided |= extracted.decided
        self.nccl.restore(source, record.nccl)

    def add_unfinished(self, source: int, data: bytes, line: int, *, only_nccl: bool) -> None:
        """Add the last line of a log that may grow: it counts now, and is left out of the log's record."""
        self.unfinished_nccl.append((source, data, line))
        if not only_nccl:
            self.unfinished.append((source, data, line))

    def flush(self) -> None:
        """Prefilter the pending lines, and extract the candidates once there are enough for a pass."""
        if self.pending:
            block, counts = lines.split_parts(self.pending)
            self.nccl.add_lines(self.pending, block, counts)
            self.pending, self.pending_bytes, self.pending_lines = [], 0, 0
            self.filtered.append(
                prefilter(block, self.dialects, partial=self.partial, known=self.decided, unwanted=self.dropped)
            )
            if undecided := self.partial - set(self.decided):
                decided = extract.decided_by([*self.extracts, *self.filtered], self.dialects)
                self.decided |= {source: name for source, name in decided.items() if source in undecided}
            if sum(part.text_bytes for part in self.filtered) >= READ_BYTES:
                self.read_filtered()
            else:
                self.filtered[-1] = self.filtered[-1].owned()

    def read_filtered(self) -> None:
        """Turn what was filtered so far into facts."""
        if not self.filtered:
            return
        self.undecided += [block.owned().undecided for block in self.filtered if not block.undecided.is_empty()]
        decided = [replace(block, undecided=block.undecided.clear()) for block in self.filtered]
        self.extracts.append(extract.read(decided, self.dialects).map(lambda frame: owned(hide_frame(frame))))
        self.filtered = []
        self._spill()
        if sum(map(text_bytes, self.undecided)) > UNDECIDED_BYTES:
            self.dropped |= {source for rows in self.undecided for source in rows["source"].unique()}
            self.undecided = []
        give_back()

    def _spill(self) -> None:
        """Put steps and peaks on disk, once they are many: as one extract, since each has a file of its own."""
        in_memory = self.extracts[self.on_disk :]
        if sum(part.large_bytes for part in in_memory) > SPILL_BYTES:
            self.extracts[self.on_disk :] = [extract.merge(in_memory, self.dialects).map_large(on_disk)]
            self.on_disk = len(self.extracts)

    def _read_undecided(self, owners: Mapping[int, str], open_sources: Collection[int]) -> None:
        """Turn the lines that wait for their owner into facts; see `extract.read_later`."""
        rows, self.undecided = pl.concat(self.undecided), []
        self.extracts.append(extract.read_later(rows, self.dialects, owners, open_sources).map(hide_frame))

    def discard(self, source: int) -> None:
        """Drop a file that became unreadable after some of its lines had been read."""
        self.pending = [part for part in self.pending if part[0] != source]
        self.nccl.discard(source)
        self.unread.add(source)

    def merged(self) -> extract.Extract:
        """The extract of all files; the records of logs that may grow are saved on the way."""
        self.flush()
        self.read_filtered()
        self.resume_state.unwatch(self.dropped)  # their records would lack lines
        last_lines = []
        if self.unfinished:
            block = lines.split_many(self.unfinished)
            last = extract.extract(block, self.dialects, partial=self.partial, known=self.decided)
            last_lines.append(last.map(hide_frame))
        if self.undecided:
            owners = extract.merge([*self.extracts, *last_lines], self.dialects).dialect_of
            self._read_undecided(owners, set(self.resume_state.saved_sources) - self.decided.keys())
        whole, self.extracts = extract.merge(self.extracts, self.dialects), []
        self.resume_state.save(whole, self.nccl.frames)
        for last_line in self.unfinished_nccl:
            self.nccl.add(*last_line)
        whole = extract.merge([whole, *last_lines], self.dialects) if last_lines else whole
        return whole.without(self.unread) if self.unread else whole

    def add_settings(self, unit: str, path: str, settings: Mapping[str, str]) -> None:
        """Add settings of a sidecar, which hold for all runs of the unit."""
        self.sidecars += _of_file(unit, path, settings.items())

    def add_own_settings(self, unit: str, path: str, settings: Mapping[str, str]) -> None:
        """Add those of a configuration that no reader knows: they hold for runs that no dialect knows either."""
        self.own_settings += _of_file(unit, path, settings.items())

    def add_document(self, unit: str, path: str, values: Iterable[tuple[str, str]]) -> None:
        """Add what a configuration states, under its own names, for all runs of the unit."""
        self.documents += _of_file(unit, path, values)

    def reject(self, path: str, line_no: int | None, reason: str, raw: str, *, table: str = "steps") -> None:
        """Add a row of `rejects`."""
        self.rejects.append(
            {"file": path, "line_no": line_no, "table": table, "column": None, "reason": reason, "raw": raw}
        )


def _of_file(unit: str, path: str, values: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    """SIDECAR_SETTINGS rows."""
    shared = {"unit": unit, "path": path, "setting_source": "config_file"}
    return [{**shared, "name": name, "value": value} for name, value in values]
