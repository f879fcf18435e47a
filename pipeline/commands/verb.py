"""A verb of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Verb:
    """One subcommand, listed in `pipeline.__main__.VERBS`.

    `run` returns the exit code and raises SweepscopeError for what a user can correct. Where it `needs_whole_parser`,
    its arguments have a `whole_parser`, a function that returns the parser with all verbs.
    """

    name: str
    description: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    needs_whole_parser: bool = False
