"""verl's configuration: hydra overrides of the launch command, and the pretty-printed dump of all of it.

Formats: verl/trainer/config/ppo_trainer.yaml and the parts it is put together of, sft_trainer.yaml. The dump is a
Python dict, whose names pprint sorts: `actor_rollout_ref` comes with `actor`, `model`, `ref` and `rollout` in this
order, and `critic` behind it. Most names come several times; see `of_actor`. The GPUs of `trainer` come last: those of
a rollout or a reward model count where these have a pool of their own, and `nnodes` is 0 where they have none.

A rollout's tensor parallelism is that of the inference engine and no layout of the training. FSDP shards parameters,
gradients and optimizer (workers/fsdp_workers.py get_sharding_strategy); with Megatron it is the distributed optimizer.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialect import CombinedSetting
from sweepscope.pipeline.logs.expressions import cases, is_true, quotient, switched, whole
from sweepscope.pipeline.logs.extractors import computed_settings, matched_settings, named_settings
from sweepscope.pipeline.text.quantities import human

_ACTOR = "actor_rollout_ref.actor"
_OVERRIDE = (
    r"(?:^|[\s'\"+])((?:(?:trainer|actor_rollout_ref|data|model)\.[\w.]+|ulysses_sequence_parallel_size))=([\w./-]+)"
)
_OVERRIDES = {
    "trainer.n_gpus_per_node": "gpus_per_node",
    "trainer.nnodes": "num_nodes",
    "trainer.total_training_steps": "steps_planned",
    "actor_rollout_ref.model.path": "model",
    "model.partial_pretrain": "model",
    f"{_ACTOR}.megatron.tensor_model_parallel_size": "tp",
    f"{_ACTOR}.megatron.pipeline_model_parallel_size": "pp",
    f"{_ACTOR}.megatron.virtual_pipeline_model_parallel_size": "vpp",
    f"{_ACTOR}.megatron.context_parallel_size": "cp",
    f"{_ACTOR}.megatron.expert_model_parallel_size": "ep",
    f"{_ACTOR}.ulysses_sequence_parallel_size": "cp",
    "ulysses_sequence_parallel_size": "cp",
    f"{_ACTOR}.ppo_micro_batch_size_per_gpu": "mbs",
    "data.micro_batch_size_per_gpu": "mbs",
    f"{_ACTOR}.strategy": "arg:strategy",
    "model.strategy": "arg:strategy",
    f"{_ACTOR}.fsdp_config.fsdp_size": "arg:fsdp_size",
    f"{_ACTOR}.fsdp_config.param_offload": "arg:fsdp_offload",
    "actor_rollout_ref.model.enable_gradient_checkpointing": "arg:recompute",
    "model.enable_gradient_checkpointing": "arg:recompute",
    "data.max_length": "seq_len",
    "data.max_prompt_length": "arg:prompt",
    "data.max_response_length": "arg:response",
    "data.train_batch_size": "arg:train_batch_size",
}
_DUMP = {
    "n_gpus_per_node": "gpus_per_node",
    "nnodes": "num_nodes",
    "ppo_micro_batch_size_per_gpu": "mbs",
    "context_parallel_size": "cp",
    "expert_model_parallel_size": "ep",
    "pipeline_model_parallel_size": "pp",
    "virtual_pipeline_model_parallel_size": "vpp",
    "use_distributed_optimizer": "arg:distributed_optimizer",
    "tensor_model_parallel_size": "tp",
    "ulysses_sequence_parallel_size": "arg:ulysses",
    "strategy": "arg:strategy",
    "enable_gradient_checkpointing": "arg:recompute",
    "max_prompt_length": "arg:prompt",
    "max_response_length": "arg:response",
}
_DUMPED = r"'(\w+)': '?([\w-]+)'?(?:[,}]|\s*$)"
_DUMPED_PATH = r"'(path)': '([\w./~-]+)'[,}]"
_POOL = ("gpus_per_node", "num_nodes")
_TUNING = r"\bverl\.trainer\.(fsdp_sft_trainer|sft_trainer)\b"
_OF_MEGATRON = ("cp", "ep", "pp", "tp", "vpp", "arg:distributed_optimizer")
_PART = "arg:megatron_part"

# What Megatron prints of the actor's model before that of the others (core/transformer/transformer_config.py).
_SHAPE = r"\b(num_layers|hidden_size|num_attention_heads|ffn_hidden_size|params_dtype)=(?:torch\.)?(\w+)"
_SHAPES = {
    "num_layers": "num_layers",
    "hidden_size": "hidden_size",
    "num_attention_heads": "num_heads",
    "ffn_hidden_size": "ffn_hidden_size",
    "params_dtype": "precision",
}

# verl/utils/model.py print_model_size: of the actor and its reference; a critic's is another class.
_SIZE = r"\b\w+For(?:CausalLM|ConditionalGeneration) contains ([\d.]+[BM]) parameters"

LITERALS = (
    " contains ",
    *("actor_rollout_ref.", "trainer.n", "trainer.total_training_steps"),
    *("model.partial_pretrain", "model.strategy=", "data.m", "data.train_batch_size"),
    *("ulysses_sequence_parallel_size=", "model.enable_gradient_checkpointing", ".fsdp_sft_trainer"),
    *(".sft_trainer", "'megatron': {", "TransformerConfig(tensor_model_parallel_size="),
    *(f"'{name}': " for name in (*_DUMP, "path")),
)


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS of the launch's overrides and the dump."""
    given = named_settings(lines, _OVERRIDE, _OVERRIDES, setting_source="command_line")
    dumped = named_settings(lines, _DUMPED, _DUMP, setting_source="argument_dump")
    path = named_settings(lines, _DUMPED_PATH, {"path": "model"}, setting_source="argument_dump")
    shown = lines.filter(pl.col("text").str.contains("TransformerConfig(tensor_model_parallel_size=", literal=True))
    shape = named_settings(shown, _SHAPE, _SHAPES, setting_source="argument_dump")
    sentences = matched_settings(lines, [("arg:tuning", _TUNING), (_PART, r"('megatron'): \{")])
    sizes = computed_settings(lines, {"params": human(pl.col("text").str.extract(_SIZE))})
    return pl.concat([given, dumped, path, shape, sentences, sizes])


def of_actor(settings: pl.DataFrame) -> pl.DataFrame:
    """`settings` with the actor's values of a dump only, which come first of their names, and the trainer's GPUs.

    Megatron's part comes with the actor where that is Megatron's. Otherwise the first tensor parallelism is the
    rollout's, so that names of a layout count from the beginning of such a part only.
    """
    rows = settings.sort("source", "line_no", maintain_order=True)
    name, is_dumped = pl.col("name"), pl.col("setting_source") == "argument_dump"
    begin = pl.col("line_no").filter(name == _PART).min().over("source")
    is_layout = is_dumped & name.is_in(_OF_MEGATRON)
    behind = rows.filter((name != _PART) & (~is_layout | (pl.col("line_no") >= begin)).fill_null(value=False))
    each = pl.struct("source", "name")
    is_meant = pl.when(name.is_in(_POOL)).then(each.is_last_distinct()).otherwise(each.is_first_distinct())
    return behind.filter(~is_dumped | is_meant.over(is_dumped))


_IS_FSDP = (
    pl.col("arg:strategy").is_in(["fsdp", "fsdp2"])
    | (pl.col("arg:strategy").is_null() & (pl.col("arg:tuning") == "fsdp_sft_trainer"))
    | pl.coalesce("arg:fsdp_size", "arg:fsdp_offload").is_not_null()
)

_RANKS = whole("gpus_per_node") * whole("num_nodes").fill_null(1)
_SPLIT = whole("tp").fill_null(1) * whole("pp").fill_null(1) * pl.coalesce(whole("cp"), whole("arg:ulysses"), 1)

COMBINED = (
    CombinedSetting(
        "dp",
        pl.when(whole("tp").is_not_null() | _IS_FSDP).then(quotient(_RANKS, _SPLIT)),
        ("gpus_per_node",),
        setting_source="derived",
    ),
    CombinedSetting(
        "zero_stage",
        cases((_IS_FSDP, 3), (is_true("arg:distributed_optimizer"), 1), (~is_true("arg:distributed_optimizer"), 0)),
        ("arg:strategy", "arg:distributed_optimizer"),
    ),
    CombinedSetting("recompute", switched("arg:recompute", "full", "none")),
    CombinedSetting("cp", pl.when(pl.col("cp").is_null()).then(whole("arg:ulysses")), ("arg:ulysses",)),
    # The longest sequence that the training may meet.
    CombinedSetting("seq_len", whole("arg:prompt") + whole("arg:response")),
    # Of a reinforcement learning it counts prompts, each of which is answered several times.
    CombinedSetting(
        "gbs",
        pl.when(pl.col("arg:tuning").is_not_null()).then(whole("arg:train_batch_size")),
        ("arg:train_batch_size",),
    ),
)
