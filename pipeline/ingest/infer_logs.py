"""Logs that no dialect knows, read by what they seem to print.

Each is read again, whole, by a dialect of its own: so a growing log gives the same rows as one that is read in one go.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import polars as pl

from sweepscope.pipeline.errors import InputError, UsageError
from sweepscope.pipeline.ingest import log_blocks
from sweepscope.pipeline.ingest.benchmark_logs import with_benchmark
from sweepscope.pipeline.ingest.line_numbers import rows_of
from sweepscope.pipeline.ingest.surer_reading import (
    Candidate,
    Open,
    aligned,
    counts_between,
    counts_coarser,
    goes_together,
    has_sure_steps,
    is_settled,
    is_without_loss,
    knows_losses,
    knows_more,
    wanted_steps,
)
from sweepscope.pipeline.ingest.unread_logs import (
    is_output_name,
    is_training_log_name,
    is_training_name,
    may_hold_losses,
)
from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.io.meter import metered
from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.io.rotated import RotatedReader
from sweepscope.pipeline.io.spill import on_disk, release
from sweepscope.pipeline.logs.declared.columns import RUN_COLUMNS, STEP_COLUMNS, canonical
from sweepscope.pipeline.logs.declared.compile import compile_document
from sweepscope.pipeline.logs.declared.document import read_document
from sweepscope.pipeline.logs.declared.explain import FAR_MORE
from sweepscope.pipeline.logs.declared.toml_writer import bare
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.engine import extract
from sweepscope.pipeline.logs.evidence.text_kinds import TextKind, kind_of
from sweepscope.pipeline.logs.facts import INFERRED, SETTING_FACTS, Facts, conform
from sweepscope.pipeline.logs.inference.infer import infer, infer_settings
from sweepscope.pipeline.logs.inference.result import NOTHING, Inference
from sweepscope.pipeline.logs.synonyms import LOSS_VALUES
from sweepscope.pipeline.text import lines
from sweepscope.pipeline.text.secret_columns import hide_frame
from sweepscope.schemas.limits import SPILL_BYTES
from sweepscope.schemas.tables.inference import INFERRED_COLUMNS, INFERRED_DIALECTS

_LOG = logging.getLogger(__name__)

_MOST_MISSING = 4
"""Of so many kinds of values that a confirmed file knows, a log may lack one."""
_LEAST_SETTINGS = 2
"""Settings by which a confirmed file knows a log without steps."""


@dataclass(frozen=True)
class InferredLogs:
    """Facts of the logs that were inferred.

    Attributes:
        facts: of all of them.
        readers: dialect by source, of those in which steps or a summary were found, or that a confirmed file knows.
        with_steps: those in which steps were found.
        columns: INFERRED_COLUMNS rows.
        dialects: INFERRED_DIALECTS rows.
        unread: what those without any step were taken for.
        rejects: rows of `rejects`: what could not be read to its end.
    """

    facts: Facts
    readers: Mapping[int, str]
    with_steps: tuple[int, ...]
    columns: pl.DataFrame
    dialects: pl.DataFrame
    unread: Mapping[int, TextKind]
    rejects: Sequence[Mapping[str, object]] = ()


@dataclass(frozen=True)
class _Reading:
    """How one log is read: by a confirmed file, or by what it seems to print."""

    sample: pl.DataFrame
    inference: Inference
    confirmed: Dialect | None
    has_steps: bool
    facts: Facts


def read_inferred(logs: Mapping[int, Candidate], known: Facts, confirmed: Sequence[Dialect] = ()) -> InferredLogs:
    """What the logs hold, by a dialect file that somebody has confirmed, or else by what each of them seems to print.

    Args:
        logs: by source.
        known: what dialects have read, in the order of files; a setting that they state is not inferred.
        confirmed: dialects without a signature.
    """
    parts, columns, dialects = [Facts.empty()], [INFERRED_COLUMNS.empty()], []
    readers: dict[int, str] = {}
    with_steps: list[int] = []
    unread: dict[int, TextKind] = {}
    rejects: list[Mapping[str, object]] = []
    for source, log in logs.items():
        try:
            reading = _reading(source, log, confirmed, known.steps)
            measured = with_benchmark(source, reading.sample, reading.facts, known)
        except (InputError, UsageError) as error:  # it was read a moment ago; or what was inferred is no dialect file
            event(_LOG, logging.WARNING, "not_inferred", path=log.path, reason=str(error))
            reason = "no dialect reads the steps of this log, and inferring them failed"
            rejects.append({"file": log.path, "table": "steps", "reason": reason, "raw": str(error)})
            continue
        inference, name = reading.inference, reading.confirmed.name if reading.confirmed else INFERRED
        parts.append(reading.facts if measured is None else measured)
        with_steps += [source] if reading.has_steps else []
        if reading.has_steps or reading.confirmed or (measured is not None and not log.is_known):
            readers[source] = name
        elif not log.is_known:
            unread[source] = kind_of(
                reading.sample,
                is_named_log=is_output_name(log.path),
                is_named_training=is_training_name(log.path),
                is_training_log=is_training_log_name(log.path),
            )
        has_steps = reading.has_steps or not reading.facts.steps.is_empty()
        if not reading.confirmed and (has_steps or not log.has_settings):
            columns.append(_rows(log.path, inference, has_steps=has_steps))
            dialects += [{"source_path": log.path, "dialect_text": bare(inference.toml)}] if reading.has_steps else []
        steps = reading.facts.steps.height
        event(_LOG, logging.DEBUG, "inferred", path=log.path, by=name, columns=len(inference.columns), steps=steps)
    facts = Facts.concat(parts)
    settings = facts.settings.join(known.settings, on=["source", "name"], how="anti", maintain_order="left")
    return InferredLogs(
        replace(facts, settings=settings),
        readers,
        tuple(with_steps),
        pl.concat(columns),
        pl.DataFrame(dialects, schema=INFERRED_DIALECTS.polars_schema),
        unread,
        rejects,
    )


def _reading(source: int, log: Candidate, confirmed: Sequence[Dialect], known: pl.DataFrame) -> _Reading:
    """How a log is read; where its `known` steps have no loss and go together with inferred ones, by both.

    Raises LimitError.
    """
    readers: list[
        Reader | RotatedReader
    ] = []  # a log is opened for its sample, and for each time that it is read whole

    def opened() -> Reader | RotatedReader:
        readers.append(log.opened())
        return readers[-1]

    with metered(log.path, lambda: sum(reader.unpacked_bytes for reader in readers)):
        return _read_as_inferred(source, replace(log, opened=opened), confirmed, known)


def _read_as_inferred(source: int, log: Candidate, confirmed: Sequence[Dialect], known: pl.DataFrame) -> _Reading:
    """`_reading`, unmetered."""
    sample = _sample(log)
    mine = known[rows_of(known["source"], source)]
    inference = infer(sample) if confirmed else _inference(log, sample, mine)
    if inference.is_bare and not may_hold_losses(log.path):
        inference = NOTHING
    if best := _confirmed(sample, inference, log, confirmed):
        dialect, has_steps = best
        return _Reading(sample, inference, dialect, has_steps, _read(source, log, dialect, sample, has_steps=True))
    found = replace(compile_document(inference.document), name=INFERRED) if inference.document else None
    has_steps = False
    if (is_surer := knows_more(inference, log)) or counts_between(inference, log):
        facts = _read(source, log, found, sample, has_steps=True)
        # Not compared with nothing: a log without known steps may be as long as a disk holds.
        has_steps = mine.is_empty() or _is_better(facts.steps, mine, is_surer=is_surer)
    if not has_steps and knows_losses(inference, log, mine):
        facts, has_steps = _read(source, log, found, sample, has_steps=True), True
    if found and not has_steps and has_sure_steps(inference) and is_without_loss(mine):
        facts = _read(source, log, found, sample, has_steps=True)
        if (steps := aligned(mine, facts.steps)) is not None:
            return _Reading(sample, inference, None, False, replace(facts, steps=steps))
    if not has_steps:
        others = found or (None if log.is_known else _environment())
        facts = _read(source, log, others, sample, has_steps=False)
    return _Reading(sample, inference, None, has_steps, facts)


@cache
def _environment() -> Dialect:
    """What launchers and machines print, and nothing else: of the output beside a trainer's own records."""
    text = 'name = "environment"'
    return compile_document(read_document(text, "the environment", is_trusted=True, needs_steps=False))


def _is_better(inferred: pl.DataFrame, known: pl.DataFrame, *, is_surer: bool) -> bool:
    """Whether inferred steps are far more than the known ones, and may stand in their place."""
    # Ranks print a step once each: as lines they are many more than as steps.
    is_ahead = inferred["step"].n_unique() >= FAR_MORE * known["step"].n_unique()
    return is_ahead and (is_surer or goes_together(known, inferred)) and not counts_coarser(known, inferred)


def _inference(log: Candidate, sample: pl.DataFrame, known: pl.DataFrame) -> Inference:
    """What a log seems to print, as far as that is wanted beside the `known` steps that a dialect has found."""
    if is_without_loss(known) and log.step_lines:
        # Losses may stand in lines of their own, with a counter of the same name that is one apart. What a logger
        # printed right behind a bar has the bar's number.
        is_loss = sample["text"].str.contains(LOSS_VALUES) & ~sample["text"].str.contains("%|", literal=True)
        is_other = ~log.step_lines.holds(sample["line_no"]) | is_loss.to_numpy()
        others = infer(sample.filter(is_other), is_wanted=wanted_steps(log, known))
        if has_sure_steps(others):
            return others
    found = NOTHING if is_settled(log, sample, known) else infer(sample, is_wanted=wanted_steps(log, known))
    # Steps that are not wanted say nothing of what their log states.
    if found.document or log.has_settings:
        return found
    return infer_settings(sample, log.step_lines.among(sample["line_no"]))


def _confirmed(
    sample: pl.DataFrame, inference: Inference, log: Candidate, confirmed: Sequence[Dialect]
) -> tuple[Dialect, bool] | None:
    """The confirmed dialect that fits a log best, and whether it finds steps; None where none does.

    It has to find nearly all kinds of values that it knows, steps in half of the lines in which they were inferred, and
    far more than a dialect that knows the log. Of a log without steps, it has to read all settings that were inferred.
    """
    lines = frozenset(sample["line_no"])
    stated = {canonical(one.column, RUN_COLUMNS) or one.column for one in inference.columns if one.is_used}
    good: list[tuple[int, int, Dialect]] = []
    for dialect in confirmed:
        fit = dialect.fit(sample) if dialect.fit else None
        if fit is None:
            continue
        is_like = fit.wanted - fit.values <= fit.wanted // _MOST_MISSING
        inferred = len(inference.step_lines)
        has_most = 2 * len(fit.step_lines & inference.seen_lines) >= inferred
        is_ahead = not log.step_lines or len(fit.step_lines) >= FAR_MORE * len(log.step_lines.among(lines))
        if fit.step_lines and is_like and has_most and is_ahead:
            good.append((fit.values, len(fit.step_lines), dialect))
        elif not fit.step_lines and not inferred and not log.is_known and stated <= fit.settings:
            good += [(0, len(fit.settings), dialect)] if len(fit.settings) >= _LEAST_SETTINGS else []
    values, _, best = max(good, key=lambda one: one[:2], default=(0, 0, None))
    return (best, values > 0) if best else None


def infer_log(path: str, opened: Open) -> Inference:
    """What one log seems to print. Raises InputError where it cannot be read."""
    return infer(_sample(Candidate(path, opened)))


def _sample(log: Candidate) -> pl.DataFrame:
    """Lines from everywhere in a log; from its begin where a dialect knows it."""
    blocks = log_blocks.blocks(log.opened())
    return hide_frame(log_blocks.sample(itertools.islice(blocks, 1) if log.is_known else blocks))


def _read(source: int, log: Candidate, dialect: Dialect | None, sample: pl.DataFrame, *, has_steps: bool) -> Facts:
    """Facts of a log: of the whole of it, or the settings of the sample, where they alone are wanted.

    That is where a dialect knows its steps, or where nothing is known of its lines.
    """
    if dialect is None or (log.is_known and not has_steps and log.has_settings):
        return Facts.empty()
    if not has_steps and (log.is_known or dialect is _environment()):
        rows = sample.with_columns(source=pl.lit(source, pl.Int64), prefix=pl.lit(None, pl.String))
        facts = replace(Facts.empty(), settings=conform(dialect.settings(rows), SETTING_FACTS))
        return dialect.finalize(facts) if dialect.finalize else facts
    parts: list[Facts] = []
    spilled = 0
    for data, first_line in log_blocks.blocks(log.opened()):
        block = lines.split(source, data, first_line)
        parts.append(extract.read_as(dialect, block).map(hide_frame))
        if sum(part.large_bytes for part in parts[spilled:]) > SPILL_BYTES:
            parts[spilled:] = [Facts.concat(parts[spilled:]).map_large(on_disk)]
            spilled = len(parts)
            release()
    facts = Facts.concat(parts)
    return dialect.finalize(facts) if dialect.finalize else facts


def _rows(path: str, inference: Inference, *, has_steps: bool) -> pl.DataFrame:
    rows = [
        {
            "source_path": path,
            "column_name": one.column,
            "field": one.field,
            "printed_unit": one.unit or None,
            "confidence": one.confidence,
            "is_read": one.is_used,
            "grounds": one.reason,
            "line_no": one.line_no,
            "example": one.text,
        }
        for one in inference.columns
        if has_steps or one.column not in STEP_COLUMNS
    ]
    frame = pl.DataFrame(rows, schema=INFERRED_COLUMNS.polars_schema)
    return frame.unique(INFERRED_COLUMNS.primary_key, keep="first", maintain_order=True)
