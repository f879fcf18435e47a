"""transformers' Trainer under DeepSpeed, and axolotl: data parallel frameworks with DeepSpeed's ZeRO.

Files: DeepSpeed's JSON (docs.deepspeed.ai config-json), TrainingArguments for `HfArgumentParser.parse_json_file`
(transformers/training_args.py), the model's `config.json` (configuration_llama.py), and axolotl's YAML
(axolotl/utils/schemas/config.py). The Trainer's command is examples/pytorch/language-modeling/run_clm.py, which takes
one JSON file of arguments.
"""

from __future__ import annotations

import json
from typing import Any

import yaml

from sweepscope.pipeline.launch.framework import HERE, Files, Framework
from sweepscope.pipeline.launch.hub import hub_name
from sweepscope.pipeline.launch.planned import Planned

DEEPSPEED = "ds_config.json"
ARGUMENTS = "training_arguments.json"
MODEL = "config.json"
AXOLOTL = "axolotl.yaml"


def deepspeed_config(run: Planned) -> dict[str, Any]:
    """DeepSpeed's JSON. Its batch is that of all replicas; a rank of a sequence-parallel group is none of its own."""
    return {
        "train_batch_size": run.gbs,
        "train_micro_batch_size_per_gpu": run.mbs,
        "gradient_accumulation_steps": run.gas,
        "gradient_clipping": 1.0,
        "steps_per_print": 1,
        "wall_clock_breakdown": False,
        "bf16": {"enabled": True},
        "zero_optimization": {"stage": run.zero_stage, "overlap_comm": True, "contiguous_gradients": True},
    }


def training_arguments(run: Planned) -> dict[str, Any]:
    """Fields of TrainingArguments, and those of run_clm.py for model and data."""
    return {
        "output_dir": "output",
        "run_name": run.name,
        "per_device_train_batch_size": run.mbs,
        "gradient_accumulation_steps": run.gas,
        "max_steps": run.steps,
        "learning_rate": 3e-4,
        "logging_steps": 1,
        "logging_first_step": True,
        "save_strategy": "no",
        "report_to": "none",
        "bf16": True,
        "gradient_checkpointing": run.recompute == "full",
        "deepspeed": DEEPSPEED,
        "include_num_input_tokens_seen": "all",
    }


def script_arguments(run: Planned) -> dict[str, Any]:
    """Fields of run_clm.py beside those of TrainingArguments: a new model of the given shape, and its data."""
    return {
        "config_name": MODEL,
        "tokenizer_name": hub_name(run.model),
        "dataset_name": "Salesforce/wikitext",
        "dataset_config_name": "wikitext-103-raw-v1",
        "block_size": run.seq_len,
        "do_train": True,
    }


def model_config(run: Planned) -> dict[str, Any]:
    """The `config.json` of a Llama of the planned shape."""
    shape = run.shape
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "num_hidden_layers": shape.num_layers,
        "hidden_size": shape.hidden_size,
        "intermediate_size": shape.ffn_hidden_size,
        "num_attention_heads": shape.num_heads,
        "num_key_value_heads": shape.num_kv_heads,
        **({"head_dim": shape.head_dim} if shape.head_dim else {}),
        "vocab_size": shape.vocab_size,
        "max_position_embeddings": run.seq_len,
        "tie_word_embeddings": shape.tie_word_embeddings,
        "hidden_act": "silu",
        "use_cache": False,
    }


def axolotl_config(run: Planned) -> dict[str, Any]:
    """axolotl's YAML: continued training of the hub's model on text as it streams in."""
    return {
        "base_model": hub_name(run.model),
        "reinit_weights": True,
        "pretraining_dataset": [{"path": "allenai/c4", "name": "en", "type": "pretrain"}],
        "sequence_len": run.seq_len,
        "micro_batch_size": run.mbs,
        "gradient_accumulation_steps": run.gas,
        "max_steps": run.steps,
        # Attention over a ring of ranks has no other implementation.
        **({"context_parallel_size": run.cp, "attn_implementation": "flash_attention_2"} if run.cp > 1 else {}),
        "gradient_checkpointing": run.recompute == "full",
        "bf16": True,
        "optimizer": "adamw_torch_fused",
        "learning_rate": 3e-4,
        "lr_scheduler": "cosine",
        "logging_steps": 1,
        "save_strategy": "no",
        "output_dir": "./output",
        "deepspeed": DEEPSPEED,
    }


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2) + "\n"


def _trainer_files(run: Planned) -> Files:
    arguments = {**script_arguments(run), **training_arguments(run)}
    return {
        DEEPSPEED: _json(deepspeed_config(run)),
        ARGUMENTS: _json(arguments),
        MODEL: _json(model_config(run)),
    }


def _axolotl_files(run: Planned) -> Files:
    return {AXOLOTL: yaml.safe_dump(axolotl_config(run), sort_keys=False), DEEPSPEED: _json(deepspeed_config(run))}


HF_TRAINER = Framework(
    name="hf-trainer",
    framework="hf-trainer",
    about=f"{ARGUMENTS} of transformers' run_clm.py, DeepSpeed's {DEEPSPEED}; set TRAINER_DIR to the script's folder",
    degrees=frozenset(),
    zero_stages=(0, 1, 2, 3),
    recompute=("none", "full"),
    schedules=(),
    states=("mbs", "gas", "gbs", "zero_stage", "steps_planned", "seq_len", "recompute", "num_layers", "hidden_size"),
    files=_trainer_files,
    command=lambda _run: ('"$TRAINER_DIR/run_clm.py"', f"{HERE}/{ARGUMENTS}"),
)
AXOLOTL_TRAINER = Framework(
    name="axolotl",
    framework="axolotl",
    about=f"{AXOLOTL} with DeepSpeed's {DEEPSPEED}, the hub's shape of the model",
    degrees=frozenset({"cp"}),
    zero_stages=(0, 1, 2, 3),
    recompute=("none", "full"),
    schedules=(),
    states=("mbs", "gas", "gbs", "zero_stage", "steps_planned", "seq_len", "recompute"),
    files=_axolotl_files,
    command=lambda _run: ("-m", "axolotl.cli.train", f"{HERE}/{AXOLOTL}"),
)
