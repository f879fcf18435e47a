"""Lightning's litgpt.

Formats: litgpt/pretrain.py and litgpt/finetune/*.py fit (`Epoch 1 | iter 4 step 1 | loss train: 2.5, val: n/a | iter
time: 820.31 ms (step)`), lit-gpt of 2023 (`iter 4 step 1: loss 2.5, iter time: 820.31ms (optimizer.step)`) and early
2024 (`iter 4 | step 1: loss 2.5, ...`).

iter counts micro batches, step optimizer updates; `(step)` marks the micro batch that made the update. A micro batch
before it belongs to the next step, and its time is a share of that step's: only a step of one micro batch has a time.
"""

from __future__ import annotations

import polars as pl

from pipeline.parse import environment, run_files
from pipeline.parse.combine import whole
from pipeline.parse.layouts import extract_each
from pipeline.parse.milestones import milestones
from pipeline.parse.protocol import (
    SETTING_FACTS,
    STEP_FACTS,
    CombinedSetting,
    Dialect,
    conform,
    named_settings,
    said_settings,
)
from pipeline.parse.quantities import NUMBER, divided, number
from pipeline.parse.redraw import last_of_each_step

_LOOKS_LIKE = r"^\s*(?:Epoch \d+ \| )?iter \d+ (?:\| )?step \d+(?: \||:)"
_FIELDS = {
    "shown": r"\bstep (\d+)",
    "micro": r"\biter (\d+)",
    "update": r"(\()(?:optimizer\.)?step\)",
    "loss": rf"loss (?:train: )?({NUMBER})\s*,",
    "ms": r"iter time: ([\d.]+) ?ms",
    "complete": r"iter (t)ime: [\d.]+ ?ms(?:\s|$|\s*\()",
}


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """Micro batches by the optimizer step they belong to; a line that does not reach its time stays unparsed."""
    text = pl.col("text")
    mine = lines.filter(text.str.contains(_LOOKS_LIKE))
    shown, micro = pl.col("shown").cast(pl.Int64, strict=False), pl.col("micro").cast(pl.Int64, strict=False)
    is_update = pl.col("update").is_not_null()
    is_single = is_update & (micro == shown) & (shown > 0)
    return conform(
        extract_each(mine, _FIELDS).with_columns(
            step=pl.when(pl.col("complete").is_not_null()).then(shown + (~is_update).cast(pl.Int64)),
            loss=number(pl.col("loss")),
            step_time_s=pl.when(is_single).then(divided(number(pl.col("ms")), 1000)),
        ),
        STEP_FACTS,
    )


# The hyperparameters that the scripts print: a dict's repr, or jsonargparse's namespace.
_NAMES = {
    "micro_batch_size": "mbs", "max_seq_length": "seq_len", "max_steps": "steps_planned", "devices": "gpus_per_node",
    "num_nodes": "num_nodes", "precision": "arg:precision", "n_layer": "num_layers", "n_head": "num_heads",
    "n_embd": "hidden_size", "n_query_groups": "num_kv_heads", "intermediate_size": "ffn_hidden_size",
    "padded_vocab_size": "vocab_size", "gradient_accumulation_steps": "gas", "gradient_accumulation_iters": "gas",
    "global_batch_size": "gbs",
}  # fmt: skip


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """Hyperparameters, the parameter count where the model is trained whole, and how many processes there are."""
    dumped = named_settings(
        lines, r"(?:^|[ {(,])'?(\w+)'?(?:=|: )(\d+)(?:[,)}]|\s|$)", _NAMES, setting_source="argument_dump"
    )
    counted = lines.select(
        "source", "line_no", name=pl.lit("params"), setting_source=pl.lit("log_line"),
        value=pl.col("text").str.extract(r"^\s*Total parameters:? ([\d,]+)").str.replace_all(",", "", literal=True),
    ).drop_nulls("value")  # fmt: skip
    started = said_settings(lines, [("num_gpus", r"\bStarting with (\d+) processes")])  # Lightning's Fabric
    return pl.concat([dumped, conform(counted, SETTING_FACTS), started, environment.settings(lines)])


# The training scripts know DDP and FSDP only: every device has its own micro batch.
COMBINED = (
    CombinedSetting("num_gpus", whole("gpus_per_node") * whole("num_nodes").fill_null(1), ("gpus_per_node",)),
    CombinedSetting(
        "dp",
        pl.coalesce(whole("num_gpus"), whole("gpus_per_node") * whole("num_nodes").fill_null(1)),
        ("num_gpus", "gpus_per_node"),
        setting_source="derived",
    ),
)

_END = r"^\s*Training time: [\d.]+ ?s|^\s*\| *- Training Time *:"


def events(lines: pl.DataFrame) -> pl.DataFrame:
    """The training time, which is printed after the last step."""
    return milestones(lines, training_end=_END)


DIALECT = Dialect(
    name="litgpt",
    version=3,
    signature=("| loss train: ", "| iter time: ", ", iter time: ", "litgpt pretrain", "litgpt finetune", "litgpt/"),
    anchors=(
        "iter ", "Training time: ", "Training Time", "Total parameters", "Starting with ", *_NAMES,
        *environment.ANCHORS,
    ),
    steps=steps,
    settings=settings,
    events=events,
    combined=COMBINED,
    sidecars=run_files.LITGPT,
    settle=last_of_each_step,
)  # fmt: skip
