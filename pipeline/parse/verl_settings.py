"""verl's configuration: hydra overrides of the launch command, and the pretty-printed dump of all of it.

Formats: verl/trainer/config/ppo_trainer.yaml and the parts it is put together of, sft_trainer.yaml. The dump is a
Python dict, whose names pprint sorts: `actor_rollout_ref` comes with `actor`, `model`, `ref` and `rollout` in this
order, and `critic` behind it. Most names come several times; see `of_actor`.

A rollout's tensor parallelism is that of the inference engine and no layout of the training. FSDP shards parameters,
gradients and optimizer (workers/fsdp_workers.py get_sharding_strategy); with Megatron the strategy says nothing of it.
"""

from __future__ import annotations

import polars as pl

from pipeline.parse.combine import is_true, whole
from pipeline.parse.protocol import CombinedSetting, named_settings, said_settings

_ACTOR = "actor_rollout_ref.actor"
_OVERRIDE = (
    r"(?:^|[\s'\"+])((?:(?:trainer|actor_rollout_ref|data|model)\.[\w.]+|ulysses_sequence_parallel_size))=([\w./-]+)"
)
_OVERRIDES = {
    "trainer.n_gpus_per_node": "gpus_per_node", "trainer.nnodes": "num_nodes",
    "trainer.total_training_steps": "steps_planned",
    "actor_rollout_ref.model.path": "model", "model.partial_pretrain": "model",
    f"{_ACTOR}.megatron.tensor_model_parallel_size": "tp", f"{_ACTOR}.megatron.pipeline_model_parallel_size": "pp",
    f"{_ACTOR}.megatron.context_parallel_size": "cp", f"{_ACTOR}.megatron.expert_model_parallel_size": "ep",
    f"{_ACTOR}.ulysses_sequence_parallel_size": "cp", "ulysses_sequence_parallel_size": "cp",
    f"{_ACTOR}.ppo_micro_batch_size_per_gpu": "mbs", "data.micro_batch_size_per_gpu": "mbs",
    f"{_ACTOR}.strategy": "arg:strategy", "model.strategy": "arg:strategy",
    f"{_ACTOR}.fsdp_config.fsdp_size": "arg:fsdp_size", f"{_ACTOR}.fsdp_config.param_offload": "arg:fsdp_offload",
    "actor_rollout_ref.model.enable_gradient_checkpointing": "arg:recompute",
    "model.enable_gradient_checkpointing": "arg:recompute",
    "data.max_length": "seq_len", "data.max_prompt_length": "arg:prompt", "data.max_response_length": "arg:response",
    "data.train_batch_size": "arg:train_batch_size",
}  # fmt: skip
_DUMP = {
    "n_gpus_per_node": "gpus_per_node", "nnodes": "num_nodes", "ppo_micro_batch_size_per_gpu": "mbs",
    "context_parallel_size": "cp", "expert_model_parallel_size": "ep", "pipeline_model_parallel_size": "pp",
    "tensor_model_parallel_size": "tp", "ulysses_sequence_parallel_size": "cp", "strategy": "arg:strategy",
    "enable_gradient_checkpointing": "arg:recompute", "max_prompt_length": "arg:prompt",
    "max_response_length": "arg:response",
}  # fmt: skip
_DUMPED = r"'(\w+)': '?([\w-]+)'?(?:[,}]|\s*$)"
_TUNING = r"\bverl\.trainer\.(fsdp_sft_trainer|sft_trainer)\b"
_MEGATRON = ("tp", "pp", "ep")

ANCHORS = (
    "actor_rollout_ref.", "trainer.n", "trainer.total_training_steps", "model.partial_pretrain", "model.strategy=",
    "data.m", "data.train_batch_size", "ulysses_sequence_parallel_size=", "model.enable_gradient_checkpointing",
    ".fsdp_sft_trainer", ".sft_trainer", *(f"'{name}': " for name in _DUMP),
)  # fmt: skip


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """What the launch overrides and the dump says, as SETTING_FACTS."""
    given = named_settings(lines, _OVERRIDE, _OVERRIDES, setting_source="command_line")
    dumped = named_settings(lines, _DUMPED, _DUMP, setting_source="argument_dump")
    return pl.concat([given, dumped, said_settings(lines, [("arg:tuning", _TUNING)])])


def of_actor(settings: pl.DataFrame) -> pl.DataFrame:
    """`settings` with the actor's values of a dump only, which come first of their names.

    Where the actor is not Megatron's, the first tensor parallelism is the rollout's: the names of a layout count behind
    one that only Megatron's part has.
    """
    rows = settings.sort("source", "line_no", maintain_order=True)
    name, is_dumped = pl.col("name"), pl.col("setting_source") == "argument_dump"
    is_layout = is_dumped & name.is_in(_MEGATRON)
    own = pl.col("line_no").filter(is_dumped & (name == "ep")).min().over("source")
    behind = rows.filter(~is_layout | (pl.col("line_no") >= own).fill_null(value=False))
    is_first = pl.struct("source", "name").is_first_distinct().over(is_dumped)
    return behind.filter(~is_dumped | is_first)


_IS_FSDP = (
    pl.col("arg:strategy").is_in(["fsdp", "fsdp2"])
    | (pl.col("arg:strategy").is_null() & (pl.col("arg:tuning") == "fsdp_sft_trainer"))
    | pl.coalesce("arg:fsdp_size", "arg:fsdp_offload").is_not_null()
)

COMBINED = (
    CombinedSetting("zero_stage", pl.when(_IS_FSDP).then(3), ("arg:strategy",)),
    CombinedSetting(
        "recompute",
        pl.when(is_true("arg:recompute")).then(pl.lit("full")).when(~is_true("arg:recompute")).then(pl.lit("none")),
    ),
    # The longest sequence that the training may meet.
    CombinedSetting("seq_len", whole("arg:prompt") + whole("arg:response")),
    # Of a reinforcement learning it counts prompts, each of which is answered several times.
    CombinedSetting(
        "gbs",
        pl.when(pl.col("arg:tuning").is_not_null()).then(whole("arg:train_batch_size")),
        ("arg:train_batch_size",),
    ),
)
