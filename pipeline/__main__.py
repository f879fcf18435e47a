"""The command line: parses arguments, calls one verb, turns errors into one line and an exit code."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from importlib.metadata import version

from pipeline.commands import (
    calibrate,
    dashboard,
    demo,
    dialect,
    doctor,
    estimate,
    ingest,
    memory,
    nccl,
    next_run,
    query,
    rules,
    search,
    serve,
    simulate,
    store,
    watch,
)
from pipeline.commands.output import note
from pipeline.commands.protocol import Verb
from pipeline.errors import SweepscopeError

VERBS: tuple[Verb, ...] = (
    demo.VERB,
    ingest.VERB,
    dialect.VERB,
    query.VERB,
    nccl.VERB,
    memory.VERB,
    estimate.VERB,
    calibrate.VERB,
    search.VERB,
    next_run.VERB,
    rules.VERB,
    dashboard.VERB,
    watch.VERB,
    serve.VERB,
    store.VERB,
    doctor.VERB,
    simulate.VERB,
)

DEBUG_VARIABLE = "SWEEPSCOPE_DEBUG"


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = argparse.ArgumentParser(
        prog="sweepscope",
        description="Which parallel layout is best for a model on these nodes, how sure is that, why do others lose?",
        epilog="Exit codes: 0 done, 1 failed, 2 wrong usage.",
    )
    parser.add_argument("--version", action="version", version=f"sweepscope {version('sweepscope')}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb in VERBS:
        sub = verbs.add_parser(verb.name, help=verb.help, description=verb.description)
        sub.add_argument(
            "--home", metavar="DIR", help="where lake and store live (default: $SWEEPSCOPE_HOME, else XDG data)"
        )
        sub.add_argument("--json", action="store_true", help="print the result as JSON")
        verb.add_arguments(sub)
        sub.set_defaults(run=verb.run)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run one verb. Returns the exit code."""
    args = build_parser().parse_args(argv)
    sys.unraisablehook = interrupt_again
    try:
        return int(args.run(args))
    except SweepscopeError as error:
        note(f"sweepscope: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        note("sweepscope: interrupted")
        return 130
    except BrokenPipeError:
        # The reader went away (`| head`): nothing to report, and no second error when Python flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        note(f"sweepscope: {what}. Check that the place exists, is yours to write and has room.")
        return 1
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        note(f"sweepscope: internal error: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
        note(f"sweepscope: run again with {DEBUG_VARIABLE}=1 for the traceback, and report it")
        return 1


def interrupt_again(ignored: sys.UnraisableHookArgs) -> None:
    """Hook for exceptions that Python ignores: a Ctrl-C that fell into a finaliser or a weak reference's callback would
    be lost there. It is sent again, once that callback is over."""
    if ignored.exc_type is KeyboardInterrupt:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(ignored)


if __name__ == "__main__":
    sys.exit(main())
