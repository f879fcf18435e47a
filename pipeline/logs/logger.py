"""What a user's own logger writes in front of a trainer's line: a time, a level, a module, in any order and brackets.

Formats: logging.basicConfig (`INFO:root:`), its usual patterns (`2024-05-01 12:00:00,123 - train - INFO - `), Hydra
(`[2024-05-01 12:00:00,123][__main__][INFO] - `), loguru (`2024-05-01 12:00:00.123 | INFO     | __main__:main:45 - `),
rich (`[05/01/24 12:00:00] INFO     `), ts and the like (`12:00:00 `).

A launcher's prefix goes at the front door, for every dialect. This one goes only where a dialect asks for it: some
frameworks have a logger of their own, by which their lines are known.
"""

from __future__ import annotations

import polars as pl

_CLOCK = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?(?: ?[AP]M)?(?:Z|[-+][0-9]{2}:?[0-9]{2})?"
_DAY = r"(?:[0-9]{4}[-/.][0-9]{2}[-/.][0-9]{2}|[0-9]{2}[-/.][0-9]{2}(?:[-/.][0-9]{2,4})?)[ T_]+"
_STAMP = rf"[\[(]?(?:{_DAY})?{_CLOCK}[\])]?"
_LEVEL = r"[\[(]?(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|SUCCESS|info|debug|warning) *[\])]?"
# Without blanks, so that an epoch's number is none: its steps count from 0 again.
_BRACKET = r"\[(?:[A-Za-z_][^\]\s]{0,80} *|[0-9]{3,8}|[Rr]ank[ =:]?[0-9]+)\]"
_NAME = r"[A-Za-z_<][\w.<>/-]*(?::[\w.<>]+)*"
_MARK = r"[ \t]*[-:|>]?[ \t]*"
_NAMED = rf"{_NAME}[ \t]*[-:|>][ \t]*"

PREFIX = (
    rf"(?:{_NAMED}|{_BRACKET}{_MARK})?(?:{_STAMP}|{_LEVEL}){_MARK}(?:(?:{_STAMP}|{_LEVEL}|{_BRACKET}){_MARK}|{_NAMED})*"
)
"""With a time or a level, never a name alone: `Epoch: ` is a name, too."""


def without_logger(lines: pl.DataFrame, beginnings: str) -> pl.DataFrame:
    """`lines` with `text` from where one of `beginnings` (an expression without groups) stands behind a PREFIX.

    Other lines stay as they are; `logged` is the text of all as it was.
    """
    bare = pl.col("text").str.replace(rf"^{PREFIX}({beginnings})", "${1}")
    return lines.with_columns(logged="text", text=bare)
