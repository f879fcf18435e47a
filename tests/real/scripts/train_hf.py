"""transformers' Trainer, or TRL's for supervised fine-tuning, under a script of one's own."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments
from surroundings import Trouble, rows_of_tokens
from truth import Truth

_LENGTH = 32
_WORDS = 257


class Rows(torch.utils.data.Dataset):
    """Rows of tokens."""

    def __init__(self, count: int) -> None:
        self.tokens = rows_of_tokens(count, _LENGTH, _WORDS)

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.tokens[index], "labels": self.tokens[index]}


class Witness(TrainerCallback):
    """Writes down what the trainer logs."""

    def __init__(self, truth: Truth, trouble: Trouble) -> None:
        self.truth, self.trouble = truth, trouble

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.truth.knows(steps_planned=state.max_steps)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if "loss" in (logs or {}):
            self.truth.step(state.global_step, float(logs["loss"]))

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.trouble.after(state.global_step)


def trl_trainer(model: Any, arguments: dict[str, Any], rows: Rows, witness: Witness) -> Any:
    """TRL's trainer on the same tokens, with a tokenizer of words that are numbers."""
    from datasets import Dataset
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast
    from trl import SFTConfig, SFTTrainer

    words = {f"w{index}": index for index in range(_WORDS - 1)} | {"<eos>": _WORDS - 1}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="w0")), eos_token="<eos>", pad_token="<eos>"
    )
    return SFTTrainer(
        model=model,
        args=SFTConfig(**arguments, max_length=_LENGTH),
        train_dataset=Dataset.from_dict({"input_ids": rows.tokens.tolist()}),
        processing_class=tokenizer,
        callbacks=[witness],
    )


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--truth", required=True)
    parser.add_argument("--arguments", type=json.loads, default={})
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--trouble", default="")
    parser.add_argument("--at", type=int, default=0)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--trl", action="store_true")
    options = parser.parse_args()
    config = GPT2Config(n_layer=2, n_embd=64, n_head=2, n_positions=_LENGTH, vocab_size=_WORDS)
    model = GPT2LMHeadModel(config)
    arguments = {
        "output_dir": "out",
        "per_device_train_batch_size": 4,
        "max_steps": 24,
        "logging_steps": 2,
        "learning_rate": 3e-3,
        "save_strategy": "no",
        "report_to": "none",
        "use_cpu": True,
        **options.arguments,
    }
    truth = Truth(
        options.truth,
        "hf-trainer",
        num_gpus=int(os.environ.get("WORLD_SIZE", "1")),
        mbs=arguments["per_device_train_batch_size"],
        gas=arguments.get("gradient_accumulation_steps", 1),
        steps_planned=arguments["max_steps"],
        params=model.num_parameters(),
    )
    witness = Witness(truth, Trouble(options.trouble, options.at, truth))
    if options.trouble == "import":
        truth.ends("crash")
        import a_package_that_nobody_installed  # noqa: F401
    if options.trl:
        trainer = trl_trainer(model, arguments, Rows(options.rows), witness)
    else:
        trainer = Trainer(
            model=model,
            args=TrainingArguments(**arguments),
            train_dataset=Rows(options.rows),
            eval_dataset=Rows(16),
            callbacks=[witness],
        )
    trainer.train(resume_from_checkpoint=options.resume)
    truth.ends("completed")


if __name__ == "__main__":
    main()
