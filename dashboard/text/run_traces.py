"""What profilers saw in the steps of a run, in words."""

from __future__ import annotations

from collections.abc import Sequence

from sweepscope.dashboard.format.numbers import count, number, percent, seconds
from sweepscope.dashboard.queries.query import Row

CLOCK = "Profilers slow steps down: compare the parts, and step times with other traces only."


def qualifier(ranks: Sequence[Row]) -> str:
    """How much was traced.

    >>> qualifier([{"traced_steps": 3}, {"traced_steps": 3}])
    '2 traces, 6 steps'
    """
    steps = sum(row["traced_steps"] for row in ranks)
    return f"{count(len(ranks), 'trace')}, {count(steps, 'step')}"


def facts(ranks: Sequence[Row], layout: str | None) -> list[tuple[str, str]]:
    """Name and value of what a step is made of, of the slowest traced process, and how ranks differ."""
    slowest = ranks[0]
    rows = [("Step, median", seconds(slowest["duration_s"]))]
    if len(ranks) > 1:
        fastest = ranks[-1]["duration_s"]
        rows[0] = (
            "Step, median",
            f"{seconds(slowest['duration_s'])} on the slowest rank, {seconds(fastest)} on the fastest",
        )
    if slowest["device_busy_s"] is not None:
        rows.append(("GPU busy", _part(slowest, "device_busy_s")))
    if slowest["compute_s"] is not None:
        rows.append(("Compute kernels", _part(slowest, "compute_s")))
    if slowest["exchange_s"]:
        rows.append(("NCCL or RCCL kernels", _part(slowest, "exchange_s")))
        exposed = seconds(slowest["exposed_exchange_s"])
        with_layout = f" with {layout}" if layout else ""
        rows.append(
            ("Exposed communication", f"{exposed}{with_layout}; {percent(slowest['hidden_share'], 0)} is hidden")
        )
    return rows


def operations(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Name and value of each collective."""
    return [
        (
            row["trace_op"],
            f"{number(row['calls_per_step'], 1)} per step, {seconds(row['kernel_s'])} in sum, "
            f"longest {seconds(row['longest_kernel_s'])}",
        )
        for row in rows
    ]


def _part(row: Row, name: str) -> str:
    return f"{seconds(row[name])}, {percent(row[name] / row['duration_s'], 0)} of the step"
