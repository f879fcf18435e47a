"""Parts of a rotated log, compared with those that the lake has: rotating moves content from name to name.

Content that the lake has under any part is found again under the others. What is found nowhere was deleted by the
rotation; its rows stay, and the runs that began in it go on with their ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from sweepscope.pipeline.derive.metrics import fill_gpu_hours
from sweepscope.pipeline.derive.run_id import run_id
from sweepscope.pipeline.ingest.same_content import Row
from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.io.rotated import rotation

_MOST_ATTEMPTS = 10_000
_KNOWN = "_known"
_BEGIN = ("started_at", "first_step")


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


def with_lost_beginnings(runs: pl.DataFrame, known: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Rows of `runs` that begin where they began when the lost parts of their logs were there.

    What only those parts stated is taken over, too.

    Args:
        runs: rows of `runs`, of rotated logs.
        known: rows of `runs` in the lake with the same ids.
        steps: `run_id`, `step` in the lake, of the same runs.
    """
    columns = [name for name in runs.columns if name != "run_id"]
    rows = runs.join(known, on="run_id", how="left", suffix=_KNOWN, maintain_order="left")
    earlier = pl.any_horizontal(pl.col(f"{name}{_KNOWN}") < pl.col(name) for name in _BEGIN)
    rows = rows.with_columns(is_cut=earlier.fill_null(value=False))
    before = (
        steps.join(rows.filter("is_cut").select("run_id", "first_step"), on="run_id")
        .filter(pl.col("step") < pl.col("first_step"))
        .group_by("run_id")
        .agg(pl.len().alias("steps_before"))
    )
    rows = rows.join(before, on="run_id", how="left", maintain_order="left")
    whole = [pl.coalesce(name, f"{name}{_KNOWN}").alias(name) for name in columns]
    begin = [pl.min_horizontal(name, f"{name}{_KNOWN}").alias(name) for name in _BEGIN]
    known_hours = pl.col("gpu_hours_basis") == "given"
    hours = [pl.when(known_hours).then(name).alias(name) for name in ("gpu_hours", "gpu_hours_basis")]
    cut = (
        rows.filter("is_cut")
        .with_columns(whole)
        .with_columns(begin)
        .with_columns(hours)
        .with_columns(steps_logged=pl.col("steps_logged") + pl.col("steps_before").fill_null(0))
    )
    cut = fill_gpu_hours(cut.select(runs.columns)).select(runs.columns)
    return pl.concat([rows.filter(~pl.col("is_cut")).select(runs.columns), cut]).cast(dict(runs.schema))


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
