"""nanotron's configuration dump, `Config(general=GeneralArgs(...`. Source: src/nanotron/config/*.py."""

from __future__ import annotations

from sweepscope.pipeline.simulate.renderers.pretty import Node, Raw, node, pretty
from sweepscope.pipeline.simulate.truth import SimulatedRun

_ENGINE = Raw(
    "<nanotron.parallel.pipeline_parallel.engine.OneForwardOneBackwardPipelineEngine object at 0x7f0bc6a95960>"
)


def config_text(run: SimulatedRun) -> str:
    """The dump, several lines. Only fields that every version of that age has, in their order."""
    model, layout = run.model, run.layout
    return pretty(
        node(
            "Config",
            general=node(
                "GeneralArgs",
                project="sweep",
                run=run.name,
                seed=42,
                step=None,
                consumed_train_samples=None,
                benchmark_csv_path=None,
                ignore_sanity_checks=True,
            ),
            parallelism=_parallelism(run),
            model=node(
                "ModelArgs",
                model_config=node(
                    "LlamaConfig",
                    bos_token_id=1,
                    eos_token_id=2,
                    hidden_act="silu",
                    hidden_size=model.hidden_size,
                    initializer_range=0.02,
                    intermediate_size=model.ffn_hidden_size,
                    is_llama_config=True,
                    max_position_embeddings=run.seq_len,
                    num_attention_heads=model.num_heads,
                    num_hidden_layers=model.num_layers,
                    num_key_value_heads=model.num_kv_heads,
                    pad_token_id=None,
                    pretraining_tp=1,
                    rms_norm_eps=1e-05,
                    rope_scaling=None,
                    rope_theta=500000.0,
                    rope_interleaved=False,
                    tie_word_embeddings=model.tie_word_embeddings,
                    use_cache=True,
                    vocab_size=model.vocab_size,
                ),
                init_method=node("RandomInit", std=0.02),
                dtype=Raw("torch.bfloat16"),
                make_vocab_size_divisible_by=1,
                ddp_bucket_cap_mb=25,
            ),
            tokenizer=node(
                "TokenizerArgs", tokenizer_name_or_path=model.repo, tokenizer_revision=None, tokenizer_max_length=None
            ),
            checkpoints=node(
                "CheckpointsArgs",
                checkpoints_path=Raw("PosixPath('checkpoints')"),
                checkpoint_interval=10000,
                save_initial_state=False,
                save_final_state=False,
                resume_checkpoint_path=None,
                checkpoints_path_is_shared_file_system=False,
            ),
            logging=node("LoggingArgs", log_level="info", log_level_replica="info", iteration_step_info_interval=1),
            tokens=node(
                "TokensArgs",
                sequence_length=run.seq_len,
                train_steps=run.steps_planned,
                micro_batch_size=layout.mbs,
                batch_accumulation_per_replica=layout.gas,
                val_check_interval=-1,
                limit_val_batches=0,
                limit_test_batches=0,
            ),
            optimizer=node(
                "OptimizerArgs",
                optimizer_factory=node(
                    "AdamWOptimizerArgs",
                    adam_eps=1e-08,
                    adam_beta1=0.9,
                    adam_beta2=0.95,
                    torch_adam_is_fused=True,
                    name="adamW",
                ),
                zero_stage=layout.zero_stage,
                weight_decay=0.01,
                clip_grad=1.0,
                accumulate_grad_in_fp32=True,
                learning_rate_scheduler=node(
                    "LRSchedulerArgs",
                    learning_rate=0.0003,
                    lr_warmup_steps=2,
                    lr_warmup_style="linear",
                    lr_decay_style="cosine",
                    lr_decay_steps=max(1, run.steps_planned - 2),
                    lr_decay_starting_step=None,
                    min_decay_lr=1e-05,
                ),
            ),
            data_stages=Raw("None"),
            profiler=None,
            lighteval=None,
            s3_upload=None,
        )
    )


def _parallelism(run: SimulatedRun) -> Node:
    layout = run.layout
    mode = "REDUCE_SCATTER: 2" if layout.sequence_parallel else "ALL_REDUCE: 1"
    fields: dict[str, Node | str | int | None] = {
        "dp": layout.dp,
        "pp": layout.pp,
        "tp": layout.tp,
        "pp_engine": _ENGINE,
        "tp_mode": Raw(f"<TensorParallelLinearMode.{mode}>"),
        "tp_linear_async_communication": layout.sequence_parallel,
        "recompute_layer": layout.recompute == "full",
        "tp_recompute_allgather": True,
        "expert_parallel_size": layout.ep,
    }
    if run.variant == "2025":
        fields["context_parallel_size"] = layout.cp
    return node("ParallelismArgs", **fields)
