"""llm-analysis's answers (cli99/llm-analysis), at 0.5 of the peak, which its README names for training."""

from __future__ import annotations

import importlib
from typing import Any

from answering import Answer, serve

analysis = importlib.import_module("llm_analysis.analysis")
config = importlib.import_module("llm_analysis.config")
logger = importlib.import_module("llm_analysis.logger").logger
logger.setLevel("ERROR")
FLOPS_EFFICIENCY = 0.5
MODES = {"none": 0, "selective": 1, "full": 4}


def answer(asked: dict[str, Any]) -> Answer:
    """Seconds and bytes of one layout."""
    for what in ("cp", "kv_lora_rank"):
        if (asked[what] or 0) > 1:
            raise NotImplementedError(f"{what} is not modelled")
    experts = asked["num_experts"] or 1
    model = config.ModelConfig(
        name="asked",
        num_layers=asked["num_layers"],
        n_head=asked["num_heads"],
        hidden_dim=asked["hidden_size"],
        vocab_size=asked["vocab_size"],
        max_seq_len=asked["seq_len"],
        num_key_value_heads=asked["num_kv_heads"],
        ffn_embed_dim=asked["ffn_hidden_size"] if experts == 1 else asked["expert_ffn_hidden_size"],
        moe_num_experts=experts,
        moe_top_k=asked["experts_per_token"] or 1,
        mlp_gated_linear_units=asked["gated_mlp"],
    )
    card = config.GPUConfig(
        name="asked",
        mem_per_GPU_in_GB=10**6,  # what does not fit is compared by its bytes
        hbm_bandwidth_in_GB_per_sec=asked["memory_bytes_per_s"] / 1e9,
        intra_node_bandwidth_in_GB_per_sec=asked["link_bytes_per_s"] / 1e9,
        intra_node_min_message_latency=8e-6,
        peak_fp16_TFLOPS=asked["peak_flops"] / 1e12,
        peak_i8_TFLOPS=asked["peak_flops_fp8"] / 1e12,
        inter_node_bandwidth_in_GB_per_sec=asked["network_bytes_per_s"] * asked["gpus_per_node"] / 1e9,
    )
    split = asked["tp"] if asked["sequence_parallel"] else 1
    ways = config.ParallelismConfig(
        tp_size=asked["tp"], pp_size=asked["pp"], dp_size=asked["dp"], ep_size=asked["ep"], sp_size=split
    )
    bits = 8 if asked["is_below_16_bit"] else 16
    numbers = config.DtypeConfig(name="asked", weight_bits=bits, activation_bits=bits, embedding_bits=16)
    found = analysis.LLMAnalysis(model, card, numbers, ways, flops_efficiency=FLOPS_EFFICIENCY).training(
        batch_size_per_gpu=asked["mbs"],
        gradient_accumulation_steps=asked["gas"],
        seq_len=asked["seq_len"],
        activation_recomputation=analysis.ActivationRecomputation(MODES[asked["mode"]]),
        ds_zero=analysis.DSZeRO(asked["zero_stage"]),
        flash_attn=asked["is_flash"],
    )
    return float(found["latency_per_iter"]), float(found["estimated_peak_memory_per_gpu"])


if __name__ == "__main__":
    serve(answer)
