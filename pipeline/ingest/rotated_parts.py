"""Parts of a rotated log, compared with those that the lake has: rotating moves content from name to name.

Content that the lake has under any part is found again under the others. What is found nowhere was deleted by the
rotation; its rows stay, and the runs that began in it go on with their ids.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from sweepscope.pipeline.derive.metrics import fill_gpu_hours
from sweepscope.pipeline.derive.run_id import run_id
from sweepscope.pipeline.ingest.same_content import Row
from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.io.rotated import rotation

if TYPE_CHECKING:
    from sweepscope.pipeline.store.lake import (
        Lake,  # its libraries take 16 MB, which processes that only read logs save
    )

_KNOWN = "_known"
_BEGIN, _END, _HOURS = ("started_at", "first_step"), ("ended_at", "last_step"), ("gpu_hours", "gpu_hours_basis")


@dataclass(frozen=True)
class Alignment:
    """Known parts of a log, oldest first: `found` with the paths that have their content now, and `lost` ones."""

    found: list[tuple[Row, str]]
    lost: list[Row]


def align(new: Sequence[Row], known: Sequence[Row]) -> Alignment:
    """Where the content of known parts is now.

    Args:
        new: ledger rows of the parts as they were read, oldest first.
        known: ledger rows of the lake that are, or were, parts of the log.
    """
    found: list[tuple[Row, str]] = []
    lost: list[Row] = []
    for row in sorted(known, key=lambda row: rotation(_name(row))[1]):
        if holder := next((str(part["path"]) for part in new if holds(part, row)), None):
            found.append((row, holder))
        else:
            lost.append(row)
    return Alignment(found, lost)


def run_ids(
    id_path: str, paths: Sequence[str], new: pl.DataFrame, found: Sequence[tuple[Row, str]], lake: Lake
) -> dict[str, str]:
    """Ids of the runs of a log, by those that they were read with: runs that begin where known ones do are those.

    The first one goes on from a part that is lost, if the first known part does. All others are new.

    Args:
        id_path: path that the ids of the known runs are made from.
        paths: parts of the log, oldest first.
        new: `run_id`, `source_path`, `line_no` of the runs as they were read.
        found: known parts, and the paths that have their content.
        lake: with the known runs.
    """
    holder = {str(row["path"]): path for row, path in found}
    is_known = pl.col("source_path").is_in(list(holder))
    known = lake.read("runs", ["run_id", "source_path", "line_no"], is_known)
    begins = {(holder[path], line): run for run, path, line in known.iter_rows()}
    order = {path: number for number, path in enumerate(paths)}
    rows = sorted(new.iter_rows(), key=lambda row: (order[row[1]], row[2]))
    oldest, path = found[0]
    if rows and path == paths[0]:
        in_oldest = pl.col("source_path") == str(oldest["path"])
        steps = lake.read("steps", ["run_id", "line_no"], in_oldest).sort("line_no")
        if not steps.is_empty():
            begins.setdefault((rows[0][1], rows[0][2]), str(steps["run_id"][0]))
    taken = set(lake.read("runs", ["run_id"])["run_id"])
    numbers = (run_id(id_path, str(number)) for number in itertools.count(1))
    unused = (one for one in numbers if one not in taken)
    return {run: begins.get((path, line)) or next(unused) for run, path, line in rows}


def with_lost_parts(runs: pl.DataFrame, known: pl.DataFrame, steps: pl.DataFrame, read: pl.DataFrame) -> pl.DataFrame:
    """Rows of `runs` with what is known of them from lost parts: steps, begin, end, and what only those stated.

    Args:
        runs: rows of `runs`, of rotated logs.
        known: rows of `runs` in the lake with the same ids.
        steps: `run_id`, `step` in the lake, of lost parts.
        read: `run_id`, `step` as they were read now.
    """
    columns = [name for name in runs.columns if name != "run_id"]
    lost = steps.join(read, on=["run_id", "step"], how="anti").group_by("run_id").agg(pl.len().alias("lost_steps"))
    rows = runs.join(known, on="run_id", how="left", suffix=_KNOWN, maintain_order="left")
    rows = rows.join(lost, on="run_id", how="left", maintain_order="left")
    cut = rows.filter(pl.col("lost_steps").is_not_null())
    for names, outer in ((_BEGIN, pl.min_horizontal), (_END, pl.max_horizontal)):
        cut = cut.with_columns(outer(name, f"{name}{_KNOWN}").alias(name) for name in names)
    given = pl.col("gpu_hours_basis") == "given"
    cut = (
        cut.with_columns(pl.when(given).then(name).alias(name) for name in _HOURS)
        .with_columns(pl.coalesce(name, f"{name}{_KNOWN}").alias(name) for name in columns if name not in _HOURS)
        .with_columns(steps_logged=pl.col("steps_logged") + pl.col("lost_steps"))
    )
    whole = rows.filter(pl.col("lost_steps").is_null())
    return pl.concat([whole.select(runs.columns), fill_gpu_hours(cut.select(runs.columns)).select(runs.columns)])


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
