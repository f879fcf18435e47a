"""`sweepscope dialect infer`: the dialect file of a log of no known format, corrected and kept if asked for."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sweepscope.pipeline.commands.output import note, say_result
from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.ingest.dialect_files import read_text
from sweepscope.pipeline.ingest.infer_logs import infer_log
from sweepscope.pipeline.inspection.correct_dialect import keep
from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.logs.declared.columns import STEP_COLUMNS, canonical
from sweepscope.pipeline.logs.declared.corrections import corrected, values_of
from sweepscope.pipeline.logs.inference.toml_text import NAME
from sweepscope.pipeline.store.home import Home


def add_infer(actions: Any) -> None:
    """Add the action and its options to those of `dialect`."""
    inferred = actions.add_parser("infer", help="print the dialect file that a log of no known format is read by")
    inferred.add_argument("log", metavar="LOG", help="log file")
    inferred.add_argument("--save", action="store_true", help="keep it in the home: every ingest reads with it")
    inferred.add_argument("--name", metavar="NAME", help=f"name of the dialect (default: {NAME})")
    inferred.add_argument(
        "--set",
        metavar="PRINTED=COLUMN",
        action="append",
        default=[],
        dest="meanings",
        help="what a value means, by the words beside it: took=step_time:s, tput=tokens_per_s; nll=_ leaves it out",
    )
    inferred.add_argument(
        "--constant",
        metavar="COLUMN=VALUE",
        action="append",
        default=[],
        dest="constants",
        help="what the logs do not print: gbs=256, seq_len=4096, num_gpus=16",
    )
    inferred.add_argument("--folder", metavar="DIR", default="", help="the constants hold for logs in it only")


def run_infer(args: argparse.Namespace) -> int:
    """Print the file, or keep it. Raises UsageError."""
    inference = infer_log(args.log, lambda: Reader(args.log, is_lenient=True))
    if not inference.toml:
        remedy = "`sweepscope dialect example` prints a file to describe its lines in"
        raise UsageError(f"No steps or settings were found in {args.log}. If it is the log of a training, {remedy}.")
    text = inference.toml
    if args.name or args.meanings or args.constants or args.save:
        example = next((one.text for one in inference.columns if canonical(one.column, STEP_COLUMNS)), "")
        text = corrected(
            text,
            _meanings(text, args.meanings),
            name=args.name or NAME,
            constants={key: _number(value) for key, value in map(_pair, args.constants)},
            folder=os.path.abspath(args.folder) if args.folder else "",
            example=example,
        )
        read_text(text, f"the dialect file of {args.log}")
    value = {"log": args.log, "text": text, "columns": [asdict(one) for one in inference.columns]}
    if not args.save:
        say_result(value, text.rstrip("\n"), as_json=args.json)
        return 0
    home = Home.resolve(args.home)
    path = keep(home.path, text, [args.log], given=f"inferred from {args.log}")
    note("Every later ingest reads with it. Ingest the logs again: those that were read by inference are read anew.")
    say_result({**value, "file": str(path)}, f"saved  {path}", as_json=args.json)
    return 0


def _pair(given: str) -> tuple[str, str]:
    """The two sides of KEY=VALUE, of which the key may hold the sign. Raises UsageError."""
    key, sign, value = given.rpartition("=")
    if not sign or not key.strip() or not value.strip():
        raise UsageError(f"{given!r} is no pair. Write it as NAME=VALUE.")
    return key.strip(), value.strip()


def _number(value: str) -> int | str:
    return int(value) if value.isdecimal() else value


def _meanings(text: str, given: Sequence[str]) -> dict[str, str]:
    """Meaning by key of the values of a dialect file, from PRINTED=COLUMN. Raises UsageError."""
    values = values_of(text)
    found = {}
    for printed, meaning in map(_pair, given):
        fitting = [value for value in values if printed in (_words(value.printed), value.printed, value.key)]
        if len(fitting) != 1:
            known = ", ".join(sorted({_words(value.printed) for value in values}))
            reason = "is not among the values" if not fitting else "names several of the values"
            raise UsageError(f"{printed!r} {reason}. There are: {known}.")
        found[fitting[0].key] = meaning
    return found


def _words(printed: str) -> str:
    """The words of a value's surroundings: `| tput …` is `tput`."""
    return re.sub(r"^[^\w]+|[^\w%]+$", "", printed.replace("…", "").replace("·", "")).strip()
