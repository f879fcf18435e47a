"""Lightning's litgpt.

Formats: litgpt/pretrain.py and litgpt/finetune/*.py fit (`Epoch 1 | iter 4 step 1 | loss train: 2.5, val: n/a | iter
time: 820.31 ms (step)`), lit-gpt of 2023 (`iter 4 step 1: loss 2.5, iter time: 820.31ms (optimizer.step)`; forks of
TinyLlama put totals behind both numbers) and early 2024 (`iter 4 | step 1: loss 2.5, ...`), lit-llama
pretrain/redpajama.py (`iter 4: loss 2.5, time: 820.31ms, speed: 3320 toks/s/device`). Memory is in units of 10**9.

iter counts micro batches (from 1, in 2023 from 0), step optimizer updates; `(step)` marks the micro batch that made the
update. A micro batch before it belongs to the next step, and its time is a share of that step's: only a step of one
micro batch has a time. lit-llama prints no steps: its micro batches stand for them.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialect import CombinedSetting, Dialect
from sweepscope.pipeline.logs.dialects import environment
from sweepscope.pipeline.logs.expressions import whole
from sweepscope.pipeline.logs.extractors import (
    computed_peaks,
    computed_settings,
    last_of_each_step,
    matched_settings,
    milestones,
    named_settings,
)
from sweepscope.pipeline.logs.facts import STEP_FACTS, conform
from sweepscope.pipeline.logs.sidecars import run_files
from sweepscope.pipeline.text.field_extraction import extract_each
from sweepscope.pipeline.text.quantities import NUMBER, divided, number

_LLAMA_RATE = " toks/s/device"
_LLAMA = rf"^\s*(?:iter|Iter) (\d+): loss {NUMBER}, time: [\d.]+ms, speed: (?:[\d.]+|-){_LLAMA_RATE}"
_LOOKS_LIKE = rf"^\s*(?:Epoch \d+ \| )?iter \d+(?:/\d+)? (?:\| )?step \d+(?:/\d+)?(?: \||:)|{_LLAMA}"
_FIELDS = {
    "shown": r"\bstep (\d+)",
    "steps_planned": r"\bstep \d+/(\d+)",
    "bare": _LLAMA,
    "speed": rf"\bspeed: ([\d.]+){_LLAMA_RATE}",
    "micro": r"\biter (\d+)",
    "update": r"(\()(?:optimizer\.)?step\)",
    "loss": rf"loss (?:train: )?({NUMBER})\s*,",
    "ms": r"iter time: ([\d.]+) ?ms",
    "complete": r"iter (t)ime: [\d.]+ ?ms(?:\s|$|\s*\()",
}


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of micro batches, by the optimizer step they belong to; a line without its time stays unparsed."""
    text = pl.col("text")
    mine = lines.filter(text.str.contains(_LOOKS_LIKE))
    shown, micro = pl.col("shown").cast(pl.Int64, strict=False), pl.col("micro").cast(pl.Int64, strict=False)
    is_update = pl.col("update").is_not_null()
    # From 1, or from 0: no micro batch made an update before the first.
    is_single = is_update & (micro - shown).is_in([0, -1]) & (shown > 0)
    counted = pl.when(pl.col("complete").is_not_null()).then(shown + (~is_update).cast(pl.Int64))
    return conform(
        extract_each(mine, _FIELDS).with_columns(
            step=pl.coalesce(counted, pl.col("bare").cast(pl.Int64, strict=False)),
            loss=number(pl.col("loss")),
            tokens_per_s_per_gpu=number(pl.col("speed")),
            step_time_s=pl.when(is_single).then(divided(number(pl.col("ms")), 1000)),
        ),
        STEP_FACTS,
    )


# The hyperparameters that the scripts print: a dict's repr, or jsonargparse's namespace.
_NAMES = (
    {"micro_batch_size": "mbs", "max_seq_length": "seq_len", "max_steps": "steps_planned"}
    | {"devices": "gpus_per_node", "num_nodes": "num_nodes", "n_layer": "num_layers", "n_head": "num_heads"}
    | {"n_embd": "hidden_size", "n_query_groups": "num_kv_heads", "intermediate_size": "ffn_hidden_size"}
    | {"vocab_size": "vocab_size", "padded_vocab_size": "arg:padded_vocab_size", "gradient_accumulation_steps": "gas"}
    | {"gradient_accumulation_iters": "gas", "global_batch_size": "gbs", "max_iters": "arg:max_iters"}
    | {"max_tokens": "arg:max_tokens"}
)
_LAUNCHED = (
    ("num_gpus", r"\bStarting with (\d+) processes"),  # Lightning's Fabric
    # Of a script of 2023 on one machine; its model's configuration has the length of sequences.
    ("gpus_per_node", r"^\s*--devices[= ](\d+)"),
    ("seq_len", r"^Loading model with \{.*'block_size': (\d+),"),
)
_PRECISIONS = {"bf16": "bf16", "16": "fp16", "32": "fp32", "bfloat16": "bf16", "16-bit": "fp16"}
# The option `bf16-true`, `16-mixed`; what Fabric prints of mixed ones.
_PRECISION = r"'?\bprecision'?(?:=|: )'(bf16|16|32)-(?:true|mixed)'|\bUsing (bfloat16|16-bit) Automatic Mixed Precision"


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS of hyperparameters, of the processes, and of parameters where the model is trained whole."""
    dumped = named_settings(
        lines, r"(?:^|[ {(,])'?(\w+)'?(?:=|: )(\d+)(?:[,)}]|\s|$)", _NAMES, setting_source="argument_dump"
    )
    count = pl.col("text").str.extract(r"^\s*Total parameters:? ([\d,]+)").str.replace_all(",", "", literal=True)
    started = matched_settings(lines, _LAUNCHED)
    word = pl.coalesce(pl.col("text").str.extract(_PRECISION, group) for group in (1, 2))
    precision = word.replace_strict(_PRECISIONS, default=None, return_dtype=pl.String)
    return pl.concat(
        [
            dumped,
            computed_settings(lines, {"params": count}),
            computed_settings(lines, {"precision": precision}, setting_source="argument_dump"),
            started,
            environment.settings(lines),
        ]
    )


_MEMORY = r"^\s*(?:\| - )?Memory [Uu]sed *: +([\d.]+) GB"


def peaks(lines: pl.DataFrame) -> pl.DataFrame:
    """PEAK_FACTS of the peak of what was allocated, which is printed at the end."""
    peak = number(pl.col("text").str.extract(_MEMORY)) * 1e9
    return computed_peaks(lines, {"mem_peak_allocated_bytes": peak.round()})


# The training scripts know DDP and FSDP only: every device has its own micro batch.
COMBINED = (
    CombinedSetting(
        "vocab_size",
        pl.when(pl.col("vocab_size").is_null()).then(whole("arg:padded_vocab_size")),
        ("arg:padded_vocab_size",),
    ),
    CombinedSetting("num_gpus", whole("gpus_per_node") * whole("num_nodes").fill_null(1), ("gpus_per_node",)),
    CombinedSetting(
        "dp",
        pl.coalesce(whole("num_gpus"), whole("gpus_per_node") * whole("num_nodes").fill_null(1)),
        ("num_gpus", "gpus_per_node"),
        setting_source="derived",
    ),
    # The scripts of 2023 end after so many micro batches, pretraining after so many tokens (litgpt/pretrain.py fit).
    CombinedSetting(
        "steps_planned",
        pl.when(pl.col("steps_planned").is_null()).then(
            pl.coalesce(
                whole("arg:max_iters") // whole("gas"),
                whole("arg:max_tokens") // (whole("gbs") * whole("seq_len")),
            )
        ),
        ("arg:max_iters", "arg:max_tokens"),
    ),
)

_END = r"^\s*Training time: [\d.]+ ?s|^\s*\| *- Training Time *:"


DIALECT = Dialect(
    name="litgpt",
    module=__name__,
    signature_literals=(
        *("| loss train: ", "| iter time: ", ", iter time: "),
        *("litgpt pretrain", "litgpt finetune", "litgpt/", _LLAMA_RATE),
        # In front of the first step, with the operations of a batch: `Measured TFLOPs` are no speed.
        "Time to instantiate model: ",
    ),
    steps=steps,
    settings=settings,
    peaks=peaks,
    events=milestones(training_end=_END),
    combined=COMBINED,
    sidecars=run_files.LITGPT,
    finalize=last_of_each_step,
    literals_by_function={
        "steps": ("iter ",),
        "settings": (
            "Total parameters",
            "Starting with ",
            "--devices",
            "Loading model with {",
            "precision",
            "Automatic Mixed Precision",
            *_NAMES,
            *environment.LITERALS,
        ),
        "peaks": ("Memory used", "Memory Used"),
        "events": ("Training time: ", "Training Time"),
    },
)
