"""The fold for nccl-tests: rows of `nccl_bench`, whose two halves NCCL's own lines may have torn apart."""

from __future__ import annotations

import math
import re

import polars as pl

from sweepscope.pipeline.nccl.bench.operation import with_inferred_operation
from sweepscope.pipeline.nccl.bench.printed_table import OPS
from sweepscope.pipeline.reference.accelerators import canonical_accelerators

_IN_MILLISECONDS = "bytes"
"""First column of old tables, whose times are in milliseconds."""
_HALF = ("time", "algbw", "busbw", "wrong")
_LINE = ["source", "line_no"]
_FIGURES = [*_LINE, "root", *_HALF, *(f"in_place_{name}" for name in _HALF)]
_UNITS = {
    "time": ("time_s", 1e-6),
    "algbw": ("algbw_bytes_per_s", 1e9),
    "busbw": ("busbw_bytes_per_s", 1e9),
    "wrong": ("wrong_elements", 1.0),
}
_BOUNDARIES = ("header", "threads", "average")
_STAMP = re.compile(r"\s\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d.*")
# Blank columns where nothing was measured out of place (writeBenchMarkLineNullBody); columns are 9 wide at most.
_LEFT_OUT = re.compile(r"(?<=\d) {24,}(?=\d)")


def bench_rows(rows: pl.DataFrame, torn: pl.DataFrame, marks: pl.DataFrame) -> pl.DataFrame:
    """Rows of `nccl_bench`, by `source`. A figure that cannot be read (masked, cut) is NULL.

    Args:
        rows: facts `bench_row`.
        torn: facts `bench_half`, the figures that were torn off a row.
        marks: facts `bench_mark`: headers, programs, devices, ends of tables.
    """
    rows = rows.sort("source", "line_no").unique(["source", "line_no"], keep="first", maintain_order=True)
    marks = marks.sort("source", "line_no", maintain_order=True)
    rows = _with_halves(rows, torn.sort("source", "line_no"))
    rows = _latest(rows, marks, "header")
    measured = [
        (source, line_no, *read_figures(figures, halves, header))
        for source, line_no, figures, halves, header in rows.select(*_LINE, "figures", "halves", "header").iter_rows()
    ]
    schema = {name: pl.Int64 if name in (*_LINE, "root") else pl.Float64 for name in _FIGURES}
    rows = rows.join(pl.DataFrame(measured, schema=schema, orient="row"), on=_LINE, maintain_order="left")
    rows = _with_devices(_latest(rows, marks, "program"), marks)
    edges = marks.filter(pl.col("mark").is_in(_BOUNDARIES)).select(*_LINE, edge=pl.int_range(pl.len()))
    rows = _after(rows, edges).with_columns(table_no=pl.col("edge").fill_null(-1).rle_id().over("source") + 1)
    shown = rows.select(
        *_LINE,
        "table_no",
        "nranks",
        "num_nodes",
        "accelerator",
        "datatype",
        "root",
        op=pl.col("program").replace_strict(OPS, default=None, return_dtype=pl.String),
        message_bytes="size",
        element_count="count",
        reduction=pl.when(pl.col("reduction") != "none").then("reduction"),
        **{
            f"{prefix}{column}": pl.col(f"{prefix}{name}") * factor
            for prefix in ("", "in_place_")
            for name, (column, factor) in _UNITS.items()
        },
    )
    return with_inferred_operation(shown.with_columns(canonical_accelerators(shown["accelerator"])))


def average_busbw(rows: pl.DataFrame, marks: pl.DataFrame) -> pl.DataFrame:
    """`source`, `bench_avg_busbw`: GB/s as printed at the end of a table, of files with one table and one such line."""
    averages = marks.filter(pl.col("mark") == "average").group_by("source").agg(pl.col("value"))
    tables = rows.group_by("source").agg(tables=pl.col("table_no").n_unique())
    found = averages.join(tables, on="source", how="left").filter(
        (pl.col("value").list.len() == 1) & (pl.col("tables").fill_null(0) <= 1)
    )
    return found.select("source", bench_avg_busbw=pl.col("value").list.first().cast(pl.Float64, strict=False))


def library_versions(marks: pl.DataFrame) -> dict[int, list[str]]:
    """Versions from `nccl-library=22902` as 2.29.2, in order of appearance, by source."""
    found: dict[int, list[str]] = {}
    libraries = marks.filter(pl.col("mark") == "library").sort("source", "line_no")
    for source, code in libraries.select("source", pl.col("value").cast(pl.Int64)).iter_rows():
        version = f"{code // 10000}.{code % 10000 // 100}.{code % 100}"
        if version not in found.setdefault(source, []):
            found[source].append(version)
    return found


def read_figures(figures: str, halves: list[str] | None, header: str | None) -> tuple[int | float | None, ...]:
    """Root, and both halves of four figures each.

    Args:
        figures: what a row has after its operation.
        halves: figures that were torn off the row, None where it is whole.
        header: of its table, None where none was printed.

    >>> read_figures("-1 1181.52 227.19 340.79 0 1188.52 225.86 338.78 0", None, None)[:5]
    (-1, 1181.52, 227.19, 340.79, 0.0)
    """
    words = _LEFT_OUT.sub(" - - - - ", _STAMP.sub("", figures)).split()
    words = words[: words.index("|")] if "|" in words else words
    has_root = "root" in header if header else len(words) % 4 == 1
    is_root = bool(words) and re.fullmatch(r"-1|\d{1,9}", words[0]) is not None and (has_root or words[0] == "-1")
    body = [_number(word) for word in words[is_root:]]
    # With per-iteration columns a half has min, max, p99 and cv after its four figures.
    width = 8 if len(body) == 16 or (header and "p99" in header) else 4
    first, then = body[:width], body[width:]
    for half in halves or []:
        values = [_number(word) for word in half.split()]
        first, then = (values, then) if len(first) < 3 else (first, values)
    factor = 1000.0 if header and header.startswith(_IN_MILLISECONDS) else 1.0
    return int(words[0]) if is_root else None, *_four(first, factor), *_four(then, factor)


def _four(values: list[float | None], factor: float) -> list[float | None]:
    """A half, its time in microseconds."""
    time, *others = [*values[:4], None, None, None, None][:4]
    return [None if time is None else time * factor, *others]


def _number(word: str) -> float | None:
    """A figure as printed; None for one that is masked, cut or not finite. `ingest.validate` judges its bounds."""
    try:
        value = float(word)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _after(rows: pl.DataFrame, marks: pl.DataFrame) -> pl.DataFrame:
    """`rows` with the columns of the last of `marks` before each, of the same file."""
    return rows.join_asof(marks, on="line_no", by="source", check_sortedness=False)


def _with_halves(rows: pl.DataFrame, torn: pl.DataFrame) -> pl.DataFrame:
    """`halves`: the first two pieces of figures between a torn row and the row after it."""
    torn_rows = rows.with_columns(until=pl.col("line_no").shift(-1).over("source")).filter("is_torn")
    found = _after(torn, torn_rows.select("source", "line_no", "until", row=pl.col("line_no")))
    found = found.filter(pl.col("row").is_not_null() & (pl.col("line_no") < pl.col("until").fill_null(1 << 62)))
    halves = found.group_by("source", line_no="row", maintain_order=True).agg(halves=pl.col("figures").head(2))
    return rows.join(halves, on=_LINE, how="left", maintain_order="left")


def _latest(rows: pl.DataFrame, marks: pl.DataFrame, mark: str) -> pl.DataFrame:
    """`rows` with the value of the last such mark before each."""
    return _after(rows, marks.filter(pl.col("mark") == mark).select(*_LINE, pl.col("value").alias(mark)))


def _with_devices(rows: pl.DataFrame, marks: pl.DataFrame) -> pl.DataFrame:
    """Ranks and hosts of the last list of devices before each row, or as they were counted (`ranks`: `16 2`).

    A list that lacks some of its lines has as many ranks as its last one says; their hosts are then unknown.
    """
    listed = marks.filter(pl.col("mark") == "rank").with_columns(
        rank=pl.col("value").str.extract(r"^(\d+)").cast(pl.Int64),
        host=pl.col("value").str.extract(r"^\d+ (\S+)"),
        card=pl.col("value").str.extract(r"^\d+ \S+ (.+)$"),
    )
    # Rank 0 begins a new list.
    lists = (
        listed.with_columns(number=(pl.col("rank") == 0).cum_sum().over("source"))
        .group_by("source", "number")
        .agg(
            pl.col("line_no").max(),
            nranks=pl.col("rank").max() + 1,
            num_nodes=pl.when(pl.col("rank").n_unique() == pl.col("rank").max() + 1).then(pl.col("host").n_unique()),
            accelerator=pl.when(pl.col("card").n_unique() == 1).then(pl.col("card").first()),  # mixed: none
        )
        .sort(_LINE)
        .select(*_LINE, pl.col("nranks", "num_nodes").cast(pl.Int64), "accelerator")
    )
    counted = marks.filter(pl.col("mark") == "ranks").select(
        *_LINE,
        nranks=pl.col("value").str.extract(r"^(\d+)").cast(pl.Int64),
        num_nodes=pl.col("value").str.extract(r" (\d+)$").cast(pl.Int64),
        accelerator=pl.lit(None, pl.String),
    )
    return _after(rows, pl.concat([lists, counted]).sort(_LINE, maintain_order=True))
