"""`sweepscope note`: remarks on runs, cells and days."""

from __future__ import annotations

import argparse
import getpass
from collections.abc import Mapping, Sequence
from typing import Any

from sweepscope.pipeline.commands.output import say_result, table
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.store import notes
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.published import current
from sweepscope.schemas.tables.notes import CELL

WHAT = "run id or its beginning, day (2026-11-20), or cell (model=Llama 8B,num_nodes=16)"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("about", metavar="WHAT", nargs="?", help=WHAT)
    parser.add_argument("text", metavar="TEXT", nargs="?", help="the remark; without it the notes on WHAT are listed")
    parser.add_argument("--remove", metavar="ID", action="append", default=[], help="remove a note by its id")


def _run(args: argparse.Namespace) -> int:
    home = opened(args.home, for_writing=bool(args.text or args.remove))
    if args.remove:
        gone = notes.remove(home, args.remove)
        if unknown := sorted(set(args.remove) - set(gone)):
            raise UsageError(f"There is no note {', '.join(unknown)}. `sweepscope note` lists them with their ids.")
        say_result({"removed": gone}, f"Removed {', '.join(gone)}.", as_json=args.json)
        return 0
    if args.text:
        row = notes.row("note", notes.target_of(home, args.about), args.text, author=author())
        new = notes.add(home, [row])
        say_result(
            {"added": new, **shown([row])[0]},
            f"{'Noted' if new else 'Noted before'}: {row['text']}  [{row['note_id']}]",
            as_json=args.json,
        )
        return 0
    say_list(home, "note", args.about, as_json=args.json)
    return 0


def opened(given: str | None, *, for_writing: bool) -> Home:
    """The home, which has a store. Raises NoStoreError, UsageError or StoreError."""
    home = Home.resolve(given, for_writing=for_writing)
    current(home.path)
    return home


def author() -> str | None:
    """Login name of who runs the command; None where the machine knows none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without an entry for the user
        return None


def say_list(home: Home, kind: str, about: str | None, *, as_json: bool) -> None:
    """Prints what a home has of a kind: on all, or on what a text names."""
    rows = [row for row in notes.stored(home).to_dicts() if row["note_kind"] == kind]
    if about:
        wanted = notes.about({**dict.fromkeys(("run_id", "day", *CELL)), **notes.target_of(home, about)})
        rows = [row for row in rows if notes.about(row) == wanted]
    lines = [(notes.about(row), f"{row['text']}  [{row['note_id']}]") for row in rows]
    nothing = f"There is no {kind} yet. `sweepscope {kind} WHAT {'TEXT' if kind == 'note' else 'TAG'}` adds one."
    say_result(shown(rows), table(lines) if lines else nothing, as_json=as_json)


def shown(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows for programs: without what they do not name."""
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


VERB = Verb(
    name="note",
    description="Write a remark on a run, a cell or a day. It is kept in the home, shown on the pages, and stays when "
    "files are read again. Without TEXT: list what there is.",
    add_arguments=_add_arguments,
    run=_run,
)
