"""What is asked of the estimator: everything but the layout."""

from __future__ import annotations

from dataclasses import dataclass

from sweepscope.pipeline.estimate.physics.profile import Profile
from sweepscope.pipeline.reference.clusters import Cluster, Precision
from sweepscope.pipeline.reference.model_shape import ModelShape


@dataclass(frozen=True)
class Question:
    """A model, where it runs, the constants to use, the sequence length, and the precision of the layers' products."""

    shape: ModelShape
    cluster: Cluster
    profile: Profile
    seq_len: int
    precision: Precision = "bf16"

    @property
    def is_below_16_bit(self) -> bool:
        """Whether products run in 8 bits and fewer."""
        return self.precision != "bf16"

    @property
    def peak_flops(self) -> float:
        """Dense peak that MFU divides by, in FLOP/s."""
        return self.cluster.peak_flops_of(self.precision)
