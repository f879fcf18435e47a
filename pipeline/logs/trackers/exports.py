"""Tables of trackers as CSV: those that W&B exports, those of Aim's metrics, and any with a row for each value."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator

import polars as pl

from sweepscope.pipeline.logs.trackers import aim_exports, long_tables, wandb_exports
from sweepscope.pipeline.logs.trackers.tracked_run import TrackedRun


def is_export(head: str, name: str = "") -> bool:
    """Whether a text begins with the header of such a table; `name` is that of its file, without suffix."""
    return _form(_header(head), name) is not None


def is_table_of_runs(head: str) -> bool:
    """Whether a text begins with the header of W&B's table of runs, which is one of results, too, if it has layouts."""
    return wandb_exports.is_of_runs(_header(head))


def read_csv(text: str, name: str) -> list[TrackedRun]:
    """The runs of a table.

    Args:
        text: CSV.
        name: of the file without suffix, and of a run that the table does not name.

    Raises:
        ValueError: another table, or a damaged one.
    """
    read = _form(_header(text), name)
    if read is None:
        raise ValueError("not a table that a tracker exports")
    try:
        table = pl.read_csv(io.BytesIO(text.encode()), infer_schema=False)
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"a damaged table: {str(error).splitlines()[0]}") from error
    return list(read(table, name))


def _header(text: str) -> list[str]:
    return next(csv.reader([text.split("\n", 1)[0].removeprefix("\ufeff").rstrip("\r")]), [])


def _form(header: list[str], name: str) -> Callable[[pl.DataFrame, str], Iterator[TrackedRun]] | None:
    if aim_exports.is_export(header):
        return lambda table, _name: aim_exports.read(table)
    return wandb_exports.form_of(header) or (long_tables.read if long_tables.is_long(header, name) else None)
