"""`sweepscope query SQL`: one read-only query against the published store."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import IO

import duckdb
import polars as pl
from duckdb.sqltypes import DuckDBPyType

from sweepscope.pipeline.commands.output import say
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.errors import QueryError, UsageError
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.published import connect, current
from sweepscope.pipeline.text.json_rows import as_json

FORMATS = ("table", "csv", "json", "parquet", "arrow")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sql", metavar="SQL", help='for example: "select * from best_configs"; "-" reads standard input'
    )
    parser.add_argument("--format", choices=FORMATS, help="default: table (json with --json)")
    parser.add_argument("--out", metavar="FILE", help="write the result there instead of printing it")


def _run(args: argparse.Namespace) -> int:
    sql = sys.stdin.read() if args.sql == "-" else args.sql
    frame = run_query(Home.resolve(args.home, for_writing=False), sql)
    _write(frame, args.format or ("json" if args.json else "table"), args.out)
    return 0


def run_query(home: Home, sql: str, parameters: Mapping[str, object] | None = None) -> pl.DataFrame:
    """Rows of one query; `parameters` are the values of its `$name`s.

    Raises QueryError with DuckDB's first line, StoreError when there is no store.
    """
    connection = connect(current(home.path))
    try:
        if len(connection.extract_statements(sql)) > 1:
            raise QueryError("More than one statement. Give them one at a time.")
        relation = connection.sql(sql, params=dict(parameters)) if parameters else connection.sql(sql)
        if relation is None:
            raise QueryError("The query returns no rows. The store is read-only: ask it with SELECT.")
        return _frame(relation)
    except (duckdb.CatalogException, duckdb.BinderException) as error:  # mostly a name that there is not
        raise QueryError(
            f"The query failed: {_plain(str(error))} `show tables` and `describe runs` are queries, too; "
            "schemas/DICTIONARY.md explains every name."
        ) from error
    except duckdb.Error as error:
        raise QueryError(f"The query failed: {_plain(str(error))}") from error
    finally:
        connection.close()


def _frame(relation: duckdb.DuckDBPyRelation) -> pl.DataFrame:
    """The rows, over Arrow's C interface: `relation.pl()` imports pyarrow for the same, a quarter of a short query.

    Raises QueryError for types that polars cannot hold, at which its reader of Arrow streams panics.
    """
    if any(map(_is_beyond_polars, relation.types)):
        raise QueryError("The result has a type no table holds, such as an interval. Cast it to VARCHAR.")
    return pl.DataFrame(_ArrowStream(relation))


def _is_beyond_polars(column: object) -> bool:
    """Whether a type is an interval or a union, or has one within; labels of an enum are no types."""
    if not isinstance(column, DuckDBPyType):
        return False
    if column.id in {"interval", "union"}:
        return True
    nested = column.children if column.id in {"list", "array", "struct", "map"} else []
    return any(_is_beyond_polars(child) for _, child in nested)


class _ArrowStream:
    """A relation as Arrow's C interface alone.

    polars keeps the types that it was given to the end of the process, and DuckDB reports those of its own as leaks.
    """

    def __init__(self, relation: duckdb.DuckDBPyRelation) -> None:
        self._relation = relation

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._relation.__arrow_c_stream__(requested_schema)


def _plain(message: str) -> str:
    """DuckDB's message in one line, without the caret drawing under the query."""
    return " ".join(line.strip() for line in message.split("\n\n", maxsplit=1)[0].splitlines() if line.strip())


_BINARY = ("parquet", "arrow")


def _write_binary(frame: pl.DataFrame, form: str, out: str | IO[bytes]) -> None:
    """Parquet, or Arrow's IPC file format, which pandas, polars and R open as Feather."""
    if form == "parquet":
        frame.write_parquet(out)
    else:
        frame.write_ipc(out)


def _write(frame: pl.DataFrame, form: str, out: str | None) -> None:
    if form in _BINARY:
        if not out and sys.stdout.isatty():
            raise UsageError(f"{form.capitalize()} is binary: give --out FILE, or redirect the output.")
        _write_binary(frame, form, out or sys.stdout.buffer)
        return
    text = _text(frame, form)
    if out:
        with open(out, "w", encoding="utf-8") as handle:
            handle.write(text + "\n")
    else:
        say(text)


def _text(frame: pl.DataFrame, form: str) -> str:
    if form == "csv":
        try:
            return frame.write_csv().rstrip("\n")
        except pl.exceptions.ComputeError as error:
            raise QueryError("A csv cell holds no list or struct. Cast it to VARCHAR, or use --format json.") from error
    if form == "json":
        return as_json(frame)
    with pl.Config(
        tbl_rows=50,
        tbl_cols=-1,
        fmt_str_lengths=60,
        tbl_width_chars=200,
        tbl_hide_dataframe_shape=True,
        tbl_hide_column_data_types=True,
        tbl_formatting="UTF8_FULL_CONDENSED",
    ):
        drawn = str(frame)
        more = f"\n{frame.height:,} rows, the first and last 25 shown" if frame.height > 50 else ""
        is_wrapped = drawn.count("\n") > min(frame.height, 51) + 3  # borders, names and the line of dots
        whole = "\nCells are wrapped: name fewer columns, or use --format csv or json" if is_wrapped else ""
        return f"{drawn}{more}{whole}"


VERB = Verb(
    name="query",
    description="Run one read-only SQL query against the published store. Tables and columns: schemas/DICTIONARY.md.",
    add_arguments=_add_arguments,
    run=_run,
)
