"""NVIDIA NeMo 1 and 2, and its Automodel (see `automodel`).

Formats: nemo/lightning/pytorch/callbacks/progress_printer.py ProgressPrinter (`Training epoch E, iteration I/N | name:
value | ...`, NeMo 2), Lightning's bar with `name=value` behind the rate (NeMo 1 and the speech collections; see
`lightning`), nemo/utils/timers.py (train_step_timing in s), lightning/fabric/utilities/distributed.py and nemo's
megatron_init (ranks and process groups), nemo/utils/exp_manager.py (`cmd-args.log`).

Steps count from 0: `iteration 19/19` is the last of 20, and so is `global_step: 19`. A bar counts steps done and rounds
some numbers to three digits (tqdm's format_num: `global_step=2e+3` from 1995 on). The total behind the slash is that of
max_steps, or of the epoch in a run that is measured in epochs: until the second epoch begins, only the configuration
distinguishes them.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from sweepscope.pipeline.logs.dialect import CombinedSetting, Dialect, History
from sweepscope.pipeline.logs.dialects import environment
from sweepscope.pipeline.logs.dialects.lightning import bars, metrics_csv
from sweepscope.pipeline.logs.dialects.lightning import dialect as lightning
from sweepscope.pipeline.logs.dialects.lightning.bars import field
from sweepscope.pipeline.logs.dialects.nemo import automodel
from sweepscope.pipeline.logs.expressions import whole, words
from sweepscope.pipeline.logs.extractors import (
    computed_settings,
    extract_numbers,
    last_of_each_step,
    milestones,
    named_settings,
    once_per_text,
)
from sweepscope.pipeline.logs.facts import STEP_FACTS, Facts, conform
from sweepscope.pipeline.logs.sidecars import hparams, run_files
from sweepscope.pipeline.text.timestamps import timestamp

_PRINTED = r"\bTraining epoch (\d+), iteration (\d+)/(\d+)\s*\|"

_ROUNDING = 0.005

_NUMBERS = {
    **bars.LOSSES,
    "step_time_s": field("train_step_timing in s"),
    "global_step": field("(?:trainer/)?global_step"),
    "tflops_per_gpu_logged": field("TFLOPS_per_GPU"),
    "tokens_per_s_per_gpu": field("tokens_per_sec_per_gpu"),
    "grad_norm": field("grad_norm"),
    "mem_reserved_bytes": field("max_memory_reserved"),
    "mem_allocated_bytes": field("(?:max_memory_allocated|peak_memory_usage)"),
    "learning_rate": field("lr"),
}


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of printed lines, and of bars with a metric; without loss and time, or open, they stay unparsed."""
    text = pl.col("text")
    printed = lines.filter(text.str.contains(_PRINTED)).with_columns(
        counted=text.str.extract(_PRINTED, 2).cast(pl.Int64, strict=False),
        left=_steps_left(text),
        is_whole=pl.lit(value=True),
    )
    rows = pl.concat([printed, bars.bars(lines)], how="diagonal").sort("source", "line_no", maintain_order=True)
    rows = extract_numbers(rows, _NUMBERS)
    rows = rows.with_columns(
        pl.col("mem_reserved_bytes", "mem_allocated_bytes").cast(pl.Int64, strict=False),
        ts=timestamp(pl.concat_str("prefix", "text", ignore_nulls=True)),
        loss=pl.coalesce(*bars.LOSSES),
    )
    is_complete = pl.col("is_whole") & (pl.col("loss").is_not_null() | pl.col("step_time_s").is_not_null())
    step = (
        pl.when(_is_rounded())
        .then("counted")
        .otherwise(pl.coalesce(pl.col("global_step").cast(pl.Int64, strict=False), "counted"))
    )
    found = rows.with_columns(step=pl.when(is_complete).then(step), steps_planned=step + pl.col("left"))
    return pl.concat([conform(found, STEP_FACTS), automodel.steps(lines)])


def _is_rounded() -> pl.Expr:
    """Whether a bar shows `global_step` with an exponent, which is three digits of it, and counts about as many."""
    has_exponent = pl.col("text").str.contains(r"global_step=[\d.]+e\+")
    return has_exponent & ((pl.col("global_step") - pl.col("counted")).abs() <= _ROUNDING * pl.col("global_step") + 1)


def _steps_left(text: pl.Expr) -> pl.Expr:
    """Behind this step and in the first epoch: later ones count the steps of their epoch."""
    epoch, done, total = (text.str.extract(_PRINTED, group).cast(pl.Int64, strict=False) for group in (1, 2, 3))
    return pl.when(epoch == 0).then(total - done)


def finalize(facts: Facts) -> Facts:
    """The last of what a redrawn bar showed of each step; a total that was passed was an epoch's, not the run's."""
    found = last_of_each_step(facts)
    is_kept = pl.col("steps_planned") >= pl.max_horizontal(pl.col("step").max().over("source"), 1)
    steps = found.steps.with_columns(steps_planned=pl.when(is_kept).then("steps_planned"))
    return replace(found, steps=steps)


_CONFIG = (
    {"tensor_model_parallel_size": "tp", "pipeline_model_parallel_size": "pp"}
    | {"context_parallel_size": "cp", "expert_model_parallel_size": "ep"}
    | {"micro_batch_size": "mbs", "global_batch_size": "gbs", "seq_length": "seq_len", "sequence_length": "seq_len"}
    | {"max_steps": "arg:max_steps", "num_layers": "num_layers", "hidden_size": "hidden_size"}
    | {"num_attention_heads": "num_heads", "ffn_hidden_size": "ffn_hidden_size"}
    | {"encoder_seq_length": "seq_len", "num_nodes": "num_nodes", "devices": "gpus_per_node"}
)
_REGISTERED = r"All distributed processes registered\. Starting with (\d+) processes"
_LINE = {
    "num_gpus": rf"{_REGISTERED}|GLOBAL_RANK: \d+, MEMBER: \d+/(\d+)",
    # Megatron Core num_microbatches_calculator.py
    "gas": r"setting number of micro-?batches to constant (\d+)",
    "arg:max_steps": r"`max_steps=(\d+)` reached|Copying Trainer's 'max_steps' \((\d+)\)",
}
# BioNeMo's train_evo2, train_esm2 and others, as a notebook shows them: an option a line.
_OPTIONS = (
    {"micro-batch-size": "mbs", "seq-length": "seq_len"}
    | {"tensor-parallel-size": "tp", "devices": "gpus_per_node", "num-gpus": "gpus_per_node"}
    | {"pipeline-model-parallel-size": "pp", "context-parallel-size": "cp", "num-nodes": "num_nodes"}
)
# Lightning's spellings: `bf16`, `bf16-mixed`, 16, `16-true`.
_PRECISION = r"^\s*(precision): ['\"]?(bf16|16|32)(?:-mixed|-true)?['\"]?\s*$"
# The first of the groups, of which rank 0 is always a member: its length is the degree.
_GROUPS = {
    "tp": r"(?:All tensor model parallel group ranks: \[|Rank 0 has tensor model parallel group ?: )\[([\d, ]+)\]",
    "pp": r"(?:All pipeline model parallel group ranks: \[|Rank 0 has pipeline model parallel group ?: )\[([\d, ]+)\]",
    "cp": r"(?:All context parallel group ranks: \[|Rank 0 has context parallel group ?: )\[([\d, ]+)\]",
    "dp": r"Rank 0 has data parallel group ?: \[([\d, ]+)\]",
}


@once_per_text
def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS of process groups as built, and of the configuration dumped (YAML, GPTDatasetConfig's fields)."""
    text = pl.col("text")
    computed = {name: _first_group(pattern) for name, pattern in _LINE.items()}
    computed |= {name: text.str.extract(pattern).str.count_matches(",") + 1 for name, pattern in _GROUPS.items()}
    # Every step line of NeMo 2 prints it; a batch that grows is that of the last step.
    computed["gbs"] = text.str.extract(r"\| global_batch_size: (\d+)\b")
    computed |= {name: text.str.extract(_PRINTED, group) for name, group in (("arg:epoch", 1), ("arg:total", 3))}
    others = lines.filter(~text.str.contains("| global_batch_size: ", literal=True))
    dumped = named_settings(
        others, r"(?:^|[ (,])(\w+)(?:: |=)(\d+)(?:,|\)|\s|$)", _CONFIG, setting_source="argument_dump"
    )
    options = named_settings(lines, r"--([a-z-]+)[ =](\d+)(?:\s|$)", _OPTIONS, setting_source="command_line")
    precision = named_settings(lines, _PRECISION, {"precision": "arg:precision"}, setting_source="argument_dump")
    return pl.concat([computed_settings(lines, computed), dumped, options, precision, environment.settings(lines)])


# Iterations count from 0; in old versions from 1.
_IS_MAX_STEPS = (whole("arg:max_steps") - whole("arg:total")).is_in([0, 1]).fill_null(value=False)

# Steps count from 0. The trainer's own limit may be set aside by -1.
COMBINED = (
    CombinedSetting(
        "steps_planned", pl.when(whole("arg:max_steps") > 1).then(whole("arg:max_steps") - 1), ("arg:max_steps",)
    ),
    CombinedSetting("precision", words("arg:precision", {"bf16": "bf16", "16": "fp16", "32": "fp32"})),
    CombinedSetting(
        "is_plan_guessed", pl.when((whole("arg:epoch") == 0) & ~_IS_MAX_STEPS).then(pl.lit("true")), ("arg:epoch",)
    ),
)


def _first_group(pattern: str) -> pl.Expr:
    return pl.coalesce(pl.col("text").str.extract(part) for part in pattern.split("|"))


_STEP_LITERALS = (automodel.LITERAL, "Training epoch ", "train_step_timing in s=", "loss=", "loss_step=")
_SETTING_LITERALS = (
    *("All distributed processes registered", ", MEMBER: ", "Training epoch ", "parallel group"),
    *("Copying Trainer's 'max_steps'", "precision: ", "setting number of micro"),
    *(f"--{name}" for name in _OPTIONS),
    *(f"{name}{mark}" for name in _CONFIG for mark in (": ", "=")),
    *environment.LITERALS,
)

DIALECT = Dialect(
    name="nemo",
    module=__name__,
    signature_literals=(
        *("train_step_timing in s", "[NeMo I ", "[NeMo W "),
        *("Training epoch ", ", reduced_train_loss=", automodel.LITERAL),
        *lightning.SIGNATURES,
    ),
    steps=steps,
    settings=settings,
    events=milestones(launch=_REGISTERED, training_end=lightning.END),
    combined=COMBINED,
    finalize=finalize,
    sidecars=(*hparams.NEMO, *run_files.NEMO),
    histories=(History("metrics.csv", metrics_csv.read_nemo),),
    literals_by_function={
        "steps": _STEP_LITERALS,
        "settings": ("`max_steps=", *_SETTING_LITERALS),
        "events": ("All distributed processes registered", "`Trainer.fit` stopped"),
    },
)
