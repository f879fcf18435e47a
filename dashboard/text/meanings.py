"""What a printed value may mean, in words, and as a dialect file spells it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sweepscope.dashboard.format.numbers import count, number, significant
from sweepscope.dashboard.text.inferred_logs import column_name
from sweepscope.pipeline.inspection.correct_dialect import UNREAD

_MEMORY = {"GiB": "GiB", "GB": "GB", "MiB": "MiB", "MB": "MB", "size": "with its unit"}

STEP_MEANINGS: Mapping[str, str] = {
    UNREAD: "not read",
    "loss": "loss",
    "step_time:s": "step time, seconds",
    "step_time:ms": "step time, milliseconds",
    "step_time:us": "step time, microseconds",
    "step_time:min": "step time, minutes",
    "step_time:it/s": "steps per second",
    "step_time:duration": "step time with its unit (412ms)",
    "tokens_per_s": "tokens/s, all GPUs",
    "tokens_per_s_per_gpu": "tokens/s per GPU",
    "tflops_per_gpu": "TFLOP/s per GPU",
    "mfu:%": "MFU, percent",
    "mfu:fraction": "MFU, 0 to 1",
    "grad_norm": "grad norm",
    "learning_rate": "learning rate",
    **{f"mem_allocated:{unit}": f"allocated memory, {shown}" for unit, shown in _MEMORY.items()},
    **{f"mem_reserved:{unit}": f"reserved memory, {shown}" for unit, shown in _MEMORY.items()},
    "consumed_tokens": "tokens so far",
    "step_tokens": "tokens of one step",
    "steps_planned": "planned steps",
    "rank": "rank",
}

SETTING_MEANINGS: Mapping[str, str] = {
    UNREAD: "not read",
    "model": "model",
    "params": "parameters",
    "gbs": "global batch, sequences",
    "gbs_tokens": "global batch, tokens",
    "mbs": "micro-batch",
    "gas": "accumulation steps",
    "seq_len": "sequence length",
    "num_gpus": "GPUs",
    "num_nodes": "nodes",
    "gpus_per_node": "GPUs per node",
    "accelerator": "accelerator",
    "dp": "data parallel (DP)",
    "tp": "tensor parallel (TP)",
    "pp": "pipeline parallel (PP)",
    "cp": "context parallel (CP)",
    "ep": "expert parallel (EP)",
    "zero_stage": "ZeRO stage",
    "precision": "precision",
    "recompute": "recompute",
    "steps_planned": "planned steps",
}

CONSTANTS: Mapping[str, str] = {
    "gbs": "Global batch, sequences",
    "seq_len": "Sequence length, tokens",
    "num_gpus": "GPUs",
    "num_nodes": "Nodes",
    "model": "Model",
    "accelerator": "Accelerator",
}
"""Columns that the editor asks for, with the labels of their fields; the last two are texts."""

_WITH_SUFFIX = ("tokens_per_s", "tokens_per_s_per_gpu", "consumed_tokens", "step_tokens")
_SUFFIX = ":human"


def plain(meaning: str) -> str:
    """A meaning as it is offered: how a count's suffix is printed follows from the value.

    >>> plain("tokens_per_s:human"), plain("step_time:ms")
    ('tokens_per_s', 'step_time:ms')
    """
    return meaning.removesuffix(_SUFFIX)


def spelt(meaning: str, example: str) -> str:
    """A meaning as a dialect file spells it, for a value that is printed like the example.

    >>> spelt("tokens_per_s", "13.8K"), spelt("tokens_per_s", "13800"), spelt("loss", "2.1")
    ('tokens_per_s:human', 'tokens_per_s', 'loss')
    """
    return f"{meaning}{_SUFFIX}" if meaning in _WITH_SUFFIX and re.search("[KMBG]$", example) else meaning


def meaning_name(meaning: str) -> str:
    """A meaning in words.

    >>> meaning_name("step_time:ms"), meaning_name("epoch")
    ('step time, milliseconds', 'epoch')
    """
    known = {**SETTING_MEANINGS, **STEP_MEANINGS}
    column, _, unit = meaning.partition(":")
    return known.get(meaning) or (f"{column_name(column)}, {unit}" if unit else column_name(column))


def printed_value(printed: str, example: str) -> str:
    """How a value is printed, with an example of it.

    >>> printed_value("| took …", "0.41"), printed_value("micro_batch", "")
    ('took 0.41', 'micro_batch')
    """
    bare = printed.lstrip(" ,;|")
    return bare.replace("…", example or "…") if "…" in bare else f"{bare} {example}".strip()


def guess_note(row: Mapping[str, object] | None) -> str:
    """What was inferred of a value, with confidence and grounds; "" for nothing."""
    if row is None:
        return ""
    lead = "" if row["is_read"] else f"perhaps {column_name(str(row['column_name']))}, not read: "
    return f"{lead}{row['confidence']} confidence, {row['grounds']}"


_FIGURES = {
    "loss": ("loss", ""),
    "step_time_s": ("step time", " s"),
    "tokens_per_s": ("tokens/s", ""),
    "tokens_per_s_per_gpu": ("tokens/s per GPU", ""),
    "tflops_per_gpu_logged": ("TFLOP/s per GPU", ""),
}


def trial_line(steps: int, values: Sequence[tuple[str, object]], refusal: str) -> str:
    """What a corrected file reads in one log.

    >>> trial_line(40, [("step", 1), ("loss", 2.31), ("step_time_s", 0.41)], "")
    '40 steps; the first has loss 2.310, step time 0.4100 s'
    """
    if refusal:
        return f"Not read: {refusal}"
    shown = [
        f"{_FIGURES[name][0]} {number(value) if isinstance(value, int) else significant(value, 4)}{_FIGURES[name][1]}"
        for name, value in values
        if name in _FIGURES and isinstance(value, (int, float))
    ]
    return count(steps, "step") + (f"; the first has {', '.join(shown)}" if shown else "")
