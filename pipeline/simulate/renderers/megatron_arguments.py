"""Megatron's argument dump: the names that matter, and harmless ones that hold words such as timeout, error and oom.

Source: megatron/training/arguments.py (`_print_args` sorts by name). Which arguments exist depends on the age.
"""

from __future__ import annotations

from sweepscope.pipeline.simulate.truth import SimulatedRun

_CONSTANT: tuple[tuple[str, object], ...] = (
    *(("accumulate_allreduce_grads_in_fp32", True), ("adam_beta1", 0.9), ("adam_beta2", 0.95)),
    *(("adam_eps", 1e-08), ("attention_dropout", 0.0), ("bf16", True), ("clip_grad", 1.0)),
    *(("consumed_train_samples", 0), ("dataloader_type", "single"), ("distributed_backend", "nccl")),
    *(("distributed_timeout_minutes", 10), ("encoder_seq_length", None), ("error_injection_rate", 0)),
    *(("eval_interval", 1000), ("exit_duration_in_mins", None), ("exit_signal_handler", False)),
    *(("fp16", False), ("fp32_residual_connection", False), ("hidden_dropout", 0.0), ("init_method_std", 0.02)),
    *(("log_throughput", True), ("loss_scale", None), ("lr", 0.0003), ("lr_decay_style", "cosine")),
    *(("make_vocab_size_divisible_by", 128), ("max_tokens_to_oom", 12000), ("min_lr", 1e-05)),
    *(("num_layers_per_virtual_pipeline_stage", None), ("num_workers", 2), ("optimizer", "adam")),
    *(("params_dtype", "torch.bfloat16"), ("rank", 0), ("save_interval", 5000), ("seed", 1234)),
    *(("tensorboard_log_interval", 1), ("timing_log_level", 0), ("tokenizer_type", "HFTokenizer")),
    *(("train_samples", None), ("virtual_pipeline_model_parallel_size", None)),
    *(("vocab_extra_ids", 0), ("vocab_size", None), ("weight_decay", 0.1)),
)


def arguments(run: SimulatedRun) -> list[tuple[str, object]]:
    """Name and value of each argument, in the order printed."""
    layout, model = run.layout, run.model
    found = dict(_CONSTANT) | {
        "data_parallel_size": layout.dp,
        "ffn_hidden_size": model.ffn_hidden_size,
        "global_batch_size": layout.gbs,
        "hidden_size": model.hidden_size,
        "kv_channels": model.hidden_size // model.num_heads,
        "log_interval": run.log_interval,
        "max_position_embeddings": run.seq_len,
        "micro_batch_size": layout.mbs,
        "num_attention_heads": model.num_heads,
        "num_layers": model.num_layers,
        "pipeline_model_parallel_size": layout.pp,
        "seq_length": run.seq_len,
        "tensor_model_parallel_size": layout.tp,
        "train_iters": run.steps_planned,
        "world_size": run.num_gpus,
    }
    if run.variant != "2021":
        found |= {
            "context_parallel_size": layout.cp,
            "expert_model_parallel_size": layout.ep,
            "group_query_attention": model.num_kv_heads != model.num_heads,
            "moe_router_topk": model.experts_per_token or 2,
            "num_experts": model.num_experts,
            "num_query_groups": model.num_kv_heads if model.num_kv_heads != model.num_heads else 1,
            "recompute_granularity": None if layout.recompute == "none" else layout.recompute,
            "sequence_parallel": layout.sequence_parallel,
            "swiglu": model.gated_mlp,
            "untie_embeddings_and_output_weights": not model.tie_word_embeddings,
            "use_distributed_optimizer": layout.zero_stage == 1,
        }
    if run.variant in {"2024", "2026"}:
        found["moe_ffn_hidden_size"] = model.ffn_hidden_size if model.num_experts else None
        found["moe_shared_expert_intermediate_size"] = None
        found["moe_layer_freq"] = 1
    return sorted(found.items(), key=lambda item: item[0].lower())
