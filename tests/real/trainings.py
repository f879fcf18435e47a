"""The trainings: how each is launched, once or again after it broke off."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Training:
    """One run.

    Attributes:
        name: its folder.
        script: of `scripts/`.
        launches: arguments of each start.
        processes: by torchrun where there are several.
        has_log_each: every launch has a log of its own; else they share one.
        is_buffered: Python writes its output in blocks, as it does unless PYTHONUNBUFFERED is set: what goes to stderr,
            such as bars, comes before it, or within one of its lines.
    """

    name: str
    script: str
    launches: tuple[tuple[str, ...], ...] = ((),)
    processes: int = 1
    has_log_each: bool = False
    is_buffered: bool = False


def _hf(name: str, *launches: tuple[str, ...], processes: int = 1, **arguments: Any) -> Training:
    given = ("--arguments", json.dumps(arguments))
    return Training(f"hf/{name}", "train_hf.py", tuple((*given, *each) for each in launches or ((),)), processes)


def _resumed(name: str, *, has_log_each: bool) -> Training:
    given = ("--arguments", json.dumps({"save_strategy": "steps", "save_steps": 4}))
    starts = ((*given, "--trouble", "killed", "--at", "11"), (*given, "--resume"))
    return Training(name, "train_hf.py", starts, has_log_each=has_log_each)


def _trl(name: str, **arguments: Any) -> Training:
    return Training(f"trl/{name}", "train_hf.py", (("--trl", "--arguments", json.dumps(arguments)),))


def _lightning(name: str, *options: str, **arguments: Any) -> Training:
    return Training(f"lightning/{name}", "train_lightning.py", ((*options, "--arguments", json.dumps(arguments)),))


def _in_blocks(training: Training) -> Training:
    return replace(training, name=f"{training.name}_in_blocks", is_buffered=True)


TRAININGS = (
    _hf("bars"),
    _hf("no_bars", disable_tqdm=True, gradient_accumulation_steps=2),
    _hf("every_10_and_first", logging_steps=10, logging_first_step=True, max_steps=23),
    _hf(
        "epochs",
        ("--rows", "24"),
        max_steps=-1,
        num_train_epochs=3,
        logging_strategy="epoch",
        eval_strategy="epoch",
    ),
    _hf("no_bars_epochs", ("--rows", "42"), max_steps=-1, num_train_epochs=2, logging_steps=3, disable_tqdm=True),
    _resumed("hf/resumed", has_log_each=False),
    _resumed("hf/resumed_in_a_second_log", has_log_each=True),
    _hf("crash", ("--trouble", "crash", "--at", "9")),
    _hf("crash_before_the_first_step", ("--trouble", "import")),
    _hf("oom", ("--trouble", "oom", "--at", "7")),
    _hf("killed", ("--trouble", "killed", "--at", "13")),
    _hf("two_processes", processes=2),
    _hf("two_processes_crash", ("--trouble", "crash", "--at", "9"), processes=2),
    _trl("sft"),
    _trl("sft_accumulates", gradient_accumulation_steps=2, per_device_train_batch_size=2),
    _lightning("tqdm_csv", "--csv"),
    _lightning("rich_csv", "--csv", "--bar", "rich"),
    _lightning("accumulates", "--csv", "--batch", "8", accumulate_grad_batches=2),
    _lightning("bar_alone"),
    _lightning("rich_bar_alone", "--bar", "rich"),
    _lightning("epochs", "--csv", "--rows", "40", max_epochs=3, max_steps=-1),
    _lightning("crash", "--csv", "--trouble", "crash", "--at", "11"),
    _lightning("killed", "--csv", "--trouble", "killed", "--at", "11"),
    _in_blocks(_hf("bars")),
    _in_blocks(_hf("every_5_and_first", logging_steps=5, logging_first_step=True)),
    _in_blocks(_hf("many", max_steps=300, logging_steps=1)),
    _in_blocks(_hf("many_killed", ("--trouble", "killed", "--at", "190"), max_steps=300, logging_steps=1)),
    _in_blocks(_hf("evaluates", eval_strategy="steps", eval_steps=3)),
    _in_blocks(_hf("crash", ("--trouble", "crash", "--at", "9"))),
    _in_blocks(_hf("two_processes", processes=2)),
    _in_blocks(_lightning("tqdm_csv", "--csv")),
    Training("litgpt/pretrain", "train_litgpt.py"),
    _in_blocks(Training("litgpt/crash", "train_litgpt.py", (("--trouble", "crash", "--at", "8"),))),
    Training("litgpt/accumulates", "train_litgpt.py", (("--micro", "2", "--batch", "4", "--every", "1"),)),
    Training("litgpt/crash", "train_litgpt.py", (("--trouble", "crash", "--at", "8"),)),
    Training("nanogpt/scratch", "train_nanogpt.py"),
    Training("nanogpt/accumulates", "train_nanogpt.py", (("--gas", "2", "--every", "1"),)),
    Training("nanogpt/oom", "train_nanogpt.py", (("--trouble", "oom", "--at", "7"),)),
)
