"""Rows of a table as other estimators are asked them: plain numbers, one JSON object a row."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

import numpy as np

from sweepscope.pipeline.estimate.calibration.fit import Batch
from sweepscope.pipeline.estimate.physics.layouts import RECOMPUTE_MODES, Layouts

_OF_CARD = (
    *("peak_flops", "peak_flops_fp8", "memory_bytes", "memory_bytes_per_s", "link_bytes_per_s"),
    *("network_bytes_per_s", "gpus_per_node"),
)


def questions(batch: Batch) -> list[dict[str, Any]]:
    """One question per row of `batch`: shape, card, sequence and layout, without any constant of ours."""
    asked, at = batch.asked, batch.at
    shape = {name: value for name, value in asdict(asked.shape).items() if not isinstance(value, dict)}
    shape["head_dim"] = asked.shape.query_width // asked.shape.num_heads
    shape["v_head_dim"] = asked.shape.value_width // asked.shape.num_heads
    common = {
        **shape,
        **{name: getattr(asked.cluster, name) for name in _OF_CARD},
        "generation": asked.cluster.generation,
        "seq_len": asked.seq_len,
        "is_below_16_bit": asked.is_below_16_bit,
        "is_flash": asked.profile.is_flash,
    }
    columns = {part.name: np.broadcast_to(getattr(at, part.name), at.shape) for part in fields(Layouts)}
    rows = [{name: float(values[index]) for name, values in columns.items()} for index in range(batch.indices.size)]
    return [
        {**common, **{name: int(value) for name, value in row.items()}, "mode": RECOMPUTE_MODES[int(row["recompute"])]}
        for row in rows
    ]
