"""Child side of the SQL sandbox: runs one statement on the store and writes its rows.

Imports nothing of ours, so that it starts fast and holds nothing worth reading; DuckDB is imported within the limits.
Request: one JSON object. Answer: one line of JSON, then, unless that is an error, an Arrow IPC stream.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb

# Types that polars, CSV and Parquet share; any other is sent as the text that DuckDB prints for it.
_PLAIN_TYPES = re.compile(
    r"U?(TINY|SMALL|BIG)?INT(EGER)?|HUGEINT|FLOAT|DOUBLE|DECIMAL\(.*\)|VARCHAR|BOOLEAN|DATE|TIMESTAMP"
)
_EXPLAIN = re.compile(r"\s*explain\b(\s+analyze\b)?(\s*\([^()]*\))?", re.IGNORECASE)
_BATCH_ROWS = 1024


class Refusal(Exception):
    """The text is not one reading statement; the message is for the user."""


def one_reading_statement(sql: str) -> duckdb.Statement:
    """The single SELECT-like statement in `sql`.

    DESCRIBE, SUMMARIZE, SHOW, VALUES, FROM and WITH parse as SELECT. EXPLAIN carries any statement, so what it
    explains is parsed on its own and must be a SELECT too.

    Raises Refusal, or duckdb.ParserException when it is not SQL.
    """
    import duckdb

    statements = duckdb.extract_statements(sql)
    if not statements:
        raise Refusal("There is no statement to run.")
    if len(statements) > 1:
        raise Refusal(f"One statement at a time: this text holds {len(statements)}.")
    statement = statements[0]
    kind = statement.type
    if kind == duckdb.StatementType.EXPLAIN:
        explained = _EXPLAIN.match(sql)
        if explained is None:
            raise Refusal("EXPLAIN has to be the first word here.")
        one_reading_statement(sql[explained.end() :])
    elif kind == duckdb.StatementType.MULTI:
        raise Refusal("PIVOT on its own runs as several statements. Write SELECT * FROM (PIVOT ...) with an IN list.")
    elif kind != duckdb.StatementType.SELECT:
        name = str(kind).rpartition(".")[2]
        raise Refusal(f"Only a query that reads can run here (SELECT, WITH, DESCRIBE, EXPLAIN ...); this is {name}.")
    return statement


def open_store(path: str, request: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    """Open the store read-only with no way out: no files, no extensions, no Python objects, no settings."""
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {
        "enable_external_access": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "python_enable_replacements": "false",  # else FROM sees variables of this file as tables
        "memory_limit": f"{request['memory_bytes']}B",
        "temp_directory": "",
        "threads": str(request["threads"]),
        "lock_configuration": "true",
    }
    return duckdb.connect(path, read_only=True, config=config)


def portable_columns(relation: duckdb.DuckDBPyRelation) -> str:
    """A projection with unique names and types that travel; `#n` names the nth column whatever it is called."""
    seen: dict[str, int] = {}
    parts = []
    for position, (name, dtype) in enumerate(zip(relation.columns, relation.types, strict=True), start=1):
        copies = seen[name.lower()] = seen.get(name.lower(), 0) + 1
        alias = (name if copies == 1 else f"{name}_{copies}").replace('"', '""')
        value = f"#{position}" if _PLAIN_TYPES.fullmatch(str(dtype)) else f"CAST(#{position} AS VARCHAR)"
        parts.append(f'{value} AS "{alias}"')
    return ", ".join(parts)


def answer(request: dict[str, Any], out: IO[bytes]) -> None:
    """Run the request and write the answer, holding at most `max_rows` rows and `max_bytes` bytes of it."""
    import pyarrow as pa

    statement = one_reading_statement(request["sql"])
    connection = open_store(request["store"], request)
    started = time.perf_counter()
    relation = connection.sql(statement)
    if relation is None:
        raise Refusal("This statement returns no rows.")
    relation = relation.project(portable_columns(relation))
    reader = relation.to_arrow_reader(_BATCH_ROWS)
    batches, rows, size, truncated = [], 0, 0, False
    for batch in reader:
        room = request["max_rows"] - rows
        # nbytes is known only after the batch exists; one batch over the limit is dropped, not sent
        if room <= 0 or size + batch.nbytes > request["max_bytes"]:
            truncated = True
            break
        truncated = batch.num_rows > room
        batches.append(batch.slice(0, room))
        rows, size = rows + min(batch.num_rows, room), size + batch.nbytes
        if truncated:
            break
    sink = pa.BufferOutputStream()  # complete before the first byte leaves: an error must stay a line of its own
    with pa.ipc.new_stream(sink, reader.schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    head = {"truncated": truncated, "seconds": time.perf_counter() - started}
    out.write(json.dumps(head).encode() + b"\n")
    out.write(sink.getvalue())


def answer_query(source: IO[bytes], out: IO[bytes]) -> None:
    """Read the request, write the answer, and turn every failure into a line of JSON."""
    failure: dict[str, str] | None = None
    try:
        answer(json.loads(source.read()), out)
    except MemoryError:
        failure = {"kind": "OutOfMemoryException", "error": "out of memory"}
    except Exception as error:  # the page shows it to the author of the query
        failure = {"kind": type(error).__name__, "error": str(error)[:4000]}
    if failure:
        out.write(json.dumps(failure).encode() + b"\n")
    with contextlib.suppress(BrokenPipeError):
        out.flush()
