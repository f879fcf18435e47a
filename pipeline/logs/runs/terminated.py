"""Which SIGTERMs ended a run, and which are echoes of another failure.

torchrun's agent terminates the remaining workers once one has failed, and newer versions list those in their table,
too; so does the agent of a node that Slurm stops because another node's task failed. The table's root cause is the
failure with the smallest time in whole seconds, of equal ones the first of the list (torch/distributed/elastic/
multiprocessing/errors/__init__.py get_first_failure), so it may be a terminated worker. If the tables of a run list
terminated workers only, the signal came from outside: from a user, an orchestrator, or a silent scheduler.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.evidence.batch_systems import HEADINGS
from sweepscope.pipeline.logs.evidence.launchers import TABLE_LINE

_TERMINATED = r"\bexitcode (?:-15|143)\b"  # 143: a worker that handles the signal, or a shell around it
_WORKER = r"failed \(exitcode: -15\)|Signal 15 \(SIGTERM\) received by PID"
"""The agent's lines about one worker. A signal that it receives itself (`Received SIGTERM death signal`) is no echo."""

_SIGNAL_LINES = 8
"""Lines below an MPI launcher's heading in which it names the signal."""


def without_echoes(events: pl.DataFrame) -> pl.DataFrame:
    """`events` (with `key`, `line_no`, `kind`, `text`) without lines that only repeat another failure.

    Where torchrun's tables list terminated workers only, its failure becomes a `sigterm`. Where they list another
    failure, the SIGTERMs of workers are left out. So is an MPI launcher's heading in front of a SIGTERM.
    """
    return _without_terminated(_without_headings(events))


def _without_headings(events: pl.DataFrame) -> pl.DataFrame:
    is_heading = (pl.col("kind") == "exit_code") & pl.col("text").str.contains(HEADINGS)
    if not events.select(is_heading.any()).item():
        return events
    signals = events.filter(pl.col("kind") == "sigterm").select("key", "line_no", signal="line_no").sort("line_no")
    rows = events.sort("line_no", maintain_order=True).join_asof(
        signals, on="line_no", by="key", strategy="forward", tolerance=_SIGNAL_LINES, check_sortedness=False
    )
    return rows.filter(~(is_heading & pl.col("signal").is_not_null())).drop("signal")


def _without_terminated(events: pl.DataFrame) -> pl.DataFrame:
    is_terminated = pl.col("text").str.contains(_TERMINATED)
    tables = events.filter(pl.col("kind") == TABLE_LINE).group_by("key").agg(are_all=is_terminated.all())
    if tables.is_empty():
        return events
    rows = events.join(tables, on="key", how="left", maintain_order="left")
    is_echo = (pl.col("kind") == "sigterm") & pl.col("text").str.contains(_WORKER) & ~pl.col("are_all")
    is_signal = (pl.col("kind") == "child_failed") & pl.col("are_all")
    rows = rows.filter(~is_echo.fill_null(value=False))
    kind = pl.when(is_signal.fill_null(value=False)).then(pl.lit("sigterm")).otherwise("kind")
    return rows.with_columns(kind=kind).drop("are_all")
