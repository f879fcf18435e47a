"""Shards read by the workers of a Dask cluster: one that runs already, or one of processes on this machine.

Dask keeps the list of what is to be done and gives it to other workers where some are lost; what a worker does with a
shard is in `dask_worker`. Dask is imported here only, and this module where a cluster is asked for: it is an extra.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any
from uuid import uuid4

import dask
import distributed as untyped_distributed

from sweepscope.pipeline.errors import SweepscopeError, WorkerError
from sweepscope.pipeline.ingest.batch import Tables
from sweepscope.pipeline.ingest.dask_worker import Task, read_task
from sweepscope.pipeline.ingest.isolate import halved
from sweepscope.pipeline.ingest.isolated_reader import ReaderDied, end_idle_readers
from sweepscope.pipeline.ingest.parser_versions import current_versions
from sweepscope.pipeline.ingest.shard import Shard
from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.io.packed_frames import PackedFrames, unpacked
from sweepscope.pipeline.store.home import Home

distributed: Any = untyped_distributed  # annotated in part only, which strict checking refuses
_LOG = logging.getLogger(__name__)

CONNECT_S = 30.0
"""How long to wait for a scheduler, and then for its first worker."""

WITHOUT_WORKERS_S = 120.0
"""How long a cluster may be without any worker: batch systems take a while to start others in place of lost ones."""

_REPLACE_S = 20.0
"""How long workers on this machine may be missing before others are started: Dask itself replaces one that is killed,
but none that is killed while it starts (distributed/nanny.py _on_worker_exit)."""

_LOOK_S = 5.0

_AHEAD = 2
"""Shards per worker that are handed out: the one that it reads and the next. Results wait, packed, on the workers."""


@contextmanager
def dask_cluster(home: Home, *, address: str = "", processes: int = 1) -> Iterator[DaskCluster]:
    """The workers of a Dask cluster.

    Args:
        home: for which they read.
        address: of a scheduler, `host:port` or as Dask writes it; "": start workers on this machine, and end them.
        processes: how many of these.

    Raises:
        WorkerError: nothing answers at the address, it has no workers, or processes cannot be started.
    """
    replace_workers: Callable[[], None] | None = None
    with ExitStack() as stack:
        try:
            if address:
                client = stack.enter_context(distributed.Client(address, timeout=CONNECT_S, set_as_default=False))
            else:
                local = stack.enter_context(_local_cluster(processes))
                replace_workers = partial(_replace_workers, local, processes)
                client = stack.enter_context(distributed.Client(local, set_as_default=False))
            client.wait_for_workers(1, timeout=CONNECT_S)
        except (OSError, TimeoutError, ValueError, RuntimeError) as error:
            what = f"The Dask cluster at {address}" if address else "A Dask cluster on this machine"
            raise WorkerError(
                f"{what} cannot be used: {_first_line(error)}. Is its scheduler running, and a worker with it?"
            ) from error
        # Gone before the client: it tells the workers to end what they have started.
        seen = stack.enter_context(tempfile.NamedTemporaryFile(prefix=".dask-", dir=home.path))
        cluster = DaskCluster(
            client,
            address or "this machine",
            seen.name,
            beside=1 if address else processes,
            replace_workers=replace_workers,
        )
        event(_LOG, logging.INFO, "dask_connected", address=address or "local", threads=cluster.number)
        try:
            yield cluster
        finally:
            with suppress(Exception):  # a cluster that is gone has none left
                client.run(end_idle_readers)


def _local_cluster(processes: int) -> Any:
    """Scheduler and workers on this machine, for this process only."""
    settings = {
        # Over files that kill their worker, one more is lost before they are read in halves, not four.
        "distributed.scheduler.allowed-failures": 1,
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
    }
    with dask.config.set(settings):
        try:
            return _start_cluster(processes)
        except RuntimeError as error:  # what a worker that is killed while it starts makes of the whole cluster
            event(_LOG, logging.WARNING, "dask_started_again", reason=_first_line(error))
            return _start_cluster(processes)


def _start_cluster(processes: int) -> Any:
    return distributed.LocalCluster(
        n_workers=processes,
        threads_per_worker=1,
        host="127.0.0.1",
        # Certificates made for this once: a scheduler runs what it is sent, and any user of this machine can reach a
        # loopback port.
        security=True,
        memory_limit=0,  # the processes that read are not the workers, and have limits of their own
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    )


def _replace_workers(cluster: Any, processes: int) -> None:
    event(_LOG, logging.WARNING, "dask_workers_replaced", processes=processes)
    cluster.scale(0)
    cluster.scale(processes)


@dataclass(frozen=True)
class DaskCluster:
    """A connected cluster.

    Attributes:
        seen: a file of the home.
        beside: reading processes that share a machine, if known.
        replace_workers: starts others in place of those that are gone; None where that is not ours to do.
    """

    client: Any
    address: str
    seen: str
    beside: int
    replace_workers: Callable[[], None] | None = None

    @property
    def number(self) -> int:
        """Tasks that it does at the same time. Raises WorkerError."""
        try:
            return max(1, int(sum(self.client.nthreads().values())))
        except (OSError, RuntimeError) as error:
            raise self._lost(error) from error

    @cached_property
    def _version(self) -> int:
        return current_versions()[""]

    def read(self, shards: Sequence[Shard]) -> Iterator[Tables]:
        """The rows of each shard, in their order; as many at a time as the workers are busy with.

        A shard over which worker after worker is lost is read in halves, down to the files that it happens with.

        Raises:
            WorkerError: the cluster is lost, or its machines have another version.
            InputError: they do not see the files. SweepscopeError: as reading does.
        """
        waiting = deque(shards)
        handed_out: deque[tuple[Shard, Any]] = deque()
        try:
            while waiting or handed_out:
                while waiting and len(handed_out) < _AHEAD * self.number:
                    shard = waiting.popleft()
                    handed_out.append((shard, self._submit(shard)))
                shard, future = handed_out[0]
                tables = self._tables(shard, future)
                handed_out.popleft()
                yield tables
        finally:
            self.client.cancel([future for _, future in handed_out])

    def _tables(self, shard: Shard, future: Any) -> Tables:
        try:
            return unpacked(self._result(future))
        except ReaderDied as error:
            return halved(
                shard.found,
                error,
                lambda part: unpacked(self._result(self._submit(replace(shard, found=part)))),
                dialects=shard.declared.dialects,
            )

    def _submit(self, shard: Shard) -> Any:
        task = Task(shard, self._version, self.seen, self.beside)
        try:
            return self.client.submit(read_task, task, key=f"sweepscope-{uuid4().hex}", pure=False)
        except (OSError, RuntimeError) as error:
            raise self._lost(error) from error

    def _result(self, future: Any) -> PackedFrames:
        """What a worker has read. Raises ReaderDied where workers were lost over it, else as `read` does."""
        try:
            self._wait(future)
            rows: PackedFrames = future.result()
            return rows
        except SweepscopeError:
            raise
        except distributed.KilledWorker as error:
            raise ReaderDied("worker after worker was lost over it; memory may have run out") from error
        except ModuleNotFoundError as error:
            raise WorkerError(
                f"A Dask worker at {self.address} cannot read: {error}. Install sweepscope there, too."
            ) from error
        except (OSError, RuntimeError, distributed.CancelledError) as error:
            raise self._lost(error) from error

    def _wait(self, future: Any) -> None:
        """Return when it is done: however long that takes, as a shard may hold gigabytes, but not without workers."""
        alone_since, are_replaced = None, False
        while True:
            try:
                with self.client.as_current():
                    distributed.wait([future], timeout=_LOOK_S)
                return
            except TimeoutError as error:
                if self.client.nthreads():
                    alone_since, are_replaced = None, False
                    continue
                alone_s = time.monotonic() - (alone_since := alone_since or time.monotonic())
                if alone_s > WITHOUT_WORKERS_S:
                    raise self._lost("it has no workers any more") from error
                if self.replace_workers and alone_s > _REPLACE_S and not are_replaced:
                    self.replace_workers()
                    are_replaced = True

    def _lost(self, why: Exception | str) -> WorkerError:
        text = why if isinstance(why, str) else _first_line(why)
        return WorkerError(
            f"The Dask cluster at {self.address} was lost: {text}. What was committed stays; run it again for the rest."
        )


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")[:200]
