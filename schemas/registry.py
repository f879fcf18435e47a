"""The list of all tables and views. Checks, DDL, the dictionary and the lake are built by looping over it."""

from __future__ import annotations

from sweepscope.schemas.columns import shared
from sweepscope.schemas.core.column import Column
from sweepscope.schemas.core.table import Table
from sweepscope.schemas.tables import (
    bandwidths,
    clusters,
    costs,
    estimates,
    hangs,
    inference,
    ledger,
    memory,
    memory_views,
    nccl,
    notes,
    plans,
    published,
    rankings,
    reliability,
    runs,
    scheduler,
    timeline,
    traces,
)


def _by_name(*tables: Table) -> dict[str, Table]:
    return {table.name: table for table in tables}


NCCL_TABLES = (*nccl.TABLES, bandwidths.NCCL_BENCH, hangs.NCCL_HANGS, hangs.NCCL_HANG_LINES, hangs.FLIGHT_RECORDS)
"""Tables that are filled from files with NCCL output and from flight recorder dumps."""

TABLES = _by_name(
    ledger.FILES,
    runs.RUNS,
    runs.STEPS,
    runs.EVENTS,
    runs.SETTINGS,
    runs.ARGUMENTS,
    ledger.REJECTS,
    inference.INFERRED_COLUMNS,
    inference.INFERRED_DIALECTS,
    scheduler.SCHEDULER_JOBS,
    *NCCL_TABLES,
    *memory.TABLES,
    *traces.TABLES,
    estimates.ESTIMATES,
    *plans.TABLES,
    published.PUBLISHED_RUNS,
    published.ACCELERATORS,
    bandwidths.PUBLISHED_BANDWIDTHS,
    bandwidths.ACCELERATOR_LINKS,
    notes.NOTES,
    costs.PRICES,
    clusters.CLUSTERS,
)

# In the order of creation: a view may use those before it.
VIEWS = _by_name(
    reliability.RUN_OUTCOMES,
    *rankings.VIEWS,
    published.FRONTIER,
    timeline.RUN_FILES,
    timeline.RUN_HOSTS,
    *reliability.VIEWS,
    nccl.NCCL_FINDINGS,
    nccl.NCCL_TRAFFIC,
    estimates.ESTIMATOR_RESIDUALS,
    estimates.RUN_RATIOS,
    estimates.RULE_SCORES,
    *plans.VIEWS,
    memory.RUN_GPU_MEMORY,
    *memory_views.VIEWS,
    *timeline.VIEWS,
    notes.RUN_NOTES,
    costs.RUN_COSTS,
)

STORE = _by_name(ledger.STORE_INFO, ledger.RECONCILED_RUNS)
"""Written by publishing itself, in no lake."""

ALL = {**TABLES, **VIEWS, **STORE}

COLUMNS: dict[str, Column] = {
    **shared.COLUMNS,
    **{
        column.name: column
        for table in ALL.values()
        for column in table.columns
        if column.name not in {*table.redefines, *shared.COLUMNS}
    },
}
"""Every column by its name, with its usual meaning: what single tables redefine is not here."""
