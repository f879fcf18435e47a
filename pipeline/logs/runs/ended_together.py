"""Files of step records that end together: those of one sweep with the same last step, which none of them passes.

Such a file holds steps and nothing else, so that one alone does not show whether its run was done or died. Runs that
die do so at different steps. Pure; computed whenever a store is published, so the order in which files came does not
matter.
"""

from __future__ import annotations

import polars as pl

VERSION = 1
"""Raise it when the same rows would be judged differently: stores are then published anew."""

OF_RECORDS = "a file of step records does not state how the run ended"
"""`status_evidence` of such a run, by itself."""

_LEAST_RUNS = 3
_STATUS = pl.Schema(
    {"run_id": pl.String, "status": pl.String, "status_confidence": pl.String, "status_evidence": pl.String}
)

IS_OF_RECORDS = (pl.col("status") == "unknown") & (pl.col("status_evidence") == OF_RECORDS)


def ended_together(runs: pl.DataFrame) -> pl.DataFrame:
    """`run_id` and the columns of the status of runs that completed because others of their sweep ended at their step.

    Args:
        runs: rows of `runs`, with `origin`, `sweep`, `last_step`, `status`, `status_evidence` and `duplicate_of`.
    """
    records = runs.filter(IS_OF_RECORDS & pl.col("last_step").is_not_null() & pl.col("duplicate_of").is_null())
    if records.height < _LEAST_RUNS:
        return pl.DataFrame(schema=_STATUS)
    sweep = ["origin", "sweep"]
    together = pl.len().over(*sweep, "last_step")
    is_last = pl.col("last_step") == pl.col("last_step").max().over(sweep)
    found = records.with_columns(together=together).filter((together >= _LEAST_RUNS) & is_last)
    return found.select(
        "run_id",
        status=pl.lit("completed"),
        status_confidence=pl.lit("low"),
        status_evidence=pl.format(
            "the records of {} runs of this sweep end at step {}, and none goes on behind it", "together", "last_step"
        ),
    ).cast(_STATUS)
