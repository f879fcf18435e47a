"""Confirmed and corrected dialect files: tried on logs as `dialect test` does, and kept in the home."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sweepscope.pipeline.errors import InputError, SweepscopeError, UsageError
from sweepscope.pipeline.ingest.dialect_files import read_text, remember_text, remembered
from sweepscope.pipeline.inspection.dialect_test import try_dialect
from sweepscope.pipeline.logs.declared.corrections import (
    Value,
    constants_of,
    corrected,
    example_of,
    folders_of,
    values_of,
)
from sweepscope.pipeline.logs.declared.same_form import form_of, merged, steps_of
from sweepscope.pipeline.logs.declared.slots import UNREAD
from sweepscope.pipeline.store.home import Home

__all__ = [
    "UNREAD",
    "Trial",
    "Value",
    "constants_of",
    "corrected",
    "example_of",
    "folders_of",
    "form_of",
    "keep",
    "kept",
    "may_keep",
    "merged",
    "steps_of",
    "tried",
    "values_of",
]

MOST_TRIED = 3
"""Logs that a file is tried on before it is kept: they are read whole."""


@dataclass(frozen=True)
class Trial:
    """What a dialect file reads in one log.

    Attributes:
        path: the log.
        steps: how many it finds.
        values: those of the first step.
        refusal: why it would not read the log, or could not be tried; "" where it does.
    """

    path: str
    steps: int = 0
    values: tuple[tuple[str, object], ...] = ()
    refusal: str = ""


def tried(text: str, logs: Sequence[str]) -> list[Trial]:
    """What the dialect file reads in the first of the logs. Raises UsageError for a faulty file."""
    document = read_text(text, "the corrected file")
    trials = []
    for path in logs[:MOST_TRIED]:
        try:
            (result,) = try_dialect(document, [path])
        except (InputError, UsageError) as error:
            trials.append(Trial(path, refusal=str(error)))
            continue
        found = result.explanation
        values = next((rule.values for rule in found.rules if rule.label.startswith("[[step]]") and rule.lines), {})
        owner = f"it is read by {found.owner}" if found.owner else "no line of it is one of these steps"
        refusal = "" if found.owner == document.name and found.steps else owner
        trials.append(Trial(path, found.steps, tuple(values.items()), refusal))
    return trials


def keep(home: Path, text: str, logs: Sequence[str], *, given: str, replaces: str | None = None) -> Path:
    """Try a dialect file on logs and keep it in the home, where every ingest reads with it. Returns the home's copy.

    Raises:
        UsageError: the file has a fault, another one has its name, or it would not read one of the logs.
        StoreError: the home cannot be written to.
    """
    trials = tried(text, logs)
    if refused := [trial for trial in trials if trial.refusal and not _is_gone(trial.path)]:
        raise UsageError(f"The file would not read {refused[0].path}: {refused[0].refusal}. Correct it first.")
    return remember_text(Home.resolve(str(home)), text, given=given, replaces=replaces)


def kept(home: Path) -> dict[str, str]:
    """Text by name of the dialect files of a home, as far as they can be read."""
    try:
        files = remembered(Home(home))
        return {one.name: one.path.read_text(encoding="utf-8-sig") for one in files}
    except (SweepscopeError, OSError):
        return {}


def may_keep(home: Path) -> bool:
    """Whether a file can be written into the home's folder of dialect files."""
    folder = Home(home).dialects
    return os.access(folder if folder.is_dir() else home, os.W_OK | os.X_OK)


def _is_gone(path: str) -> bool:
    return "://" not in path and not Path(path).exists()
