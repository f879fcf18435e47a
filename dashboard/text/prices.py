"""Words around the prices of accelerators."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from sweepscope.dashboard.format.numbers import count
from sweepscope.dashboard.queries.query import Row

INSTRUCTIONS = (
    "Dollars per hour of one accelerator, as you pay or would pay for it. Every page then shows dollars per million "
    "tokens beside throughput, and what runs and failures cost. An empty price is forgotten."
)
NO_ACCELERATOR = (
    "These runs do not name their accelerator, so they can have no price. State it on Data health: then a price set "
    "here holds for them."
)
NOTHING_CHANGED = "No price was changed."


def ask(accelerator: str) -> str:
    """What a price of one accelerator is for, above the field that takes it."""
    return (
        f"Dollars per hour of one {accelerator}, as you pay or would pay for it. Every page then shows dollars per "
        "million tokens beside throughput. It is kept with the results."
    )


def qualifier(rows: Sequence[Row]) -> str:
    """How many accelerators have a price."""
    priced = sum(row["usd_per_gpu_hour"] is not None for row in rows)
    return f"set for {priced or 'none'} of {count(len(rows), 'accelerator')}"


def kept(changed: int) -> str:
    """What was kept."""
    return f"{count(changed, 'price')} kept." if changed else NOTHING_CHANGED


def by_command(rows: Sequence[Row], home: str) -> str:
    """The command that sets a price, where the page may not."""
    name = shlex.quote(str(rows[0]["accelerator"])) if rows else "H100-SXM-80GB"
    return f"sweepscope price set {name} 2.50{home}"
