"""Columns of `runs` by the names in each trainer's files, as dotted paths, and values that they spell otherwise."""

from __future__ import annotations

TRAINER_STATE = {"max_steps": "steps_planned", "train_batch_size": "mbs"}
DEEPSPEED = {
    "train_batch_size": "gbs",
    "train_micro_batch_size_per_gpu": "mbs",
    "gradient_accumulation_steps": "gas",
    "zero_optimization.stage": "zero_stage",
}
AXOLOTL = (
    {"micro_batch_size": "mbs", "gradient_accumulation_steps": "gas", "sequence_len": "seq_len"}
    | {"base_model": "model", "max_steps": "steps_planned"}
    | {"tensor_parallel_size": "tp", "context_parallel_size": "cp", "sequence_parallel_degree": "cp"}
)
TRAINING_ARGUMENTS = {
    "per_device_train_batch_size": "mbs",
    "gradient_accumulation_steps": "gas",
    "max_steps": "steps_planned",
} | {"block_size": "seq_len", "max_length": "seq_len"}
NANOTRON = (
    {"parallelism.tp": "tp", "parallelism.pp": "pp", "parallelism.dp": "arg:dp"}
    | {"parallelism.context_parallel_size": "arg:cp", "parallelism.expert_parallel_size": "arg:ep"}
    | {"parallelism.pp_engine": "arg:pp_engine", "parallelism.tp_mode": "arg:tp_mode"}
    | {"parallelism.recompute_layer": "arg:recompute_layer", "optimizer.zero_stage": "zero_stage"}
    | {"tokens.sequence_length": "seq_len", "tokens.train_steps": "steps_planned"}
    | {"tokens.micro_batch_size": "mbs", "tokens.batch_accumulation_per_replica": "gas"}
    | {"model.model_config.hidden_size": "hidden_size", "model.model_config.intermediate_size": "ffn_hidden_size"}
    | {"model.model_config.num_attention_heads": "num_heads", "model.model_config.num_hidden_layers": "num_layers"}
    | {"model.model_config.num_key_value_heads": "num_kv_heads", "model.model_config.vocab_size": "vocab_size"}
    | {"model.model_config.tie_word_embeddings": "tie_word_embeddings"}
)
NEMO_NAMES = (
    {"tensor_model_parallel_size": "tp", "pipeline_model_parallel_size": "pp", "context_parallel_size": "cp"}
    | {"expert_model_parallel_size": "ep", "virtual_pipeline_model_parallel_size": "vpp", "micro_batch_size": "mbs"}
    | {"global_batch_size": "gbs", "encoder_seq_length": "seq_len", "num_layers": "num_layers"}
    | {"hidden_size": "hidden_size", "num_attention_heads": "num_heads", "num_query_groups": "num_kv_heads"}
    | {"ffn_hidden_size": "ffn_hidden_size", "sequence_parallel": "sequence_parallel"}
)
ACCELERATE = {
    "num_processes": "num_gpus",
    "num_machines": "num_nodes",
    "deepspeed_config.zero_stage": "zero_stage",
    "deepspeed_config.gradient_accumulation_steps": "gas",
    "gradient_accumulation_steps": "gas",
    "megatron_lm_config.megatron_lm_tp_degree": "tp",
    "megatron_lm_config.megatron_lm_pp_degree": "pp",
    "megatron_lm_config.megatron_lm_num_micro_batches": "gas",
    "parallelism_config.parallelism_config_tp_size": "tp",
    "parallelism_config.parallelism_config_cp_size": "cp",
}
# PyTorch's ShardingStrategy by name and number (utils/constants.py FSDP_SHARDING_STRATEGY).
SHARDING = (
    {"FULL_SHARD": "3", "SHARD_GRAD_OP": "2", "NO_SHARD": "0"}
    | {"HYBRID_SHARD": "3", "HYBRID_SHARD_ZERO2": "2"}
    | {"1": "3", "2": "2", "3": "0", "4": "3", "5": "2"}
)
NEMO_COMMAND = NEMO_NAMES | {
    "devices": "gpus_per_node",
    "num_nodes": "num_nodes",
    "max_steps": "arg:max_steps",
    "seq_length": "seq_len",
}
PRECISION = (
    {"bf16": "bf16", "bf16-mixed": "bf16", "bf16-true": "bf16"}
    | {"fp16": "fp16", "16": "fp16", "16-mixed": "fp16"}
    | {"fp8": "fp8", "32": "fp32", "no": "fp32"}
)
LITGPT = {
    "train.micro_batch_size": "mbs",
    "train.global_batch_size": "gbs",
    "train.max_seq_length": "seq_len",
    "train.max_steps": "steps_planned",
    "train.max_tokens": "arg:max_tokens",
    "devices": "gpus_per_node",
    "num_nodes": "num_nodes",
    "model_name": "model",
    "model_config.n_layer": "num_layers",
    "model_config.n_embd": "hidden_size",
    "model_config.n_head": "num_heads",
    "model_config.n_query_groups": "num_kv_heads",
    "model_config.intermediate_size": "ffn_hidden_size",
    "model_config.vocab_size": "vocab_size",
}
TORCHTITAN = {
    "training.seq_len": "seq_len",
    "training.local_batch_size": "mbs",
    "training.batch_size": "mbs",
    "training.global_batch_size": "gbs",
    "training.steps": "steps_planned",
    "activation_checkpoint.mode": "recompute",
    "parallelism.tensor_parallel_degree": "tp",
    "parallelism.pipeline_parallel_degree": "pp",
    "parallelism.context_parallel_degree": "cp",
    "parallelism.expert_parallel_degree": "ep",
    "parallelism.data_parallel_replicate_degree": "arg:dp_replicate",
    "parallelism.data_parallel_shard_degree": "arg:dp_shard",
    "parallelism.pipeline_parallel_schedule": "arg:schedule",
    "parallelism.fsdp_reshard_after_forward": "arg:reshard",
    "model.name": "arg:model",
    "model.flavor": "arg:flavor",
}
