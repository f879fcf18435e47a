"""The list of all tables and views. Checks, DDL, the dictionary and the lake are built by looping over it."""

from __future__ import annotations

from schemas import estimates, memory, memory_views, nccl, reliability, scheduler, tables
from schemas.table import Table

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        tables.FILES,
        tables.RUNS,
        tables.STEPS,
        tables.EVENTS,
        tables.SETTINGS,
        tables.REJECTS,
        scheduler.SCHEDULER_JOBS,
        *nccl.ALL,
        memory.MEMORY_SNAPSHOTS,
        memory.MEMORY_TIMELINE,
        memory.MEMORY_AT_PEAK,
        memory.MEMORY_SITES,
        memory.MEMORY_ALIVE,
        memory.GPU_SAMPLES,
        estimates.ESTIMATES,
        tables.PUBLISHED_RUNS,
        tables.ACCELERATORS,
        *nccl.REFERENCE,
    )
}

VIEWS: dict[str, Table] = {
    view.name: view
    for view in (  # in the order of creation: a view may use those before it
        reliability.RUN_OUTCOMES,
        tables.RANKED_LAYOUTS,
        tables.BEST_CONFIGS,
        tables.GRID_CELLS,
        tables.SCALING_EFFICIENCY,
        tables.MFU_AUDIT,
        tables.FRONTIER,
        *reliability.VIEWS,
        *nccl.VIEWS,
        estimates.ESTIMATOR_RESIDUALS,
        estimates.RULE_SCORES,
        memory.RUN_GPU_MEMORY,
        *memory_views.VIEWS,
    )
}

# Written by publishing itself, in no lake.
STORE: dict[str, Table] = {tables.STORE_INFO.name: tables.STORE_INFO}

ALL: dict[str, Table] = {**TABLES, **VIEWS, **STORE}
