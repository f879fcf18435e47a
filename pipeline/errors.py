"""The exception hierarchy. Each message names the input and the remedy; only the command layer prints it."""

from __future__ import annotations


class SweepscopeError(Exception):
    """Base of every error that a user can correct. `exit_code` is what the command line returns."""

    exit_code = 1


class UsageError(SweepscopeError):
    """The command was given something that cannot work (a missing path, a bad option)."""

    exit_code = 2


class NothingYetError(UsageError):
    """There is nothing at a path, or no file below it: wrong for reading it now, to be waited for when watching it."""


class InputError(SweepscopeError):
    """A file or URL cannot be read or is not what it claims to be."""


class UnreadableError(InputError):
    """The system refuses to open a file, which may change; nothing is known about its content."""


class LimitError(InputError):
    """Reading a file would take more than one file may. The message has the limit and the remedy."""

    def __init__(self, message: str, path: str | None = None) -> None:
        super().__init__(f"Cannot read {path}: {message}" if path else message)
        self._is_named = path is not None

    def of(self, path: str) -> LimitError:
        """The error with the name of the file, where it has none."""
        return self if self._is_named else LimitError(str(self), path)


class StoreError(SweepscopeError):
    """The lake or the published store is missing, locked, full or damaged."""


class NoStoreError(StoreError):
    """Nothing has been published yet: the state of a fresh home, rather than damage."""


class QueryError(SweepscopeError):
    """A query was refused, failed or ran out of its limits."""


class WorkerError(SweepscopeError):
    """A process that shared the work could not be started, or ended before it was done."""


class WorkerDiedError(WorkerError):
    """Such a process ended before it was done: it was killed, ran out of memory, or crashed in native code."""
