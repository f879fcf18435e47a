"""Data health: what became of every file, why lines were rejected, and which versions made this store."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import streamlit as st

from sweepscope.dashboard.app import shell
from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.symbols import FILE_STATUS, STATUS
from sweepscope.dashboard.queries import health as queries
from sweepscope.dashboard.sections import inferred_logs, stated_editor
from sweepscope.dashboard.text import health as texts
from sweepscope.dashboard.widgets import basic, folds, lists, tables
from sweepscope.pipeline.store import published as store_versions

TITLE = "Data health"
_FILES = (
    *("status", "kind", "parser", "files", "size", "rows_parsed", "lines_rejected", "secrets_hidden"),
    *("error", "advice", "example"),
)
_SELDOM = ("secrets_hidden", "error", "advice")  # left out where no file has a value in them

_FILES_HEIGHT = 292  # px: eight kinds of files


def _page(view: View) -> None:
    con = view.store.con
    summary = queries.summary().run(con).row(0, named=True)
    basic.head(TITLE, texts.answer(summary), _store_line(view, summary))
    with st.container(horizontal=True):
        shell.share_popover()
        basic.sql_popover({"Files": queries.files(), "Rejects": queries.reject_reasons()})
    _draw_files(view)
    stated_editor.draw(view)
    inferred_logs.draw(view)
    _draw_rejects(view)
    _draw_origins(view)
    folds.fold("Parsers: the version that read each file", lambda: _draw_parsers(view), key="parsers")
    folds.fold(f"Store: rows per table, {view.store.path}", lambda: _draw_store(view), key="store")


def _store_line(view: View, summary: dict[str, object]) -> str:
    parts = [f"Store version {view.store.version}, published {numbers.moment(view.store.published_at)} UTC"]
    newest = summary["newest_mtime_s"]
    if isinstance(newest, float):
        parts.append(f"newest file {numbers.moment(datetime.fromtimestamp(newest, UTC))} UTC")
    if summary["batches"]:
        parts.append(numbers.count(int(str(summary["batches"])), "ingest batch", "ingest batches"))
    return " · ".join(parts)


def _draw_files(view: View) -> None:
    basic.section("Files", "by kind and what became of them")
    files = queries.files().run(view.store.con)
    if files.is_empty():
        basic.empty("No file is in the ledger. Run **sweepscope ingest PATH**.")
        return
    symbols = {word: mark.text for word, mark in FILE_STATUS.items()}
    shown = files.with_columns(
        status=pl.col("status").replace_strict(symbols, default=pl.col("status")),
        size=pl.Series([texts.size(size) for size in files["bytes"]], dtype=pl.String),
        advice=pl.Series([texts.file_remedy(row) or None for row in files.iter_rows(named=True)], dtype=pl.String),
    )
    columns = [name for name in _FILES if name not in _SELDOM or shown[name].count()]
    tables.table(shown, columns, wide=("reason", "advice", "example"), height=_FILES_HEIGHT)
    tables.csv_later(queries.file_list(), view.store.con, "files", rows=int(files["files"].sum()))


def _draw_rejects(view: View) -> None:
    reasons = queries.reject_reasons().run(view.store.con)
    total = int(reasons["rejects"].sum()) if reasons.height else 0
    basic.section("Rejects", numbers.count(total, "line or row", "lines or rows") if total else "none")
    if reasons.is_empty():
        return
    tables.table(reasons, ("reason", "table", "column", "rejects", "files"), wide=("reason",))
    names = list(dict.fromkeys(reasons["reason"]))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        reason = st.selectbox("Lines rejected because", names, key="reason", width=520)
        tables.csv_later(queries.all_rejects(), view.store.con, "rejects", rows=total)
    chosen = reason or names[0]
    # the remedy in full, where a column of sentences would be cut
    for table in reasons.filter(pl.col("reason") == chosen)["table"].unique(maintain_order=True):
        basic.note(f"**What to do.** {texts.reject_remedy(chosen, table)}")
    lines = queries.rejects(chosen).run(view.store.con)
    tables.table(lines, ("file", "line_no", "column", "raw", "reason"), wide=("raw",))
    if lines.height == queries.REJECTS_SHOWN:
        basic.note(f"The first {numbers.number(lines.height)}; the CSV holds all.")


def _draw_origins(view: View) -> None:
    basic.section("Runs", "by origin and outcome")
    for (origin,), rows in queries.origins().run(view.store.con).group_by("origin", maintain_order=True):
        total = texts.runs_of_origin(int(rows["runs"].sum()), rows["copies"][0])
        outcomes = ", ".join(
            f"{numbers.number(row['runs'])} {STATUS[row['status']].word}" for row in rows.iter_rows(named=True)
        )
        lists.rows([(basic.badge(str(origin)) + basic.rich(total), basic.rich(outcomes))])


def _draw_parsers(view: View) -> None:
    parsers = queries.parsers().run(view.store.con)
    rows = [
        (basic.rich(texts.parser_name(row)), basic.rich(numbers.count(row["files"], "file") + texts.parser_note(row)))
        for row in parsers.iter_rows(named=True)
    ]
    lists.rows(rows)


def _draw_store(view: View) -> None:
    counts = queries.row_counts().run(view.store.con)
    filled = counts.filter(pl.col("rows") > 0)
    lists.rows([(basic.rich(row["table_name"]), numbers.number(row["rows"])) for row in filled.iter_rows(named=True)])
    basic.note(texts.empty_tables(counts.filter(pl.col("rows") == 0)["table_name"].to_list()))
    kept = store_versions.versions(view.store.path.parent.parent)
    basic.note(texts.versions([(file.version, file.bytes, file.is_current) for file in kept]))


_page(shell.begin())
