"""Output of commands: results on stdout (text or JSON), progress and errors on stderr."""

from __future__ import annotations

import json
import sys
from typing import Any

from sweepscope.pipeline.text.secrets import hide, hide_in


def say(text: str) -> None:
    """A result for people, flushed at once: a server that prints its address goes on running."""
    print(text, flush=True)


def say_json(value: Any) -> None:
    """A result for programs: one JSON document."""
    print(json.dumps(value, indent=2, default=str, ensure_ascii=False), flush=True)


def say_result(value: Any, text: str, *, as_json: bool) -> None:
    """One result, for programs or for people."""
    say_json(value) if as_json else say(text)


def say_read(value: Any, text: str, *, as_json: bool) -> None:
    """A result that quotes what was read from files, without credentials."""
    say_result(hide_in(value) if as_json else value, hide(text), as_json=as_json)


def note(text: str) -> None:
    """Progress and remarks; never part of the result."""
    print(text, file=sys.stderr)


def table(rows: list[tuple[str, str]]) -> str:
    """Two aligned columns.

    >>> print(table([("files", "3"), ("seconds", "1.2")]))
    files    3
    seconds  1.2
    """
    width = max((len(name) for name, _ in rows), default=0)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)
