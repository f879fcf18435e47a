"""`sweepscope tag`: words that runs are found by."""

from __future__ import annotations

import argparse

from sweepscope.pipeline.commands.note import WHAT, author, opened, say_list, shown
from sweepscope.pipeline.commands.output import say_result
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.store import notes


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("about", metavar="WHAT", nargs="?", help=WHAT)
    parser.add_argument("tags", metavar="TAG", nargs="*", help="tags; without them those of WHAT are listed")
    parser.add_argument("--remove", action="store_true", help="take these tags from WHAT")


def _run(args: argparse.Namespace) -> int:
    home = opened(args.home, for_writing=bool(args.tags))
    if args.remove and not args.tags:
        raise UsageError("Which tag is to be removed? `sweepscope tag WHAT TAG --remove`; `sweepscope tag` lists them.")
    if not args.tags:
        say_list(home, "tag", args.about, as_json=args.json)
        return 0
    target = notes.target_of(home, args.about)
    rows = [notes.row("tag", target, tag, author=author()) for tag in args.tags]
    ids = [row["note_id"] for row in rows]
    if not args.remove:
        new = notes.add(home, rows)
        text = f"Tagged {args.about}: {', '.join(row['text'] for row in rows)}"
        say_result({"added": new, "tags": shown(rows)}, text, as_json=args.json)
        return 0
    gone = notes.remove(home, ids)
    if absent := [row["text"] for row in rows if row["note_id"] not in gone]:
        raise UsageError(f"{args.about} has no tag {', '.join(absent)}. `sweepscope tag` lists what has which.")
    text = f"Removed from {args.about}: {', '.join(row['text'] for row in rows)}"
    say_result({"removed": gone}, text, as_json=args.json)
    return 0


VERB = Verb(
    name="tag",
    description="Tag a run, a cell or a day; the list of runs is filtered by tags. Without TAG: list what there is.",
    add_arguments=_add_arguments,
    run=_run,
)
