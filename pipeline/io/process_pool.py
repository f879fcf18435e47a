"""Pool of processes that share tasks with this one.

Threads would wait for one another: half of the work on a block of lines holds Python's lock. This module imports the
standard library only: the processes start first and import the rest while this process does (docs/performance.md).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from multiprocessing.connection import wait
from types import TracebackType
from typing import Generic, TypeVar

from sweepscope.pipeline.io.worker_process import MAX_QUEUED, Pending, Worker, cores, function_of

Task = TypeVar("Task")
Result = TypeVar("Result")

_MAX_UNORDERED = 8
"""Results per worker that wait for an earlier one before this process waits for that one: memory stays bounded."""

MOST_BY_DEFAULT = 4
"""Each process takes memory, and a disk feeds only so many."""

CORES_PER_READER = 2
"""A process that reads run directories keeps more than one core busy: a second one on two cores would not pay."""


def default_workers(*, cores_each: int = 1) -> int:
    """Default number of processes where each keeps so many cores busy."""
    return min(MOST_BY_DEFAULT, max(1, cores() // cores_each))


class ProcessPool(Generic[Task, Result]):
    """Does tasks in `number` processes, including this one. Used in a `with` statement, which ends the others.

    Args:
        work: a function of a module, so that other processes can import it; `module:function` where this process is to
            import it only when it does a task itself. Tasks and results must be picklable.
        number: 1 starts no process.
        ahead: most tasks that another process has, including its current one. Few where tasks take long: a task once
            handed out is never taken back.

    Raises:
        WorkerError: a process could not be started, or ended before its work was done.
    """

    def __init__(self, work: Callable[[Task], Result] | str, number: int, *, ahead: int = MAX_QUEUED) -> None:
        self._named, self.number, self._ahead = work, number, min(ahead, MAX_QUEUED)
        self._workers: list[Worker] = []
        self._pending: deque[Pending] = deque()

    def __enter__(self) -> ProcessPool[Task, Result]:
        try:
            for _ in range(self.number - 1):
                self._workers.append(Worker.start(self._named, self.number))
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    @cached_property
    def _work(self) -> Callable[[Task], Result]:
        return function_of(self._named)

    def submit(self, task: Task) -> Iterator[Result]:
        """Hand out a task, or do it here; then the results that are ready, in the order of the tasks.

        Raises what the work on any of the tasks so far raised.
        """
        self._receive(timeout_s=0)
        pending = Pending()
        self._pending.append(pending)
        free = [worker for worker in self._workers if worker.is_ready and len(worker.pending) < self._ahead]
        if free:
            min(free, key=lambda worker: len(worker.pending)).submit(task, pending)
        else:
            pending.result, pending.is_done = self._work(task), True
        while len(self._pending) > _MAX_UNORDERED * self.number and not self._pending[0].is_done:
            self._receive(timeout_s=None)
        return self._results()

    def drain(self) -> Iterator[Result]:
        """The outstanding results. Raises as `submit` does."""
        while not all(pending.is_done for pending in self._pending):
            self._receive(timeout_s=None)
        return self._results()

    def map(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """The results of all tasks, in order. Raises as `submit` does."""
        for task in tasks:
            yield from self.submit(task)
        yield from self.drain()

    def _results(self) -> Iterator[Result]:
        while self._pending and self._pending[0].is_done:
            yield self._pending.popleft().result

    def _receive(self, *, timeout_s: float | None) -> None:
        ready = wait([worker.connection for worker in self._workers], timeout_s) if self._workers else []
        for worker in self._workers:
            if worker.connection in ready:
                worker.receive()

    def _stop(self) -> None:
        for worker in self._workers:
            worker.stop()
        self._workers.clear()
