"""picotron: `log_<jobid>.out`, `config.json` and `status.txt` in one directory per run.

Formats: train.py (step line), utils.py to_readable_format (K/M/B/T suffixes), create_config.py (config.json),
submit_slurm_jobs.py and template/base_job.slurm (status words). The line is printed by the wandb rank, which is on the
last pipeline stage. "Global batch size" is in tokens; memory is memory_reserved/1e9. No step time is printed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import polars as pl

from pipeline.parse.protocol import SETTING_FACTS, STEP_FACTS, Dialect, Sidecar, conform
from pipeline.parse.quantities import HUMAN, human, number, size
from pipeline.parse.timestamps import timestamp

_SEPARATOR = r"\s*[|,]\s*"  # an old tutorial variant separates with commas
_RANK = r"^\s*\[rank (\d+)\]\s*Step:"


def _field(label: str, value: str = HUMAN) -> pl.Expr:
    return pl.col("text").str.extract(rf"{label}:\s*({value})")


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """Step lines; a line without its memory field is cut and stays unparsed."""
    mine = lines.filter(pl.col("text").str.contains(r"^\s*(?:\[rank \d+\]\s*)?Step:\s*\d"))
    complete = pl.col("text").str.contains(r"Loss:\s*\S+\s*[|,].*Tokens/s/GPU:\s*\S+\s*[|,]")
    return conform(
        mine.with_columns(
            rank=pl.col("text").str.extract(_RANK).cast(pl.Int64),
            ts=timestamp(pl.col("text")),
            step=pl.when(complete).then(_field("Step", r"\d+").cast(pl.Int64, strict=False)),
            loss=number(_field("Loss", r"[^\s|,]+")),
            tokens_per_s=human(_field("Tokens/s")),
            tokens_per_s_per_gpu=human(_field("Tokens/s/GPU")),
            consumed_tokens=human(_field("Tokens")).cast(pl.Int64),
            mfu_logged=number(_field("MFU", r"[\d.]+")) / 100,
            mem_reserved_bytes=size(_field("Memory usage", r"[\d.]+\s*[KMGT]?B")),
        ),
        STEP_FACTS,
    )


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """Batch size, parameter count and accelerator count, from the lines that print them."""
    mine = lines.filter(pl.col("text").str.contains_any(["Tokens per step:", "Number of parameters:", "Tokens/s/GPU:"]))
    text = pl.col("text")
    throughput, per_gpu = human(_field("Tokens/s")), human(_field("Tokens/s/GPU"))
    rows = mine.with_columns(
        params=human(text.str.extract(rf"Number of parameters:\s*({HUMAN})")),
        # The printed figures have three significant digits: accept the ratio only where it is near a whole number.
        num_gpus=pl.when(((throughput / per_gpu) - (throughput / per_gpu).round()).abs() < 0.1).then(
            (throughput / per_gpu).round()
        ),
    )
    found = pl.concat(
        rows.select(
            "source", "line_no", pl.lit(name).alias("name"), pl.col(name).cast(pl.Int64).cast(pl.String).alias("value")
        )
        for name in ("params", "num_gpus")
    ).drop_nulls("value")
    # One value per file is enough: the first of each.
    found = found.unique(["source", "name"], keep="first", maintain_order=True)
    return conform(found.with_columns(setting_source=pl.lit("log_line")), SETTING_FACTS)


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
    if not isinstance(config, dict) or "distributed" not in config or "training" not in config:
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
        raise ValueError(f"not a picotron status: {word[:40]!r}")
    return {"status_file": word}


DIALECT = Dialect(
    name="picotron",
    version=1,
    signature=(
        "| Tokens/s/GPU:",
        "Initializing model meta device",
        "Broadcasting tokenizer to all ranks",
        "Tokens per step:",
    ),
    anchors=("Step:", "Tokens per step:", "Number of parameters:"),
    steps=steps,
    settings=settings,
    sidecars=(
        Sidecar("config.json", "config", read_config),
        Sidecar("status.txt", "status", read_status),
    ),
)
