"""Workers that torchrun's agent found terminated (SIGTERM): was that the end of the run, or the echo of another's?

The agent terminates the workers that are left once one has failed, and newer versions list those, too; so does the
agent of a node that Slurm stops because another node's task failed. The table's root cause is the failure with the
smallest time in whole seconds, of equal ones the first of the list (torch/distributed/elastic/multiprocessing/errors/
__init__.py get_first_failure), so it may be one of them. Where the tables of a run name nobody else, the signal came
from outside: from a user, an orchestrator, or a scheduler that left no line of its own.
"""

from __future__ import annotations

import polars as pl

from pipeline.parse.launchers import TABLE_LINE

_TERMINATED = r"\bexitcode (?:-15|143)\b"  # 143: a worker that handles the signal, or a shell around it
_WORKER = r"failed \(exitcode: -15\)|Signal 15 \(SIGTERM\) received by PID"
"""How the agent tells of one worker; what it is told itself (`Received SIGTERM death signal`) is no echo."""


def weigh(events: pl.DataFrame) -> pl.DataFrame:
    """`events` (with `key`, `kind`, `text`) of runs whose tables name failed workers, as these tell to read them.

    Where all were terminated, torchrun's failure is no failure but a `sigterm`. Where another one failed, the
    terminated ones are its echo, and gone.
    """
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
