"""Published recipes of large trainings: where `search` ranks the layout that ran, what is predicted of it, if it fits.

Nothing is fitted on them, and no profile of a framework is used: of one that a source names, what its code decides is
known. What a source leaves open is tried in every way that is listed; the fastest that fits counts, else the leanest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
import polars as pl

from sweepscope.pipeline.estimate.calibration.transfer_tables import of_generation
from sweepscope.pipeline.estimate.physics.estimate import Estimate, estimate
from sweepscope.pipeline.estimate.physics.layouts import RECOMPUTE_MODES, SCHEDULES, Array, Layouts
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.rows.asking import ask
from sweepscope.pipeline.estimate.rows.estimate_rows import reasons_against
from sweepscope.pipeline.estimate.rows.read_rows import read_rows
from sweepscope.pipeline.estimate.rows.row_layouts import layouts_of
from sweepscope.pipeline.estimate.rows.software_year import software_year
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.estimate.search.search import search


@dataclass(frozen=True)
class Published:
    """A training as its source states it: columns of a row, choices for what it leaves open, and what was measured.

    `year` is that of the software where its source, a paper or a round of MLPerf, does not tell it.
    `mfu` is model FLOPs over the dense peak in 16 bit; where the source has a step time, that is compared instead.
    `recompute`, `zero_stages`: what the software of its time could choose between; `search` splits no sequences where
    the run did not.
    """

    name: str
    source: str
    stated: Mapping[str, object]
    left_open: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    mfu: float | None = None
    step_time_s: float | None = None
    year: float | None = None
    recompute: tuple[str, ...] = RECOMPUTE_MODES
    zero_stages: tuple[int, ...] = (0, 1, 2, 3)


_BEFORE_2022 = ("none", "full")  # selective recomputation is of 2205.05198
# Megatron-LM shards the optimizer since February 2022 (commit 28b63ec, megatron/optimizer/distrib_optimizer.py) and
# nothing else; DeepSpeed's pipeline refuses stages above 1 (runtime/pipe/engine.py).
_UNSHARDED, _OPTIMIZER = (0,), (0, 1)
_H100 = {"accelerator": "H100-SXM-80GB", "gpus_per_node": 8, "precision": "bf16", "cp": 1}
_A100 = {"accelerator": "A100-SXM-80GB", "gpus_per_node": 8, "precision": "bf16", "cp": 1, "flash_attention": "false"}
# 2407.21783 section 3.3.2: gradients and optimizer states sharded, weights not gathered again, no recomputation,
# 128 layers less one on the first and on the last stage.
_LLAMA = {
    **_H100,
    "model": "Llama 3.1 405B",
    "tp": 8,
    "pp": 16,
    "micro_batch_size": 1,
    "recompute": "none",
    "zero_stage": 2,
    "pipeline_schedule": "interleaved",
}
_CHUNKS = {"vpp": (2, 4, 8)}

PUBLISHED = (
    Published(
        "Llama 3.1 405B, 8k, 8,192 H100",
        "2407.21783, table 4",
        {**_LLAMA, "seq_len": 8192, "num_gpus": 8192, "dp": 64, "grad_accum": 32},
        _CHUNKS,
        mfu=0.43,
    ),
    Published(
        "Llama 3.1 405B, 8k, 16,384 H100",
        "2407.21783, table 4",
        {**_LLAMA, "seq_len": 8192, "num_gpus": 16384, "dp": 128, "grad_accum": 16},
        _CHUNKS,
        mfu=0.41,
    ),
    Published(
        "Llama 3.1 405B, 131k, 16,384 H100",
        "2407.21783, table 4",
        {**_LLAMA, "seq_len": 131072, "num_gpus": 16384, "dp": 8, "cp": 16, "grad_accum": 16},
        _CHUNKS,
        mfu=0.38,
    ),
    Published(
        "DeepSeek-V3, 2,048 H800",
        "2412.19437, sections 3.2 and 4.2; 2505.09343, table 4",
        {
            **_H100,
            "accelerator": "H800-80GB",
            "model": "DeepSeek-V3",
            "seq_len": 4096,
            "num_gpus": 2048,
            "dp": 128,
            "tp": 1,
            "pp": 16,
            "ep": 64,
            "micro_batch_size": 1,
            "grad_accum": 120,
            "zero_stage": 1,
            "precision": "fp8",
            "pipeline_schedule": "DualPipe",
            # Sections 3.2.3 and 3.3: norms, up-projections and SwiGLU again, FP8 dispatch and activations, moments in
            # 16 bit. Section 2.1.2: a token goes to at most four nodes.
            "recompute": "none",
            "recompute_modules": "layernorm,mla_up_proj,moe_act",
            "activation_precision": "fp8",
            "dispatch_precision": "fp8",
            "moment_precision": "bf16",
            "nodes_per_token": 4,
        },
        step_time_s=19.926,
    ),
    Published(
        "Nemotron-4 340B, 6,144 H100",
        "2406.11704, table 2",
        {
            **_H100,
            "model": "Nemotron-4 340B",
            "seq_len": 4096,
            "num_gpus": 6144,
            "dp": 64,
            "tp": 8,
            "pp": 12,
            "micro_batch_size": 1,
            "grad_accum": 36,
            "zero_stage": 1,
            "pipeline_schedule": "interleaved",
        },
        {"vpp": (2, 4, 8), "recompute": ("none", "full")},
        step_time_s=8.0,
    ),
    Published(
        "MT-NLG 530B, 2,240 A100",
        "2201.11990, section 2.4",
        {
            **_A100,
            "framework": "megatron-deepspeed",
            "model": "MT-NLG 530B",
            "seq_len": 2048,
            "num_gpus": 2240,
            "dp": 8,
            "tp": 8,
            "pp": 35,
            "micro_batch_size": 1,
            "grad_accum": 240,
            "recompute": "full",
            "sequence_parallel": "false",
        },
        {"zero_stage": (0, 1)},  # DeepSpeed's pipeline has one chunk on each stage
        step_time_s=60.1,
        recompute=_BEFORE_2022,
        zero_stages=_OPTIMIZER,
    ),
    Published(
        "Megatron 1T, 3,072 A100",
        "2104.04473, table 1",
        {
            **_A100,
            "framework": "megatron",
            "fused_accumulation": "false",  # since February 2022 (commit 83b1e42)
            "model": "Megatron 1T",
            "num_layers": 128,
            "hidden_size": 25600,
            "num_heads": 160,
            "ffn_hidden_size": 102400,
            "gated_mlp": "false",
            "vocab_size": 51200,
            "tie_word_embeddings": "true",
            "seq_len": 2048,
            "num_gpus": 3072,
            "dp": 6,
            "tp": 8,
            "pp": 64,
            "micro_batch_size": 1,
            "grad_accum": 512,
            "recompute": "full",
            "sequence_parallel": "false",
            "zero_stage": 0,
        },
        {"vpp": (1, 2)},
        step_time_s=102.63,
        recompute=_BEFORE_2022,
        zero_stages=_UNSHARDED,
    ),
    Published(
        "Megatron 1T, 512 A100",
        "2205.05198, table 5",
        {
            **_A100,
            "framework": "megatron",
            "model": "Megatron 1T",
            "num_layers": 128,
            "hidden_size": 25600,
            "num_heads": 160,
            "ffn_hidden_size": 102400,
            "gated_mlp": "false",
            "vocab_size": 51200,
            "tie_word_embeddings": "true",
            "seq_len": 2048,
            "num_gpus": 512,
            "dp": 1,
            "tp": 8,
            "pp": 64,
            "micro_batch_size": 1,
            "grad_accum": 512,
            "recompute": "selective",
            "sequence_parallel": "true",
            "zero_stage": 0,
        },
        step_time_s=71.49,
        zero_stages=_OPTIMIZER,
    ),
    Published(
        "GPT-3 175B in FP8, 3,584 H100",
        "MLPerf training v3.0, config_DGXH100_448x8x24x4x8_mbs1.sh",
        {
            **_H100,
            "model": "GPT-3 175B",
            "precision": "fp8",
            "framework": "mlperf",
            "seq_len": 2048,
            "num_gpus": 3584,
            "dp": 112,
            "tp": 4,
            "pp": 8,
            "micro_batch_size": 1,
            "grad_accum": 24,
            "zero_stage": 1,
        },
        # MLPerf's other rows of GPT-3 on eight stages have four and six chunks of each.
        {"vpp": (4, 6), "recompute": ("none", "full")},
        step_time_s=2.6398,
    ),
    Published(
        "GPT-3 175B in FP8, 10,752 H100",
        "MLPerf training v4.0, config_DGXH100_1344x8x6x4x6_mbs1_cg.sh",
        {
            **_H100,
            "model": "GPT-3 175B",
            "precision": "fp8",
            "framework": "mlperf",
            "seq_len": 2048,
            "num_gpus": 10752,
            "dp": 448,
            "tp": 4,
            "pp": 6,
            "vpp": 8,
            "micro_batch_size": 1,
            "grad_accum": 6,
            "zero_stage": 1,
        },
        {"recompute": ("none", "full")},
        step_time_s=0.9207,
    ),
    Published(
        "Llama 3.1 70B, FSDP2 and TP, 256 H100",
        "torchtitan, benchmarks/asyncTP_llama3_h100_2025-06_torchtitan.md",
        {
            **_H100,
            "accelerator": "H100-96GB-HBM2e-500W",
            "framework": "torchtitan",
            "execution": "compiled",
            "overlap_tp": "false",  # the table's "vanilla TP"
            "model": "Llama 3.1 70B",
            "seq_len": 8192,
            "num_gpus": 256,
            "dp": 32,
            "tp": 8,
            "pp": 1,
            "micro_batch_size": 16,
            "grad_accum": 1,
            "zero_stage": 3,
            "recompute": "full",
        },
        step_time_s=27.43,
        year=2025.5,
    ),
)


def questions(of: Published) -> tuple[Question, Layouts]:
    """What a recipe asks of the estimator, and the layouts that it may have had. Raises ValueError if it cannot ask."""
    choices = [dict(zip(of.left_open, values, strict=True)) for values in product(*of.left_open.values())]
    paper = f"https://arxiv.org/abs/{of.source}"
    year = {"software_year": of.year or software_year({"source_url": paper, "source_id": of.source})}
    table = pl.DataFrame(
        [{name: str(value) for name, value in {**of.stated, **year, **more}.items()} for more in choices]
    )
    rows = read_rows(table).to_dicts()
    asked, reason, _ = ask(rows[0], of_generation)
    if asked is None:
        raise ValueError(f"{of.name}: {reason}")
    if wrong := [reason for reason in reasons_against(asked, rows) if reason]:
        raise ValueError(f"{of.name}: {wrong[0]}")
    return asked, layouts_of(rows, asked.profile)


def chosen(asked: Question, at: Layouts) -> tuple[int, Estimate]:
    """The layout that counts, and the estimates of all: the fastest that fits, else the leanest."""
    predicted = estimate(asked, at)
    speed = np.broadcast_to(predicted.tokens_per_s_per_gpu, at.shape)
    fits, need = (np.broadcast_to(values, at.shape) for values in (predicted.fits, predicted.mem_bytes))
    return int(np.argmax(np.where(fits, speed, 0.0)) if fits.any() else np.argmin(need)), predicted


def recipes(published: tuple[Published, ...] = PUBLISHED) -> pl.DataFrame:
    """Each published recipe: predicted and published MFU, memory, rank by physics among the layouts that fit."""
    return pl.DataFrame([_judged(one) for one in published])


def _judged(of: Published) -> dict[str, object]:
    asked, every = questions(of)
    index, predicted = chosen(asked, every)
    at = every[np.array([index])]

    def here(values: Array) -> float:
        return float(np.broadcast_to(values, every.shape)[index])

    gpus, tokens = int(at.num_gpus[0]), float(at.global_batch_tokens(asked.seq_len)[0])
    speed = here(predicted.tokens_per_s_per_gpu)
    of_peak = asked.shape.flops_per_token(asked.seq_len) / asked.cluster.peak_flops
    measured = of.mfu or of_peak * tokens / gpus / (of.step_time_s or np.nan)
    is_split = of.stated.get("sequence_parallel") != "false"
    request = Request(
        replace(asked, profile=replace(asked.profile, is_sequence_parallel=is_split)),
        gpus,
        round(tokens / asked.seq_len),
        recompute=of.recompute,
        zero_stages=of.zero_stages,
        schedules=tuple(dict.fromkeys(("1f1b", "interleaved", SCHEDULES[int(at.schedule[0])]))),
    )
    found = search(request, top=1, margin=0.0, by="physics")
    rank = found.rank(speed)
    return {
        "recipe": of.name,
        "MFU %": 100 * measured,
        "estimated %": 100 * of_peak * speed,
        "off by %": 100 * (of_peak * speed / measured - 1),
        "GB": here(predicted.stages.reserved) / 1e9,
        "of": (asked.cluster.memory_bytes - asked.profile.outside_bytes) / 1e9,
        "fits": "yes" if here(predicted.fits.astype(np.float64)) else "no",
        "rank": rank,
        "layouts that fit": found.fitting,
        "rank in %": 100 * rank / max(found.fitting, 1),
    }
