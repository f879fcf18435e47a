"""Read the parts of rotated logs (`train.log.2.gz`, `train.log.1`, `train.log`) as one log each.

Only reading is here: discovery tells which files are parts of a log, and `rotated_logs` compares them with the lake.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from sweepscope.pipeline.ingest.accumulator import BatchAccumulator
from sweepscope.pipeline.ingest.read_file import begins_as_known, content_columns, open_log, read_contents
from sweepscope.pipeline.ingest.surer_reading import Open
from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.io.rotated import RotatedReader
from sweepscope.pipeline.logs.runs.assemble import SOURCES


class RotatedLogs:
    """Rotated logs of a batch. The facts of each are those of one source, the last of its files in `found`.

    Attributes:
        parts: read_batch.PARTS rows of what was read so far.
    """

    def __init__(self, found: pl.DataFrame) -> None:
        self.parts: list[tuple[str, int, str]] = []
        # By the path of the log: the source and row of each of its files, oldest first.
        self._files: dict[str, list[tuple[int, dict[str, object]]]] = {}
        self._notes: dict[str, dict[str, object]] = {}
        if "part_of" in found.columns:
            members = found.with_row_index("source").filter(pl.col("part_of").is_not_null()).sort("part")
            for row in members.iter_rows(named=True):
                self._files.setdefault(row["part_of"], []).append((row.pop("source"), row))

    def read(self, row: dict[str, object], batch: BatchAccumulator) -> dict[str, object]:
        """The note of one part (see `read_file`); reads all parts of the log when the first of them comes."""
        if row["path"] not in self._notes:
            self._read_log(str(row["part_of"]), batch)
        return self._notes[str(row["path"])]

    def _read_log(self, log: str, batch: BatchAccumulator) -> None:
        files = self._files[log]
        readers = [open_log(row) for _, row in files]
        reader = RotatedReader(log, is_lenient=True, parts=readers)
        is_continued = [begins_as_known(row, part) for (_, row), part in zip(files, readers, strict=True)]
        source, last = files[-1]
        # Without a size there is no record to read on from: what was read of the log lies in other parts by now.
        note = read_contents(source, {**last, "path": log, "bytes": 0}, reader, batch)
        for (_, row), part, continued in zip(files, readers, is_continued, strict=True):
            own = {**content_columns(part), "is_continued": continued, "offset_bytes": None}
            self._notes[str(row["path"])] = {**note, **own}
        paths = [str(row["path"]) for _, row in files]
        self.parts += [(log, line, path) for line, path in zip(reader.first_lines, paths, strict=False)]

    def opener(self, source: int, row: Mapping[str, object]) -> tuple[str, Open] | None:
        """Path of a log, rotated or not, and what opens it anew; None for a part that is read under another source."""
        if not row.get("part_of"):
            return str(row["path"]), lambda: open_log(row, is_hashed=False)
        log = str(row["part_of"])
        members = self._files[log]
        if source != members[-1][0]:
            return None

        def opened() -> RotatedReader:
            return RotatedReader(log, is_lenient=True, parts=[open_log(part, is_hashed=False) for _, part in members])

        return log, opened

    def opened(self, source: int, found: pl.DataFrame) -> Reader:
        """A log that was read, anew. Raises InputError where it is gone by now; `found` has discover.FOUND rows."""
        opener = self.opener(source, found.row(source, named=True))
        if opener is None:
            raise ValueError(f"{found['path'][source]} is part of a log of another source")
        return opener[1]()

    def under_their_logs(self, files: pl.DataFrame) -> pl.DataFrame:
        """SOURCES rows: the source that has the facts of a rotated log under the log's path, and no other as a log."""
        readers = {members[-1][0]: log for log, members in self._files.items()}
        others = [source for members in self._files.values() for source, _ in members[:-1]]
        if readers:
            path = pl.col("source").replace_strict(readers, default=None, return_dtype=pl.String)
            kind = pl.when(pl.col("source").is_in(others)).then(pl.lit("other")).otherwise("kind")
            files = files.with_columns(path=pl.coalesce(path, "path"), kind=kind)
        return files.select(SOURCES.names()).cast(SOURCES)
