"""What stands around the steps: settings, noise, evaluations, prefixes, ranks and endings."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random

from tests.trainers.facts import Run, Step

Settings = tuple[list[str], dict[str, int]]
"""Lines, and the columns of `runs` that they state."""

_START = datetime(2026, 1, 31, 12, 0, 0)


def settings(run: Run, random: Random) -> Settings:
    """A dump of arguments in any form."""
    values: dict[str, tuple[str, object]] = {
        "mbs": (
            random.choice(
                ["micro_batch_size", "batch_size", "per_device_train_batch_size", "device_batch_size", "mbs"]
            ),
            run.mbs,
        ),
        "seq_len": (
            random.choice(["seq_len", "block_size", "max_seq_len", "sequence_length", "context_length", "seq_length"]),
            run.seq_len,
        ),
        "num_layers": (random.choice(["n_layer", "num_layers", "n_layers", "num_hidden_layers"]), run.layers),
        "hidden_size": (random.choice(["n_embd", "hidden_size", "d_model", "dim"]), run.width),
        "num_heads": (random.choice(["n_head", "num_heads", "num_attention_heads", "n_heads"]), run.heads),
        "vocab_size": ("vocab_size", run.vocab),
    }
    if run.gas > 1 or random.random() < 0.5:
        values["gas"] = (
            random.choice(["gradient_accumulation_steps", "grad_accum_steps", "accum_steps", "gas"]),
            run.gas,
        )
    if random.random() < 0.6:
        values["steps_planned"] = (
            random.choice(["max_steps", "max_iters", "num_steps", "total_steps", "train_iters"]),
            run.planned,
        )
    if run.cards > 1 or random.random() < 0.3:
        values["num_gpus"] = (random.choice(["world_size", "num_gpus", "n_gpus", "ddp_world_size"]), run.cards)
    if run.tp > 1 or run.pp > 1 or random.random() < 0.15:
        long = random.random() < 0.5
        for short, name, value in (
            ("tp", "tensor_parallel_size", run.tp),
            ("pp", "pipeline_parallel_size", run.pp),
            ("dp", "data_parallel_size", run.dp),
        ):
            values[short] = (name if long else short, value)
    noise: list[tuple[str, object]] = [
        ("seed", random.randrange(9999)),
        ("lr", 3e-4),
        ("weight_decay", 0.1),
        ("beta1", 0.9),
        ("warmup_steps", random.choice([100, 200, 2000])),
        ("dataset", "openwebtext"),
        ("out_dir", "out/run7"),
        ("eval_interval", 250),
        ("log_interval", run.every),
        ("compile", True),
        ("num_workers", 4),
        ("grad_clip", 1.0),
        ("dropout", 0.0),
        ("save_every", 1000),
        ("dtype", {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}[run.precision]),
    ]
    stated = random.sample(list(values), random.randrange(max(2, len(values) - 4), len(values) + 1))
    pairs: list[tuple[str, object]] = [values[column] for column in stated] + random.sample(
        noise, random.randrange(2, 9)
    )
    random.shuffle(pairs)
    truth = {column: int(values[column][1]) for column in stated}  # type: ignore[call-overload]
    return _dump(pairs, random), truth


def _dump(pairs: list[tuple[str, object]], random: Random) -> list[str]:  # noqa: PLR0911 - a form each
    form = random.choice(
        [
            "namespace",
            "colon",
            "equals",
            "yaml",
            "json",
            "json lines",
            "dict",
            "table",
            "dots",
            "command",
            "dataclass",
            "aligned",
            "box",
        ]
    )
    if form == "namespace":
        return ["Namespace(" + ", ".join(f"{name}={value!r}" for name, value in pairs) + ")"]
    if form == "colon":
        return ["Configuration:", *(f"  {name}: {value}" for name, value in pairs)]
    if form == "equals":
        return [f"{name} = {value}" for name, value in pairs]
    if form == "yaml":
        half = len(pairs) // 2
        return [
            "model:",
            *(f"  {name}: {value}" for name, value in pairs[:half]),
            "training:",
            *(f"  {name}: {value}" for name, value in pairs[half:]),
        ]
    if form == "json":
        return json.dumps(dict(pairs), indent=2).splitlines()
    if form == "json lines":
        return ["config: " + json.dumps(dict(pairs))]
    if form == "dict":
        return [str(dict(pairs))]
    if form == "table":
        return [
            "+----------+------+",
            *(f"| {name:<30} | {value!s:<12} |" for name, value in pairs),
            "+----------+------+",
        ]
    if form == "box":
        return [f"│ {name:<30} │ {value!s:<12} │" for name, value in pairs]
    if form == "dots":
        return [f"  {name} {'.' * (40 - len(name))} {value}" for name, value in pairs]
    if form == "command":
        return [
            "+ python train.py "
            + " ".join(f"--{name} {value}" if random.random() < 0.8 else f"--{name}={value}" for name, value in pairs)
        ]
    if form == "dataclass":
        return ["TrainConfig(" + ", ".join(f"{name}={value!r}" for name, value in pairs) + ")"]
    return [f"{name:<32}{value}" for name, value in pairs]


HEADS = (
    "Downloading shards: 100%",
    "Using device: cuda",
    "compiling the model... (takes a ~minute)",
    "WARNING: torch.cuda.amp.GradScaler is deprecated",
    "Loaded 9,035,582,198 tokens from 18 shards",
    "tokenizer: gpt2 (50257 entries)",
    "num decayed parameter tensors: 50, with 124,354,560 parameters",
    "initializing process group with backend nccl",
    "wandb: Tracking run with wandb version 0.17.0",
    "Resuming from latest checkpoint: none found",
)
NOISE: tuple[Callable[[Step, Random], str], ...] = (
    lambda step, random: f"saving checkpoint to out/ckpt_{step.number}.pt",
    lambda step, random: f"Saved checkpoint at step {step.number} in {random.uniform(1, 9):.1f}s",
    lambda step, random: "UserWarning: The lr_scheduler.step() was called before optimizer.step()",
    lambda step, random: "sample: Once upon a time there were 3 bears, 2 of whom had lost 17 keys",
    lambda step, random: f"[gc] collected {random.randrange(99)} objects in {random.uniform(0.1, 2):.2f}s",
    lambda step, random: "",
    lambda step, random: f"NCCL WARN Connect to 10.0.0.{random.randrange(255)} failed, retrying",
    lambda step, random: f"dataloader: finished shard {random.randrange(40)}/40",
)
EVALUATIONS: tuple[Callable[[Step], str], ...] = (
    lambda step: f"step {step.number}: train loss {step.loss:.4f}, val loss {step.loss + 0.1:.4f}",
    lambda step: f"val loss: {step.loss + 0.12:.4f}",
    lambda step: f"[eval] step={step.number} loss={step.loss + 0.1:.4f} ppl={2.718 ** min(step.loss, 15):.2f}",
    lambda step: f"Validation | step {step.number} | loss {step.loss + 0.2:.3f} | time 12.3s",
    lambda step: f"eval at step {step.number}: loss {step.loss + 0.2:.3f} accuracy 0.31",
    lambda step: f'{{"step": {step.number}, "val_loss": {step.loss + 0.1:.4f}}}',
    lambda step: f"*** evaluation: hellaswag {3000 + step.number % 100}/10042=0.2998",
)


def prefix(random: Random) -> Callable[[float, int], str]:
    """What a logger or a launcher writes in front of a line, from the seconds since the start and the rank."""

    def at(seconds: float) -> datetime:
        return _START + timedelta(seconds=seconds)

    return random.choice(
        [
            lambda s, r: "",
            lambda s, r: "",
            lambda s, r: "",
            lambda s, r: f"{at(s):%Y-%m-%d %H:%M:%S},{int(s * 1000) % 1000:03d} - INFO - ",
            lambda s, r: f"[{at(s):%Y-%m-%d %H:%M:%S}] ",
            lambda s, r: f"{at(s):%Y-%m-%d %H:%M:%S} INFO train.py:{321}: ",
            lambda s, r: "INFO:__main__:",
            lambda s, r: f"[rank{r}]:",
            lambda s, r: f"[{at(s):%H:%M:%S}] ",
            lambda s, r: f"{at(s):%Y-%m-%d %H:%M:%S.%f}"[:-3] + " | INFO     | __main__:train:88 - ",
            lambda s, r: f"[{at(s):%Y-%m-%d %H:%M:%S},{int(s * 1000) % 1000:03d}][trainer][INFO] - ",
            lambda s, r: f"{at(s):%m/%d/%Y %H:%M:%S} - INFO - ",
        ]
    )


def ending(run: Run, random: Random) -> list[str]:
    """How a log ends."""
    if run.ending == "completed":
        return random.choice(
            [
                ["Training complete!"],
                ["done."],
                ["Training finished in 0:12:31"],
                ["saving final model"],
                [],
                ["Finished training."],
                ["peak memory consumption: 31.2 GB", "Total training time: 812.3s"],
            ]
        )
    if run.ending == "crash":
        return [
            "Traceback (most recent call last):",
            '  File "train.py", line 287, in <module>',
            "    main()",
            random.choice(
                [
                    "ValueError: loss is not finite",
                    "KeyError: 'input_ids'",
                    "RuntimeError: shape '[8, 1024]' is invalid for input of size 4096",
                ]
            ),
        ]
    if run.ending == "oom":
        return [
            "Traceback (most recent call last):",
            '  File "train.py", line 287, in <module>',
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB",
        ]
    if run.ending == "cancelled":
        return ["^CTraceback (most recent call last):", '  File "train.py", line 201, in <module>', "KeyboardInterrupt"]
    return []
