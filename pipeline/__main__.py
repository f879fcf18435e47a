"""The command line: parses arguments, calls one verb, turns errors into one line and an exit code."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Collection
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import version
from typing import NoReturn

from sweepscope.pipeline.commands.options_file import options_file, read_options, words_of
from sweepscope.pipeline.commands.output import note
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.errors import SweepscopeError, UsageError
from sweepscope.pipeline.io.event_log import configure
from sweepscope.pipeline.store.home_access import VARIABLE as SHARED_VARIABLE
from sweepscope.pipeline.text.secrets import hide

VERBS = {
    "demo": "ingest the bundled data and open the dashboard",
    "ingest": "read logs into the store; running it again reads only what is new",
    "stated": "list what you have stated of runs whose logs do not say it",
    "note": "write remarks on runs, cells and days, which the pages show",
    "view": "keep pages of the dashboard with their filters under a name",
    "tag": "tag runs, cells and days; the list of runs is filtered by tags",
    "cluster": "your clusters by name: accelerators, links, network cards, measured bandwidths",
    "price": "prices of accelerators, for dollars per million tokens and what runs cost",
    "dialect": "dialect files for log formats of your own: test, infer, list, show, example, forget",
    "query": "run a read-only SQL query against the store",
    "report": "write what the dashboard says as one offline HTML file, or as Markdown",
    "export": "write the dashboard as static pages, or the tables as a dataset",
    "mcp": "answer agents over the Model Context Protocol, read-only",
    "nccl": "summarise NCCL logs, nccl-tests tables, hangs and flight recorder dumps",
    "memory": "peak, fragmentation and what was alive at the peak, of one memory snapshot, timeline or trace",
    "estimate": "predict memory, step time and MFU for the rows of a table",
    "calibrate": "fit the estimator to this store's measured runs",
    "search": "find the best layouts of a model on a cluster",
    "next": "propose what to run next, by expected gain per GPU-hour",
    "plan": "plan the runs of a sweep within a budget of GPU-hours",
    "rules": "score what documents advise on the store's own runs",
    "dashboard": "serve the dashboard",
    "watch": "ingest new runs as they appear (Dagster daemon with a sensor)",
    "serve": "watch and dashboard together",
    "store": "path, versions, verification, compaction and pruning of the store; forget files",
    "alerts": "tell people of hangs, regressions, new best layouts: status, test, send",
    "doctor": "check the installation and the home, with a remedy for what is wrong",
    "simulate": "write a simulated raw sweep to try things on",
    "completion": "print a script that completes commands and options in bash, zsh or fish",
}
"""What each verb does, in the order of the help: here, because importing all verbs takes a second."""

_MODULES = {"next": "next_run"}
"""Verbs whose module has another name."""

DEBUG_VARIABLE = "SWEEPSCOPE_DEBUG"


class OneLineParser(argparse.ArgumentParser):
    """Reports wrong arguments in one line, as other errors are reported; argparse prints the whole usage before it."""

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        note(f"sweepscope: {message}. `{self.prog} --help` shows the usage.")
        sys.exit(2)


def verb(name: str) -> Verb:
    """The verb of that name. Its module is imported."""
    found: Verb = import_module(f"sweepscope.pipeline.commands.{_MODULES.get(name, name)}").VERB
    return found


def build_parser(names: Collection[str] = VERBS) -> argparse.ArgumentParser:
    """The command line: every verb by name, and the arguments of those in `names`."""
    parser = OneLineParser(
        prog="sweepscope",
        description="Which parallel layout is best for a model on these nodes, how sure is that, why do others lose?",
        epilog="Exit codes: 0 done, 1 failed, 2 wrong usage.",
    )
    parser.add_argument("--version", action="version", version=f"sweepscope {version('sweepscope')}")
    added = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, does in VERBS.items():
        found = verb(name) if name in names else None
        sub = added.add_parser(name, help=does, description=found.description if found else None)
        if found:
            _add_arguments(sub, found)
    return parser


def _add_arguments(sub: argparse.ArgumentParser, found: Verb) -> None:
    """The arguments that every verb has, and its own."""
    sub.add_argument(
        "--home", metavar="DIR", help="where lake and store live (default: $SWEEPSCOPE_HOME, else XDG data)"
    )
    sub.add_argument(
        "--shared",
        action="store_true",
        help="let your group read the home as far as the umask does; it stays so (default: only you can)",
    )
    sub.add_argument("--json", action="store_true", help="print the result as JSON")
    sub.add_argument(
        "-v",
        "--verbose",
        action="count",
        default=0,
        help="log what is done to stderr as key=value lines; -vv logs each file (SWEEPSCOPE_LOG=info, debug)",
    )
    found.add_arguments(sub)
    sub.set_defaults(run=found.run)
    if found.needs_whole_parser:
        sub.set_defaults(whole_parser=lambda: build_parser(VERBS))


def main(argv: list[str] | None = None) -> int:
    """Run one verb. Returns the exit code."""
    sys.unraisablehook = interrupt_again
    try:
        args = _parsed(sys.argv[1:] if argv is None else argv)  # imports the verb, which takes long enough for a Ctrl-C
        _configure_log(args.verbose)
        if args.shared:
            os.environ[SHARED_VARIABLE] = "1"
        return int(args.run(args))
    except SweepscopeError as error:
        note(f"sweepscope: {hide(str(error))}")
        return error.exit_code
    except KeyboardInterrupt:
        note("sweepscope: interrupted")
        return 130
    except BrokenPipeError:
        # The reader has closed the pipe (`| head`): nothing to report, and no second error when Python flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        note(f"sweepscope: {what}. Check that the path exists, that you may write there and that the disk is not full.")
        return 1
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        reason = hide(str(error)).splitlines()[:1]
        note(f"sweepscope: internal error: {type(error).__name__}: {''.join(reason)}")
        note(f"sweepscope: run again with {DEBUG_VARIABLE}=1 for the traceback, and report it")
        return 1


def _parsed(words: list[str]) -> argparse.Namespace:
    """The parsed arguments. Raises UsageError for a verb or an argument that there is not.

    Only the module of the verb is imported, and none for the help and the version.
    """
    named = next((word for word in words if not word.startswith("-")), None)
    if named is not None and named not in VERBS:
        near = get_close_matches(named, VERBS, n=1)
        meant = f"Did you mean `sweepscope {near[0]}`? " if near else ""
        raise UsageError(f"there is no verb {named!r}. {meant}`sweepscope --help` lists the verbs.")
    parser = build_parser(() if named is None else (named,))
    known, unknown = parser.parse_known_args(words if named is None else _with_options(parser, named, words))
    if unknown:
        raise UsageError(
            f"unrecognized arguments: {' '.join(unknown)}. `sweepscope {known.verb} --help` shows the usage."
        )
    return known


def _with_options(parser: argparse.ArgumentParser, named: str, words: list[str]) -> list[str]:
    """The words with those of the file of options behind the verb."""
    if (path := options_file()) is None:
        return words
    (verbs,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    of_file = words_of(read_options(path), named, VERBS, verbs.choices[named], str(path))
    at = words.index(named) + 1
    return [*words[:at], *of_file, *words[at:]]


def _configure_log(verbosity: int) -> None:
    try:
        configure(verbosity)
    except ValueError as error:
        raise UsageError(str(error)) from error


def interrupt_again(ignored: sys.UnraisableHookArgs) -> None:
    """Hook for exceptions that Python ignores: a Ctrl-C during a finaliser or a weak reference's callback is sent again
    after it, and would be lost otherwise."""
    if ignored.exc_type is KeyboardInterrupt:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(ignored)


if __name__ == "__main__":
    sys.exit(main())
