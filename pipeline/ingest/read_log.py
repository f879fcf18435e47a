"""Read one log, from its beginning or from where the last ingest stopped."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

from sweepscope.pipeline.ingest.accumulator import BatchAccumulator
from sweepscope.pipeline.ingest.file_kinds import TABLE_SUFFIXES, may_be_data
from sweepscope.pipeline.ingest.read_sidecar import (
    is_known_table,
    read_bench,
    read_calls,
    read_jobs,
    read_memory,
    read_table_of,
    reading_whole,
    recognise_scheduler_table,
)
from sweepscope.pipeline.ingest.resume import can_grow
from sweepscope.pipeline.ingest.validate import RAW_LIMIT
from sweepscope.pipeline.io.log_envelopes import is_of_training
from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.io.text_encoding import HOLE, SNIFF_BYTES, Holes, text_chunks
from sweepscope.pipeline.logs.inference.step_tables import is_step_table, shared_settings
from sweepscope.pipeline.logs.sidecars.deepspeed_autotuning import METRICS_NAME, read_metrics
from sweepscope.pipeline.memory.gpu_samples.samples import is_table
from sweepscope.pipeline.nccl.bench import formats
from sweepscope.pipeline.nccl.inspector import is_inspector
from sweepscope.pipeline.nccl.names import is_bench_file
from sweepscope.pipeline.store.checkpoints import Record
from sweepscope.pipeline.text import lines


def read_log(source: int, row: dict[str, object], reader: Reader, batch: BatchAccumulator) -> dict[str, object]:
    """Ledger columns of a log; also of a table (scheduler, GPU samples, NCCL's tools) that is named like a log."""
    if before := batch.resume_state.resume(row, reader):
        holes = Holes(reader.position)
        return _read_lines(source, row, reader, holes.filled(reader.chunks()), batch, holes=holes, before=before)
    holes = Holes()
    raw = holes.filled(reader.chunks())
    first = next(raw, b"")
    chunks = text_chunks(reader.path, itertools.chain([first], raw))
    head = next(chunks, b"")
    whole = itertools.chain([head], chunks)
    with reading_whole(reader):
        if table := _read_table(source, row, reader, batch, head=head, whole=whole):
            return table
    if is_bench_file(reader.path):
        return {"kind": "other", "status": "skipped", "error": "JSON, but not of nccl-tests"}
    is_doubtful = row["kind"] == "log" and may_be_data(reader.path.rsplit("/", 1)[-1], batch.dialects)
    if is_doubtful and not is_of_training(first[:SNIFF_BYTES]):
        return {"kind": "other", "status": "skipped", "error": "records, but neither of steps nor of log messages"}
    _add_settings_of_table(row, reader.path, head, batch)
    return _read_lines(source, row, reader, whole, batch, holes=holes)


def _read_table(
    source: int, row: dict[str, object], reader: Reader, batch: BatchAccumulator, *, head: bytes, whole: Iterable[bytes]
) -> dict[str, object] | None:
    """Ledger columns of a table, by its first bytes; None for a log."""
    if jobs := recognise_scheduler_table(head):
        return read_jobs(jobs, row, whole, batch)
    start = head[:SNIFF_BYTES].decode("utf-8-sig", "replace")
    if is_table(start):
        return {"kind": "memory", **read_memory(row, reader, whole, batch)}
    if reader.path.lower().endswith(TABLE_SUFFIXES) and is_known_table(start, reader.path):
        return {"kind": "bench_csv", **read_table_of(source, row, reader, iter(whole), batch)}
    if read := formats.reader_of(start):
        return read_bench(source, whole, batch, read)
    if reader.path.lower().endswith(f"/{METRICS_NAME}") and (metrics := _metrics(start)):
        batch.add_settings(str(row["unit"]), reader.path, metrics)
        return {"kind": "config", "parser": "deepspeed"}
    return read_calls(row, reader, whole, batch) if is_inspector(start) else None


def _add_settings_of_table(row: dict[str, object], path: str, head: bytes, batch: BatchAccumulator) -> None:
    """What each row of a table of steps repeats of the configuration holds for its run."""
    start = head[:SNIFF_BYTES].decode("utf-8-sig", "replace")
    if path.lower().endswith(TABLE_SUFFIXES) and is_step_table(start):
        batch.add_own_settings(str(row["unit"]), path, shared_settings(start))


def _metrics(text: str) -> Mapping[str, str]:
    """Settings in what an autotuner has measured; none in another text."""
    try:
        return read_metrics(text)
    except ValueError:
        return {}


def _read_lines(
    source: int,
    row: dict[str, object],
    reader: Reader,
    chunks: Iterable[bytes],
    batch: BatchAccumulator,
    *,
    holes: Holes,
    before: Record | None = None,
) -> dict[str, object]:
    if before:
        batch.restore(source, before)
    is_watched = batch.resume_state.is_watched(row, before)
    if is_watched:
        batch.partial.add(source)
    cut_lines, line = (list(before.cut_lines), before.next_line) if before else ([], 1)
    broken: list[tuple[int, int, bytes]] = []
    last, last_bytes, only_nccl = b"", 0, row["kind"] == "nccl"
    for data, first_line, left_out in lines.blocks(chunks, line):
        line = first_line
        if holes.found and HOLE in data:
            data = _without_broken_lines(data, first_line, broken)  # noqa: PLW2901 - only one block in memory
        if data.endswith(b"\n"):
            batch.add(source, data, first_line, only_nccl=only_nccl)
            line += lines.count(data)
        else:
            last, last_bytes = data, len(data) + left_out
        if left_out:
            cut_lines.append((first_line, left_out))
        del data  # only one block in memory at a time
    if reader.damage:
        batch.reject(reader.path, line, reader.cut, f"{reader.damage}: {_shown(last)}")
        last = b""  # its values may be cut
    # Behind a hole the text has other offsets than the file.
    grows = not holes.found and (before.can_grow if before else can_grow(reader))
    offset = reader.position - last_bytes if grows else None
    whole_lines = tuple(cut for cut in cut_lines if cut[0] < line)
    record = _record(reader, offset, line, whole_lines, before) if is_watched else None
    is_kept = record is not None and record.can_grow
    if last and not is_kept:
        batch.add(source, last, line, only_nccl=only_nccl)
    batch.resume_state.note(source, reader, record, before)
    if last and is_kept:
        batch.add_unfinished(source, last, line, only_nccl=only_nccl)
    _reject_holes(reader, holes, broken, batch)
    for number, left_out in cut_lines:
        batch.reject(reader.path, number, "a line of over 16 MiB was cut", f"{left_out:,} bytes not read")
    kind = {"kind": "nccl", "parser": "nccl"} if only_nccl else {"kind": "log"}
    return {**kind, "sha256": record.sha256 if record else reader.sha256, "offset_bytes": offset}


def _without_broken_lines(data: bytes, first_line: int, broken: list[tuple[int, int, bytes]]) -> bytes:
    """A block without what may be cut in the middle of a number: text before a hole on its line, and text behind it.

    Text behind a hole stays where the hole began with a line.

    Args:
        broken: gets line number, number of holes and text of each line with a hole.
    """
    rows = data.split(b"\n")
    for index, row in enumerate(rows):
        if HOLE in row:
            before, _, after = row.rpartition(HOLE)
            is_begun = bool(before.replace(HOLE, b"").strip())
            broken.append((first_line + index, row.count(HOLE), row if is_begun else b""))
            rows[index] = b"" if is_begun else after
    return b"\n".join(rows)


def _reject_holes(reader: Reader, holes: Holes, broken: list[tuple[int, int, bytes]], batch: BatchAccumulator) -> None:
    found = iter(holes.found)
    for line, count, text in broken:
        for offset, size in itertools.islice(found, count):
            shown = f"{size:,} bytes from byte {offset:,}" + (f": {_shown(text)}" if text else "")
            batch.reject(reader.path, line, "a part of the file is missing: NUL bytes are in its place", shown)
    for offset, size in found:
        shown = f"{size:,} bytes from byte {offset:,}"
        batch.reject(reader.path, None, "a part of the file is missing: NUL bytes are in its place", shown)


def _shown(text: bytes) -> str:
    return text.replace(HOLE, b"...").decode("utf-8", "replace")[:RAW_LIMIT]


def _record(
    reader: Reader, offset: int | None, line: int, cut_lines: tuple[tuple[int, int], ...], before: Record | None
) -> Record | None:
    """How far a log was read; None when its last line is too long to find its beginning again."""
    end = reader.resume_point(reader.position)
    mark = end if offset is None else reader.resume_point(offset)
    if mark is None or end is None:
        return None
    is_as_before = before is not None and before.end == end
    sha256 = before.sha256 if before and is_as_before else reader.sha256
    return Record(mark, end, sha256, can_grow=offset is not None, next_line=line, cut_lines=cut_lines)
