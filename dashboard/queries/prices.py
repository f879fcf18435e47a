"""Prices of the accelerators that runs used."""

from __future__ import annotations

from sweepscope.dashboard.queries.query import Query


def price_of(accelerator: str) -> Query:
    """At most one row: the price of an accelerator."""
    return Query("SELECT usd_per_gpu_hour FROM prices WHERE accelerator = $accelerator", {"accelerator": accelerator})


def prices() -> Query:
    """One row per accelerator of own or simulated runs, and per one that has a price: its runs, GPU-hours and price."""
    return Query(
        """SELECT accelerator, coalesce(runs, 0) AS runs, gpu_hours, usd_per_gpu_hour
FROM (
  SELECT accelerator, count(*) AS runs, sum(gpu_hours) AS gpu_hours
  FROM runs
  WHERE accelerator IS NOT NULL AND origin <> 'published' AND duplicate_of IS NULL
  GROUP BY accelerator
)
FULL JOIN prices USING (accelerator)
ORDER BY runs DESC, accelerator"""
    )
