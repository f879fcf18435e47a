"""Train a Llama of transformers with its own Trainer on made-up tokens, on one GPU."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from train import SHAPES
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments


class Tokens(torch.utils.data.Dataset):
    """Rows of tokens, made when they are asked for."""

    def __init__(self, rows: int, seq: int, vocab: int) -> None:
        self.rows, self.seq, self.vocab = rows, seq, vocab

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        tokens = torch.randint(self.vocab, (self.seq,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": tokens, "labels": tokens}


class Clock(TrainerCallback):
    """Times whole steps, the GPU awaited, and writes down the peaks after each."""

    def __init__(self, measured: dict[str, Any]) -> None:
        self.measured, self.times, self.last = measured, [], 0.0

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self.last = time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
            self.measured.update(
                peak_allocated_bytes=torch.cuda.max_memory_allocated(),
                peak_reserved_bytes=torch.cuda.max_memory_reserved(),
            )
        self.times.append(time.perf_counter() - self.last)
        self.measured.update(
            step_time_s=statistics.median(self.times[3:] or self.times),
            step_times_s=[round(took, 5) for took in self.times],
        )


def parser() -> argparse.ArgumentParser:
    """The options of a training."""
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--model", choices=SHAPES, default="llama-1b")
    made.add_argument("--seq", type=int, default=2048)
    made.add_argument(
        "--weights", choices=("fp32", "bf16"), default="fp32", help="bf16 is training without master weights"
    )
    made.add_argument("--attention", choices=("sdpa", "eager"), default="sdpa")
    made.add_argument("--arguments", type=json.loads, default={}, help="of TrainingArguments, as JSON")
    return made


def main(arguments: list[str]) -> int:
    """Run one training; its `measured.json` lies in the working directory, whatever came of it."""
    options = parser().parse_args(arguments)
    shape = SHAPES[options.model]
    settings = {
        "output_dir": "out",
        "max_steps": 9,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": "none",
        "bf16": torch.cuda.is_available(),
        "seed": 1234,
        **options.arguments,
    }
    measured: dict[str, Any] = {
        "trainer": "transformers",
        **vars(options),
        "shape": asdict(shape),
        "settings": settings,
    }
    torch.manual_seed(1234)
    config = LlamaConfig(
        num_hidden_layers=shape.layers,
        hidden_size=shape.hidden,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        intermediate_size=shape.ffn,
        vocab_size=shape.vocab,
        tie_word_embeddings=shape.tied,
        max_position_embeddings=options.seq,
        attn_implementation=options.attention,
        dtype=torch.bfloat16 if options.weights == "bf16" else torch.float32,
        use_cache=False,
    )
    try:
        with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
            model = LlamaForCausalLM(config)
        if options.weights == "bf16":
            model.to(torch.bfloat16)
        measured["parameters"] = model.num_parameters()
        trainer = Trainer(
            model=model,
            args=TrainingArguments(**settings),
            train_dataset=Tokens(100_000, options.seq, shape.vocab),
            callbacks=[Clock(measured)],
        )
        trainer.train()
        trainer.save_state()
        if torch.cuda.is_available():
            free, total = torch.cuda.mem_get_info()
            measured.update(used_bytes=total - free, total_bytes=total)
        measured["outcome"] = "completed"
    except torch.OutOfMemoryError:
        measured["outcome"] = "oom"
        raise
    finally:
        Path("measured.json").write_text(json.dumps(measured))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
