"""The ratios of estimates as columns, under the names that the verb, the search and the table `estimates` share."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

import numpy as np

from sweepscope.pipeline.estimate.physics.estimate import Estimate
from sweepscope.pipeline.estimate.physics.layouts import Array, Layouts
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.physics.ratios import DIMENSIONS, Ratios, communication, ratios

RATIOS: Final = (
    *(f"est_comm_{name}_s" for name in DIMENSIONS),
    *(f"est_{entry.name}" for entry in fields(Ratios)),
)
"""est_comm_*_s: seconds per step that each dimension communicates, hidden or not (est_time_*_s is what shows); then the
ratios of `physics.ratios`, NaN where a layout has no such exchange."""


def ratio_columns(asked: Question, at: Layouts, predicted: Estimate) -> dict[str, Array]:
    """The columns of RATIOS of a list of layouts and their estimate."""
    comm = communication(asked, at)
    found = ratios(asked, at, predicted, comm)
    values = [getattr(comm, name) for name in DIMENSIONS] + [getattr(found, entry.name) for entry in fields(Ratios)]
    return {
        name: np.broadcast_to(column, at.shape).astype(np.float64) for name, column in zip(RATIOS, values, strict=True)
    }
