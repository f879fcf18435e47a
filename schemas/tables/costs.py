"""What accelerators cost, and what runs cost in money and energy."""

from __future__ import annotations

from sweepscope.schemas.columns.shared import columns
from sweepscope.schemas.core.column import integer, number, text, time
from sweepscope.schemas.core.table import Table
from sweepscope.schemas.vocab.costs import ENERGY_BASIS

_PRICE = number("usd_per_gpu_hour", "$/(GPU·h)", "price of an accelerator-hour", positive=True)

PRICES = Table(
    name="prices",
    description="Prices of accelerators, as the user states them: `sweepscope price set`.",
    grain="one row per accelerator with a price",
    primary_key=("accelerator",),
    replaced_by="accelerator",
    columns=columns(
        "accelerator", _PRICE, "author", time("set_at", "when the price was stated (UTC); it holds for all times")
    ),
)

RUN_COSTS = Table(
    name="run_costs",
    description="What a run cost in dollars, where its accelerator has a price, and in energy, where power is known.",
    grain="one row per run attempt that counts and has a price or samples of power",
    primary_key=("run_id",),
    layer="view",
    columns=columns(
        "run_id accelerator",
        _PRICE,
        number("run_usd", "$", "price times the accelerator-hours of `run_outcomes`", minimum=0),
        number("usd_per_m_tokens", "$/Mtoken", "price of a million tokens at its steady throughput", positive=True),
        integer("gpus_sampled", "count", "GPUs whose power was sampled while the run went on"),
        "power_mean_w power_busy_w",
        number("energy_kwh", "kWh", "mean power times accelerators and duration; GPUs only", minimum=0),
        text("energy_basis", "whether all GPUs were sampled", ENERGY_BASIS),
        number("tokens_per_joule", "tokens/J", "steady throughput over power_busy_w", positive=True),
        number("kwh_per_m_tokens", "kWh/Mtoken", "energy of a million tokens at that rate", positive=True),
    ),
)
