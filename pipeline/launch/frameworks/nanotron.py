"""nanotron: its YAML (src/nanotron/config/config.py Config) for run_train.py. Random data where no dataset is named."""

from __future__ import annotations

from typing import Any

import yaml

from sweepscope.pipeline.launch.framework import HERE, Files, Framework
from sweepscope.pipeline.launch.hub import hub_name
from sweepscope.pipeline.launch.planned import Planned

CONFIG = "nanotron.yaml"


def config(run: Planned) -> dict[str, Any]:
    """The sections of the file."""
    shape = run.shape
    return {
        "general": {"project": "sweepscope", "run": run.name, "seed": 42, "ignore_sanity_checks": True},
        "parallelism": {
            # Ranks that hold the experts are beside dp here, and within it in the plan.
            "dp": run.dp // run.ep,
            "expert_parallel_size": run.ep,
            "tp": run.tp,
            "pp": run.pp,
            "context_parallel_size": run.cp,
            "pp_engine": run.pipeline_schedule,
            "tp_mode": "REDUCE_SCATTER" if run.sequence_parallel else "ALL_REDUCE",
            "tp_linear_async_communication": run.sequence_parallel,
            "recompute_layer": run.recompute == "full",
        },
        "model": {
            "dtype": "bfloat16",
            "ddp_bucket_cap_mb": 25,
            "make_vocab_size_divisible_by": 1,
            "init_method": {"std": 0.02},
            "model_config": {
                "is_llama_config": True,
                "bos_token_id": 1,
                "eos_token_id": 2,
                "pad_token_id": None,
                "hidden_act": "silu",
                "hidden_size": shape.hidden_size,
                "intermediate_size": shape.ffn_hidden_size,
                "num_hidden_layers": shape.num_layers,
                "num_attention_heads": shape.num_heads,
                "num_key_value_heads": shape.num_kv_heads,
                "vocab_size": shape.vocab_size,
                "tie_word_embeddings": shape.tie_word_embeddings,
                "max_position_embeddings": run.seq_len,
                "initializer_range": 0.02,
                "rms_norm_eps": 1e-5,
                "rope_scaling": None,
                "use_cache": True,
            },
        },
        "tokenizer": {"tokenizer_name_or_path": hub_name(run.model)},
        "checkpoints": {
            "checkpoints_path": "checkpoints",
            "checkpoint_interval": run.steps + 1,
            "save_initial_state": False,
            "save_final_state": False,
        },
        "logging": {"iteration_step_info_interval": 1, "log_level": "info", "log_level_replica": "info"},
        "tokens": {
            "sequence_length": run.seq_len,
            "train_steps": run.steps,
            "micro_batch_size": run.mbs,
            "batch_accumulation_per_replica": run.gas,
            "val_check_interval": -1,
            "limit_val_batches": 0,
            "limit_test_batches": 0,
        },
        "optimizer": {
            "zero_stage": run.zero_stage,
            "weight_decay": 0.01,
            "clip_grad": 1.0,
            "accumulate_grad_in_fp32": True,
            "optimizer_factory": {
                "name": "adamW",
                "adam_eps": 1e-8,
                "adam_beta1": 0.9,
                "adam_beta2": 0.95,
                "torch_adam_is_fused": True,
            },
            "learning_rate_scheduler": {
                "learning_rate": 3e-4,
                "lr_warmup_steps": 1,
                "lr_warmup_style": "linear",
                "lr_decay_style": "cosine",
                "lr_decay_steps": max(run.steps - 1, 1),
                "min_decay_lr": 1e-5,
            },
        },
        "data_stages": [
            {
                "name": "Stable Training Stage",
                "start_training_step": 1,
                "data": {"dataset": None, "num_loading_workers": 1, "seed": 42},
            }
        ],
    }


def _files(run: Planned) -> Files:
    return {CONFIG: yaml.safe_dump(config(run), sort_keys=False)}


NANOTRON = Framework(
    name="nanotron",
    framework="nanotron",
    about="YAML for run_train.py; set TRAINER_DIR to a checkout",
    degrees=frozenset({"tp", "pp", "cp"}),
    zero_stages=(0, 1),
    recompute=("none", "full"),
    schedules=("1f1b", "afab"),
    states=(
        *("dp", "tp", "pp", "cp", "ep", "mbs", "gas", "seq_len", "steps_planned", "zero_stage", "recompute"),
        *("num_layers", "hidden_size", "num_heads", "num_kv_heads", "ffn_hidden_size", "vocab_size"),
    ),
    files=_files,
    command=lambda _run: ('"$TRAINER_DIR/run_train.py"', "--config-file", f"{HERE}/{CONFIG}"),
    environment={"CUDA_DEVICE_MAX_CONNECTIONS": "1"},
)
