"""One name for each file that has several through links. Reads no file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace

import polars as pl

from sweepscope.pipeline.io.file_names import on_disk, printable
from sweepscope.pipeline.io.files import Entry

KNOWN = pl.Schema({"path": pl.String, "linked_path": pl.String})
"""Columns of the table `files`: the name of a file in the store, and its real path where that is a link."""


@dataclass(frozen=True)
class Named:
    """`entries`: every file once. `other_names`: path of an entry to one more name of the same file."""

    entries: list[Entry]
    other_names: dict[str, str]


def deduplicate_links(listed: Iterable[Entry], known: pl.DataFrame) -> Named:
    """Every file of a listing once, under one name.

    A name in a directory that the store knows comes first, so that a run that was read through a link is not read again
    under its real path, nor the other way round; then the real path where that is listed; then the first name.

    Args:
        listed: entries of one listing or several; the same path may come more than once.
        known: KNOWN rows of the ledger.
    """
    by_path = {entry.path: entry for entry in listed}
    links = known.filter(pl.col("linked_path").is_not_null())
    if links.is_empty() and all(entry.linked_path is None for entry in by_path.values()):
        return Named(list(by_path.values()), {})
    known_folders = set(known["path"].str.replace(r"/[^/]*$", "").unique())
    link_of = {_folder(own): _folder(path) for path, own in links.iter_rows() if _name(path) == _name(own)}
    by_file: dict[str, list[Entry]] = {}
    for entry in by_path.values():
        by_file.setdefault(entry.own_path, []).append(entry)
    entries: list[Entry] = []
    other_names: dict[str, str] = {}
    for own, names in by_file.items():
        chosen = min(
            [*(entry.path for entry in names), *_known_names(own, known_folders, link_of)],
            key=lambda path: (_folder(path) not in known_folders, path != own),
        )
        entries.append(replace(names[0], path=chosen, linked_path=None if chosen == own else own))
        if others := [entry.path for entry in names if entry.path != chosen]:
            other_names[chosen] = others[0]
    return Named(entries, other_names)


def _known_names(own: str, folders: set[str], link_of: dict[str, str]) -> list[str]:
    """Names that are not listed, but that the store has for the file or for others of its folder."""
    found = [own] if _folder(own) in folders else []
    if _folder(own) in link_of:
        linked = f"{link_of[_folder(own)]}/{_name(own)}"
        # The link may lead elsewhere by now.
        found += [linked] if printable(os.path.realpath(on_disk(linked))) == own else []
    return found


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _name(path: str) -> str:
    return path.rpartition("/")[2]
