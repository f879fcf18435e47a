"""The program's own log: events as key=value lines on stderr, never on stdout.

A module logs with `_LOG = logging.getLogger(__name__)` and `event(_LOG, logging.INFO, "published", version=7)`.
Warnings are shown by default, more with `--verbose` or SWEEPSCOPE_LOG; the variable also reaches the processes that
this one starts: readers, Dagster and its runs.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time

from sweepscope.pipeline.text.secrets import hide

VARIABLE = "SWEEPSCOPE_LOG"
LEVELS = ("warning", "info", "debug")
"""From quiet to verbose."""

ROOT_LOGGER = "sweepscope"


class KeyValueFormatter(logging.Formatter):
    """`time=... level=info logger=ingest.plan pid=... event=planned files=3`; a traceback follows on its own lines."""

    converter = staticmethod(time.gmtime)
    default_msec_format = "%s.%03dZ"
    default_time_format = "%Y-%m-%dT%H:%M:%S"

    def __init__(self) -> None:
        super().__init__("time=%(asctime)s level=%(level)s logger=%(module_path)s pid=%(process)d %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """One line, without credentials; a traceback follows."""
        record.level = record.levelname.lower()
        record.module_path = record.name.removeprefix("sweepscope.").removeprefix("pipeline.")
        return hide(super().format(record))


class _Stderr(logging.StreamHandler):  # type: ignore[type-arg]  # no generic class at run time
    """Writes to the stderr of the moment, which a progress bar may have replaced."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> object:
        return sys.stderr


def configure(verbosity: int = 0) -> None:
    """Write the log to stderr, at the level of SWEEPSCOPE_LOG or of so many `-v`, whichever shows more.

    Raises:
        ValueError: SWEEPSCOPE_LOG names no level.
    """
    given = os.environ.get(VARIABLE, "").lower() or LEVELS[0]
    if given not in LEVELS:
        raise ValueError(f"{VARIABLE} must be one of {', '.join(LEVELS)}, not {os.environ[VARIABLE]!r}.")
    level = LEVELS[min(max(LEVELS.index(given), verbosity), len(LEVELS) - 1)]
    if verbosity:
        os.environ[VARIABLE] = level
    logger = logging.getLogger(ROOT_LOGGER)
    if not any(isinstance(handler, _Stderr) for handler in logger.handlers):
        handler = _Stderr()
        handler.setFormatter(KeyValueFormatter())
        logger.addHandler(handler)
    logger.setLevel(level.upper())


def event(logger: logging.Logger, level: int, name: str, **fields: object) -> None:
    """Log an event with its fields; those that are None are left out."""
    if logger.isEnabledFor(level):
        pairs = [f"{key}={_quoted(value)}" for key, value in fields.items() if value is not None]
        logger.log(level, "%s", " ".join([f"event={name}", *pairs]), stacklevel=2)


def _quoted(value: object) -> str:
    """A value as one word, or as a JSON string where it has blanks, quotes, `=` or control characters.

    >>> _quoted(0.5), _quoted("/a/b.log"), _quoted("two words"), _quoted("")
    ('0.5', '/a/b.log', '"two words"', '""')
    """
    text = f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    is_word = text and text.isprintable() and not any(mark in text for mark in ' "=')
    return text if is_word else json.dumps(text, ensure_ascii=False)
