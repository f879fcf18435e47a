"""Workers that torchrun's agent found terminated (SIGTERM): was that the end of the run, or the echo of another's?

The agent terminates the workers that are left once one has failed, and newer versions list those, too; so does the
agent of a node that Slurm stops because another node's task failed. The table's root cause is the failure with the
smallest time in whole seconds, of equal ones the first of the list (torch/distributed/elastic/multiprocessing/errors/
__init__.py get_first_failure), so it may be one of them. Where the tables of a run name nobody else, the signal came
from outside: from a user, an orchestrator, or a scheduler that left no line of its own.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.evidence.batch_systems import HEADINGS
from sweepscope.pipeline.logs.evidence.launchers import TABLE_LINE

_TERMINATED = r"\bexitcode (?:-15|143)\b"  # 143: a worker that handles the signal, or a shell around it
_WORKER = r"failed \(exitcode: -15\)|Signal 15 \(SIGTERM\) received by PID"
"""How the agent tells of one worker; what it is told itself (`Received SIGTERM death signal`) is no echo."""

_SIGNAL_LINES = 8
"""Lines below an MPI launcher's heading in which it names the signal."""


def weigh(events: pl.DataFrame) -> pl.DataFrame:
    """`events` (with `key`, `line_no`, `kind`, `text`) as what stands beside them tells to read them.

    Where all workers of torchrun's tables were terminated, its failure is no failure but a `sigterm`. Where another one
    failed, the terminated ones are its echo, and gone. So is an MPI launcher's heading above a SIGTERM.
    """
    return _without_echoes(_without_headings(events))


def _without_headings(events: pl.DataFrame) -> pl.DataFrame:
    is_heading = (pl.col("kind") == "exit_code") & pl.col("text").str.contains(HEADINGS)
    if not events.select(is_heading.any()).item():
        return events
    signals = events.filter(pl.col("kind") == "sigterm").select("key", "line_no", signal="line_no").sort("line_no")
    rows = events.sort("line_no", maintain_order=True).join_asof(
        signals, on="line_no", by="key", strategy="forward", tolerance=_SIGNAL_LINES, check_sortedness=False
    )
    return rows.filter(~(is_heading & pl.col("signal").is_not_null())).drop("signal")


def _without_echoes(events: pl.DataFrame) -> pl.DataFrame:
    is_terminated = pl.col("text").str.contains(_TERMINATED)
    told = events.filter(pl.col("kind") == TABLE_LINE).group_by("key").agg(are_all=is_terminated.all())
    if told.is_empty():
        return events
    rows = events.join(told, on="key", how="left", maintain_order="left")
    is_echo = (pl.col("kind") == "sigterm") & pl.col("text").str.contains(_WORKER) & ~pl.col("are_all")
    is_signal = (pl.col("kind") == "child_failed") & pl.col("are_all")
    rows = rows.filter(~is_echo.fill_null(value=False))
    kind = pl.when(is_signal.fill_null(value=False)).then(pl.lit("sigterm")).otherwise("kind")
    return rows.with_columns(kind=kind).drop("are_all")
