"""A file to which links give several names is one file: which of them it goes by. Reads no file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace

import polars as pl

from sweepscope.pipeline.io.files import Entry

KNOWN = pl.Schema({"path": pl.String, "linked_path": pl.String})
"""Columns of the table `files` that tell by which names the store knows its files."""


@dataclass(frozen=True)
class Named:
    """`entries`: every file once. `other_names`: of an entry's path, one more name that leads to the same file."""

    entries: list[Entry]
    other_names: dict[str, str]


def deduplicate_links(listed: Iterable[Entry], known: pl.DataFrame) -> Named:
    """Every file of a listing once, under one name.

    A file goes by the name of a directory that the store knows already, so that what was read through a link yesterday
    is no new run today, nor the other way round; else by its own name where that is listed; else by the first.

    Args:
        listed: entries of one listing or several; the same path may come more than once.
        known: KNOWN rows of the ledger.
    """
    by_path = {entry.path: entry for entry in listed}
    links = known.filter(pl.col("linked_path").is_not_null())
    if links.is_empty() and all(entry.linked_path is None for entry in by_path.values()):
        return Named(list(by_path.values()), {})
    known_places = set(known["path"].str.replace(r"/[^/]*$", "").unique())
    link_of = {_place(own): _place(path) for path, own in links.iter_rows() if _name(path) == _name(own)}
    by_file: dict[str, list[Entry]] = {}
    for entry in by_path.values():
        by_file.setdefault(entry.own_path, []).append(entry)
    entries: list[Entry] = []
    other_names: dict[str, str] = {}
    for own, names in by_file.items():
        chosen = min(
            [*(entry.path for entry in names), *_known_names(own, known_places, link_of)],
            key=lambda path: (_place(path) not in known_places, path != own),
        )
        entries.append(replace(names[0], path=chosen, linked_path=None if chosen == own else own))
        if others := [entry.path for entry in names if entry.path != chosen]:
            other_names[chosen] = others[0]
    return Named(entries, other_names)


def _known_names(own: str, places: set[str], link_of: dict[str, str]) -> list[str]:
    """Names that are not listed, by which the store knows the file or those beside it."""
    found = [own] if _place(own) in places else []
    if _place(own) in link_of:
        linked = f"{link_of[_place(own)]}/{_name(own)}"
        # The link may lead elsewhere by now.
        found += [linked] if os.path.realpath(linked) == own else []
    return found


def _place(path: str) -> str:
    return path.rpartition("/")[0]


def _name(path: str) -> str:
    return path.rpartition("/")[2]
