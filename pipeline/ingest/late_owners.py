"""Large logs whose dialect shows only after many lines that any dialect may read: they are read once more, by it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import replace

from sweepscope.pipeline.errors import InputError
from sweepscope.pipeline.ingest import log_blocks
from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.engine import extract
from sweepscope.pipeline.logs.facts import Facts
from sweepscope.pipeline.text import lines
from sweepscope.pipeline.text.secret_columns import hide_frame

_LOG = logging.getLogger(__name__)


def with_late_owners(
    extracted: extract.Extract, dropped: Collection[int], opened: Callable[[int], Reader]
) -> extract.Extract:
    """`extracted` with the facts of all lines of those sources that have an owner now.

    Args:
        extracted: of a batch.
        dropped: sources of which lines were dropped while they had no owner.
        opened: opens a source anew; one that is gone by now keeps the facts of its later lines.
    """
    dialects = {dialect.name: dialect for dialect in extracted.dialects}
    readings = dict(extracted.readings)
    for source, name in extracted.dialect_of.items():
        if source not in dropped:
            continue
        try:
            whole = _read(source, dialects[name], opened(source))
        except InputError as error:  # it was read a moment ago
            event(_LOG, logging.WARNING, "not_read_again", source=source, reason=str(error))
            continue
        readings[name] = Facts.concat([readings[name].map(extract.of_sources({source}, keep=False)), whole])
    return replace(extracted, readings=readings)


def _read(source: int, dialect: Dialect, reader: Reader) -> Facts:
    return Facts.concat(
        extract.read_as(dialect, lines.split(source, data, first_line)).map(hide_frame)
        for data, first_line in log_blocks.blocks(reader)
    )
