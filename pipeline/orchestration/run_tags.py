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
    sweeps = sweep_folders(batch)
    named = ", ".join(sweeps[:_SWEEPS_NAMED])
    more = f" and {len(sweeps) - _SWEEPS_NAMED:,} more" if len(sweeps) > _SWEEPS_NAMED else ""
    return {"sweepscope/sweeps": f"{named}{more}", "sweepscope/files": str(batch.height)}


def sweep_folders(found: pl.DataFrame) -> list[str]:
    """Folders or URLs of the sweeps that files belong to, each once, in order.

    Args:
        found: discover.FOUND rows, of which `unit`, `run_dir` and `sweep` count.
    """
    return sorted({sweep_folder(*row) for row in found.select("unit", "run_dir", "sweep").unique().iter_rows()})


def sweep_folder(unit: str, run_dir: str | None, sweep: str | None) -> str:
    """Folder or URL of a file's sweep: what of its run's folder ends with the sweep's name, else what its unit lies in.

    A unit may be a run's folder, or one log in it, so that what it lies in may be the run's folder as well.

    >>> sweep_folder("/data/llama/dp8", "/data/llama/dp8", "llama")
    '/data/llama'
    >>> sweep_folder("s3://bucket/llama/dp8/slurm-17", "s3://bucket/llama/dp8", "llama")
    's3://bucket/llama'
    >>> sweep_folder("/data/llama/dp8", None, None)
    '/data/llama'
    """
    before, named, _ = f"{run_dir or ''}/".rpartition(f"/{sweep}/")
    return f"{before}{named}".removesuffix("/") if sweep and named else unit.rpartition("/")[0]
