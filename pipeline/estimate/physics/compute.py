"""Compute of one transformer layer and of the head, for one micro-batch on one rank, in seconds.

Matrix products run at a share of the peak that depends on their shape (wave quantisation, depth), or at the memory's
speed where that is slower. Attention is fused (Dao, 2205.14135) or three passes over the scores. Arguments and results
are arrays over layouts unless named otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sweepscope.pipeline.estimate.physics.elementwise import PLAIN_ACTIVATION, SCORES, usual_bytes
from sweepscope.pipeline.estimate.physics.layouts import Array
from sweepscope.pipeline.estimate.physics.profile import Profile
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.reference.clusters import Cluster
from sweepscope.pipeline.reference.model_shape import ModelShape

TILE = 128
"""Rows and columns of one output tile of a matrix product on recent tensor cores (CUTLASS's default thread block)."""

HEAD_WIDTH = 128
"""Width of a head that `attention_efficiency` is stated for."""
ALIGNED = 8
"""Numbers of 16 bit in the 16 bytes that a row of a matrix has to be a multiple of for tensor cores to take it at full
speed (NVIDIA, matrix multiplication guide, section 2.1)."""
MOST_OF_PEAK = 0.85
"""What trainers reach of the fastest products, were those at the peak."""
UNALIGNED_SHARE = 1 / 16
"""What an A100 or H100 reaches of its 16 bit peak without them: its peak in fp32 (19.5 of 312, 67 of 989 TFLOP/s)."""

KERNELS_PER_LAYER = {True: 30, False: 18}
"""Kernels of a forward pass by whether the feed-forward block has a gate: eager Llama-like layers run their norms and
rotary embedding operator by operator; layers without a gate have PyTorch's own LayerNorm, GELU and no rotary embedding
(nanoGPT's: 2 norms, 4 products with 4 casts of weights, 3 transposes, attention, GELU, 2 residuals)."""
KERNELS_OF_CASTS = 4
"""More of each block of a layer (attention, feed-forward) whose products are in 8 bits and fewer, forward: casts of
what its two products take in and of their weights (Transformer Engine, `pytorch/module/linear.py`). The processor needs
twice as long for such a product (NVIDIA/TransformerEngine issue 761)."""
KERNELS_OF_EXCHANGES = {True: 4, False: 2}
"""More of a layer whose tensor group has several ranks, forward, by whether it is sequence parallel: a collective's
launch is a kernel's. Two all-reduces, or two gathers and two scatters (2205.05198 section 4.2.2, figure 5)."""
KERNELS_OF_ROUTING = 30
"""More of a layer with experts, forward: router with its scores, choice, masks and auxiliary loss (15), counts and
offsets of tokens by expert (5), permutations before and after both exchanges, and their probabilities (10). Counted in
Megatron-LM, `core/transformer/moe`: `router.py`, `token_dispatcher.py: MoEAlltoAllTokenDispatcher`, `moe_utils.py`."""
KERNELS_PER_EXPERT = {False: 2, True: 4}
"""Of each expert on a rank, forward, by whether its products are in 8 bits and fewer: two products, and a cast of what
each takes in (`experts.py: TEGroupedMLP`; Transformer Engine's `GroupedLinear` launches a product per expert)."""


@dataclass(frozen=True)
class Machine:
    """What one accelerator can do under a profile, in FLOP/s and bytes/s.

    `flops` are those of the layers' products at one precision; the head's stay in 16 bit, as attention does.
    """

    flops: float
    products_16_bit: float
    attention_flops: float
    memory_bytes_per_s: float
    processors: int
    profile: Profile


def product_gain(profile: Profile, promised: float, wide_share: float = 0.0) -> float:
    """How much faster products run at a peak `promised` times that of 16 bit, of which `wide_share` stay in 16 bit.

    Casts take as long whatever they cast to: their share of a product in 16 bit is what twice the peak falls short by
    (`fp8_gain`, 1 without casts). Six times the peak gains 3.4 times with the casts that leave 1.6 of twice. Scales
    other than one for a tensor leave `gain_kept` of the time that is gained.
    """
    casts = 1.0 / (1.0 + profile.fp8_gain) - 0.5 if promised > 1.0 else 0.0
    spent = 1.0 - profile.gain_kept + profile.gain_kept * (1.0 / promised + casts)
    return 1.0 / (wide_share + (1.0 - wide_share) * spent)


def power_factor(card: Cluster, profile: Profile) -> float:
    """Products' rate on a card beside that on the one whose share of the peak the profile has, by their power.

    Large products run at the clock that the power limit allows. Power is frequency times voltage squared, and voltage
    follows frequency: clocks follow the cube root of the power per FLOP/s of the peak. The MAMF finder's fastest
    products on A100 PCIe, GH200 and MI325X beside their twins follow its powers 0.24, 0.17 and 0.56. No product passes
    MOST_OF_PEAK.
    """
    if card.board_power_w is None or not profile.gemm_power_w_per_tflops:
        return 1.0
    per_tflops = card.board_power_w / (1e-12 * card.peak_flops)
    factor = (per_tflops / profile.gemm_power_w_per_tflops) ** (1.0 / 3.0)
    return float(min(factor, max(MOST_OF_PEAK / profile.gemm_peak_share, 1.0)))


def machine(asked: Question) -> Machine:
    """Rates at the question's precision."""
    card, profile = asked.cluster, asked.profile
    wide = min(profile.bf16_layers / asked.shape.num_layers, 1.0)
    gain = product_gain(profile, asked.peak_flops / card.peak_flops, wide)
    power, mature = power_factor(card, profile), profile.software_rate
    return Machine(
        flops=card.peak_flops * gain * power * mature,
        products_16_bit=card.peak_flops * power * mature,
        attention_flops=card.peak_flops * mature,
        memory_bytes_per_s=profile.memory_share * card.memory_bytes_per_s,
        processors=card.processors,
        profile=profile,
    )


def gemm_s(on: Machine, m: Array, n: Array, k: Array, count: Array | float = 1.0) -> Array:
    """`count` products of an m x k by a k x n matrix in 16 bit, in seconds.

    Efficiency falls with the emptiness of the last wave of tiles, with few waves, and with a short inner dimension:
    e = e_max [(1-q) + q w/ceil(w)] w/(w+w0) k/(k+k0), w = tiles / (2 x processors).
    """
    c = on.profile
    tiles = np.ceil(m / TILE) * np.ceil(n / TILE) * count
    waves = tiles / (2.0 * on.processors)
    quantised = (1.0 - c.gemm_wave_loss) + c.gemm_wave_loss * waves / np.ceil(waves)
    share = c.gemm_peak_share * quantised * waves / (waves + c.gemm_half_waves) * k / (k + c.gemm_half_depth)
    traffic = 2.0 * count * (m * n + m * k + n * k)
    return np.maximum(2.0 * count * m * n * k / (on.flops * share), traffic / on.memory_bytes_per_s)


def attention_linear_s(on: Machine, shape: ModelShape, tokens: Array, tp: Array) -> Array:
    """Projections of the attention block: fused Q, K, V and output; or the five products of latent attention."""
    h = float(shape.hidden_size)
    ones = np.ones_like(tp)
    out = gemm_s(on, tokens, h * ones, shape.value_width / tp)
    if not shape.kv_lora_rank:
        return gemm_s(on, tokens, (shape.query_width + 2 * shape.kv_width) / tp, h * ones) + out
    query = gemm_s(on, tokens, shape.query_width / tp, (shape.q_lora_rank or h) * ones)
    if shape.q_lora_rank:
        query = query + gemm_s(on, tokens, shape.q_lora_rank * ones, h * ones)
    latent = gemm_s(on, tokens, (shape.kv_lora_rank + shape.rope_head_dim) * ones, h * ones)
    return query + latent + gemm_s(on, tokens, 2 * shape.value_width / tp, shape.kv_lora_rank * ones) + out


def expand_latents_s(on: Machine, shape: ModelShape, tokens: Array, tp: Array) -> Array:
    """The products that expand latent attention's queries, keys and values; none without latents."""
    if not shape.kv_lora_rank:
        return np.zeros_like(tokens)
    ones = np.ones_like(tp)
    query = gemm_s(on, tokens, shape.query_width / tp, shape.q_lora_rank * ones) if shape.q_lora_rank else 0.0
    return query + gemm_s(on, tokens, 2 * shape.value_width / tp, shape.kv_lora_rank * ones)


def mlp_linear_s(on: Machine, shape: ModelShape, tokens: Array, width: Array) -> Array:
    """Products of one feed-forward block of local `width`."""
    h = shape.hidden_size * np.ones_like(width)
    return gemm_s(on, tokens, (shape.mlp_matrices - 1) * width, h) + gemm_s(on, tokens, h, width)


def experts_linear_s(on: Machine, shape: ModelShape, tokens: Array, ep: Array, etp: Array) -> Array:
    """Products of the routed experts on one rank: E/ep of them, each cut in `etp` along its width.

    `tokens` are those that an expert tensor group holds. As many copies of them (`experts_per_token` each) come back
    from the expert group as were sent to it, so that each expert has tokens x topk / (E/ep) rows.
    """
    c = on.profile
    local = np.maximum(shape.num_experts / ep, 1.0)
    rows = c.expert_imbalance * tokens * shape.experts_per_token / local
    width = shape.expert_ffn_hidden_size / etp
    h = shape.hidden_size * np.ones_like(width)
    both = gemm_s(on, rows, (shape.mlp_matrices - 1) * width, h, local) + gemm_s(on, rows, h, width, local)
    return both / c.expert_efficiency


def attention_s(on: Machine, shape: ModelShape, tokens: Array, tp: Array, seq_len: int) -> tuple[Array, Array]:
    """Scores and values, forward and backward.

    Fused: causal half of 4 T s width FLOPs at `attention_efficiency`, which is that of heads of HEAD_WIDTH: the
    exponentials of a score take as long whatever its width (2407.08608 section 3.2), as do `attention_half_width`
    numbers of it. Not fused: all FLOPs as batched products, without tensor cores where heads are not ALIGNED, and the
    traffic of score-sized tensors (`elementwise.SCORES`).
    """
    c = on.profile
    width = (shape.query_width + shape.value_width) / 2 / tp
    full = 4.0 * tokens * seq_len * width
    if c.is_flash:
        head = shape.query_width / shape.num_heads
        by_width = (1 + c.attention_half_width / HEAD_WIDTH) / (1 + c.attention_half_width / head)
        share = c.attention_efficiency * by_width * seq_len / (seq_len + c.attention_half_tokens)
        forward = full / 2 / (on.attention_flops * share)
        return forward, c.attention_backward * forward
    is_aligned = shape.query_width % (ALIGNED * shape.num_heads) == 0
    product = full / ((c.attention_efficiency if is_aligned else UNALIGNED_SHARE) * on.attention_flops)
    scores = tokens * seq_len * shape.num_heads / tp / on.memory_bytes_per_s
    moved = SCORES[c.softmax]
    return product + moved.forward * scores, 2.0 * product + moved.backward * scores


def elementwise_s(on: Machine, shape: ModelShape, tokens: Array, *, tp: Array, sigma: Array, width: Array) -> Array:
    """Norms, residuals, rotary embedding and activation functions: traffic at the memory's speed (`elementwise`)."""
    c = on.profile
    # PyTorch's own LayerNorm and GELU, which models without a gate have, are one kernel each.
    norm, gate = (
        (c.unfused_norm_bytes, usual_bytes("inner") + c.unfused_inner_bytes)
        if shape.gated_mlp
        else (
            0.0,
            PLAIN_ACTIVATION.moved,
        )
    )
    hidden = (usual_bytes("hidden") + c.unfused_hidden_bytes + norm) * tokens * shape.hidden_size / sigma
    inner = gate * tokens * width
    query = (usual_bytes("query") + c.unfused_query_bytes) * tokens * shape.query_width / tp
    return c.elementwise_passes * (hidden + inner + query) / on.memory_bytes_per_s


@dataclass(frozen=True)
class Head:
    """Seconds of the output projection and the loss for one micro-batch."""

    forward: Array
    backward: Array

    @property
    def total(self) -> Array:
        """Seconds of both passes."""
        return self.forward + self.backward


def head_s(on: Machine, shape: ModelShape, tokens: Array, tp: Array) -> Head:
    """Output projection and loss: the product in 16 bit, whatever the layers' (Megatron-LM, torchtitan and llm-foundry
    leave it out of their casts), and passes over logits in 32 bit: those of a rank's part of the vocabulary, or of all
    where the trainer `gathers_logits`."""
    logits = tokens * shape.vocab_size / (np.ones_like(tp) if on.profile.gathers_logits else tp)
    wide = replace(on, flops=on.products_16_bit)
    product = gemm_s(wide, tokens, shape.vocab_size / tp, shape.hidden_size * np.ones_like(tp))
    passes = on.profile.head_bytes_per_logit * logits / on.memory_bytes_per_s
    return Head(forward=product + passes / 3, backward=2 * product + 2 * passes / 3)
