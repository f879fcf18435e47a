"""`sweepscope view`: pages of the dashboard with their filters, kept under a name."""

from __future__ import annotations

import argparse
from urllib.parse import urlsplit

from sweepscope.pipeline.commands.note import author, opened, shown
from sweepscope.pipeline.commands.output import say_result, table
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.store import notes


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="name of the view; without it all views are listed")
    parser.add_argument(
        "address",
        metavar="ADDRESS",
        nargs="?",
        help="the page as its address shows it, in full or from the page's name on: 'best?model=Llama+8B&nodes=16'",
    )
    parser.add_argument("--remove", action="store_true", help="remove the view of this name")


def _run(args: argparse.Namespace) -> int:
    if args.remove and (args.name is None or args.address is not None):
        raise UsageError("Which view is to be removed? `sweepscope view NAME --remove`; `sweepscope view` lists them.")
    home = opened(args.home, for_writing=bool(args.address or args.remove))
    views = [row for row in notes.stored(home).to_dicts() if row["note_kind"] == "view"]
    if args.address is not None:
        row = notes.row("view", {}, args.name, address=page_of(args.address), author=author())
        notes.add(home, [row])
        say_result(shown([row])[0], f"{row['text']}: {row['address']}", as_json=args.json)
        return 0
    if args.name is None:
        lines = [(row["text"], row["address"] or "overview") for row in views]
        nothing = "There is no view yet. `sweepscope view NAME 'best?model=Llama+8B'` keeps one, or Share on any page."
        say_result(shown(views), table(lines) if lines else nothing, as_json=args.json)
        return 0
    found = [row for row in views if row["text"] == args.name]
    if not found:
        known = ", ".join(row["text"] for row in views) or "none"
        raise UsageError(f"There is no view {args.name}. Known: {known}.")
    if args.remove:
        gone = notes.remove(home, [row["note_id"] for row in found])
        say_result({"removed": gone}, f"Removed {args.name}.", as_json=args.json)
        return 0
    say_result(shown(found)[0], found[0]["address"] or "overview", as_json=args.json)
    return 0


def page_of(address: str) -> str:
    """Page and query of an address, copied from a browser or written from the page's name on.

    >>> page_of("http://127.0.0.1:8501/best?nodes=16"), page_of("/best?nodes=16"), page_of("best")
    ('best?nodes=16', 'best?nodes=16', 'best')
    """
    parts = urlsplit(address)
    return f"{parts.path.strip('/')}{'?' if parts.query else ''}{parts.query}"


VERB = Verb(
    name="view",
    description="Keep a page of the dashboard with its filters under a name, which every page's sidebar lists. Without "
    "ADDRESS: print the view; without NAME: list all.",
    add_arguments=_add_arguments,
    run=_run,
)
