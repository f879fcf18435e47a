"""Logs that no dialect knows, read by what they seem to print.

Each is read again, whole, by a dialect of its own: so a growing log gives the same rows as one that is read in one go.
"""

from __future__ import annotations

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
from sweepscope.pipeline.logs.declared.compile import compile_document
from sweepscope.pipeline.logs.engine import extract
from sweepscope.pipeline.logs.evidence.text_kinds import TextKind, kind_of
from sweepscope.pipeline.logs.facts import INFERRED, Facts
from sweepscope.pipeline.logs.inference.infer import Inference, infer
from sweepscope.pipeline.text import lines
from sweepscope.pipeline.text.secret_columns import hide_frame
from sweepscope.schemas.tables.inference import INFERRED_COLUMNS

_LOG = logging.getLogger(__name__)

Open = Callable[[], Reader | RotatedReader]


@dataclass(frozen=True)
class InferredLogs:
    """Facts of the logs that were inferred.

    Attributes:
        facts: of all of them.
        sources: of those in which steps were found.
        columns: INFERRED_COLUMNS rows.
        unread: what the others were taken for.
    """

    facts: Facts
    sources: tuple[int, ...]
    columns: pl.DataFrame
    unread: Mapping[int, TextKind]


def read_inferred(logs: Mapping[int, tuple[str, Open]], known: Facts) -> InferredLogs:
    """What the logs hold, by what each of them seems to print.

    Args:
        logs: by source, path and what opens the log anew.
        known: what dialects have read; a setting that they state is not inferred.
    """
    parts, sources, columns = [Facts.empty()], [], [INFERRED_COLUMNS.empty()]
    unread: dict[int, TextKind] = {}
    for source, (path, opened) in logs.items():
        try:
            sample, inference, facts = _inferred(source, path, opened)
        except (InputError, UsageError) as error:  # it was read a moment ago; or what was inferred is no dialect file
            event(_LOG, logging.INFO, "not_inferred", path=path, reason=str(error))
            continue
        parts.append(facts)
        if inference.has_steps:
            sources.append(source)
        else:
            unread[source] = kind_of(sample, is_named_log=is_output_name(path))
        columns.append(_rows(path, inference))
        event(_LOG, logging.DEBUG, "inferred", path=path, columns=len(inference.columns), steps=facts.steps.height)
    facts = Facts.concat(parts)
    settings = facts.settings.join(known.settings, on=["source", "name"], how="anti", maintain_order="left")
    return InferredLogs(replace(facts, settings=settings), tuple(sources), pl.concat(columns), unread)


def _inferred(source: int, path: str, opened: Open) -> tuple[pl.DataFrame, Inference, Facts]:
    """Lines of a log, what they seem to print, and what the whole log holds then. Raises LimitError."""
    reader = opened()
    with metered(path, lambda: reader.unpacked_bytes):
        sample = _sample(path, lambda: reader)
        inference = infer(sample)
        return sample, inference, _read(source, path, opened, inference)


def infer_log(path: str, opened: Open) -> Inference:
    """What one log seems to print. Raises InputError where it cannot be read."""
    return infer(_sample(path, opened))


def _sample(path: str, opened: Open) -> pl.DataFrame:
    return hide_frame(log_blocks.sample(_blocks(path, opened)))


def _read(source: int, path: str, opened: Open, inference: Inference) -> Facts:
    if inference.document is None:
        return Facts.empty()
    dialect = replace(compile_document(inference.document), name=INFERRED)
    parts = []
    for data, first_line in _blocks(path, opened):
        block = lines.split(source, data, first_line)
        parts.append(extract.read_as(dialect, block).map(hide_frame))
    facts = Facts.concat(parts)
    return dialect.finalize(facts) if dialect.finalize else facts


def _blocks(path: str, opened: Open) -> Iterator[tuple[bytes, int]]:
    reader = opened()
    holes = Holes()
    return log_blocks.blocks(text_chunks(path, holes.filled(reader.chunks())))


def _rows(path: str, inference: Inference) -> pl.DataFrame:
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
    ]
    frame = pl.DataFrame(rows, schema=INFERRED_COLUMNS.polars_schema)
    return frame.unique(INFERRED_COLUMNS.primary_key, keep="first", maintain_order=True)
