"""Sweeps by the folder or URL that they lie in: the partitions of backfills."""

from __future__ import annotations

from collections.abc import Iterable

import dagster as dg

from sweepscope.pipeline.orchestration.run_tags import sweep_of

MOST = 5_000
"""Sweeps that become partitions; SQLite and Dagster's page are slow with many times as many."""

SWEEPS = dg.DynamicPartitionsDefinition(name="sweeps")


def add_sweeps(instance: dg.DagsterInstance, units: Iterable[str]) -> list[str]:
    """Make partitions of the sweeps of some units; those that are new."""
    known = set(instance.get_dynamic_partitions(SWEEPS.name or ""))
    found = sorted({sweep for unit in units if _is_key(sweep := sweep_of(unit))} - known)[: max(MOST - len(known), 0)]
    if found:
        instance.add_dynamic_partitions(SWEEPS.name or "", found)
    return found


def _is_key(sweep: str) -> bool:
    """Whether Dagster takes it for a partition: three dots stand for a range there."""
    return bool(sweep) and sweep.isprintable() and "..." not in sweep
