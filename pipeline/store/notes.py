"""Notes, tags and named views of a home: rows of the table `notes`, written by people, not read from files.

They are a commit like any other, so that they are pinned by a release, published and exported with the store.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import polars as pl

from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from sweepscope.pipeline.store.publish import publish
from sweepscope.pipeline.text.secrets import hide
from sweepscope.schemas import vocab
from sweepscope.schemas.tables.notes import CELL, NOTES

MOST_CHARACTERS = 2000
_TAG = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_ADDRESS = re.compile(r"[a-z]*(\?[^\s#<>\"]*)?")
_MOST_ADDRESS = 4000
_SHORT = {"nodes": "num_nodes", "gpus": "num_gpus", "batch": "gbs_tokens", "sequence": "seq_len"}
_NUMBERS = frozenset({"num_nodes", "num_gpus", "seq_len", "gbs_tokens"})

Target = Mapping[str, Any]
"""What a note is about: `run_id`, or `day`, or columns of CELL with at least a model; empty for a named view."""


def target_of(home: Home, text: str) -> dict[str, Any]:
    """What a text names: a day (2026-11-20), a cell (model=Llama 8B,nodes=16), or a run by its id or its beginning.

    Raises:
        UsageError: it names none of these, or no run or several of this home.
    """
    given = text.strip()
    if "=" in given:
        return _cell(given)
    if _DAY.fullmatch(given):
        try:
            return {"day": date.fromisoformat(given).isoformat()}
        except ValueError as error:
            raise UsageError(f"{given} is no day of the calendar.") from error
    return {"run_id": _run(home, given)}


def _cell(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in text.split(","):
        name, separator, value = (piece.strip() for piece in part.partition("="))
        column = _SHORT.get(name, name)
        if not separator or not value or column not in CELL:
            raise UsageError(
                f"{part.strip()}: a cell is named by {', '.join(CELL)}, such as model=Llama 8B,num_nodes=16."
            )
        if column in _NUMBERS and not (value.isascii() and value.isdigit() and int(value) > 0):
            raise UsageError(f"{part.strip()}: {column} is a whole number above 0.")
        if column == "origin" and value not in vocab.ORIGIN:
            raise UsageError(f"{part.strip()}: an origin is one of {', '.join(vocab.ORIGIN)}.")
        found[column] = int(value) if column in _NUMBERS else value
    if "model" not in found:
        raise UsageError(f"{text}: which model? A cell is named by its model, such as model=Llama 8B,num_nodes=16.")
    return found


def _run(home: Home, text: str) -> str:
    """The id of the only run that begins with a text."""
    is_id = text.isascii() and text.isalnum()
    found = Lake(home).read("runs", ["run_id"], pl.col("run_id").str.starts_with(text)) if is_id else None
    ids = [] if found is None else found["run_id"].unique().sort().to_list()
    if text in ids:
        return text
    if len(ids) == 1:
        return str(ids[0])
    if not ids:
        raise UsageError(
            f"{text}: no run, day or cell. Give a run's id (the page of a run has it in its address), a day such as "
            "2026-11-20, or a cell such as model=Llama 8B,num_nodes=16."
        )
    raise UsageError(f"{text}: {len(ids)} runs begin so ({', '.join(ids[:4])} ...). Give more characters of the id.")


def checked_text(kind: str, text: str) -> str:
    """A text as it is kept: without credentials and outer blanks; a tag in small letters with hyphens.

    Raises UsageError where it is empty, too long or no tag.

    >>> checked_text("tag", " Paper Figure 3 "), checked_text("note", " try again ")
    ('paper-figure-3', 'try again')
    """
    kept = hide(text.strip())
    if kind == "tag":
        kept = re.sub(r"\s+", "-", kept.lower())
        if not _TAG.fullmatch(kept):
            raise UsageError(f"{text.strip()!r} is no tag: up to 40 of a-z, digits, dots and hyphens.")
    if not kept or len(kept) > MOST_CHARACTERS or "\x00" in kept:
        raise UsageError(f"A {kind} has 1 to {MOST_CHARACTERS:,} characters; this one has {len(kept):,}.")
    return kept


def checked_address(address: str) -> str:
    """A page and its query, as after the slash of an address within the dashboard. Raises UsageError for another text.

    >>> checked_address("best?model=Llama+80B&nodes=16")
    'best?model=Llama+80B&nodes=16'
    """
    if not _ADDRESS.fullmatch(address) or len(address) > _MOST_ADDRESS:
        raise UsageError("A view is a page of this dashboard with its query, such as best?model=Llama+8B.")
    return address


def row(
    kind: str, target: Target, text: str, *, address: str | None = None, author: str | None = None
) -> dict[str, Any]:
    """One row of `notes`. Raises UsageError as `checked_text` and `checked_address` do."""
    kept = checked_text(kind, text)
    about = {name: target.get(name) for name in ("run_id", *CELL, "day")}
    # of two views with one name the later one counts, of two notes on one thing both do
    identity = json.dumps([kind, about, kept], ensure_ascii=False)
    return {
        "note_id": f"note-{hashlib.sha256(identity.encode()).hexdigest()[:12]}",
        "note_kind": kind,
        **about,
        "text": kept,
        "address": None if address is None else checked_address(address),
        "author": author,
        "written_at": datetime.now(UTC).replace(tzinfo=None),
    }


def stored(home: Home) -> pl.DataFrame:
    """Rows of `notes`, oldest first. Raises StoreError when the lake is damaged."""
    return Lake(home).read("notes").sort("written_at", "note_id")


def add(home: Home, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Keep rows and publish them; those that are there already stay as they are. Returns the ids of the new ones.

    Raises StoreError when there is no store yet, another process writes to it for long, or the disk is full.
    """
    known = set(stored(home)["note_id"])
    new = [one for one in rows if one["note_id"] not in known or one["note_kind"] == "view"]
    if new:
        frame = NOTES.conform(pl.DataFrame(new, infer_schema_length=None).unique("note_id", keep="last"))
        Lake(home).commit({"notes": frame})
        publish(home)
    return [str(one["note_id"]) for one in new]


def remove(home: Home, ids: Iterable[str]) -> list[str]:
    """Remove rows by their ids and publish. Returns the ids of those that were there. Raises StoreError."""
    known = set(stored(home)["note_id"])
    gone = sorted(known & set(ids))
    if gone:
        Lake(home).commit({}, forget=gone)
        publish(home)
    return gone


def about(row: Mapping[str, Any]) -> str:
    """What a row is about, as `target_of` reads it."""
    if row["run_id"]:
        return str(row["run_id"])
    if row["day"]:
        return str(row["day"])
    return ",".join(f"{name}={row[name]}" for name in CELL if row[name] is not None)
