"""The list of all tables and views. Checks, DDL, the dictionary and the lake are built by looping over it."""

from __future__ import annotations

from sweepscope.schemas.core.table import Table
from sweepscope.schemas.tables import estimates, memory, memory_views, nccl, reliability, runs, scheduler

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        runs.FILES,
        runs.RUNS,
        runs.STEPS,
        runs.EVENTS,
        runs.SETTINGS,
        runs.REJECTS,
        scheduler.SCHEDULER_JOBS,
        *nccl.ALL,
        memory.MEMORY_SNAPSHOTS,
        memory.MEMORY_TIMELINE,
        memory.MEMORY_AT_PEAK,
        memory.MEMORY_SITES,
        memory.MEMORY_ALIVE,
        memory.GPU_SAMPLES,
        estimates.ESTIMATES,
        runs.PUBLISHED_RUNS,
        runs.ACCELERATORS,
        *nccl.REFERENCE,
    )
}

VIEWS: dict[str, Table] = {
    view.name: view
    for view in (  # in the order of creation: a view may use those before it
        reliability.RUN_OUTCOMES,
        runs.RANKED_LAYOUTS,
        runs.BEST_CONFIGS,
        runs.GRID_CELLS,
        runs.SCALING_EFFICIENCY,
        runs.MFU_AUDIT,
        runs.FRONTIER,
        *reliability.VIEWS,
        *nccl.VIEWS,
        estimates.ESTIMATOR_RESIDUALS,
        estimates.RULE_SCORES,
        memory.RUN_GPU_MEMORY,
        *memory_views.VIEWS,
    )
}

# Written by publishing itself, in no lake.
STORE: dict[str, Table] = {runs.STORE_INFO.name: runs.STORE_INFO}

ALL: dict[str, Table] = {**TABLES, **VIEWS, **STORE}
