"""Megatron's own output around MLPerf's events: its step lines, where no event has a step, and its arguments.

Primus and Megatron-Bridge log the events of a block and an evaluation only, or leave the training to the console. What
Megatron prints is read by `megatron` and its modules.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialects.megatron import dialect, rules
from sweepscope.pipeline.logs.dialects.megatron import settings as megatron_settings

STEP_LITERALS = dialect.STEP_LITERALS
SETTING_LITERALS = ("known_args[", "- arguments -", " .....", "end of arguments", "| global batch size:")
COMBINED = tuple(rule for rule in rules.COMBINED if rule.name in ("precision", "zero_stage", "recompute"))

_DUMPED = r"known_args\[\w+\] = | \.{3,} |-+ end of arguments -+|\| global batch size:"


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of step lines, which are known by the number of steps planned: no event has one."""
    return dialect.steps(lines)


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS of arguments as Megatron and Primus dump them; other configurations are left out."""
    return megatron_settings.settings(lines.filter(pl.col("text").str.contains(_DUMPED)))


def without_spare(steps: pl.DataFrame) -> pl.DataFrame:
    """`steps` without those of the console in files whose events have any."""
    is_console = pl.col("steps_planned").is_not_null()
    has_events = (~is_console & pl.col("step").is_not_null()).any().over("source")
    return steps.filter(~(is_console & has_events))
