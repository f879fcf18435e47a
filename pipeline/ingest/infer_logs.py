"""Logs that no dialect knows, read by what they seem to print.

Each is read again, whole, by a dialect of its own: so a growing log gives the same rows as one that is read in one go.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import polars as pl

from sweepscope.pipeline.errors import InputError, UsageError
from sweepscope.pipeline.ingest import log_blocks
from sweepscope.pipeline.ingest.unread_logs import is_output_name
from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.io.meter import metered
from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.io.rotated import RotatedReader
from sweepscope.pipeline.io.text_encoding import Holes, text_chunks
from sweepscope.pipeline.logs.declared.columns import STEP_COLUMNS
from sweepscope.pipeline.logs.declared.compile import compile_document
from sweepscope.pipeline.logs.engine import extract
from sweepscope.pipeline.logs.evidence.text_kinds import TextKind, kind_of
from sweepscope.pipeline.logs.facts import INFERRED, SETTING_FACTS, Facts, conform
from sweepscope.pipeline.logs.inference.columns import HIGH
from sweepscope.pipeline.logs.inference.infer import Inference, infer
from sweepscope.pipeline.text import lines
from sweepscope.pipeline.text.secret_columns import hide_frame
from sweepscope.schemas.tables.inference import INFERRED_COLUMNS

_LOG = logging.getLogger(__name__)

_FAR_MORE = 3

Open = Callable[[], Reader | RotatedReader]


@dataclass(frozen=True)
class Candidate:
    """A log that may have to be inferred.

    Attributes:
        path: its name.
        opened: opens it anew.
        step_lines: lines in which a dialect has found steps.
        is_known: a dialect knows the log: only far more steps than it has found put another reading in its place.
        is_doubtful: it holds no more than one text by which that dialect is known.
        has_settings: whether settings are not needed: a dialect has found some, or the log may have been cut before
            the lines that it would read.
    """

    path: str
    opened: Open
    step_lines: frozenset[int] = frozenset()
    is_known: bool = False
    is_doubtful: bool = False
    has_settings: bool = False


@dataclass(frozen=True)
class InferredLogs:
    """Facts of the logs that were inferred.

    Attributes:
        facts: of all of them.
        sources: of those in which steps were found.
        columns: INFERRED_COLUMNS rows.
        unread: what those without any step were taken for.
    """

    facts: Facts
    sources: tuple[int, ...]
    columns: pl.DataFrame
    unread: Mapping[int, TextKind]


def read_inferred(logs: Mapping[int, Candidate], known: Facts) -> InferredLogs:
    """What the logs hold, by what each of them seems to print.

    Args:
        logs: by source.
        known: what dialects have read; a setting that they state is not inferred.
    """
    parts, sources, columns = [Facts.empty()], [], [INFERRED_COLUMNS.empty()]
    unread: dict[int, TextKind] = {}
    for source, log in logs.items():
        try:
            sample, inference, is_better, facts = _inferred(source, log)
        except (InputError, UsageError) as error:  # it was read a moment ago; or what was inferred is no dialect file
            event(_LOG, logging.INFO, "not_inferred", path=log.path, reason=str(error))
            continue
        parts.append(facts)
        if is_better:
            sources.append(source)
        elif not log.is_known:
            unread[source] = kind_of(sample, is_named_log=is_output_name(log.path))
        if is_better or not log.has_settings:
            columns.append(_rows(log.path, inference, has_steps=is_better))
        event(_LOG, logging.DEBUG, "inferred", path=log.path, columns=len(inference.columns), steps=facts.steps.height)
    facts = Facts.concat(parts)
    settings = facts.settings.join(known.settings, on=["source", "name"], how="anti", maintain_order="left")
    return InferredLogs(replace(facts, settings=settings), tuple(sources), pl.concat(columns), unread)


def _inferred(source: int, log: Candidate) -> tuple[pl.DataFrame, Inference, bool, Facts]:
    """Lines of a log, what they seem to print, whether that is better than what is known, and what the log holds then.

    Raises LimitError.
    """
    reader = log.opened()
    with metered(log.path, lambda: reader.unpacked_bytes):
        sample = _sample(replace(log, opened=lambda: reader))
        inference = infer(sample)
        is_better = inference.has_steps and _knows_more(inference, log)
        return sample, inference, is_better, _read(source, log, inference, sample, has_steps=is_better)


def _knows_more(inference: Inference, log: Candidate) -> bool:
    """Whether far more steps were inferred than a dialect has found in the same lines, and it is the one in doubt."""
    if not log.is_known or not log.step_lines:
        return True
    sure = {one.column for one in inference.columns if one.is_used and one.confidence == HIGH}
    found = len(log.step_lines & inference.seen_lines)
    is_sure = log.is_doubtful or {"step", "loss"} <= sure
    return is_sure and len(inference.step_lines) >= _FAR_MORE * max(found, 1)


def infer_log(path: str, opened: Open) -> Inference:
    """What one log seems to print. Raises InputError where it cannot be read."""
    return infer(_sample(Candidate(path, opened)))


def _sample(log: Candidate) -> pl.DataFrame:
    """Lines from everywhere in a log; from its begin where a dialect knows it."""
    blocks = _blocks(log)
    return hide_frame(log_blocks.sample(itertools.islice(blocks, 1) if log.is_known else blocks))


def _read(source: int, log: Candidate, inference: Inference, sample: pl.DataFrame, *, has_steps: bool) -> Facts:
    """Facts of a log: of the whole of it, or, where a dialect knows its steps, the settings of the sample."""
    if inference.document is None or (log.is_known and not has_steps and log.has_settings):
        return Facts.empty()
    dialect = replace(compile_document(inference.document), name=INFERRED)
    if log.is_known and not has_steps:
        rows = sample.with_columns(source=pl.lit(source, pl.Int64), prefix=pl.lit(None, pl.String))
        return replace(Facts.empty(), settings=conform(dialect.settings(rows), SETTING_FACTS))
    parts = []
    for data, first_line in _blocks(log):
        block = lines.split(source, data, first_line)
        parts.append(extract.read_as(dialect, block).map(hide_frame))
    facts = Facts.concat(parts)
    return dialect.finalize(facts) if dialect.finalize else facts


def _blocks(log: Candidate) -> Iterator[tuple[bytes, int]]:
    reader = log.opened()
    holes = Holes()
    return log_blocks.blocks(text_chunks(log.path, holes.filled(reader.chunks())))


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
