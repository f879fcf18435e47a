"""What Dagster's list of runs shows of each: who asked for it, where it reads from, and how much."""

from __future__ import annotations

import polars as pl

TRIGGER_TAG = "sweepscope/trigger"
"""Who asked for a run: sensor, schedule, backfill or command."""

_SWEEPS_NAMED = 3


def batch_tags(batch: pl.DataFrame) -> dict[str, str]:
    """What a run reads: a few of its sweeps by name, and the number of files.

    Args:
        batch: discover.FOUND rows.
    """
    sweeps = sorted({sweep_of(unit) for unit in batch["unit"].unique()})
    named = ", ".join(sweeps[:_SWEEPS_NAMED])
    more = f" and {len(sweeps) - _SWEEPS_NAMED:,} more" if len(sweeps) > _SWEEPS_NAMED else ""
    return {"sweepscope/sweeps": f"{named}{more}", "sweepscope/files": str(batch.height)}


def sweep_of(unit: str) -> str:
    """Folder or URL of the sweep that a run directory, or a log, lies in.

    >>> sweep_of("/data/sweep1/dp8"), sweep_of("s3://bucket/sweep1/dp8")
    ('/data/sweep1', 's3://bucket/sweep1')
    """
    return unit.rpartition("/")[0]
