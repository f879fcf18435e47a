"""Options that a user always gives: `sweepscope.toml` in the configuration folder.

    home = "/scratch/me/sweepscope"      # of every verb that has the option

    [plan]
    framework = "nanotron"               # of that verb

The command line counts more than an environment variable, and that more than the file. Only the user's own folder is
looked into, and what `SWEEPSCOPE_CONFIG` names: a file that came with somebody's sweep must not open a server.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from sweepscope.pipeline.errors import UsageError

VARIABLE = "SWEEPSCOPE_CONFIG"
NAME = "sweepscope.toml"
_MAX_BYTES = 128 << 10
_OF_ENVIRONMENT = {"home": "SWEEPSCOPE_HOME", "shared": "SWEEPSCOPE_SHARED", "verbose": "SWEEPSCOPE_LOG"}
"""Options that an environment variable gives, too."""


def options_file() -> Path | None:
    """The file, where there is one.

    Raises:
        UsageError: `SWEEPSCOPE_CONFIG` names none.
    """
    if named := os.environ.get(VARIABLE):
        if not Path(named).is_file():
            raise UsageError(f"{VARIABLE} names {named}, which is no file.")
        return Path(named)
    folder = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    found = Path(folder) / "sweepscope" / NAME
    return found if found.is_file() else None


def read_options(path: Path) -> dict[str, Any]:
    """What the file holds.

    Raises:
        UsageError: it is no TOML, or too large.
    """
    import tomllib

    if path.stat().st_size > _MAX_BYTES:
        raise UsageError(f"{path} is larger than {_MAX_BYTES >> 10} KiB. It holds options of the command line.")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not TOML: {error}.") from error


def words_of(
    options: Mapping[str, Any], verb: str, verbs: Collection[str], parser: argparse.ArgumentParser, origin: str
) -> list[str]:
    """Words of the command line that a file gives a verb: they go before the user's own, which count more.

    Args:
        options: what the file holds.
        verb: that is called.
        verbs: all that there are.
        parser: of the verb.
        origin: name of the file, for messages.

    Raises:
        UsageError: an option or verb that there is not, or a value that is none of it.
    """
    shared = {key: value for key, value in options.items() if not isinstance(value, Mapping)}
    if unknown := next((key for key in options if key not in shared and key not in verbs), None):
        raise UsageError(f"{origin}: there is no verb {unknown!r}. {_meant(unknown, verbs)}")
    own = options.get(verb, {})
    actions = {action.dest: action for action in parser._actions if action.option_strings}
    if unknown := next((key for key in own if key.replace("-", "_") not in actions), None):
        names = [name.replace("_", "-") for name in actions]
        raise UsageError(f"{origin}: {verb} has no option {unknown!r}. {_meant(unknown, names)}")
    given = {key.replace("-", "_"): value for key, value in {**shared, **own}.items()}
    from_environment = {name for name, variable in _OF_ENVIRONMENT.items() if os.environ.get(variable)}
    return [
        word
        for name, value in given.items()
        if name in actions and name not in from_environment
        for word in _words(actions[name], value, f"{origin}: {name.replace('_', '-')}")
    ]


def _words(action: argparse.Action, value: Any, where: str) -> Sequence[str]:
    option = max(action.option_strings, key=len)
    if action.nargs == 0:
        if isinstance(value, bool) or (isinstance(value, int) and isinstance(action.default, int)):
            return [option] * int(value)
        raise UsageError(f"{where} is {value!r}. Write true or false.")
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(one, str | int | float) and not isinstance(one, bool) for one in values):
        raise UsageError(f"{where} is {value!r}. Write a text or a number.")
    return [f"{option}={one}" for one in values]


def _meant(name: str, names: Collection[str]) -> str:
    near = get_close_matches(name, names, n=1)
    return f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(names)}."
