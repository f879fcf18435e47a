"""Result of one untrusted query, run in a sandbox: read-only, no files, no network, bounded in every direction.

Guards inside one process are not enough: string functions allocate past DuckDB's memory limit, and COPY writes into
directories that are allowed for other reasons. So each query gets a child with hard limits (`pipeline.io.sandbox`),
in which `worker` runs; pages call `run_query` and show the message of `QueryError`.
"""

from __future__ import annotations

import io
import json
import math
import signal
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from sweepscope.pipeline.errors import QueryError, StoreError
from sweepscope.pipeline.io.sandbox import Answer, ProcessLimits, Sandbox, Stop

_MAX_SQL_CHARACTERS = 100_000
_HEADER_ALLOWANCE_BYTES = 1 << 20
STOPPED = "The query was cancelled."
_SANDBOX = Sandbox("sweepscope.dashboard.sandbox.worker:answer_query", kept=["TZ"])


@dataclass(frozen=True)
class Limits:
    """Limits of one query. `wall_s` counts from its start, `memory_bytes` is DuckDB's own budget."""

    wall_s: float = 20.0
    memory_bytes: int = 1 << 30
    max_rows: int = 50_000
    max_bytes: int = 64 << 20
    threads: int = 2
    niceness: int = 10  # pages, and other users of a login node, go first

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
    """Rows of one query. `truncated`: there were more than the limits allow. `seconds`: the query alone."""

    frame: pl.DataFrame
    truncated: bool
    seconds: float


def run_query(store_path: Path, sql: str, *, limits: Limits | None = None, stop: Stop | None = None) -> QueryResult:
    """Rows of exactly one reading statement on the store file; `stop` ends it from another thread.

    Columns are numbers, text, booleans, dates or timestamps; anything nested or rarer comes as text. A second column
    of the same name gets `_2`.

    Raises:
        QueryError: it is not one reading statement, it failed, was stopped, or ran out of time, memory or room.
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
        "threads": limits.threads,
        "memory_bytes": limits.memory_bytes,
        "max_rows": limits.max_rows,
        "max_bytes": limits.max_bytes,
    }
    ceiling = limits.max_bytes + _HEADER_ALLOWANCE_BYTES
    allowed = ProcessLimits(limits.address_space_bytes, limits.cpu_s, limits.wall_s, niceness=limits.niceness)
    stop = stop or Stop()
    answer = _SANDBOX.run([json.dumps(request).encode()], allowed, answer_bytes=ceiling, stop=stop)
    if stop.is_asked:
        raise QueryError(STOPPED)
    if len(answer.raw) > ceiling:
        raise QueryError("The result is larger than it may be. Select fewer columns or aggregate.")
    return _result(answer, limits)


def _result(answer: Answer, limits: Limits) -> QueryResult:
    """The worker's answer as a result. Raises QueryError for its message, or for the reason of its death."""
    if answer.was_late and answer.exit_code:
        raise QueryError(
            f"Stopped after {limits.wall_s:g} s, the time limit of this page. "
            "Filter earlier, or aggregate before joining."
        )
    line, _, body = answer.raw.partition(b"\n")
    if not line:
        raise QueryError(_reason_of_death(answer.exit_code, limits))
    head = json.loads(line)
    if "error" in head:
        raise QueryError(error_message(head["kind"], head["error"], limits))
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


def error_message(kind: str, message: str, limits: Limits) -> str:
    """Message for the page: limits and refusals in our words, mistakes in DuckDB's.

    >>> error_message("Refusal", "One statement at a time.", Limits())
    'One statement at a time.'
    >>> error_message("PermissionException", "Cannot access file", Limits())
    'Only the tables of this store can be read here: no files, no network, no other database.'
    """
    if kind == "OutOfMemoryException" or message.startswith("Out of Memory Error"):
        return _memory_message(limits)
    if kind == "PermissionException":
        return "Only the tables of this store can be read here: no files, no network, no other database."
    if "read-only mode" in message:
        return "This store is read-only: a query cannot change it."
    return message.strip()


def _memory_message(limits: Limits) -> str:
    return (
        f"The query needs more than {limits.memory_bytes / 2**30:.3g} GiB of memory. "
        "Filter earlier, aggregate, or select fewer columns."
    )


def _reason_of_death(exit_code: int, limits: Limits) -> str:
    """Why a worker died without an answer: the limits of the operating system end it by signal."""
    if -exit_code in {signal.SIGXCPU, signal.SIGALRM}:
        return f"Stopped after using its processor time ({limits.cpu_s} s)."
    if -exit_code in {signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGKILL}:
        return _memory_message(limits)
    return f"The query's process ended without an answer (exit code {exit_code})."
