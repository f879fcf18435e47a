"""Configuration as Megatron-LM and its descendants print it.

Five shapes of one list of arguments, later ones winning:

- `  name ......... value` between `arguments` and `end of arguments`: megatron/training/arguments.py _print_args.
- `known_args[name] = value`: Primus launcher_adapter.py. `  name   : value (int)`: Primus module_utils.py.
- `  name: value`: Megatron-Bridge's ConfigContainer as YAML, per rank, before and after overrides.
- `--name value`: the launch command, where the shell echoes it. Bare switches are left to the dump.

Plus the lines that print world size, micro-batches and vocabulary. Old names: model_parallel_size
(2019), checkpoint_activations (to 2021). `arg:` names feed `megatron_rules`.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialects import environment
from sweepscope.pipeline.logs.extractors import matched_settings, named_settings, once_per_text
from sweepscope.pipeline.text.literals import holding

_DIRECT = (
    {"world_size": "num_gpus", "data_parallel_size": "dp", "tensor_model_parallel_size": "tp"}
    | {"model_parallel_size": "tp", "pipeline_model_parallel_size": "pp", "context_parallel_size": "cp"}
    | {"expert_model_parallel_size": "ep", "virtual_pipeline_model_parallel_size": "vpp", "micro_batch_size": "mbs"}
    | {"global_batch_size": "gbs", "seq_length": "seq_len", "num_layers": "num_layers", "hidden_size": "hidden_size"}
    | {"num_attention_heads": "num_heads", "ffn_hidden_size": "ffn_hidden_size", "train_iters": "steps_planned"}
    | {"sequence_parallel": "sequence_parallel", "num_distributed_optimizer_instances": "dp_replicate"}
    | {"num_workers": "data_workers"}
)

_FEEDING = (
    *("bf16", "fp16", "fp8", "fp8_recipe", "fp4", "params_dtype", "use_distributed_optimizer"),
    *("use_torch_fsdp2", "use_custom_fsdp", "use_megatron_fsdp", "data_parallel_sharding_strategy"),
    *("deepspeed", "zero_stage", "group_query_attention", "num_query_groups", "multi_latent_attention"),
    "num_key_value_heads",
    *("kv_channels", "kv_lora_rank", "q_lora_rank", "qk_head_dim", "qk_pos_emb_head_dim", "v_head_dim"),
    *("recompute_granularity", "recompute_activations", "checkpoint_activations", "activations_checkpoint_method"),
    *("untie_embeddings_and_output_weights", "share_embeddings_and_output_weights", "swiglu"),
    *("gated_linear_unit", "glu_activation", "vocab_size", "padded_vocab_size", "num_experts", "num_moe_experts"),
    *("moe_router_topk", "moe_ffn_hidden_size", "moe_shared_expert_intermediate_size", "moe_layer_freq"),
)

NAMES = {**_DIRECT, **{name: f"arg:{name}" for name in _FEEDING}}

_ON_COMMAND_LINE = {name.replace("_", "-"): column for name, column in NAMES.items()} | NAMES

_OTHER_LITERALS = (
    *NAMES,
    *("--micro-batch-size", "--global-batch-size", "--tensor-model-parallel-size", "--num-layers"),
    *("--pipeline-model-parallel-size", "--seq-length", "--train-iters", "using world size:"),
    *("number of micro-batches to constant", "number of microbatches to constant", "  batch_size ."),
    *("end of arguments", "Total number of parameters in billions", "padded vocab (size:", "model parallel rank ("),
    *environment.LITERALS,
)
LITERALS = ("| global batch size:", *_OTHER_LITERALS)

# mpirun's prefix of a next, empty line may be glued behind the value.
_GLUED = r"(?:\[\d+,\d+\]<std(?:out|err)>:)?"
_DUMPED = (
    rf"^\s*-?(\w+)(?: \.+ |\s*:\s+)(\S.*?)\s*(?:\((?:int|str|bool|float|NoneType|list|dict|tuple)\))?{_GLUED}$",
    r"known_args\[(\w+)\] = (\S.*)$",
)
_OPTION = r"--([a-z][\w-]*)[ =]([\w.]+)"

# Of a model-parallel group, as in 2019 and 2020; in 2021 it was an old name without a value.
_OLD_BATCH = r"^\s*(batch_size) \.+ (\d+)\s*$"

# Between "Nonetensor-model..." (Primus forgets a separator) and "encoder-tensor-model...", which is another thing.
_WORLD = {
    "num_gpus": r"using world size: (\d+)",
    "dp": r"[ ,]data-parallel[- ]size: (\d+)",
    "cp": r"[ ,]context-parallel[- ]size: (\d+)",
    "tp": r"(?:[ ,]|None)(?:tensor-)?model-parallel[- ]size: (\d+)",
    "pp": r"(?:[ ,]|None)pipeline-model-parallel[- ]size: (\d+)",
    "arg:two_sizes": r"using world size: (\d+) and model-parallel size: \d",  # before there were pipelines
}
_LINE = {
    "gas": r"setting number of micro-?batches to constant (\d+)",
    "vocab_size": r"> padded vocab \(size: (\d+)\)",
    # theoretical_memory_usage.py, two decimals
    "arg:total_params_billions": r"Total number of parameters in billions: ([\d.]+)",
    "arg:end_of_dump": r"^\s*-+ (end of arguments) -+",
    "arg:shard_params": r"> number of parameters on .*model parallel rank \(?[\d, ]+\)?: ?(\d+)",
}


_MAX_GAP_LINES = 1


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """Every setting that a line states, as SETTING_FACTS."""
    # Of the step lines, which are most of a log, only the batch is of interest, unless something is glued to them.
    return pl.concat([_others(lines.filter(holding(_OTHER_LITERALS))), _batch_size(lines)])


@once_per_text
def _others(lines: pl.DataFrame) -> pl.DataFrame:
    """The arguments as dumped and given, and the world."""
    world = lines.filter(pl.col("text").str.contains("using world size:", literal=True))
    sentences = [matched_settings(world, _WORLD.items()), matched_settings(lines, _LINE.items())]
    dumped = [named_settings(lines, pattern, NAMES, setting_source="argument_dump") for pattern in _DUMPED]
    dumped.append(named_settings(lines, _OLD_BATCH, {"batch_size": "mbs"}, setting_source="argument_dump"))
    options = named_settings(lines, _OPTION, _ON_COMMAND_LINE, setting_source="command_line")
    # A dump in backquotes or an unset shell variable is no value.
    options = options.filter(pl.col("value").str.contains(r"^[A-Za-z\d]"))
    return pl.concat([*sentences, *dumped, options, environment.settings(lines)])


def _batch_size(lines: pl.DataFrame) -> pl.DataFrame:
    """The batch that step lines state: it grows in a ramp-up, and of two dumps one is right. The last one counts.

    Of the lines in a row that repeat it the last is kept. A gap ends the row: a restart may lie in it.
    """
    sentences = matched_settings(lines, [("gbs", r"\| global batch size:\s+(\d+) \|")])
    following, line_no = pl.col("value").shift(-1).over("source"), pl.col("line_no")
    is_last = pl.col("value").ne_missing(following) | (line_no.shift(-1).over("source") - line_no > _MAX_GAP_LINES)
    return sentences.filter(is_last)
