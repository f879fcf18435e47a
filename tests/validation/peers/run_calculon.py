"""Calculon's answers (calculon-ai/calculon): its own systems, `systems/a100_80e.json` and `h100_80g_nvl8.json`.

It has no gated feed-forward block, no grouped-query attention, no output head and no ZeRO-2 and 3: a gated block is
asked as a plain one with the same products, ZeRO as sharding of the optimizer.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
from pathlib import Path
from typing import Any

from answering import Answer, serve

llm = importlib.import_module("calculon.llm")
system = importlib.import_module("calculon.system")
SYSTEMS = {"ampere": "a100_80e.json", "hopper": "h100_80g_nvl8.json"}
MODES = {"none": "none", "selective": "attn_only", "full": "full"}


def _refused(asked: dict[str, Any]) -> str:
    if asked["generation"] not in SYSTEMS:
        return "no system of this generation is shipped"
    for what in ("cp", "ep", "kv_lora_rank", "num_experts"):
        if (asked[what] or 0) > 1:
            return f"{what} is not modelled"
    return ""


def answer(asked: dict[str, Any]) -> Answer:
    """Seconds and bytes of one layout."""
    if reason := _refused(asked):
        raise NotImplementedError(reason)
    config = json.loads((Path(os.environ["PEER"]) / "systems" / SYSTEMS[asked["generation"]]).read_text())
    config["mem1"]["GiB"] = 10**6  # what does not fit is compared by its bytes
    on = system.System(config)
    tp, pp, dp, node = (asked[name] for name in ("tp", "pp", "dp", "gpus_per_node"))
    ways = {
        "num_procs": tp * pp * dp,
        "tensor_par": tp,
        "pipeline_par": pp,
        "data_par": dp,
        "tensor_par_net": int(tp > node),
        "pipeline_par_net": int(tp * dp * pp > node),
        "data_par_net": int(tp * dp > node),
        "batch_size": dp * asked["mbs"] * asked["gas"],
        "microbatch_size": asked["mbs"],
        "datatype": "float8" if asked["is_below_16_bit"] and asked["generation"] == "hopper" else "float16",
        "fused_activation": True,
        "attention_type": "multihead",
        "activation_recompute": MODES[asked["mode"]],
        "pipeline_interleaving": asked["vpp"],
        "optimizer_sharding": asked["zero_stage"] > 0 and dp > 1,
        "tensor_par_comm_type": "rs_ag" if asked["sequence_parallel"] and tp > 1 else "ar",
        "tensor_par_overlap": "none",
        "seq_par_ag_redo": False,
        "data_par_overlap": dp > 1,
        "weight_offload": False,
        "activations_offload": False,
        "optimizer_offload": False,
        "training": True,
    }
    products = 3 if asked["gated_mlp"] else 2
    model = llm.Llm(
        llm.Llm.Application(
            {
                "hidden": asked["hidden_size"],
                "feedforward": asked["ffn_hidden_size"] * products // 2,
                "seq_size": asked["seq_len"],
                "attn_heads": asked["num_heads"],
                "attn_size": asked["head_dim"],
                "num_blocks": asked["num_layers"],
            }
        ),
        logging.getLogger("calculon"),
    )
    model.compile(on, llm.Llm.Execution.from_json(ways))
    model.run(on)
    return float(model.get_total_time()), float(model.get_mem_tier1_cap_req())


if __name__ == "__main__":
    serve(answer)
