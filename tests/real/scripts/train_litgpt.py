"""litgpt's pretraining of a model of two layers."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import lightning as L
import torch
from litgpt import pretrain
from litgpt.args import EvalArgs, TrainArgs
from litgpt.config import Config
from litgpt.data.base import DataModule
from surroundings import Trouble, rows_of_tokens
from truth import Truth

_LENGTH = 32
_WORDS = 256


class Tokens(DataModule):
    """Rows of tokens."""

    def connect(self, tokenizer: Any = None, batch_size: int = 1, max_seq_length: int | None = None) -> None:
        self.batch_size = batch_size

    def train_dataloader(self) -> Any:
        rows = rows_of_tokens(400, _LENGTH + 1, _WORDS)
        return torch.utils.data.DataLoader(rows, batch_size=self.batch_size)

    def val_dataloader(self) -> Any:
        return torch.utils.data.DataLoader(rows_of_tokens(8, _LENGTH + 1, _WORDS), batch_size=self.batch_size)


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--truth", required=True)
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--micro", type=int, default=4)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--every", type=int, default=2)
    parser.add_argument("--trouble", default="")
    parser.add_argument("--at", type=int, default=0)
    options = parser.parse_args()
    truth = Truth(
        options.truth,
        "litgpt",
        num_gpus=1,
        mbs=options.micro,
        gas=options.batch // options.micro,
        steps_planned=options.steps,
    )
    trouble = Trouble(options.trouble, options.at, truth)
    log_dict = L.Fabric.log_dict

    def witness(fabric: Any, metrics: dict[str, Any], step: int | None = None) -> None:
        log_dict(fabric, metrics, step)
        if "loss" in metrics:
            truth.step(int(metrics["step"]), float(metrics["loss"]))
            trouble.after(int(metrics["step"]))

    L.Fabric.log_dict = witness
    pretrain.setup(
        "tiny",
        model_config=Config(
            name="tiny", block_size=_LENGTH, n_layer=2, n_embd=64, n_head=2, vocab_size=_WORDS, padded_vocab_size=_WORDS
        ),
        out_dir=Path("out"),
        precision="32-true",
        data=Tokens(),
        train=TrainArgs(
            save_interval=None,
            log_interval=options.every,
            global_batch_size=options.batch,
            micro_batch_size=options.micro,
            max_tokens=options.steps * options.batch * _LENGTH,
            max_norm=1.0,
            lr_warmup_steps=2,
        ),
        eval=EvalArgs(interval=8, max_iters=1, initial_validation=False, final_validation=False),
        devices=1,
        logger_name="csv",
    )
    truth.ends("completed")


if __name__ == "__main__":
    main()
