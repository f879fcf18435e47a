"""transformers' Trainer, and axolotl, which runs it.

Formats: transformers/trainer_callback.py ProgressCallback and PrinterCallback (the log dict, a Python literal without
the step), trainer.py _inner_training_loop (`***** Running training *****` and the lines below it) and log (`epoch`,
`num_input_tokens_seen`, in new versions `train_runtime` in every dict), trainer_utils.py speed_metrics (the final dict,
which every rank may print). Version 5 quotes the numbers. axolotl: utils/callbacks (memory), utils/bench.py.

The dict is read by `huggingface_dicts`. The step comes from the progress bar: see `huggingface_steps`. Only whole files
can say it, so a step fact is a bar (a counter and its total, no loss) or a dict (a loss, no step) until `settle`.
"""

from __future__ import annotations

import polars as pl

from pipeline.parse import (
    deepspeed_settings,
    environment,
    huggingface_bars,
    huggingface_dicts,
    huggingface_histories,
    huggingface_steps,
    run_files,
)
from pipeline.parse.combine import whole
from pipeline.parse.milestones import milestones
from pipeline.parse.protocol import (
    GAUGE_FACTS,
    STEP_FACTS,
    CombinedSetting,
    Dialect,
    conform,
    named_settings,
    once_per_text,
    said_settings,
)  # fmt: skip
from pipeline.parse.quantities import number
from pipeline.parse.timestamps import timestamp

_BAR = r"^\s*\d{1,3}%(?:\|[^|]*\|)? (?P<step>\d+)/(?P<steps_planned>\d+) \[(?P<clock>[\d:]*)[^\]]*(?:it/s|s/it)"
"""tqdm's bar without a description: the training's, or an evaluation's within it."""


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """Progress bars, log dicts and fragments of them, in the order printed; an open dict stays unparsed."""
    text = pl.col("text")
    placed = lines.with_row_index("place")
    bars = (
        placed.with_columns(bar=text.str.extract_groups(_BAR))
        .unnest("bar")
        .drop_nulls("step")
        .with_columns(
            pl.col("step", "steps_planned").cast(pl.Int64, strict=False),
            step_time_s=huggingface_bars.elapsed_s(pl.col("clock")),  # so far: `settle` takes the differences
            part=pl.lit(0),
        )
    )
    dicts = huggingface_dicts.read(placed.filter(text.str.contains(huggingface_dicts.LOOKS_LIKE)))
    ts = timestamp(pl.concat_str("prefix", "text", ignore_nulls=True))
    said = pl.concat([dicts, huggingface_dicts.fragments(placed)], how="diagonal").with_columns(part=pl.lit(1), ts=ts)
    # LLaMA-Factory's callback logs each dict once more, rounded.
    both = pl.concat([bars, said], how="diagonal").sort("place", "part")
    return conform(both, STEP_FACTS)


_BANNER = {  # trainer.py _inner_training_loop
    "Instantaneous batch size per device": "mbs",
    "Gradient Accumulation steps": "gas",
    "Total optimization steps": "steps_planned",
    "Total train batch size (w. parallel, distributed & accumulation)": "arg:total_batch",
}
_BANNER_LINE = r"^(?:.*>> +|.*- +|\s*)(Instantaneous batch size per device|Gradient Accumulation steps|Total optimization steps|Total train batch size \(w\. parallel, distributed & accumulation\)) = ([\d,]+)\s*$"  # noqa: E501
_ARGUMENTS = {  # TrainingArguments, printed by the scripts on one line or one a line
    "per_device_train_batch_size": "mbs", "gradient_accumulation_steps": "gas", "max_steps": "steps_planned",
    "logging_steps": "arg:logging_steps", "bf16": "arg:bf16", "fp16": "arg:fp16",
    "gradient_checkpointing": "arg:gradient_checkpointing",
}  # fmt: skip
_AXOLOTL = {  # its configuration, as YAML or JSON
    "micro_batch_size": "mbs", "gradient_accumulation_steps": "gas", "sequence_len": "seq_len",
    "logging_steps": "arg:logging_steps", "base_model": "model", "world_size": "num_gpus",
}  # fmt: skip
_DEEPSPEED = {  # deepspeed/runtime/config.py print
    "world_size": "num_gpus", "zero_optimization_stage": "zero_stage",
    "train_micro_batch_size_per_gpu": "mbs", "gradient_accumulation_steps": "gas",
}  # fmt: skip
_OPTIONS = {  # of transformers', TRL's, FastChat's and LLaMA-Factory's scripts
    "block_size": "seq_len", "max_seq_length": "seq_len", "model_max_length": "seq_len", "cutoff_len": "seq_len",
    "max_length": "seq_len", "per_device_train_batch_size": "mbs", "gradient_accumulation_steps": "gas",
}  # fmt: skip
_LINE = {
    # accelerate's state, as its scripts print it; LLaMA-Factory hparams/parser.py; accelerate launch
    "num_gpus": (
        r"(?:\b(?:dist_)?world_size=|^Num processes: |>> Process rank: \d+, world size: "
        r"|\baccelerate launch\b.* --num_processes[= ]|^\s*`--num_processes` was set to a value of `)(\d+)"
    ),
    # axolotl names DeepSpeed's configuration file, and comes with deepspeed_configs/zero1.json to zero3_bf16.json
    "zero_stage": r'(?:Detected DeepSpeed ZeRO-|^\s*"?deepspeed"?: "?(?:[\w.-]*/)*zero)([0-3])',
    "steps_planned": r"Maximum number of steps set at (\d+)",  # axolotl
    "params": r"\|\| all params: ([\d,]+) \|\|",  # peft print_trainable_parameters
}

_UNSLOTH = {  # its banner in place of the Trainer's (unsloth/models/llama.py), from 2024 on
    "num_gpus": r"(?:finetuning \| Num GPUs(?: used)? = |\bData Parallel GPUs = )(\d+)",
    "mbs": r"\bBatch size per device = ([\d,]+) \| Grad",
    "gas": r"\bBatch size per device = [\d,]+ \| Gradient [Aa]ccumulation steps = ([\d,]+)",
    "steps_planned": r"\| Total steps = ([\d,]+)",
}

_CONFIG_ANCHORS = (
    *_BANNER, "per_device_train_batch_size", "gradient_accumulation_steps", "max_steps=", "logging_steps",
    "bf16=", "fp16=", "gradient_checkpointing=", "micro_batch_size", "sequence_len", "base_model",
    "world_size", "Num processes: ", ", world size: ", "accelerate launch", "`--num_processes` was set",
    "zero_optimization_stage", "train_micro_batch_size_per_gpu", *(f"--{name}" for name in _OPTIONS),
    "--model_name_or_path", "Detected DeepSpeed ZeRO-", "deepspeed: ", '"deepspeed": ',
    "Maximum number of steps set at", "|| all params:",
    "finetuning | Num GPUs", "Data Parallel GPUs = ", "Batch size per device = ", "| Total steps = ",
)  # fmt: skip


@once_per_text
def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """What the banner, the argument and configuration dumps and the command line say."""
    dumped = r"(?:^|[ (,])(\w+)=([\w.+-]+)(?:,|\)|\s*$)"
    yaml = r'^\s*(?:\[[^{]*\] *)?"?(\w+)"?: "?([\w./-]+)"?,?\s*$'
    found = [
        named_settings(lines, _BANNER_LINE, _BANNER, setting_source="log_line"),
        named_settings(lines, dumped, _ARGUMENTS, setting_source="argument_dump"),
        named_settings(lines, yaml, _AXOLOTL, setting_source="argument_dump"),
        named_settings(lines, r"\]   (\w+) \.* +(\d+)\s*$", _DEEPSPEED, setting_source="argument_dump"),
        named_settings(lines, r"\]   (\w+)  (\d+)\s*$", _DEEPSPEED, setting_source="argument_dump"),
        named_settings(lines, r"--(\w+)[= ]+(\d+)(?:\s|$)", _OPTIONS, setting_source="command_line"),
        named_settings(
            lines, r"--(\w+)[= ]+([\w./][\w./-]*)", {"model_name_or_path": "model"}, setting_source="command_line"
        ),
        said_settings(lines, [*_LINE.items(), *_UNSLOTH.items()]),
        environment.settings(lines),
    ]
    rows = pl.concat(found).with_columns(
        value=pl.when(pl.col("value").str.contains(r"^\d[\d,]*$"))
        .then(pl.col("value").str.replace_all(",", "", literal=True))
        .otherwise("value")
    )
    return rows.filter(~((pl.col("name") == "steps_planned") & ~pl.col("value").str.contains(r"^[1-9]\d*$")))


def _precision() -> pl.Expr:
    said = [pl.col(f"arg:{name}").str.to_lowercase() == "true" for name in ("bf16", "fp16")]
    return pl.when(said[0]).then(pl.lit("bf16")).when(said[1]).then(pl.lit("fp16"))


COMBINED = (
    CombinedSetting("dp", whole("arg:total_batch") // (whole("mbs") * whole("gas")), ("arg:total_batch",)),
    CombinedSetting("precision", _precision(), ("arg:bf16", "arg:fp16")),
)

_END = (
    rf"{huggingface_dicts.FINAL}|^(?:.*>> +)?\s*train_runtime += +\d+:\d\d:\d\d|\] Training [Cc]ompleted!"
    r"|^\s*Training completed\. Do not forget to share your model"
)


def events(lines: pl.DataFrame) -> pl.DataFrame:
    """Where a training begins, and the final dict or table with which it ends."""
    return milestones(lines, launch=r"\*{5} Running training \*{5}", training_end=_END)


_MEMORY = r"(?:GPU|cuda) memory usage while training: ([\d.]+)GB(?: \(\+([\d.]+)GB cache)?"


def gauges(lines: pl.DataFrame) -> pl.DataFrame:
    """What axolotl says is reserved after the first steps; GB means GiB.

    It prints what is allocated, and the allocator's cache on top. The former is no peak: activations are gone by then.
    """
    said = lines.select(
        "source",
        "line_no",
        allocated=number(pl.col("text").str.extract(_MEMORY, 1)),
        cache=number(pl.col("text").str.extract(_MEMORY, 2)),
    ).drop_nulls("allocated")
    reserved = ((pl.col("allocated") + pl.col("cache")) * 2**30).round()
    found = said.select("source", "line_no", name=pl.lit("mem_peak_reserved_bytes"), value=reserved)
    return conform(found.drop_nulls("value"), GAUGE_FACTS)


_SIGNATURE = (
    "{'loss': ", '{"loss": ', ", 'epoch': ", "'train_samples_per_second': ", "Instantaneous batch size per device",
    "Total optimization steps", "Training/evaluation parameters", "[INFO:swift]", *deepspeed_settings.SIGNS,
)  # fmt: skip
_ANCHORS = (
    "'loss': ", '"loss": ', "it/s", "s/it", "Running training", "train_runtime", "Training Completed",
    "Training completed", "memory usage while training",
    *huggingface_dicts.FRAGMENT_ANCHORS, *_CONFIG_ANCHORS, *environment.ANCHORS,
)  # fmt: skip

_NARROWED = {
    "steps": ("'loss': ", '"loss": ', "it/s", "s/it", *huggingface_dicts.FRAGMENT_ANCHORS),
    "settings": (*_CONFIG_ANCHORS, *environment.ANCHORS),
    "gauges": ("memory usage while training",),
    "events": ("Running training", "train_runtime", "Training Completed", "Training completed"),
}

TRAINER = Dialect(
    name="hf-trainer",
    version=9,
    signature=_SIGNATURE,
    anchors=_ANCHORS,
    steps=steps,
    settings=settings,
    gauges=gauges,
    events=events,
    combined=COMBINED,
    settle=huggingface_steps.settle,
    sidecars=run_files.HUGGINGFACE,
    histories=huggingface_histories.HISTORIES,
    narrowed=_NARROWED,
)
AXOLOTL = Dialect(
    name="axolotl",
    version=9,
    signature=(*_SIGNATURE, "[axolotl.", "axolotl.cli", "axolotl.train"),
    anchors=_ANCHORS,
    steps=steps,
    settings=settings,
    gauges=gauges,
    events=events,
    combined=COMBINED,
    settle=huggingface_steps.settle,
    sidecars=run_files.AXOLOTL,
    narrowed=_NARROWED,
)
