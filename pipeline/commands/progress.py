"""A progress bar on stderr; nothing where stderr is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


@dataclass
class FileProgress:
    """A bar of the bytes read; None where none is shown."""

    bar: tuple[Progress, TaskID] | None = None

    def plan(self, what: str, amount: int) -> None:
        """Set the total, when `what` is "bytes"."""
        if self.bar and what == "bytes":
            bar, task = self.bar
            bar.update(task, total=amount)

    def advance(self, _path: str, size: int) -> None:
        """Add the size of a file that was read."""
        if self.bar:
            bar, task = self.bar
            bar.advance(task, size)


@contextmanager
def file_progress(label: str) -> Iterator[FileProgress]:
    """Show progress while the block runs."""
    if not sys.stderr.isatty():
        yield FileProgress()
        return
    # Late: importing it takes longer than a small command has to do, and most of those have no terminal.
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield FileProgress((bar, bar.add_task(label, total=None)))
