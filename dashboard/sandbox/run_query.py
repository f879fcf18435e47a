"""Runs one untrusted query in a process of its own: read-only, no files, no network, bounded in every direction.

Guards inside one process are not enough: string functions allocate past DuckDB's memory limit, and COPY writes into
directories that are allowed for other reasons. So each query gets a child with hard limits, and a clock that kills it.
What the child does stands in `sandbox_worker`; pages call `run_query` and show `QueryError` as it is.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import polars as pl

from sweepscope.pipeline.errors import QueryError, StoreError

_WORKER = Path(__file__).with_name("worker.py")
_MAX_SQL_CHARACTERS = 100_000
_HEADER_ALLOWANCE_BYTES = 1 << 20
# More at once would let a few open tabs use up a login node; the next query waits for its turn.
_SLOTS = threading.BoundedSemaphore(2)
# A cluster's Python often finds its libraries only through these.
_KEPT_ENVIRONMENT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TZ")


@dataclass(frozen=True)
class Limits:
    """What one query may use. `wall_s` counts from its start, `memory_bytes` is DuckDB's own budget."""

    wall_s: float = 20.0
    memory_bytes: int = 1 << 30
    max_rows: int = 50_000
    max_bytes: int = 64 << 20
    threads: int = 2

    @property
    def address_space_bytes(self) -> int:
        """Hard ceiling of the child: its budget, room for libraries (about 0.5 GiB mapped) and for the answer."""
        return self.memory_bytes + 2 * self.max_bytes + (1 << 30)

    @property
    def cpu_s(self) -> int:
        """CPU seconds of all threads together."""
        return math.ceil(self.wall_s * self.threads) + 1


@dataclass(frozen=True)
class QueryResult:
    """Rows of one query. `truncated`: there were more than the limits let through. `seconds`: the query alone."""

    frame: pl.DataFrame
    truncated: bool
    seconds: float


def run_query(store_path: Path, sql: str, *, limits: Limits | None = None) -> QueryResult:
    """Run exactly one reading statement on the store file.

    Columns are numbers, text, booleans, dates or timestamps; anything nested or rarer comes as text. A second column
    of the same name gets `_2`.

    Raises:
        QueryError: it is not one reading statement, it failed, or it ran out of time, memory or room.
        StoreError: the store file is not there.
    """
    limits = limits or Limits()
    if len(sql) > _MAX_SQL_CHARACTERS:
        raise QueryError(f"The text is longer than {_MAX_SQL_CHARACTERS:,} characters.")
    if not store_path.is_file():
        raise StoreError(f"{store_path}: no such store. Ingest something first.")
    request = {
        "store": str(store_path.resolve()),
        "sql": sql,
        "sys_path": [os.path.abspath(entry) for entry in sys.path],
        "wall_s": limits.wall_s,
        "cpu_s": limits.cpu_s,
        "threads": limits.threads,
        "memory_bytes": limits.memory_bytes,
        "address_space_bytes": limits.address_space_bytes,
        "max_rows": limits.max_rows,
        "max_bytes": limits.max_bytes,
    }
    with _SLOTS:
        raw, exit_code = _converse(json.dumps(request).encode(), limits)
    return _read_answer(raw, exit_code, limits)


def _converse(request: bytes, limits: Limits) -> tuple[bytes, int]:
    """Start the worker, hand it the request, and return what it wrote and how it ended. Always leaves it dead."""
    environment = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
    with subprocess.Popen(  # noqa: S603 - our own interpreter and our own file
        [sys.executable, "-I", "-S", str(_WORKER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd="/",
        start_new_session=True,
    ) as process:
        requests, answers = cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout)
        try:
            with contextlib.suppress(BrokenPipeError):  # it died at once; its exit code says why
                requests.write(request)
                requests.close()
            raw = _read_until(answers, time.monotonic() + limits.wall_s, limits)
            try:
                return raw, process.wait(timeout=2)
            except subprocess.TimeoutExpired:  # it closed its pipe and then hung
                return raw, -signal.SIGKILL
        finally:
            process.kill()


def _read_until(stream: IO[bytes], deadline: float, limits: Limits) -> bytes:
    """Everything the worker writes before the deadline, refusing more than it is allowed to send."""
    ceiling = limits.max_bytes + _HEADER_ALLOWANCE_BYTES
    parts: list[bytes] = []
    size = 0
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while selector.select(max(0.0, deadline - time.monotonic())):
            part = os.read(stream.fileno(), 1 << 20)
            if not part:
                return b"".join(parts)
            parts.append(part)
            size += len(part)
            if size > ceiling:
                raise QueryError("The result is larger than it may be. Select fewer columns or aggregate.")
    raise QueryError(
        f"Stopped after {limits.wall_s:g} s, the time limit of this page. Filter earlier, or aggregate before joining."
    )


def _read_answer(raw: bytes, exit_code: int, limits: Limits) -> QueryResult:
    """The worker's bytes as a result, or the error they stand for."""
    line, _, body = raw.partition(b"\n")
    if not line:
        raise QueryError(_death_in_words(exit_code, limits))
    head = json.loads(line)
    if "error" in head:
        raise QueryError(error_in_words(head["kind"], head["error"], limits))
    frame = pl.read_ipc_stream(io.BytesIO(body))
    return QueryResult(_whole_numbers(frame), bool(head["truncated"]), float(head["seconds"]))


def _whole_numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """DuckDB's 128-bit sums as 64-bit integers, where they all fit (else they stay decimals)."""
    casts = []
    for column in frame:
        if column.dtype == pl.Decimal(38, 0):
            narrow = column.cast(pl.Int64, strict=False)
            if narrow.null_count() == column.null_count():
                casts.append(narrow)
    return frame.with_columns(casts)


def error_in_words(kind: str, message: str, limits: Limits) -> str:
    """DuckDB's error for the reader: limits and refusals in our words, mistakes in DuckDB's own.

    >>> error_in_words("Refusal", "One statement at a time.", Limits())
    'One statement at a time.'
    >>> error_in_words("PermissionException", "Cannot access file", Limits())
    'Only the tables of this store can be read here: no files, no network, no other database.'
    """
    if kind == "OutOfMemoryException" or message.startswith("Out of Memory Error"):
        return _memory_in_words(limits)
    if kind == "PermissionException":
        return "Only the tables of this store can be read here: no files, no network, no other database."
    if "read-only mode" in message:
        return "This store is read-only: a query cannot change it."
    return message.strip()


def _memory_in_words(limits: Limits) -> str:
    return (
        f"The query needs more than {limits.memory_bytes / 2**30:.3g} GiB of memory. "
        "Filter earlier, aggregate, or select fewer columns."
    )


def _death_in_words(exit_code: int, limits: Limits) -> str:
    """Why a worker died without a word: the limits of the operating system end it by signal."""
    if -exit_code in {signal.SIGXCPU, signal.SIGALRM}:
        return f"Stopped after using its processor time ({limits.cpu_s} s)."
    if -exit_code in {signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGKILL}:
        return _memory_in_words(limits)
    return f"The query's process ended without an answer (exit code {exit_code})."
