"""The seed document's formulas exactly as written (002), as the baseline that the estimator has to beat.

Their known errors (see ESTIMATOR.md) are kept on purpose: both directions of NVLink, micro-batches counted over all
replicas, tensor-parallel time once per step, no head, no attention FLOPs, no kernel efficiency.
"""

from __future__ import annotations

import numpy as np

from sweepscope.pipeline.estimate.calibration.fit import Batch
from sweepscope.pipeline.estimate.physics.layouts import Array

NVLINK_BOTH_WAYS = 2.0


def naive_step_s(batch: Batch) -> Array:
    """T_compute + T_comm + T_idle with F = 6P (three times the document's forward pass)."""
    asked, at = batch.asked, batch.at
    shape, card = asked.shape, asked.cluster
    tokens = at.global_batch_tokens(asked.seq_len)
    compute = 6.0 * shape.params * tokens / (at.num_gpus * card.peak_flops)
    compute = compute * np.where(at.recompute >= 2, 4.0 / 3.0, 1.0)
    tensor = 2.0 * at.mbs * asked.seq_len * shape.hidden_size
    beta_intra = NVLINK_BOTH_WAYS * card.link_bytes_per_s
    tp = 4.0 * shape.num_layers / at.pp * 2.0 * (at.tp - 1.0) / at.tp * tensor / beta_intra
    grads = 2.0 * shape.params / (at.tp * at.pp)
    beta = np.where(at.num_gpus <= card.gpus_per_node, beta_intra, card.network_bytes_per_s * card.gpus_per_node)
    dp = 2.0 * 2.0 * (at.dp - 1.0) / at.dp * grads / beta
    idle = (at.pp - 1.0) / (at.dp * at.gas) * compute
    return np.broadcast_to(compute + tp + dp + idle, at.shape)


def naive_memory_bytes(batch: Batch) -> Array:
    """Model states by ZeRO stage, and 34 s b h bytes per layer of activations, with 10 % fragmentation."""
    asked, at = batch.asked, batch.at
    shape = asked.shape
    per_rank = shape.params / (at.tp * at.pp)
    by_stage = [16.0, 4.0 + 12.0 / at.dp, 2.0 + 14.0 / at.dp, 16.0 / at.dp]
    states = per_rank * np.select([at.zero_stage == stage for stage in range(4)], by_stage)
    activations = 34.0 * at.mbs * asked.seq_len * shape.hidden_size * shape.num_layers / at.pp / at.cp
    activations = np.where(at.recompute >= 2, activations / 17.0, activations)
    return np.broadcast_to(1.1 * (states + activations), at.shape)
