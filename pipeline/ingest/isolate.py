"""A fault of ours costs the files that it is met with, and no others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import polars as pl

from sweepscope.pipeline.errors import SweepscopeError
from sweepscope.pipeline.ingest.batch import Tables, merge_tables
from sweepscope.pipeline.ingest.parser_versions import current_versions
from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.registry import DIALECTS
from sweepscope.schemas.registry import TABLES as SCHEMAS

_LOG = logging.getLogger(__name__)


def isolated(
    found: pl.DataFrame, parse: Callable[[pl.DataFrame], Tables], *, dialects: Sequence[Dialect] = DIALECTS
) -> Tables:
    """What `parse` gives for a batch; where it fails, for the halves of it, down to the units that it fails with.

    Those are rejected in `files`, until a reader changes. Units are what is read, and replaced, as a whole, so that the
    rows of the others are the same.

    Args:
        found: discover.FOUND rows; whole units.
        parse: as `parse_batch`.
        dialects: those that it reads with.

    Raises:
        SweepscopeError: as `parse` does; that is no fault of ours.
    """
    try:
        return parse(found)
    except SweepscopeError:
        raise
    except Exception as error:
        return halved(found, error, parse, dialects=dialects)


def halved(
    found: pl.DataFrame,
    error: Exception,
    parse: Callable[[pl.DataFrame], Tables],
    *,
    dialects: Sequence[Dialect] = DIALECTS,
) -> Tables:
    """What `isolated` gives for a batch for which `parse` has failed with `error`."""
    units = found["unit"].unique(maintain_order=True)
    if len(units) <= 1:
        event(_LOG, logging.ERROR, "reader_failed", unit=next(iter(units), None), error=repr(error)[:200])
        _LOG.debug("event=reader_failed unit=%s", next(iter(units), None), exc_info=error)
        return {**parse(found.clear()), "files": _rejected(found, error, dialects)}
    halves = units[: len(units) // 2], units[len(units) // 2 :]
    parts = (found.filter(pl.col("unit").is_in(half.implode())) for half in halves)
    return merge_tables(*(isolated(part, parse, dialects=dialects) for part in parts))


def _rejected(found: pl.DataFrame, error: Exception, dialects: Sequence[Dialect]) -> pl.DataFrame:
    """Rows of `files` for a unit that cannot be read."""
    reason = f"{type(error).__name__}: {error}".split("\n", 1)[0][:200]
    text = pl.format("Cannot read {}: its reader failed ({}). Please report it.", "path", pl.lit(reason))
    version = current_versions(dialects)[""]
    return SCHEMAS["files"].conform(found.with_columns(status=pl.lit("rejected"), error=text, parser_version=version))
