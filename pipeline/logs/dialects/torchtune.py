"""torchtune's recipes.

Formats: torchtune/training/metric_logging.py DiskLogger (`log_<time>.txt`) and StdoutLogger (`Step 5 | loss:1.45
lr:2e-05 tokens_per_second_per_gpu:512.2 peak_memory_alloc:16.0`), recipes/*.py train (tqdm's bar behind
`epoch|step|Loss: 1.45: `) and setup (`Running FullFinetuneRecipeDistributed with resolved config:`, then the
configuration as YAML), training/checkpointing/_checkpointer.py save_checkpoint.

A step is an update of the optimizer. It counts from 1, in the first versions from 0. Memory is in units of 1024**3, and
the peak since the line before; the first versions print what is allocated, in bytes (`gpu_resources`). The loss is
printed in full, so a number counts with what ends it. Bars show whole seconds only: see `huggingface.bars`.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from sweepscope.pipeline.logs.dialect import CombinedSetting, Dialect
from sweepscope.pipeline.logs.dialects import environment
from sweepscope.pipeline.logs.dialects.huggingface.bars import elapsed_s, steps_of
from sweepscope.pipeline.logs.expressions import is_true, switched, whole, words
from sweepscope.pipeline.logs.extractors import (
    computed_settings,
    extract_numbers,
    matched_settings,
    milestones,
    named_settings,
)
from sweepscope.pipeline.logs.facts import STEP_FACTS, Facts, conform
from sweepscope.pipeline.text.quantities import NUMBER, number
from sweepscope.pipeline.text.timestamps import timestamp

_LOGGED = r"^\s*Step \d+ \| loss:"
_BAR = rf"^\s*(?P<epoch>\d+)\|(?P<shown>\d+)\|Loss: (?P<printed>{NUMBER}): +\d+%\|"
_DRAWN = r"\| *(?P<done>\d+)/(?P<total>\d+)(?: \[(?P<clock>[\d:]+)<)?"


def _field(name: str) -> str:
    return rf"[ |]{name}:({NUMBER})\s"


_NUMBERS = {
    "loss": _field("loss"),
    "learning_rate": _field("lr"),
    "tokens_per_s_per_gpu": _field("tokens_per_second_per_gpu"),
    "grad_norm": _field("grad_norm"),
    "allocated": _field("peak_memory_alloc"),
    "reserved": _field("peak_memory_reserved"),
    "in_bytes": _field("gpu_resources"),
}


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of logged steps, a cut one unparsed, and redraws of the bar: `finalize` takes the times of those."""
    text = pl.col("text")
    ts = timestamp(pl.concat_str("prefix", "text", ignore_nulls=True))
    # The logger ends each line with a blank: what a cut one ends in never matches.
    logged = lines.filter(text.str.contains(_LOGGED))
    fields = extract_numbers(logged, _NUMBERS, {"shown": r"^\s*Step (\d+) \|"})
    allocated = pl.coalesce(pl.col("allocated") * 2**30, "in_bytes").round()
    printed = fields.with_columns(
        ts=ts,
        step=pl.when(pl.col("loss").is_not_null()).then("shown"),
        mem_allocated_bytes=allocated,
        mem_reserved_bytes=(pl.col("reserved") * 2**30).round(),
    )
    bars = lines.filter(text.str.contains(_BAR))
    drawn = bars.with_columns(text.str.extract_groups(_BAR).alias("bar"), clock=text.str.extract(_DRAWN, 3))
    drawn = drawn.unnest("bar").with_columns(
        ts=ts,
        step="shown",
        loss=number(pl.col("printed")),
        step_time_s=elapsed_s(pl.col("clock")),  # so far: `finalize` takes the differences
    )
    both = pl.concat([conform(printed, STEP_FACTS), conform(drawn, STEP_FACTS)])
    return both.sort("source", "line_no", maintain_order=True)


_CONFIG = {
    "batch_size": "mbs",
    "gradient_accumulation_steps": "gas",
    "max_seq_len": "seq_len",
    "epochs": "arg:epochs",
    "max_steps_per_epoch": "arg:epoch_steps",
    "dtype": "arg:dtype",
    "tensor_parallel_dim": "tp",
    "context_parallel_dim": "cp",
    "data_parallel_replicate_dim": "arg:dp_replicate",
    "data_parallel_shard_dim": "arg:dp_shard",
    "enable_activation_checkpointing": "arg:checkpointing",
    "fsdp_reshard_after_forward": "arg:reshard",
}
_PRINTED = {
    "arg:recipe": r"\bRunning (\w+) with resolved config:",
    # The model's builder, not that of its tokenizer or prompts.
    "model": r"^\s*_component_: torchtune\.models\.\w+\.(?:q?lora_)?(\w+_[\d.]+[bm](?:_\w+)?)\s*$",
}


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS of the resolved configuration, and how many steps the first bar has (`arg:bar`)."""
    text = pl.col("text")
    drawn = lines.filter(text.str.contains(_BAR))
    totals = _without_repeats(computed_settings(drawn, {"arg:bar": text.str.extract(_DRAWN, 2)}))
    dumped = named_settings(lines, r"^\s*(\w+): (\w+)\s*$", _CONFIG, setting_source="argument_dump")
    known = dumped.filter(pl.col("value") != "null")
    # A name of Python's has no dot: llama3_2_1b is Llama 3.2 1B.
    printed = matched_settings(lines, _PRINTED.items()).with_columns(
        pl.col("value").str.replace(r"(\d)_(\d)_", "${1}.${2}_")
    )
    return pl.concat([known, printed, totals, environment.settings(lines)])


def _without_repeats(totals: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS rows whose value differs from the row before them in the same log."""
    same = pl.all_horizontal(pl.col(name) == pl.col(name).shift(1) for name in ("source", "value"))
    return totals.sort("source", "line_no").filter(~same.fill_null(value=False))


# `intermediate_checkpoint` is false for the last epoch only.
_END = r"\bSaving final epoch checkpoint\."


def finalize(facts: Facts) -> Facts:
    """Redraws with the mean time of their steps, by the clock of their bar; of one step the first with its own loss.

    A bar's total is noted once, however often the log was read on.
    """
    is_total = pl.col("name") == "arg:bar"
    totals = _without_repeats(facts.settings.filter(is_total))
    facts = replace(facts, settings=pl.concat([facts.settings.filter(~is_total), totals]))
    rows = facts.steps.sort("source", "line_no", maintain_order=True)
    is_back = (pl.col("step_time_s") < pl.col("step_time_s").shift().over("source")).fill_null(value=False)
    rows = rows.with_columns(launch=is_back.cast(pl.Int64).cum_sum().over("source"))
    drawn = rows.drop_nulls(["step", "step_time_s"])
    if drawn.is_empty():
        return facts
    times = steps_of(drawn).select("source", "launch", "step", "step_time_s")
    timed = rows.drop("step_time_s").join(times, on=["source", "launch", "step"], how="left", maintain_order="left")
    return replace(facts, steps=conform(timed, STEP_FACTS))


_IS_DISTRIBUTED = pl.col("arg:recipe").str.contains("Distributed", literal=True)
_IS_FREED = is_true("arg:reshard").fill_null(value=True)
_EPOCH_STEPS = pl.coalesce(whole("arg:epoch_steps"), whole("arg:bar"))

COMBINED = (
    CombinedSetting("precision", words("arg:dtype", {"bf16": "bf16", "fp32": "fp32"})),
    CombinedSetting("recompute", switched("arg:checkpointing", "full", "none")),
    CombinedSetting(
        "num_gpus", pl.when(pl.col("arg:recipe").str.ends_with("SingleDevice")).then(1), setting_source="derived"
    ),
    # The distributed recipes shard with FSDP (torchtune/training/_distributed.py shard_model).
    CombinedSetting("zero_stage", pl.when(_IS_DISTRIBUTED).then(pl.when(_IS_FREED).then(3).otherwise(2))),
    CombinedSetting("steps_planned", _EPOCH_STEPS * whole("arg:epochs").fill_null(1), ("arg:bar",)),
    # An excerpt without the configuration: the bar is that of an epoch.
    CombinedSetting("is_plan_guessed", pl.when(pl.col("arg:epochs").is_null()).then(pl.lit("true")), ("arg:bar",)),
)

_STEP_LITERALS = ("| loss:", "|Loss: ")
_SETTING_LITERALS = (
    "|Loss: ",
    "with resolved config:",
    "_component_: torchtune.models.",
    *(f"{name}: " for name in _CONFIG),
    *environment.LITERALS,
)
_EVENT_LITERALS = ("with resolved config:", "Saving final epoch checkpoint.")

DIALECT = Dialect(
    name="torchtune",
    module=__name__,
    signature_literals=(
        *("torchtune.utils.", "_component_: torchtune."),
        *(" tokens_per_second_per_gpu:", " gpu_resources:", "|Loss: ", "tune run "),
        *(f"| loss:{digit}" for digit in range(10)),
    ),
    steps=steps,
    settings=settings,
    events=milestones(launch=_PRINTED["arg:recipe"], training_end=_END),
    combined=COMBINED,
    finalize=finalize,
    literals_by_function={"steps": _STEP_LITERALS, "settings": _SETTING_LITERALS, "events": _EVENT_LITERALS},
)
