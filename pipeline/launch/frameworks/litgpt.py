"""litgpt: the YAML of `litgpt pretrain` (litgpt/pretrain.py setup, litgpt/args.py TrainArgs, litgpt/config.py Config).

With several devices it is FSDP's HYBRID_SHARD: states are sharded within a node and copied over nodes. Without a data
module litgpt would download hundreds of gigabytes (litgpt/data/tinyllama.py), and it has none of random tokens: one is
written beside (litgpt/data/base.py DataModule).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from sweepscope.pipeline.launch.framework import HERE, Files, Framework
from sweepscope.pipeline.launch.planned import Planned

CONFIG, DATA = "hyperparameters.yaml", "random_tokens"

_DATA_MODULE = '''"""Random tokens, because speed and memory do not depend on the text.

Name a module of litgpt.data in the YAML to train for real.
"""

from dataclasses import dataclass

import torch
from litgpt.data import DataModule
from torch.utils.data import DataLoader


class Rows(torch.utils.data.Dataset):
    def __init__(self, rows, length, vocab_size):
        self.rows, self.length, self.vocab_size = rows, length, vocab_size

    def __len__(self):
        return self.rows

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randint(self.vocab_size, (self.length,), generator=generator)


@dataclass
class RandomTokens(DataModule):
    vocab_size: int = 32000
    rows: int = 1000

    def __post_init__(self):
        super().__init__()

    def connect(self, tokenizer=None, batch_size=1, max_seq_length=None):
        self.batch_size, self.length = batch_size, (max_seq_length or 2048) + 1

    def train_dataloader(self):
        return DataLoader(Rows(self.rows, self.length, self.vocab_size), batch_size=self.batch_size)

    def val_dataloader(self):
        return DataLoader(Rows(self.batch_size, self.length, self.vocab_size), batch_size=self.batch_size)
'''


def config(run: Planned) -> dict[str, Any]:
    """Arguments of `setup`. The model's name stays out: its shape is given."""
    shape = run.shape
    return {
        "model_name": run.model,
        "model_config": {
            "name": run.model,
            "block_size": run.seq_len,
            "n_layer": shape.num_layers,
            "n_embd": shape.hidden_size,
            "n_head": shape.num_heads,
            "n_query_groups": shape.num_kv_heads,
            **({"head_size": shape.head_dim} if shape.head_dim else {}),
            "intermediate_size": shape.ffn_hidden_size,
            "vocab_size": shape.vocab_size,
            "padding_multiple": 64,
            "norm_class_name": "RMSNorm",
            "mlp_class_name": "LLaMAMLP" if shape.gated_mlp else "GptNeoxMLP",
            "parallel_residual": False,
            "bias": False,
            "rotary_percentage": 1.0,
        },
        "data": {
            "class_path": f"{DATA}.RandomTokens",
            "init_args": {"vocab_size": shape.vocab_size, "rows": run.gbs * run.steps},
        },
        "out_dir": "out",
        "precision": "32-true" if run.is_trial else "bf16-true",  # CPUs emulate bfloat16, some fifty times slower
        "train": {
            "save_interval": None,
            "log_interval": 1,
            "global_batch_size": run.gbs,
            "micro_batch_size": run.mbs,
            "lr_warmup_steps": min(1, run.steps - 1),
            "max_tokens": run.gbs * run.seq_len * run.steps,
            "max_seq_length": run.seq_len,
            "tie_embeddings": shape.tie_word_embeddings,
            "max_norm": 1.0,
            "min_lr": 4e-5,
        },
        "eval": {"interval": run.steps + 1, "max_iters": 1, "initial_validation": False, "final_validation": False},
        "devices": run.gpus_per_node,
        "num_nodes": run.num_nodes,
        "logger_name": "csv",
        "seed": 42,
    }


def _files(run: Planned) -> Files:
    return {CONFIG: yaml.safe_dump(config(run), sort_keys=False), f"{DATA}.py": _DATA_MODULE}


def _refuse(row: Mapping[str, Any]) -> str | None:
    nodes = row.get("num_nodes")
    copies = row["dp_replicate"] if row["zero_stage"] else 1
    if nodes is not None and copies != nodes:
        return "litgpt shards within nodes and copies over them, no other way"
    return None


LITGPT = Framework(
    name="litgpt",
    framework="litgpt",
    about=f"{CONFIG} for `litgpt pretrain`, random tokens, FSDP within nodes and copies over them",
    degrees=frozenset({"dp_replicate"}),
    zero_stages=(3,),
    recompute=("none",),
    schedules=(),
    states=("mbs", "gbs", "seq_len", "steps_planned", "gpus_per_node", "num_nodes", "num_layers", "hidden_size"),
    files=_files,
    command=lambda _run: ("-m", "litgpt", "pretrain", "--config", f"{HERE}/{CONFIG}"),
    refuse=_refuse,
    most_cpu_ranks=1,  # its FSDP needs accelerators
)
