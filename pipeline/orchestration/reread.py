"""Backfills: a sweep's folder is a partition, and reading it again replaces its rows.

A partition for each run directory would cost a hundred times the parsing, and Dagster's page stops at some ten
thousand; sweeps are few. What is new needs no partition: the ledger says what has been read.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations of ops at run time.
import dagster as dg

from sweepscope.pipeline.orchestration.resources import HomeResource
from sweepscope.pipeline.orchestration.run_memory import one_sentence
from sweepscope.pipeline.orchestration.sweep_names import SWEEPS


@dg.op(name="read_again", description="Reads every file of the sweep again, in place of what was read before.")
def _read_again(context: dg.OpExecutionContext, store_home: HomeResource) -> dg.Output[None]:
    from sweepscope.pipeline.orchestration.run import ingest_paths  # it builds the definitions that this is a part of

    with one_sentence():
        done = ingest_paths(store_home.home, [context.partition_key], again=True, with_published=False)
    runs = sum(done.runs.values())
    return dg.Output(None, metadata={"files": done.files_new, "bytes": done.bytes_read, "runs": runs})


@dg.job(
    name="reread_sweep",
    partitions_def=SWEEPS,
    executor_def=dg.in_process_executor,
    description="Read a sweep again, whatever the ledger says: launch a backfill of the sweeps that you choose.",
    tags={"sweepscope/trigger": "backfill", "dagster/max_retries": "1"},
)
def reread_job() -> None:
    """One op: it runs the graph batch by batch, as the command line does."""
    _read_again()
