"""Sweeps by the folder or URL that they lie in: the partitions of backfills."""

from __future__ import annotations

from collections.abc import Iterable

import dagster as dg

MOST = 5_000
"""Sweeps that become partitions; SQLite and Dagster's page are slow with many times as many."""

SWEEPS = dg.DynamicPartitionsDefinition(name="sweeps")


def add_sweeps(instance: dg.DagsterInstance, folders: Iterable[str]) -> list[str]:
    """Make partitions of sweeps, by their folders or URLs; those that are new."""
    known = set(instance.get_dynamic_partitions(SWEEPS.name or ""))
    found = sorted({folder for folder in folders if _is_key(folder)} - known)[: max(MOST - len(known), 0)]
    if found:
        instance.add_dynamic_partitions(SWEEPS.name or "", found)
    return found


def _is_key(sweep: str) -> bool:
    """Whether Dagster takes it for a partition: three dots stand for a range there."""
    return bool(sweep) and sweep.isprintable() and "..." not in sweep
