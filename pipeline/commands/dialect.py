"""`sweepscope dialect`: write dialect files for log formats, try them, and look after them."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from sweepscope.pipeline.commands.dialect_infer import add_infer, run_infer
from sweepscope.pipeline.commands.dialect_report import as_text
from sweepscope.pipeline.commands.output import note, say, say_read, say_result, table
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.ingest.dialect_files import forget, read_file, remembered
from sweepscope.pipeline.inspection.dialect_test import try_dialect
from sweepscope.pipeline.logs import bundled
from sweepscope.pipeline.logs.registry import DIALECTS, IN_CODE
from sweepscope.pipeline.store.home import Home


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    test = actions.add_parser("test", help="show which lines of logs a dialect file matches, nearly or not at all")
    test.add_argument("file", metavar="FILE", help="dialect file")
    test.add_argument("logs", metavar="LOG", nargs="+", help="log file or run directory")
    add_infer(actions)
    actions.add_parser("list", help="the built-in dialects with their signatures, and the dialect files remembered")
    shown = actions.add_parser("show", help="print a dialect file: one remembered, or one that comes with sweepscope")
    shown.add_argument("name", metavar="NAME", help="name of the dialect")
    actions.add_parser("example", help="print a commented dialect file to start from")
    gone = actions.add_parser("forget", help="stop reading with a dialect file; runs that it has read stay")
    gone.add_argument("name", metavar="NAME", help="name of the dialect")
    for action in actions.choices.values():  # the options of every verb may follow the action, too
        action.add_argument("--home", metavar="DIR", default=argparse.SUPPRESS, help="where lake and store live")
        action.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print the result as JSON")


def _run(args: argparse.Namespace) -> int:
    actions = {"test": _test, "infer": run_infer, "list": _list, "show": _show, "example": _example, "forget": _forget}
    return actions[args.action](args)


def _test(args: argparse.Namespace) -> int:
    _, document = read_file(args.file)
    results = try_dialect(document, args.logs)
    value = [
        {"log": one.path, **asdict(one.explanation), "files": one.files, "is_whole": one.is_whole} for one in results
    ]
    say_read(value, "\n\n".join(as_text(one, document) for one in results), as_json=args.json)
    return 0 if all(one.explanation.owner == document.name and one.explanation.steps for one in results) else 1


def _list(args: argparse.Namespace) -> int:
    given = remembered(Home.resolve(args.home, for_writing=False))
    value: list[dict[str, Any]] = [
        {"name": one.name, "signature": one.document.signature, "file": str(one.path), "given_as": one.given}
        for one in given
    ]
    replaced = {one.name for one in given}
    value += [
        {"name": one.name, "signature": one.signature_literals, "file": None}
        for one in DIALECTS
        if one.name not in replaced
    ]
    none = "none: logs that no other dialect knows, by their steps"
    lines = [(one["name"], "  ".join(map(repr, one["signature"])) or none) for one in value]
    head = "\n".join(f"{one.name}: {one.path} (given as {one.given})" for one in given)
    remark = f"Remembered dialect files:\n{head}\n\n" if given else "No dialect files are remembered.\n\n"
    examples = f"Dialect files that come with sweepscope (`dialect show NAME`):\n{', '.join(bundled.NAMES)}\n\n"
    say_result(value, f"{remark}{examples}Signatures, one line per dialect:\n{table(lines)}", as_json=args.json)
    return 0


def _show(args: argparse.Namespace) -> int:
    own = {one.name: one.path for one in remembered(Home.resolve(args.home, for_writing=False))}
    if args.name not in {*own, *bundled.NAMES}:
        known = ", ".join(sorted({*own, *bundled.NAMES}))
        reason = "is written in code" if args.name in {one.name for one in IN_CODE} else "is not known"
        raise UsageError(f"The dialect {args.name!r} {reason}. Dialect files there are: {known}.")
    text = read_file(str(own[args.name]))[0] if args.name in own else bundled.text_of(args.name)
    say_result({"name": args.name, "text": text}, text.rstrip("\n"), as_json=args.json)
    return 0


def example() -> str:
    """The commented file that `sweepscope dialect example` prints."""
    return (files("sweepscope.pipeline.logs.declared") / "example.toml").read_text(encoding="utf-8")


def _example(args: argparse.Namespace) -> int:
    text = example()
    if args.json:
        say_result({"example": text}, "", as_json=True)
    else:
        say(text.rstrip("\n"))
    return 0


def _forget(args: argparse.Namespace) -> int:
    forget(Home.resolve(args.home), args.name)
    note("Runs that it has read stay in the store. Logs that change are read without it from now on.")
    say_result({"forgotten": args.name}, f"forgotten  {args.name}", as_json=args.json)
    return 0


VERB = Verb(
    name="dialect",
    description="Read logs of an in-house trainer without code: start from `dialect infer LOG` or `dialect example`, "
    "try it with `dialect test FILE LOG`, and give it to `ingest --dialect FILE`. See docs/dialects.md.",
    add_arguments=_add_arguments,
    run=_run,
)
