"""Configuration of transformers' Trainer, of the scripts and launchers around it, and of axolotl.

Formats: transformers/trainer.py _inner_training_loop (the banner's lines), training_args.py (the dump, on one line or
one a line), axolotl's configuration as YAML or JSON, deepspeed/runtime/config.py print, and the command that a shell or
DeepSpeed's launcher echoes. DeepSpeed's configuration file is known by its name: examples call it `ds_zero2.json`,
`zero3_bf16.json`, `ds_config_stage3.json` or `ds_z3_config.json`. FSDP's `full_shard` is ZeRO-3, `shard_grad_op` is 2.
`arg:` names feed COMBINED, and `arg:logging_steps` the numbers of steps.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialect import CombinedSetting
from sweepscope.pipeline.logs.dialects import environment
from sweepscope.pipeline.logs.dialects.deepspeed import settings as deepspeed_settings
from sweepscope.pipeline.logs.dialects.huggingface import model_config, notebook_tables, swift, totals
from sweepscope.pipeline.logs.expressions import quotient, whole
from sweepscope.pipeline.logs.extractors import (
    as_commands,
    computed_settings,
    matched_settings,
    named_settings,
    once_per_text,
)

_BANNER = {  # trainer.py _inner_training_loop
    "Instantaneous batch size per device": "mbs",
    "Gradient Accumulation steps": "gas",
    "Total optimization steps": "steps_planned",
    "Total train batch size (w. parallel, distributed & accumulation)": "arg:total_batch",
}
_BANNER_LINE = (
    r"^(?:.*>> +|.*- +|\s*)(Instantaneous batch size per device|Gradient Accumulation steps|Total optimization steps|"
    r"Total train batch size \(w\. parallel, distributed & accumulation\)) = ([\d,]+)\s*$"
)
_ARGUMENTS = (  # TrainingArguments, printed by the scripts on one line or one a line
    {"per_device_train_batch_size": "mbs", "gradient_accumulation_steps": "gas", "max_steps": "steps_planned"}
    | {"logging_steps": "arg:logging_steps", "bf16": "arg:bf16", "fp16": "arg:fp16"}
    | {"gradient_checkpointing": "arg:gradient_checkpointing", "max_length": "seq_len", "max_seq_length": "seq_len"}
    | {"dataloader_num_workers": "data_workers"}
)
_CONFIG = (  # axolotl's configuration, as YAML or JSON, and LLaMA-Factory's
    {"per_device_train_batch_size": "mbs", "cutoff_len": "seq_len", "bf16": "arg:bf16", "fp16": "arg:fp16"}
    | {"micro_batch_size": "mbs", "gradient_accumulation_steps": "gas", "sequence_len": "seq_len"}
    | {"logging_steps": "arg:logging_steps", "base_model": "model", "world_size": "num_gpus"}
    | {"tensor_parallel_size": "tp", "context_parallel_size": "cp", "sequence_parallel_degree": "cp"}
    | {"gradient_checkpointing": "arg:gradient_checkpointing", "fsdp_sharding_strategy": "arg:fsdp"}
)
_DEEPSPEED = {  # deepspeed/runtime/config.py print
    "world_size": "num_gpus",
    "zero_optimization_stage": "zero_stage",
    "train_batch_size": "arg:total_batch",
    "train_micro_batch_size_per_gpu": "mbs",
    "gradient_accumulation_steps": "gas",
}
_OPTIONS = (  # of transformers', TRL's, FastChat's and LLaMA-Factory's scripts
    {
        "num_processes": "num_gpus",
        "block_size": "seq_len",
        "max_seq_length": "seq_len",
        "model_max_length": "seq_len",
        "cutoff_len": "seq_len",
    }
    | {"max_length": "seq_len", "per_device_train_batch_size": "mbs", "gradient_accumulation_steps": "gas"}
    | {"max_steps": "steps_planned", "logging_steps": "arg:logging_steps", "num_machines": "num_nodes"}
    | {"dataloader_num_workers": "data_workers"}
)
_MODEL_OPTIONS = dict.fromkeys(("model_name_or_path", "model_id", "model_name", "base_model"), "model")
_LINE = {
    # accelerate's state, as its scripts print it; LLaMA-Factory hparams/parser.py; accelerate launch
    "num_gpus": (
        r"(?:\b(?:dist_)?world_size=|^Num processes: |>> Process rank: \d+, world size: "
        r"|\baccelerate launch\b.* --num[_-]processes[= ]|^\s*`--num_processes` was set to a value of `)([1-9]\d*)"
    ),
    # accelerate/commands/launch.py counts accelerators: where there are none, it starts one process on the CPU.
    "arg:no_accelerator": r"^\s*`--num_processes` was set to a value of `(0)`",
    "zero_stage": (
        r"""(?:Detected DeepSpeed ZeRO-|(?:--deepspeed[= ]|[ (,]deepspeed=|^deepspeed="""
        r"""|^\s*"?deepspeed"?: )['"]?(?:[\w.$~-]*/)*[\w.-]*?(?:zero|stage|[_-]z)[_-]?"""
        # Accelerate's configurations are not DeepSpeed's alone, and a stage may be one of several trainings.
        r"""|--config_file[= ]['"]?(?:[\w.$~-]*/)*"""
        r"""(?:[\w.-]*?zero|(?:[\w.-]*deepspeed|ds)[\w./-]*?(?:stage|[_-]z))[_-]?)([0-3])"""
    ),
    "arg:fsdp": r"""\bfsdp[= ]['"\[<]*(?:FSDPOption\.)?((?i:full_shard|shard_grad_op|hybrid_shard))""",
    "steps_planned": r"Maximum number of steps set at (\d+)",  # axolotl
    # Scripts of one's own, which load it by its name on the hub.
    "model": (
        r"(?i)(?:^|[\]>|-] |\binfo:? )[^a-z\d]*(?:(?:load(?:ing|ed)?|using|base|the|policy|pre-?trained|training|"
        r"fine-?tuning|student|target|hf|causal|language) )*model(?: name| id| path|_name|_id)? *[:=] *['\"]?"
        r"([\w.-]+/[\w.-]*\d[bm]\b[\w.-]*?)['\"]?\.*\s*$"
    ),
    "params": r"\|\| all params: ([\d,]+) \|\|",  # peft print_trainable_parameters
    # accelerate's state and its launcher; LLaMA-Factory hparams/parser.py
    "arg:mixed": (
        r"(?:^Mixed precision type: |\baccelerate launch\b.* --mixed_precision[= ]"
        r"|Process rank: .*, compute dtype: torch\.)(bf16|fp16|fp8|no|bfloat16|float16|float32)\b"
    ),
}
_SWITCHES = ("bf16", "fp16", "gradient_checkpointing")
_SWITCH = r"--{}(?:[= ]+([Tt]rue|[Ff]alse))?(?:\s|$)"
"""Of a launch command: a switch, or an option with its value."""

_UNSLOTH = {  # its banner in place of the Trainer's (unsloth/models/llama.py), from 2024 on
    "num_gpus": r"(?:finetuning \| Num GPUs(?: used)? = |\bData Parallel GPUs = )(\d+)",
    "mbs": r"\bBatch size per device = ([\d,]+) \| Grad",
    "gas": r"\bBatch size per device = [\d,]+ \| Gradient [Aa]ccumulation steps = ([\d,]+)",
    "arg:total_batch": r"\bTotal batch size (?:\([^)]*\) )?= ([\d,]+)",
    "steps_planned": r"\| Total steps = ([\d,]+)",
    "params": r"\bTrainable parameters = [\d,]+(?: of |/)([\d,]+) ",
    # unsloth/models/_utils.py: the GPU behind the sloth, before 2024 with its label; what the notebooks print
    "accelerator": r"^(?: +\\\\ +/\| +(?:GPU: )?|GPU = )([A-Z].+?)\. (?:Num GPUs = \d+\. )?Max memory",
}

# deepspeed/runtime/engine.py _configure_zero_optimizer, and zero/stage3.py
_ENGINE_STAGE = r"\b(?:ZeRO s|S)tage ([0-3]) (?:optimizer\b|initialize beginning)"

RANK = "arg:axolotl_rank"
_RANKED = r"\] \[RANK:(\d+)\]"  # axolotl/logging_config.py

LITERALS = (
    *_BANNER,
    *("per_device_train_batch_size", "gradient_accumulation_steps", "max_steps=", "logging_steps", "bf16="),
    *("fp16=", "bf16: ", "fp16: ", "gradient_checkpointing=", "max_length=", "max_seq_length=", "cutoff_len: "),
    *(
        "dataloader_num_workers",
        "micro_batch_size",
        "sequence_len",
        "base_model",
        "world_size",
        "Num processes: ",
        ", world size: ",
    ),
    *(
        "accelerate launch",
        "`--num_processes` was set",
        "zero_optimization_stage",
        "train_micro_batch_size_per_gpu",
        ":print]   train_batch_size",
    ),
    *(f"--{name}" for name in _OPTIONS),
    *("--bf16", "--fp16", "--gradient_checkpointing", "Mixed precision type: "),
    *(f"--{name}" for name in _MODEL_OPTIONS),
    *(", compute dtype: ", "fsdp=", "--fsdp", "Detected DeepSpeed ZeRO-"),
    *("deepspeed: ", '"deepspeed": ', "deepspeed=", "--deepspeed", "--config_file"),
    *deepspeed_settings.LAUNCH_LITERALS,
    *("Maximum number of steps set at", "|| all params:", '"bf16": ', '"fp16": ', "gradient_checkpointing: "),
    *('"gradient_checkpointing": ', "tensor_parallel_size", "context_parallel_size"),
    *("sequence_parallel_degree", "fsdp_sharding_strategy", "[RANK:", ". Max memory"),
    *notebook_tables.BAR_LITERALS,
    *("odel: ", "odel  : ", "odel name: ", "odel id: ", "odel path: ", "odel = "),
    *(" ZeRO stage ", "Stage 3 initialize beginning"),
    *totals.LITERALS,
    *model_config.LITERALS,
    *("finetuning | Num GPUs", "Data Parallel GPUs = "),
    *swift.LITERALS,
    *("Batch size per device = ", "| Total steps = ", "Trainable parameters = "),
)


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS of the banner, of argument and configuration dumps, of the command line, and ranks that speak."""
    return pl.concat([_of_texts(lines), environment.ranks(lines)])


@once_per_text
def _of_texts(lines: pl.DataFrame) -> pl.DataFrame:
    lines = as_commands(lines)
    dumped = r"(?:^|[ (,])(\w+)=([\w.+-]+)(?:,|\)|\s*$)"
    yaml = r'^\s*(?:\[[^{]*\] *)?"?(\w+)"?: "?([\w./-]+)"?,?\s*$'
    found = [
        named_settings(lines, _BANNER_LINE, _BANNER, setting_source="log_line"),
        named_settings(lines, dumped, _ARGUMENTS, setting_source="argument_dump"),
        named_settings(lines, yaml, _CONFIG, setting_source="argument_dump"),
        named_settings(lines, r"\]   (\w+) \.* +(\d+)\s*$", _DEEPSPEED, setting_source="argument_dump"),
        named_settings(lines, r"\]   (\w+)  (\d+)\s*$", _DEEPSPEED, setting_source="argument_dump"),
        named_settings(lines, r"--(\w+)[= ]+(\d+)(?:\s|$)", _OPTIONS, setting_source="command_line"),
        named_settings(lines, r"--(\w+)[= ]+([\w./][\w./-]*)", _MODEL_OPTIONS, setting_source="command_line"),
        matched_settings(
            lines,
            [*_LINE.items(), *_UNSLOTH.items(), ("arg:engine_stage", _ENGINE_STAGE), (RANK, _RANKED)],
        ),
        swift.settings(lines),
        computed_settings(notebook_tables.steps_planned(lines), {"steps_planned": pl.col("value")}),
        _switches(lines),
        deepspeed_settings.launched(lines),
        totals.stated(lines),
        model_config.settings(lines),
        environment.settings(lines),
    ]
    rows = pl.concat(found).with_columns(
        value=pl.when(pl.col("value").str.contains(r"^\d[\d,]*$"))
        .then(pl.col("value").str.replace_all(",", "", literal=True))
        .otherwise("value")
    )
    return rows.filter(~((pl.col("name") == "steps_planned") & ~pl.col("value").str.contains(r"^[1-9]\d*$")))


def with_ranks(settings: pl.DataFrame) -> pl.DataFrame:
    """`settings` with the number of processes in place of the ranks that speak, where none is missing.

    Each of axolotl's lines names its rank, in newer versions only those of the first process; so do torch's warnings.
    A warning that every process prints, and is there once, is that of a single one.
    """
    is_rank = pl.col("name").is_in([RANK, environment.RANK, environment.CPU_PROCESS])
    stated = settings.filter(is_rank).with_columns(rank=pl.col("value").cast(pl.Int64, strict=False))
    ranks = stated.group_by("source", "name", "rank").agg(pl.col("line_no").min(), lines=pl.len())
    counted = ranks.group_by("source", "name").agg(
        pl.col("line_no").max(), pl.col("lines").max(), most=pl.col("rank").max(), n=pl.len()
    )
    gapless = counted.filter((pl.col("most") > 0) & (pl.col("n") == pl.col("most") + 1))
    alone = counted.filter(pl.col("lines") == 1, name=environment.CPU_PROCESS).join(gapless, on="source", how="anti")
    known = [
        computed_settings(gapless.filter(name=RANK), {"num_gpus": pl.col("n")}, setting_source="derived"),
        computed_settings(gapless.filter(name=environment.RANK), {"arg:ranks": pl.col("n")}),
        computed_settings(alone, {"arg:ranks": pl.col("lines")}),
    ]
    return pl.concat([settings.filter(~is_rank), *known])


def _switches(lines: pl.DataFrame) -> pl.DataFrame:
    text = pl.col("text")
    near = lines.filter(text.str.contains_any([f"--{name}" for name in _SWITCHES]))
    values = {}
    for name in _SWITCHES:
        switch = _SWITCH.format(name)
        values[f"arg:{name}"] = pl.when(text.str.contains(switch)).then(text.str.extract(switch).fill_null("true"))
    return computed_settings(near, values, setting_source="command_line")


def _precision() -> pl.Expr:
    stated = [pl.col(f"arg:{name}").str.to_lowercase() == "true" for name in ("bf16", "fp16")]
    words = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "no": None}
    mixed = pl.col("arg:mixed").replace(words)
    return pl.when(stated[0]).then(pl.lit("bf16")).when(stated[1]).then(pl.lit("fp16")).otherwise(mixed)


_SHARDED = (
    pl.col("arg:fsdp")
    .str.to_lowercase()
    .replace_strict({"full_shard": 3, "hybrid_shard": 3, "shard_grad_op": 2}, default=None, return_dtype=pl.Int64)
)

_BATCH, _MBS, _GAS = whole("arg:total_batch"), whole("mbs"), whole("gas")
_NAMED_BATCH = whole("arg:named_batch")
_RANKS = pl.coalesce(whole("arg:ranks"), pl.when(pl.col("arg:no_accelerator").is_not_null()).then(1))
_IS_SPLIT = pl.any_horizontal(pl.col("tp").is_not_null(), pl.col("cp").is_not_null())
# The folder's batch is a process's, unless it is all that there is.
_IS_MICRO = quotient(_BATCH, _NAMED_BATCH * _GAS.fill_null(1)).is_not_null() & (
    (_BATCH > _NAMED_BATCH) | (pl.coalesce(whole("num_gpus"), _RANKS) == 1)
)
_MICRO = pl.coalesce(_MBS, pl.when(_IS_MICRO).then(_NAMED_BATCH))
# One process that takes the whole batch at once leaves nothing to be accumulated, nor other processes.
_ACCUMULATED = pl.coalesce(
    _GAS, pl.when(_BATCH == _MICRO).then(1), quotient(_BATCH, _MICRO * pl.coalesce(whole("num_gpus"), _RANKS))
)
_REPLICAS = quotient(_BATCH, _MICRO * _ACCUMULATED)
_MEASURED = ("arg:total_batch",)
# The banner counts the batch of each process, and ms-swift's processes of one sequence have the same.
_SEQUENCE_RANKS = swift.SEQUENCE_RANKS.fill_null(1)
_ON_CPU = pl.when(pl.col("arg:no_accelerator").is_not_null() & pl.col("accelerator").is_null()).then(pl.lit("CPU"))

COMBINED = (
    *model_config.COMBINED,
    *swift.COMBINED,
    CombinedSetting("gbs", quotient(_BATCH, _SEQUENCE_RANKS), _MEASURED),
    CombinedSetting("mbs", pl.when(_MBS.is_null()).then(_MICRO), _MEASURED),
    CombinedSetting("gas", pl.when(_GAS.is_null()).then(_ACCUMULATED), _MEASURED),
    CombinedSetting(
        "dp",
        quotient(pl.coalesce(_REPLICAS, pl.when(~_IS_SPLIT).then(_RANKS)), _SEQUENCE_RANKS),
        _MEASURED,
    ),
    # Every device has batches of its own, unless a tensor or a sequence is split.
    CombinedSetting(
        "num_gpus",
        pl.when(pl.col("num_gpus").is_null() & ~_IS_SPLIT).then(
            pl.coalesce(_REPLICAS, _RANKS, whole("arg:named_ranks"))
        ),
        _MEASURED,
        setting_source="derived",
    ),
    CombinedSetting("accelerator", _ON_CPU, ("arg:no_accelerator",)),
    CombinedSetting("precision", _precision(), ("arg:bf16", "arg:fp16", "arg:mixed")),
    CombinedSetting(
        "recompute",
        # Or how: axolotl knows "offload" and "unsloth", too.
        pl.when(pl.col("arg:gradient_checkpointing").str.to_lowercase().is_in(["false", "0", "none", "null"]))
        .then(pl.lit("none"))
        .when(pl.col("arg:gradient_checkpointing").is_not_null())
        .then(pl.lit("full")),
    ),
    # The engine prints its stage below any script: it is no sign of what else the script states.
    CombinedSetting(
        "zero_stage",
        pl.when(pl.col("zero_stage").is_null()).then(pl.coalesce(whole("arg:engine_stage"), _SHARDED)),
        ("arg:fsdp", "arg:engine_stage"),
    ),
)
