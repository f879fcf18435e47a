"""Step time and memory of a simulated layout, from a short formula.

Plausible, not accurate: it decides which simulated layout is fast and which runs out of memory.
Symbols as in the tables; byte counts are those of BF16 weights, FP32 gradients' copy and Adam states (2 + 4 + 12).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sweepscope.pipeline.simulate.catalogue import Accelerator, ModelShape
from sweepscope.pipeline.simulate.truth import Layout

_GIB = 2**30
_ATTAINABLE = 0.62  # share of the peak that large matrix products reach
_HALF_WORK = 2.5e6  # tokens x width per GPU at which half of that is reached
_CONTEXT_BYTES = 1.3 * _GIB  # CUDA context and NCCL buffers
_OVERLAP = 0.6  # share of the data-parallel traffic hidden behind the backward pass


@dataclass(frozen=True)
class Prediction:
    """Seconds per step, and bytes allocated at the peak on the fullest GPU."""

    step_time_s: float
    mem_allocated_bytes: float


def predict(
    model: ModelShape, layout: Layout, seq_len: int, accelerator: Accelerator, gpus_per_node: int
) -> Prediction:
    """Noise-free step time and peak memory of one layout."""
    return Prediction(
        _step_time_s(model, layout, seq_len, accelerator, gpus_per_node), memory_bytes(model, layout, seq_len)
    )


def _step_time_s(
    model: ModelShape, layout: Layout, seq_len: int, accelerator: Accelerator, gpus_per_node: int
) -> float:
    tokens = layout.mbs * seq_len / layout.cp  # of one micro-batch on one rank
    work = tokens * model.hidden_size / layout.tp
    rate = accelerator.peak_tflops * 1e12 * _ATTAINABLE * work / (work + _HALF_WORK)
    flops = model.flops_per_token(seq_len) * layout.gbs * seq_len / layout.num_gpus
    recompute = {"none": 1.0, "selective": 1.03, "full": 4 / 3}[layout.recompute]
    compute = flops * recompute / rate
    bubble = compute * (layout.pp - 1) / layout.gas  # Narayanan 2104.04473
    # Four all-reduces per layer and micro-batch, of the activations: 2(tp-1)/tp of their bytes.
    link = accelerator.link_bytes_per_s if layout.tp <= gpus_per_node else accelerator.network_bytes_per_s
    layers = model.num_layers / layout.pp
    tensor = layout.gas * layers * 4 * 2 * (layout.tp - 1) / layout.tp * 2 * tokens * model.hidden_size / (0.7 * link)
    # Gradients once a step (twice their bytes around the ring); sharded weights are gathered twice per micro-batch.
    shard = model.params / (layout.tp * layout.pp)
    inside = layout.dp * layout.tp * layout.pp * layout.cp <= gpus_per_node
    wire = accelerator.link_bytes_per_s if inside else accelerator.network_bytes_per_s
    volume = 4.0 * shard + (4.0 * shard * layout.gas if layout.zero_stage == 3 else 2.0 * shard)
    data = volume * (layout.dp - 1) / layout.dp / (0.7 * wire)
    stages = 2 * (layout.pp - 1) * 15e-6 * layout.gas
    return compute + bubble + tensor + data * (1 - _OVERLAP) + stages + 0.004


def memory_bytes(model: ModelShape, layout: Layout, seq_len: int) -> float:
    """Bytes allocated at the peak on the fullest GPU."""
    expert_share = 1.0
    if model.num_experts:
        expert_share = 1 / layout.ep
    shard = model.params * expert_share / (layout.tp * layout.pp)
    d = layout.dp
    zero = layout.zero_stage
    states = shard * (2 / (d if zero == 3 else 1) + 4 / (d if zero >= 2 else 1) + 12 / (d if zero >= 1 else 1))
    tokens = layout.mbs * seq_len / layout.cp
    # Korthikanti 2205.05198 with flash attention: 34 bytes per token and width, 2 when only layer inputs are kept.
    per_layer = tokens * model.hidden_size * {"none": 34.0, "selective": 28.0, "full": 2.0}[layout.recompute]
    alive = min(layout.pp, layout.gas)  # the first stage of 1F1B
    activations = per_layer / layout.tp * model.num_layers / layout.pp * alive
    logits = 10.0 * tokens * model.vocab_size / layout.tp
    return states + activations + logits + _CONTEXT_BYTES


def reserved_bytes(allocated: float, fragmentation: float) -> int:
    """Bytes that the caching allocator reserves: the peak plus fragmentation, in whole 2 MiB segments."""
    return 2 * 2**20 * math.ceil(allocated * (1 + fragmentation) / (2 * 2**20))


def losses(vocab_size: int, step: int) -> float:
    """A training curve: from ln(vocabulary) towards 2.3 nats."""
    start = math.log(vocab_size)
    return 2.3 + (start - 2.3) * math.exp(-step / 40)
