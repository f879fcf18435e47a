"""The stage that sets the pace of a pipeline, and the idle time that the other stages leave it.

Layers are those of `layer_time`; which of them a stage has is a matter of `stages`, and how much of a pass through the
others is idle, of `schedule`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sweepscope.pipeline.estimate.physics.compute import Head, Machine
from sweepscope.pipeline.estimate.physics.layer_time import LayerTime, layer_time
from sweepscope.pipeline.estimate.physics.layouts import Array, Layouts
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.physics.schedule import bubble_share
from sweepscope.pipeline.estimate.physics.stages import Stages


@dataclass(frozen=True)
class MeanLayer:
    """What one layer of the slowest stage takes on average, where some layers are dense and some have experts.

    `dense_share` is the share of dense layers; `dense` or `moe` is None where the model has no layer of the kind.
    """

    dense: LayerTime | None
    moe: LayerTime | None
    dense_share: Array

    def seconds(self, part: str) -> Array:
        """Seconds of one field of LayerTime, or of its `total`, for one layer and micro-batch."""
        of_dense = getattr(self.dense, part) if self.dense is not None else 0.0
        of_moe = getattr(self.moe, part) if self.moe is not None else 0.0
        return self.dense_share * of_dense + (1.0 - self.dense_share) * of_moe

    @cached_property
    def total(self) -> Array:
        """Seconds of all parts, forward and backward."""
        return self.seconds("total")


def mean_layer(asked: Question, on: Machine, at: Layouts) -> MeanLayer:
    """Of one stage the mean of all layers; of a pipeline a layer with experts: the few dense ones are on its first."""
    shape = asked.shape
    dense = layer_time(asked, on, at, is_moe=False) if shape.num_moe_layers < shape.num_layers else None
    moe = layer_time(asked, on, at, is_moe=True) if shape.num_moe_layers else None
    share = np.ones(1) if moe is None else np.where(at.pp == 1, shape.num_dense_layers / shape.num_layers, 0.0)
    return MeanLayer(dense, moe, share)


@dataclass(frozen=True)
class SlowestStage:
    """The last stage, with the head, or the fullest of the others: whichever takes longer.

    `seconds` are those of one micro-batch, forward and backward; `forward` are those of its forward pass.
    """

    layers: Array
    has_head: NDArray[np.bool_]
    seconds: Array
    forward: Array


def slowest_stage(asked: Question, at: Layouts, stages: Stages, layer: MeanLayer, head: Head) -> SlowestStage:
    """The stage whose micro-batch takes longest."""
    middle = stages.middle * layer.total
    last = stages.last * layer.total + head.total
    has_head = (at.pp == 1) | (last > middle)
    layers = np.where(has_head, stages.last, stages.middle)
    return SlowestStage(
        layers=layers,
        has_head=has_head,
        seconds=np.where(has_head, last, middle) + asked.profile.microbatch_s,
        forward=layers * layer.seconds("forward") + np.where(has_head, head.forward, 0.0),
    )


def bubble_s(asked: Question, at: Layouts, layer: MeanLayer, head: Head, slowest: SlowestStage) -> Array:
    """Seconds per step that the slowest stage idles while the pipeline fills and drains; none without a pipeline.

    Meanwhile every other stage runs once, so it is a share (`bubble_share`) of the sum of all stages less the slowest.
    Stalls are left out: nothing is launched beside exchanges then.
    """
    free = layer.total - layer.seconds("stall")
    others = (
        (asked.shape.num_layers - slowest.layers) * free
        + np.where(slowest.has_head, 0.0, head.total)
        + (at.pp - 1.0) * asked.profile.microbatch_s
    )
    weights_share = layer.seconds("linear") / 3.0 / free
    return np.where(at.pp == 1, 0.0, bubble_share(at, weights_share) * others)
