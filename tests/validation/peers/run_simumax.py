"""SimuMax's answers (MooreThreads/SimuMax).

On Blackwell with its own `b200_bf16_ceperm.json`, products and attention profiled on the machine of its table. Of other
cards it ships none with NVLink: peaks, memory, links and network are ours, shares of them those of its A100 and B200
files, without profiled shapes.
"""

from __future__ import annotations

import importlib
import json
import os
import re
from pathlib import Path
from typing import Any

from answering import Answer, serve

config = importlib.import_module("simumax.core.config")
perf = importlib.import_module("simumax.core.perf_llm")
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


def _system(asked: dict[str, Any]) -> Any:
    folder = Path(os.environ["PEER"]) / "configs" / "system"
    own = json.loads((folder / "b200_bf16_ceperm.json").read_text())
    if asked["generation"] != "blackwell":
        card = json.loads((folder / "a100_pcie.json").read_text())["accelerator"]
        for name, op in card["op"].items():
            op.pop("accurate_efficient_factor", None)
            op["tflops"] = asked["peak_flops_fp8" if "fp8" in name else "peak_flops"] / 1e12
        for band in card["bandwidth"].values():
            band["gbps"] = asked["memory_bytes_per_s"] / 1e9
        card["mem_gbs"] = asked["memory_bytes"] / 1e9
        own["accelerator"] = card
        for name, net in own["networks"].items():
            if isinstance(net, dict):
                # Of a whole node between nodes: `SystemConfig.compute_net_op_time` divides it among the groups of one.
                of_node = asked["network_bytes_per_s"] * asked["gpus_per_node"]
                net["bandwidth"]["gbps"] = (of_node if name == "inter_node" else asked["link_bytes_per_s"]) / 1e9
    own["num_per_node"] = asked["gpus_per_node"]
    return config.SystemConfig.init_from_dict(own)


def _model(asked: dict[str, Any]) -> Any:
    values = {
        "hidden_size": asked["hidden_size"],
        "head_num": asked["num_heads"],
        "kv_head_num": asked["num_kv_heads"],
        "head_size": asked["head_dim"],
        "intermediate_size": asked["ffn_hidden_size"],
        "layer_num": asked["num_layers"],
        "vocab_size": asked["vocab_size"],
        "use_swiglu": asked["gated_mlp"],
        "model_name": "asked",
        "model_type": "dense",
    }
    if asked["num_experts"]:
        values |= {
            "model_type": "moe",
            "expert_num": asked["num_experts"],
            "topk": asked["experts_per_token"],
            "moe_ffn_hidden_size": asked["expert_ffn_hidden_size"],
            "moe_shared_expert_intermediate_size": asked["shared_ffn_hidden_size"] or None,
            "dense_layers": asked["num_dense_layers"],
        }
    if asked["kv_lora_rank"]:
        values |= {
            "attention_type": "mla",
            "q_lora_rank": asked["q_lora_rank"] or None,
            "kv_lora_rank": asked["kv_lora_rank"],
            "v_head_dim": asked["v_head_dim"],
            "qk_head_dim": asked["head_dim"] - asked["rope_head_dim"],
            "head_size": asked["v_head_dim"],
            "qk_pos_emb_head_dim": asked["rope_head_dim"],
        }
    return config.ModelConfig(**values)


def answer(asked: dict[str, Any]) -> Answer:
    """Seconds and bytes of one layout."""
    again: dict[str, Any] = {}
    if asked["mode"] != "none":
        granularity = "full_block" if asked["mode"] == "full" else "sdp_only"
        again = {"recompute_granularity": granularity, "recompute_layer_num": asked["num_layers"]}
    layout = config.StrategyConfig(
        seq_len=asked["seq_len"],
        micro_batch_size=asked["mbs"],
        micro_batch_num=asked["gas"],
        world_size=asked["dp"] * asked["tp"] * asked["pp"] * asked["cp"],
        tp_size=asked["tp"],
        cp_size=asked["cp"],
        pp_size=asked["pp"],
        ep_size=asked["ep"],
        etp_size=asked["etp"] if asked["num_experts"] else 1,
        enable_sequence_parallel=bool(asked["sequence_parallel"]),
        interleaving_size=asked["vpp"],
        zero_state=min(asked["zero_stage"], 3),
        fp8=asked["is_below_16_bit"],
        use_flash_sdp=asked["is_flash"],
        use_math_sdp=not asked["is_flash"],
        **again,
    )
    model = perf.PerfLLM()
    model.configure(strategy_config=layout, model_config=_model(asked), system_config=_system(asked))
    model.run_estimate()
    spent = re.fullmatch(r"([\d.]+)\s*(\w+)", str(model.analysis_cost().data["duration_time_per_iter"]))
    if spent is None:
        raise ValueError("no duration")
    stages = model.get_pp_stage_peak_mem(model.analysis_mem(), "peak_mem")
    return float(spent[1]) * UNITS[spent[2]], float(max(stages.values()))


if __name__ == "__main__":
    serve(answer)
