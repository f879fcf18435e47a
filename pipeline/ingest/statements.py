"""What is stated of the files that an ingest finds: by the home, and by files named `sweepscope.toml` beside or above.

It is resolved when files are found, and the ledger keeps it, so that a run is read again once something else is stated
of it. Statements hold beside what logs say: `pipeline.logs.runs.settings` decides which value counts.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from sweepscope.pipeline.errors import InputError, UsageError
from sweepscope.pipeline.io.bounded import text_of as text_of_file
from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.io.file_names import on_disk, printable
from sweepscope.pipeline.io.files import canonical as canonical_path
from sweepscope.pipeline.io.files import exists
from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.io.remote import is_url
from sweepscope.pipeline.logs.declared.columns import canonical, suggestion
from sweepscope.pipeline.logs.declared.stated_values import STATABLE, from_text
from sweepscope.pipeline.logs.declared.statements import NAME, Statement, read_statements, text_of
from sweepscope.pipeline.logs.declared.toml_reader import MAX_BYTES
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.runs.stated import STATED
from sweepscope.pipeline.store.durable_files import reading, storing, write_over
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lock import exclusive

_LOG = logging.getLogger(__name__)

_WITH_RUNS = ("log", "history", "bench_csv", "tracker")
"""Kinds of files whose rows may be runs."""


def of_home(home: Home) -> tuple[Statement, ...]:
    """What is stated in a home. Raises UsageError for a file that somebody has damaged, StoreError."""
    path = home.statements
    if not path.exists():
        return ()
    with reading(path, UnicodeDecodeError, remedy="Mend it, or move it away"):
        text = path.read_text(encoding="utf-8")
    return read_statements(text, str(path))


@dataclass(frozen=True)
class Stated:
    """What is to be stated of the runs at some paths, and what is withdrawn; the values are checked."""

    values: Mapping[str, str] = field(default_factory=dict)
    withdrawn: Collection[str] = ()
    is_override: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether it changes nothing."""
        return not self.values and not self.withdrawn


def state(home: Home, paths: Sequence[str], change: Stated) -> None:
    """Keep, for this and every later ingest, what is stated of the runs at some paths: files, directories and URLs.

    Raises StoreError, and UsageError where the home's file is damaged.
    """
    with storing(home.path, "keep statements in"), exclusive(home.stated / "index.lock", "keeping what is stated"):
        known = {one.scope: one for one in of_home(home)}
        for path in paths:
            folder = printable(canonical_path(path)).rstrip("/")
            for is_override in (False, True):
                scope = (folder, "", is_override)
                before = known.pop(scope).values if scope in known else {}
                # Of two statements about one value the later one counts, whichever of them overrides.
                gone = {*change.withdrawn, *change.values}
                after = {name: text for name, text in before.items() if name not in gone}
                after |= change.values if is_override == change.is_override else {}
                if after:
                    known[scope] = Statement(folder, after, is_override=is_override, is_of_home=True)
        write_over(home.statements, text_of(list(known.values())))


def checked(given: Sequence[str]) -> dict[str, str]:
    """Columns and values of arguments such as `cluster=alps`. Raises UsageError naming the argument and the remedy."""
    found: dict[str, str] = {}
    for text in given:
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            raise UsageError(f"--set {text}: what is stated? Write --set NAME=VALUE, such as --set cluster=alps.")
        try:
            column, known = from_text(name.strip(), value.strip())
        except ValueError as error:
            raise UsageError(
                f"--set {text}: {str(error).rstrip('.')}{'' if str(error)[-1] in '?)' else '.'}"
            ) from error
        if found.setdefault(column, known) != known:
            raise UsageError(f"--set states two values of {column}: {found[column]} and {known}. Give one.")
    return found


def checked_names(names: Sequence[str]) -> list[str]:
    """Columns that may be stated, of arguments that name them. Raises UsageError naming the argument."""
    found = []
    for name in names:
        if (column := canonical(name.strip(), STATABLE)) is None:
            raise UsageError(f"--unset {name}: no column that may be stated. {suggestion(name, STATABLE)}")
        found.append(column)
    return found


def with_stated(found: pl.DataFrame, statements: Sequence[Statement], *, are_watched: bool = False) -> pl.DataFrame:
    """`found` (discover.FOUND) with `stated`: what holds for each file, as JSON; NULL where nothing is stated.

    Args:
        found: files of any kind.
        statements: of the home.
        are_watched: a damaged `sweepscope.toml` states nothing, rather than that nothing is read; the ledger has why.

    Raises UsageError for a damaged one, naming file, line and remedy.
    """
    every = (*statements, *_beside(found["path"], are_watched=are_watched))
    if not every:
        return found.with_columns(stated=pl.lit(None, pl.String))
    files = zip(found["path"], found["part_of"], found["kind"], strict=True)
    stated = [resolved(every, log or path) if kind in _WITH_RUNS else None for path, log, kind in files]
    return found.with_columns(pl.Series("stated", stated, dtype=pl.String))


def resolved(statements: Iterable[Statement], path: str) -> str | None:
    """What is stated of a file, as JSON: column, value, whether it overrides, file; the nearest statement counts."""
    best: dict[tuple[str, bool], tuple[tuple[object, ...], str, str]] = {}
    for one in statements:
        if one.holds_for(path):
            names = [part for part in one.match.split("/") if part not in ("", "**")]
            rank = (one.folder.count("/"), one.is_of_home, len(names), len(one.match), one.match, one.file)
            for name, value in one.values.items():
                key = (name, one.is_override)
                if key not in best or best[key][0] < rank:
                    best[key] = (rank, value, one.file)
    rows = sorted((name, value, is_override, file) for (name, is_override), (_, value, file) in best.items())
    return json.dumps(rows, ensure_ascii=False) if rows else None


def stated_rows(sources: pl.DataFrame, dialects: Sequence[Dialect]) -> pl.DataFrame:
    """STATED rows of a batch: what is stated of its files, and the constants of dialect files for logs in a folder.

    Args:
        sources: `source`, `path`, `dialect` and, where anything is, `stated` of each file.
        dialects: those that the files were read with.
    """
    rows: list[tuple[object, ...]] = []
    stated = pl.col("stated") if "stated" in sources.columns else pl.lit(None, pl.String).alias("stated")
    for source, text in sources.select("source", stated).drop_nulls().iter_rows():
        for name, value, is_override, file in json.loads(text):
            rows.append((source, name, value, "stated_override" if is_override else "stated", file))
    constants = {
        dialect.name: tuple(Statement(folder, values) for folder, values in dialect.constants)
        for dialect in dialects
        if dialect.constants
    }
    for source, path, name in sources.select("source", "path", "dialect").iter_rows():
        for column, value, _, _ in json.loads(resolved(constants.get(name, ()), path) or "[]"):
            rows.append((source, column, value, "dialect_file", None))
    return pl.DataFrame(rows, schema=STATED, orient="row")


def beside(paths: Sequence[str]) -> list[Statement]:
    """What the `sweepscope.toml` files of folders, and above them, state. Raises UsageError for a damaged one."""
    names = [f"{printable(canonical_path(path))}/{NAME}" for path in paths]
    return list(_beside([name for name in names if not is_url(name) or exists(name)], are_watched=False))


def check_statements(text: str, path: str) -> None:
    """Raises ValueError where the text of a `sweepscope.toml` is no list of statements."""
    try:
        read_statements(text, path, path.rpartition("/")[0])
    except UsageError as error:
        raise ValueError(str(error)) from error


def _beside(paths: Iterable[str], *, are_watched: bool) -> Iterator[Statement]:
    """Statements of the files among `paths`, or in folders above them, that have the name for it."""
    for path in _files_beside(paths):
        try:
            text = text_of_file(Reader(path).chunks(), MAX_BYTES + 1)
            yield from read_statements(text, path, path.rpartition("/")[0])
        except (InputError, UsageError) as error:
            if not are_watched:
                raise
            event(_LOG, logging.WARNING, "not_stated", path=path, reason=str(error))


def _files_beside(paths: Iterable[str]) -> list[str]:
    """Files of that name beside and above the given ones; of URLs, those that are listed among them."""
    found: set[str] = set()
    seen: set[str] = set()
    for path in paths:
        if is_url(path) and path.rpartition("/")[2] == NAME:
            found.add(path)
        folder = path.rpartition("/")[0]
        while folder not in seen and not is_url(path):
            seen.add(folder)
            if os.path.isfile(on_disk(f"{folder}/{NAME}")):
                found.add(f"{folder}/{NAME}")
            folder = folder.rpartition("/")[0]
    return sorted(found)
