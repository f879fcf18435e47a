"""What is stated of runs whose logs do not say it, for a page: read from the home, kept there and withdrawn."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sweepscope.pipeline.errors import SweepscopeError, UsageError
from sweepscope.pipeline.ingest.statements import Stated, of_home, state
from sweepscope.pipeline.io.file_names import on_disk
from sweepscope.pipeline.logs.declared.stated_values import known_value
from sweepscope.pipeline.logs.declared.statements import Statement
from sweepscope.pipeline.store.home import Home

__all__ = ["Statement", "keep", "stated_in", "withdraw"]


def stated_in(home: Path) -> list[Statement]:
    """What a home states of runs, as far as it can be read."""
    try:
        return list(of_home(Home(home)))
    except SweepscopeError:
        return []


def keep(home: Path, folder: str, values: Mapping[str, str | int]) -> Path:
    """State values of the runs in a folder (path as the store has it, or URL). Returns the file that has them.

    Raises:
        UsageError: a value that is not known, or that its column cannot hold.
        StoreError: the home cannot be written to.
    """
    checked = {}
    for name, value in values.items():
        try:
            column, text = known_value(name, value)
        except ValueError as error:
            raise UsageError(f"{str(error).rstrip('.')}.") from error
        checked[column] = text
    found = Home.resolve(str(home))
    state(found, [on_disk(folder)], Stated(checked))
    return found.statements


def withdraw(home: Path, folder: str, name: str) -> None:
    """State nothing of a column of the runs in a folder any more. Raises StoreError."""
    state(Home.resolve(str(home)), [on_disk(folder)], Stated(withdrawn=[name]))
