"""picotron: `log_<jobid>.out`, `config.json` and `status.txt` in one directory per run.

Formats: train.py (step line), utils.py to_readable_format (K/M/B/T suffixes), create_config.py (config.json),
submit_slurm_jobs.py and template/base_job.slurm (status words). The line is printed by the wandb rank, which is on the
last pipeline stage. "Global batch size" is in tokens; memory is memory_reserved/1e9. No step time is printed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from sweepscope.pipeline.logs.dialect import Dialect, Sidecar
from sweepscope.pipeline.logs.dialects import environment
from sweepscope.pipeline.logs.extractors import computed_settings
from sweepscope.pipeline.logs.facts import STEP_FACTS, Facts, conform, in_order
from sweepscope.pipeline.text.field_extraction import extract_each
from sweepscope.pipeline.text.quantities import HUMAN, divided, human, number, size
from sweepscope.pipeline.text.secrets import shorten

_SEPARATOR = r"\s*[|,]\s*"  # an old tutorial variant separates with commas


def _field(label: str, value: str = HUMAN) -> str:
    return rf"\b{label}:\s*({value})"


_FIELDS = {
    "printer": r"^\s*\[rank (\d+)\]\s*Step:",
    "number": _field("Step", r"\d+"),
    "loss": _field("Loss", r"[^\s|,]+"),
    "per_gpu": rf"\bTokens/s/GPU:\s*({HUMAN}){_SEPARATOR}",
    "tokens_per_s": _field("Tokens/s"),
    # Behind the throughput the line may stop: a value counts with the separator or unit that ends it.
    "tokens": rf"\bTokens:\s*({HUMAN})\s*[|,/]",
    "percent": r"\bMFU:\s*(-?[\d.]+)%",
    "memory": _field("Memory usage", r"-?[\d.]+\s*[KMGT]?B"),
}


def _known(value: pl.Expr) -> pl.Expr:
    return pl.when(value != 0).then(value)


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of step lines; a line that does not reach its throughput is cut and stays unparsed."""
    mine = lines.filter(pl.col("text").str.contains(r"^\s*(?:\[rank \d+\]\s*)?Step:\s*\d"))
    complete = pl.col("loss").is_not_null() & pl.col("per_gpu").is_not_null()
    return conform(
        extract_each(mine, _FIELDS).with_columns(
            rank="printer",
            step=pl.when(complete).then("number"),
            loss=number(pl.col("loss")),
            tokens_per_s=human(pl.col("tokens_per_s")),
            tokens_per_s_per_gpu=human(pl.col("per_gpu")),
            consumed_tokens=human(pl.col("tokens")),
            mfu_logged=divided(number(pl.col("percent")), 100),
            # memory_reserved of a run without a GPU prints 0.00GB: not measured, not zero.
            mem_reserved_bytes=_known(size(pl.col("memory"))),
        ),
        STEP_FACTS,
    )


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS: the parameter count, and what the launch prints."""
    text = pl.col("text")
    sized = lines.filter(text.str.contains("Number of parameters:", literal=True))
    count = human(text.str.extract(_field("Number of parameters")))
    return pl.concat([computed_settings(sized, {"params": count}), environment.settings(lines)])


def finalize(facts: Facts) -> Facts:
    """Accelerator counts: how often one printed throughput holds the other, where rounding leaves one whole number.

    Noted where the count changes, and where steps begin anew: a restart may have other ranks.
    """
    # Columns by name: a query over some of them would rechunk all.
    both = facts.steps["source", "line_no", "step", "tokens_per_s", "tokens_per_s_per_gpu"].drop_nulls()
    throughput, per_rank = pl.col("tokens_per_s"), pl.col("tokens_per_s_per_gpu")
    ratio = throughput / per_rank
    slack = ratio * (_relative_error(throughput) + _relative_error(per_rank))
    counted = (
        in_order(both)
        .select(
            "source",
            "line_no",
            "step",
            ranks=pl.when((slack < 0.5) & ((ratio - ratio.round()).abs() <= slack)).then(ratio.round()),
        )
        .drop_nulls("ranks")
    )
    is_as_before = pl.col("source", "ranks") == pl.col("source", "ranks").shift(1)
    is_new = ~pl.all_horizontal(is_as_before, pl.col("step") > pl.col("step").shift(1)).fill_null(value=False)
    ranks = computed_settings(counted.filter(is_new), {"num_gpus": pl.col("ranks")})
    return replace(facts, settings=pl.concat([facts.settings, ranks]))


def _relative_error(value: pl.Expr) -> pl.Expr:
    """Largest relative error of a number printed with two decimals and a suffix: 1.05M is 0.005 in 1.05."""
    printed = pl.when(value < 1e3).then(0.005).when(value < 1e6).then(0.005e3).when(value < 1e9).then(0.005e6)
    return printed.when(value < 1e12).then(0.005e9).otherwise(0.005e12) / value


_CONFIG = {
    ("distributed", "tp_size"): "tp",
    ("distributed", "cp_size"): "cp",
    ("distributed", "pp_size"): "pp",
    ("distributed", "dp_size"): "dp",
    ("distributed", "pp_engine"): "pipeline_schedule",
    ("model", "name"): "model",
    ("model", "num_hidden_layers"): "num_layers",
    ("model", "num_attention_heads"): "num_heads",
    ("model", "num_key_value_heads"): "num_kv_heads",
    ("model", "hidden_size"): "hidden_size",
    ("model", "intermediate_size"): "ffn_hidden_size",
    ("model", "vocab_size"): "vocab_size",
    ("model", "dtype"): "precision",
    ("training", "total_train_steps"): "steps_planned",
    ("training", "seq_length"): "seq_len",
    ("training", "micro_batch_size"): "mbs",
    ("training", "gradient_accumulation_steps"): "gas",
}


def read_config(text: str) -> Mapping[str, str]:
    """`config.json` to settings. Raises ValueError when it is not a picotron configuration."""
    config = json.loads(text)
    if not isinstance(config, dict) or not all(isinstance(config.get(s), dict) for s in ("distributed", "training")):
        raise ValueError("no picotron sections 'distributed' and 'training'")
    found: dict[str, str] = {}
    for (section, key), name in _CONFIG.items():
        part: Any = config.get(section)
        value = part.get(key) if isinstance(part, dict) else None
        if value is not None:
            found[name] = str(value)
    if config["distributed"].get("use_cpu") is True:
        found["accelerator"] = "CPU"
    # picotron has no ZeRO: gradients are all-reduced and every replica keeps the optimizer.
    found["zero_stage"] = "0"
    return found


_STATUS_WORDS = {"init", "pending", "running", "fail", "oom", "timeout", "completed"}


def read_status(text: str) -> Mapping[str, str]:
    """`status.txt`: one word, without a line feed. Raises ValueError for any other word."""
    word = text.strip().lower()
    if word not in _STATUS_WORDS:
        raise ValueError(f"not a picotron status: {shorten(word, 40)!r}")
    return {"status_file": word}


DIALECT = Dialect(
    name="picotron",
    module=__name__,
    signature_literals=(
        "| Tokens/s/GPU:",
        ", Tokens/s/GPU:",
        "Initializing model meta device",
        "Broadcasting tokenizer to all ranks",
        "Tokens per step:",
    ),
    steps=steps,
    settings=settings,
    finalize=finalize,
    literals_by_function={"steps": ("Step:",), "settings": ("Number of parameters:", *environment.LITERALS)},
    sidecars=(Sidecar("config.json", "config", read_config), Sidecar("status.txt", "status", read_status)),
)
