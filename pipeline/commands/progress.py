"""A progress bar on stderr; nothing where stderr is no terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)


@dataclass
class FileProgress:
    """A bar of the bytes read."""

    bar: Progress
    task: TaskID

    def plan(self, what: str, amount: int) -> None:
        """Set the total, when `what` is "bytes"."""
        if what == "bytes":
            self.bar.update(self.task, total=amount)

    def advance(self, _path: str, size: int) -> None:
        """Add the size of a file that was read."""
        self.bar.advance(self.task, size)


@contextmanager
def file_progress(label: str) -> Iterator[FileProgress]:
    """Show progress while the block runs."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        yield FileProgress(bar, bar.add_task(label, total=None))
