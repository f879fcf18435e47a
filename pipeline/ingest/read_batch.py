"""Read a batch of discovered files into facts. No later step touches bytes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from sweepscope.pipeline.ingest.accumulator import BatchAccumulator
from sweepscope.pipeline.ingest.dumped_settings import with_dumped
from sweepscope.pipeline.ingest.infer_logs import read_inferred
from sweepscope.pipeline.ingest.late_owners import with_late_owners
from sweepscope.pipeline.ingest.line_numbers import LineNumbers, rows_of
from sweepscope.pipeline.ingest.named_configurations import marked_as_read
from sweepscope.pipeline.ingest.parser_versions import current_versions
from sweepscope.pipeline.ingest.read_file import read_file
from sweepscope.pipeline.ingest.read_results import read_listing_logs
from sweepscope.pipeline.ingest.read_rotated import RotatedLogs
from sweepscope.pipeline.ingest.read_tracker import PARSER, with_folders
from sweepscope.pipeline.ingest.resume import ResumeState
from sweepscope.pipeline.ingest.settings_beside import settings_beside_logs
from sweepscope.pipeline.ingest.statements import stated_rows
from sweepscope.pipeline.ingest.surer_reading import Candidate
from sweepscope.pipeline.ingest.tracked_runs import PLACES, sources_of
from sweepscope.pipeline.ingest.unread_logs import judge_unread, without
from sweepscope.pipeline.ingest.unread_recordings import read_recordings
from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.io.spill import SLICE_ROWS, release
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.dialects import bare_progress_bar
from sweepscope.pipeline.logs.engine.detect import rank_dialects
from sweepscope.pipeline.logs.engine.extract import Extract
from sweepscope.pipeline.logs.engine.spans import ordered_spans, stamps_of
from sweepscope.pipeline.logs.evidence.arguments import read_arguments
from sweepscope.pipeline.logs.facts import SETTING_FACTS, STEP_FACTS, Facts, conform, in_order
from sweepscope.pipeline.logs.registry import DIALECTS
from sweepscope.pipeline.logs.runs.assemble import SIDECAR_SETTINGS
from sweepscope.pipeline.store.checkpoints import Records
from sweepscope.schemas.columns.shared import LAYOUT, MODEL
from sweepscope.schemas.tables.inference import INFERRED_COLUMNS, INFERRED_DIALECTS
from sweepscope.schemas.tables.ledger import FILES, REJECTS

_LOG = logging.getLogger(__name__)

_SLOW_S = 30.0
"""A file that takes longer is logged without -vv."""

_TELLING = (*LAYOUT, *MODEL)
"""Settings of which a log that is known, or a file beside it, states one; versions and devices are printed by any."""
_FEW = 3
"""A dialect's steps are few where a log has so many times more lines that print what steps do."""

_NOTED = (
    *("path", "kind", "sha256", "read_bytes", "offset_bytes", "parser", "status", "error"),
    *("content_bytes", "content_digest", "content_head", "is_continued"),
)
_NOTES = pl.Schema([*((name, FILES.polars_schema[name]) for name in _NOTED), ("was_opened", pl.Boolean())])
"""What reading notes of a file: columns of the ledger, and whether the file could be opened (NULL: it could)."""

PARTS = pl.Schema({"log": pl.String, "first_line": pl.Int64, "part": pl.String})
"""A row per part of a rotated log: its path, and the number in the log of its first line."""


@dataclass(frozen=True)
class Batch:
    """The facts of one batch. `files` has the ledger columns that reading decides.

    `other` has rows of further tables by name (NCCL output, memory snapshots), as their schemas want them. `parts` are
    PARTS rows of rotated logs; facts and sources have such a log under its own path, with lines numbered throughout.
    `arguments` are those that logs print (SETTING_FACTS), `documents` those of configurations beside them
    (SIDECAR_SETTINGS), both under their own names, and `table_arguments` rows of `arguments` of the runs in `tables`.
    `tracked` are tracked_runs.PLACES rows of runs of trackers' files.
    """

    sources: pl.DataFrame
    facts: Facts
    spans: pl.DataFrame
    sidecars: pl.DataFrame
    stated: pl.DataFrame
    tables: list[pl.DataFrame]
    files: pl.DataFrame
    rejects: pl.DataFrame
    other: dict[str, pl.DataFrame] = field(default_factory=dict)
    parts: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PARTS))
    arguments: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SETTING_FACTS))
    documents: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SIDECAR_SETTINGS))
    tracked: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PLACES))
    table_arguments: list[pl.DataFrame] = field(default_factory=list)

    def stated_of(self, rows: pl.DataFrame) -> pl.DataFrame:
        """STATED rows of the file that the rows of a table come from."""
        of_file = self.sources.filter(pl.col("path").is_in(rows["source_path"].implode()))
        return self.stated.filter(pl.col("source").is_in(of_file["source"].implode()))


def read_batch(
    found: pl.DataFrame,
    *,
    dialects: Sequence[Dialect] = DIALECTS,
    records: Records | None = None,
    on_file: Callable[[str, int], None] = lambda _path, _size: None,
) -> Batch:
    """Read every file of `found` (discover.FOUND rows; whole units).

    A file that cannot be read is recorded with its error and does not stop the batch.

    Args:
        found: discover.FOUND rows; `known_bytes` and `known_digest` too where the ledger knows a file's content.
        dialects: those to read with.
        records: where facts of growing logs are kept, so that only new lines are read; None: read all files whole.
        on_file: called with each path and its size, for a progress display.
    """
    newest = dict(found.group_by("unit").agg(pl.col("mtime").max()).iter_rows())
    # What reads unknown logs only is not looked for in others.
    confirmed = [dialect for dialect in dialects if dialect.fit]
    by_signature = [_without_literals(dialect) if dialect.fit else dialect for dialect in dialects]
    batch = BatchAccumulator(by_signature, ResumeState(records, dialects, newest))
    rotated = RotatedLogs(found)
    _read_files(found, batch, rotated, on_file)
    extracted = with_late_owners(batch.merged(), batch.dropped, lambda source: rotated.opened(source, found))
    _log_dialects(found, extracted)
    listing = read_listing_logs(found, batch, extracted, rotated.opener)
    inferred = read_inferred(_unknown_logs(found, batch, rotated, extracted), extracted.facts, confirmed)
    facts = Facts.concat([extracted.facts.without_steps(inferred.with_steps), inferred.facts]).map(in_order)
    arguments = read_arguments(extracted.argument_lines)
    facts = with_dumped(facts, arguments, extracted.dialect_of.keys() - inferred.readers.keys())
    sources = _sources(found, {**extracted.dialect_of, **inferred.readers})
    files = batch.nccl.with_kinds(_file_notes(sources, batch.files, dialects), extracted)
    facts = facts.map(without(listing))
    files, facts = judge_unread(files, facts, inferred.unread, batch.nccl.sources())
    files = read_recordings(files, found, batch, current_versions(dialects))
    with_folders(batch)
    tracked = sources_of(batch.tracked, files.with_columns(dialect=pl.coalesce("dialect", "parser")))
    sources = pl.concat([sources, tracked.sources.select(sources.columns)])
    sidecars, documents = settings_beside_logs(batch, sources, tracked, arguments, dialects)
    files = marked_as_read(files, sidecars, current_versions(dialects))
    other = {name: pl.concat(frames) for name, frames in batch.other.items()}
    return Batch(
        sources=rotated.under_their_logs(
            pl.concat([files.with_columns(dialect=pl.coalesce("dialect", "parser")), tracked.sources])
        ),
        facts=_with_histories(facts, [*batch.histories, (PARSER, tracked.steps)]),
        spans=ordered_spans([extracted.spans, *stamps_of(inferred.facts)]),
        sidecars=sidecars,
        stated=stated_rows(sources, dialects),
        tables=batch.tables,
        files=files,
        rejects=pl.DataFrame(
            [*batch.rejects, *tracked.unread, *_not_rejected_before(inferred.rejects, batch)],
            schema=REJECTS.polars_schema,
        ),
        other={
            **other,
            **batch.nccl.tables(files, facts),
            INFERRED_COLUMNS.name: pl.concat([inferred.columns, *batch.other.get(INFERRED_COLUMNS.name, ())]),
            INFERRED_DIALECTS.name: inferred.dialects,
        },
        parts=pl.DataFrame(rotated.parts, schema=PARTS, orient="row"),
        arguments=arguments,
        documents=documents,
        tracked=tracked.places,
        table_arguments=batch.table_arguments,
    )


def _not_rejected_before(
    rejects: Sequence[Mapping[str, object]], batch: BatchAccumulator
) -> list[Mapping[str, object]]:
    """Rejects of files that are read once more, without those of files of which the first reading says it already."""
    known = {row["file"] for row in batch.rejects}
    return [row for row in rejects if row["file"] not in known]


def _without_literals(dialect: Dialect) -> Dialect:
    """`dialect`, for whose lines no log is searched."""
    return replace(dialect, literals_by_function=dict.fromkeys(dialect.literals_by_function, ()))


def _read_files(
    found: pl.DataFrame, batch: BatchAccumulator, rotated: RotatedLogs, on_file: Callable[[str, int], None]
) -> None:
    """Read file by file into `batch`; a file's number in `found` is its source in all facts."""
    for source, row in enumerate(found.iter_rows(named=True)):
        begin = time.perf_counter()
        note = rotated.read(row, batch) if row.get("part_of") else read_file(source, row, batch)
        _log_file(row, note, time.perf_counter() - begin)
        batch.files.append({"path": row["path"], **note})
        on_file(row["path"], row["bytes"])


def _sources(found: pl.DataFrame, dialect_of: Mapping[int, str]) -> pl.DataFrame:
    """`found` with the number of each file (`source`), its `dialect` (NULL: none knows it) and `modified_at`."""
    dialect = pl.col("source").replace_strict(dialect_of, default=None, return_dtype=pl.String)
    modified_at = pl.from_epoch((pl.col("mtime") * 1e6).cast(pl.Int64), "us")
    return found.with_row_index("source").with_columns(
        pl.col("source").cast(pl.Int64), modified_at=modified_at, dialect=dialect
    )


def _unknown_logs(
    found: pl.DataFrame, batch: BatchAccumulator, rotated: RotatedLogs, extracted: Extract
) -> dict[int, Candidate]:
    """Logs to be inferred, by source: those that no dialect knows, and some that one does.

    Of the latter: those that print far more of what steps do than it finds, those in whose steps it finds no loss, and
    those with steps and no settings. What a user's dialect file reads is left as it is, and what measures the network
    alone is none.
    """
    # Column by column: a filter over the frame would copy all of them.
    steps = extracted.facts.steps
    has_step = steps["step"].is_not_null()
    counted = _counted(steps)
    number_of_steps = dict(counted.select("source", "steps").iter_rows())
    has_loss = set(counted.filter("has_loss")["source"])
    configured = set(extracted.facts.settings.filter(pl.col("name").is_in(_TELLING))["source"].unique())
    units = {row["unit"] for row in batch.sidecars if row["name"] in _TELLING}
    configured |= {source for source, unit in enumerate(found["unit"]) if unit in units}
    declared = {dialect.name for dialect in extracted.dialects if dialect.is_declared}
    counts = extracted.last_lines.group_by("source").agg(pl.col("step_like", "loss_like").sum())
    printed = {source: likely for source, *likely in counts.iter_rows()}
    measuring = batch.nccl.without_training(extracted)
    ranks = rank_dialects(extracted.signature_hits, extracted.dialects)
    best = ranks.unique("source", keep="first", maintain_order=True)
    doubtful = set(best.filter(pl.col("distinct") == 1)["source"])
    logs = {}
    for source, (row, note) in enumerate(zip(found.iter_rows(named=True), batch.files, strict=True)):
        if note["status"] != "parsed" or note.get("kind") != "log" or extracted.dialect_of.get(source) in declared:
            continue
        mine = number_of_steps.get(source, 0)
        step_like, loss_like = printed.get(source, (0, 0))
        if source in measuring and not loss_like:
            continue
        # Beside steps that a dialect has surely found, others count that have losses.
        likely = loss_like if mine and source not in doubtful else step_like
        is_sparse = likely >= _FEW * mine and likely > 0
        is_unread = source not in extracted.dialect_of or is_sparse or (mine > 0 and source not in configured)
        is_wanted = is_unread or (mine and loss_like and source not in has_loss)
        if is_wanted and (opener := rotated.opener(source, row)):
            is_known = source in extracted.dialect_of
            is_bare = extracted.dialect_of.get(source) == bare_progress_bar.DIALECT.name  # it knows no settings
            has_settings = source in configured or (is_known and not mine and not is_bare)
            logs[source] = Candidate(
                *opener,
                _lines_of(steps, source, has_step),
                _lines_of(steps, source, ~has_step),
                is_known=is_known,
                is_doubtful=source in doubtful,
                has_settings=has_settings,
                is_only_completed=not is_unread,
            )
    return logs


def _counted(steps: pl.DataFrame) -> pl.DataFrame:
    """`source`, its number of `steps`, and whether any of them `has_loss`; slice by slice."""
    parts = [pl.DataFrame(schema={"source": pl.Int64, "steps": pl.UInt32, "has_loss": pl.Boolean})]
    for rows in steps["source", "step", "loss"].iter_slices(SLICE_ROWS):
        of_source = rows.drop_nulls("step").group_by("source")
        parts.append(of_source.agg(steps=pl.len(), has_loss=pl.col("loss").is_not_null().any()))
        release()
    return pl.concat(parts).group_by("source").agg(pl.col("steps").sum(), pl.col("has_loss").any())


def _lines_of(steps: pl.DataFrame, source: int, is_wanted: pl.Series) -> LineNumbers:
    """The lines of those STEP_FACTS rows of a source, in file order, that are wanted."""
    rows = rows_of(steps["source"], source)
    numbers, are_wanted = steps["line_no"][rows], is_wanted[rows]
    return LineNumbers(numbers if are_wanted.all() else numbers.filter(are_wanted))


def _log_file(row: dict[str, object], note: dict[str, object], seconds: float) -> None:
    """Log what became of a file; one that was skipped or rejected, with the reason."""
    is_slow = seconds >= _SLOW_S
    name, level = ("slow_file", logging.INFO) if is_slow else (f"file_{note['status']}", logging.DEBUG)
    facts = {"path": row["path"], "kind": note.get("kind", row["kind"]), "parser": note.get("parser")}
    event(_LOG, level, name, **facts, bytes=note.get("read_bytes"), seconds=seconds, reason=note.get("error"))


def _log_dialects(found: pl.DataFrame, extracted: Extract) -> None:
    """Log the dialect of each log, with the signature hits of the runner-up."""
    if not _LOG.isEnabledFor(logging.DEBUG):
        return
    ranks = rank_dialects(extracted.signature_hits, extracted.dialects)
    for (source,), ranked in ranks.partition_by("source", as_dict=True, maintain_order=True).items():
        best, *others = ranked.iter_rows(named=True)
        runner_up = {"runner_up": others[0]["dialect"], "runner_up_hits": others[0]["total"]} if others else {}
        path = found["path"][int(source)]
        event(_LOG, logging.DEBUG, "dialect", path=path, dialect=best["dialect"], hits=best["total"], **runner_up)


def _with_histories(facts: Facts, histories: Sequence[tuple[str, pl.DataFrame]]) -> Facts:
    """`facts` with the steps that trainers keep in files of their own."""
    if not histories:
        return facts
    return replace(facts, steps=pl.concat([facts.steps, *(conform(steps, STEP_FACTS) for _, steps in histories)]))


def _file_notes(sources: pl.DataFrame, notes: list[dict[str, object]], dialects: Sequence[Dialect]) -> pl.DataFrame:
    """Ledger rows, with the version of the parser that read each file, be it a log, a sidecar or a table.

    A file that could not be opened gets no version, so that the next ingest tries again: making it readable changes
    neither its size nor its time.
    """
    frame = pl.DataFrame(notes, schema=_NOTES)
    rows = sources.join(frame, on="path", how="left", maintain_order="left", suffix="_read")
    parser = pl.coalesce("parser", "dialect")
    version = parser.fill_null("").replace_strict(current_versions(dialects), return_dtype=pl.Int64)
    version = pl.when(pl.col("was_opened").fill_null(value=True)).then(version)
    kind = pl.coalesce("kind_read", "kind")
    return rows.with_columns(parser=parser, parser_version=version, kind=kind).drop("was_opened", "kind_read")
