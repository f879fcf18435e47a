"""Time of a step by modded-nanogpt's clock; a part of the `nanogpt` dialect.

Format: train_gpt*.py (`step:7/1705 train_loss:.. train_time:900ms step_avg:150.00ms`). `train_time` accumulates, stands
still while the run validates, and begins anew behind the warm-up; `step_avg` is its mean since then and follows a step
that became slower only slowly. The time of a step is what the clock moved by since the line before.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from sweepscope.pipeline.logs.facts import STEP_FACTS, Facts
from sweepscope.pipeline.text.quantities import divided, number

FIELDS = {
    "modded_clock_ms": r"\btrain_time:([\d.]+)ms",
    "modded_clock_s": r"\btrain_time:([\d.]+)s",
}
CLOCK = -2
"""Tokens of a step whose time is still the clock's, until `finalize`."""


def clock_s() -> pl.Expr:
    """Seconds of training so far, of the columns `FIELDS`."""
    return pl.coalesce(divided(number(pl.col("modded_clock_ms")), 1000), number(pl.col("modded_clock_s")))


def finalize(facts: Facts) -> Facts:
    """Steps with a clock with the time of one step instead: unknown where the clock or the counter was set back."""
    is_clock = (pl.col("consumed_tokens") == CLOCK).fill_null(value=False)
    if not facts.steps.select(is_clock.any()).item():
        return facts
    clocks = facts.steps.filter(is_clock)
    passed, done = (pl.col(name).diff().over("source") for name in ("step_time_s", "step"))
    timed = clocks.select("source", "line_no", one_s=pl.when((passed > 0) & (done > 0)).then((passed / done).round(6)))
    steps = facts.steps.join(timed, on=["source", "line_no"], how="left", maintain_order="left")
    unmarked = steps.with_columns(
        step_time_s=pl.when(is_clock).then("one_s").otherwise("step_time_s"),
        consumed_tokens=pl.when(~is_clock).then("consumed_tokens"),
    )
    return replace(facts, steps=unmarked.select(list(STEP_FACTS)))
