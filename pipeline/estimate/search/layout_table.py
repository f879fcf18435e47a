"""Layouts as rows: each with its prediction, what its memory and its time are made of, and the bytes that stay free."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import polars as pl

from sweepscope.pipeline.estimate.learned.expected import EXPECTED, expect
from sweepscope.pipeline.estimate.physics.estimate import Estimate, estimate
from sweepscope.pipeline.estimate.physics.layouts import RECOMPUTE_MODES, SCHEDULES, Array, Layouts
from sweepscope.pipeline.estimate.physics.memory import Memory
from sweepscope.pipeline.estimate.physics.ratio_columns import ratio_columns
from sweepscope.pipeline.estimate.physics.stages import place_layers
from sweepscope.pipeline.estimate.physics.step_time import StepTime
from sweepscope.pipeline.estimate.search.enumerate import Request

_SHOWN = ("dp", "tp", "pp", "cp", "ep", "vpp", "gas", "mbs", "zero_stage", "dp_replicate")

NO_LAYOUTS = Layouts.of()[np.zeros(0, np.intp)]
"""An empty list of layouts."""


def layout_table(request: Request, at: Layouts) -> pl.DataFrame:
    """A list of layouts with their prediction and its breakdown, in the names of the `estimate` verb."""
    predicted: Estimate = estimate(request.asked, at)
    size, worst = at.shape[0], predicted.memory

    def column(values: Array) -> Array:
        return np.broadcast_to(values, (size,))

    return pl.DataFrame(
        {
            **{name: column(getattr(at, name)).astype(np.int64) for name in _SHOWN},
            "recompute": pl.Series([RECOMPUTE_MODES[int(code)] for code in column(at.recompute)], dtype=pl.String),
            "pipeline_schedule": pl.Series([SCHEDULES[int(code)] for code in column(at.schedule)], dtype=pl.String),
            "stage_layers": pl.Series(_stage_layers(request, column(at.pp)), dtype=pl.String),
            "est_mfu": column(predicted.mfu),
            "est_tokens_per_s_per_gpu": column(predicted.tokens_per_s_per_gpu),
            "est_step_time_s": column(predicted.step_time_s),
            "est_mem_bytes": column(predicted.mem_bytes),
            "est_mem_reserved_bytes": column(predicted.stages.reserved),
            "est_mem_free_bytes": room_bytes(request) - column(predicted.stages.reserved),
            **{f"est_mem_{part.name}_bytes": column(getattr(worst, part.name)) for part in fields(Memory)},
            **{f"est_time_{part.name}_s": column(getattr(predicted.time, part.name)) for part in fields(StepTime)},
            **{
                name: pl.Series(values, dtype=pl.Float64).fill_nan(None)
                for name, values in ratio_columns(request.asked, at, predicted).items()
            },
        }
    ).with_columns(
        pl.Series(name, values, EXPECTED[name], strict=False)
        for name, values in expect(request.asked, at, predicted).items()
    )


def _stage_layers(request: Request, pp: Array) -> list[str]:
    """Layers on each pipeline stage, as in "11-11-10": uneven where they do not divide or the head counts as layers."""
    asked = request.asked
    placed = {
        degree: place_layers(asked.shape, int(degree), placement=asked.profile.placement) for degree in np.unique(pp)
    }
    text_by_degree = {degree: "-".join(str(count) for count in counts) for degree, counts in placed.items()}
    return [text_by_degree[degree] for degree in pp]


def room_bytes(request: Request) -> float:
    """Bytes of one accelerator that an estimate may fill: its memory less what lies outside the allocator."""
    return request.asked.cluster.memory_bytes - request.asked.profile.outside_bytes
