"""Parts of a rotated log, compared with those that the lake has: rotating moves content from name to name.

Content that the lake has under any part is found again under the others. What is found nowhere was deleted by the
rotation; its rows stay, and the runs that began in it go on with their ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from sweepscope.pipeline.derive.run_id import run_id
from sweepscope.pipeline.ingest.same_content import Row
from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.io.rotated import rotation

_MOST_ATTEMPTS = 10_000


@dataclass(frozen=True)
class Alignment:
    """Known parts of a log, oldest first: those whose content is there, and those whose content is not."""

    found: list[Row]
    lost: list[Row]


def align(new: Sequence[Row], known: Sequence[Row]) -> Alignment:
    """Where the content of known parts is now.

    Args:
        new: ledger rows of the parts as they were read, oldest first.
        known: ledger rows of the lake that are, or were, parts of the log.
    """
    found: list[Row] = []
    lost: list[Row] = []
    for row in sorted(known, key=lambda row: rotation(_name(row))[1]):
        (found if any(holds(part, row) for part in new) else lost).append(row)
    return Alignment(found, lost)


def attempts_before(log: str, steps: pl.DataFrame) -> int:
    """Number of attempts of a log before the one that a part begins in.

    Args:
        log: path that the run ids are made from.
        steps: `run_id`, `line_no` of the steps that the lake has of the part.
    """
    if steps.is_empty():
        return 0
    first = steps.sort("line_no")["run_id"].first()
    return next((number for number in range(_MOST_ATTEMPTS) if run_id(log, str(number + 1)) == first), 0)


def holds(part: Row, known: Row) -> bool:
    """Whether a part begins with the content of a known one."""
    size, digest = known["content_bytes"], known["content_digest"]
    new_size = part["content_bytes"]
    if not (isinstance(size, int) and isinstance(new_size, int) and isinstance(digest, str)):
        return False
    if part["path"] == known["path"] and part["is_continued"]:
        return True
    if size >= new_size:
        return size == new_size and digest == part["content_digest"]
    is_alike = str(part["content_head"] or "").startswith(str(known["content_head"] or ""))
    return is_alike and Reader(str(part["path"])).begins_with(size, digest)


def _name(row: Row) -> str:
    return str(row["former_path"] if row["status"] == "overwritten" else row["path"]).rpartition("/")[2]
