"""picotron: `config.json`, as its create_config.py writes it over template/base_config.json, and train.py."""

from __future__ import annotations

import json
from typing import Any

from sweepscope.pipeline.launch.framework import HERE, Files, Framework
from sweepscope.pipeline.launch.hub import hub_name
from sweepscope.pipeline.launch.planned import Planned

CONFIG = "config.json"


def config(run: Planned) -> dict[str, Any]:
    """The sections of the file."""
    shape = run.shape
    is_cpu = run.is_trial
    return {
        "distributed": {
            "tp_size": run.tp,
            "cp_size": run.cp,
            "pp_size": run.pp,
            "dp_size": run.dp,
            "pp_engine": run.pipeline_schedule,
            "backend": "gloo" if is_cpu else "nccl",
            "use_cpu": is_cpu,
        },
        "model": {
            "name": hub_name(run.model),
            "num_hidden_layers": shape.num_layers,
            "num_attention_heads": shape.num_heads,
            "num_key_value_heads": shape.num_kv_heads,
            # train.py takes these three from the model's name; they are kept for who reads the file.
            "hidden_size": shape.hidden_size,
            "intermediate_size": shape.ffn_hidden_size,
            "vocab_size": shape.vocab_size,
            "dtype": "bfloat16",
            "use_flash_attention": not is_cpu,
            "use_fused_adam": not is_cpu,
        },
        "training": {
            "seed": 42,
            "learning_rate": 3e-4,
            "total_train_steps": run.steps,
            "seq_length": run.seq_len,
            "micro_batch_size": run.mbs,
            "gradient_accumulation_steps": run.gas,
            "num_samples": None,
            "max_tokens": None,
        },
        "dataset": {"name": "roneneldan/TinyStories", "subset_name": None, "num_workers": 0, "num_proc": 1},
        "checkpoint": {"save_dir": "ckpt", "save_frequency": run.steps + 1, "load_path": ""},
        "logging": {"use_wandb": False, "project_name": "sweepscope", "run_name": run.name},
        "environment": {
            "OMP_NUM_THREADS": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "FLASH_ATTEN": "0" if is_cpu else "1",
            "HF_TOKEN": None,
        },
    }


def _files(run: Planned) -> Files:
    return {CONFIG: json.dumps(config(run), indent=4) + "\n"}


PICOTRON = Framework(
    name="picotron",
    framework="picotron",
    about="config.json for train.py; set TRAINER_DIR to a checkout",
    degrees=frozenset({"tp", "pp", "cp"}),
    zero_stages=(0,),
    recompute=("none",),
    schedules=("1f1b", "afab"),
    states=("dp", "tp", "pp", "cp", "mbs", "gas", "seq_len", "steps_planned", "zero_stage", "num_layers"),
    files=_files,
    command=lambda _run: ('"$TRAINER_DIR/train.py"', "--config", f"{HERE}/{CONFIG}"),
    most_cpu_ranks=64,  # more processes than a machine has cores for
    environment={"CUDA_DEVICE_MAX_CONNECTIONS": "1"},
)
