"""verl's step line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline import ingest_in_memory
from tests.pipeline.logs.logs import facts_of, run_of, settings_of, step_of, tables_of

RL = (
    "\x1b[36m(TaskRunner pid=2617)\x1b[0m step:6 - global_seqlen/min:1599 - actor/entropy:0.5 - actor/pg_loss:-0.25 - "
    "actor/grad_norm:np.float64(1.75) - perf/mfu/actor:0.375 - perf/max_memory_allocated_gb:2.5 - "
    "perf/max_memory_reserved_gb:3.0 - actor/lr:1e-06 - training/global_step:6 - timing_s/step:20.5 - "
    "perf/throughput:1234.5"
)


def test_reinforcement_learning_line() -> None:
    row = step_of("verl", RL)
    assert (row["step"], row["loss"], row["step_time_s"], row["tokens_per_s_per_gpu"]) == (6, -0.25, 20.5, 1234.5)
    assert (row["mfu_logged"], row["grad_norm"], row["learning_rate"]) == (0.375, 1.75, 1e-6)
    assert (row["mem_allocated_bytes"], row["mem_reserved_bytes"]) == (5 * 2**29, 3 * 2**30)


def test_fine_tuning_line_behind_a_progress_bar() -> None:
    bar = "Epoch 1/1:  99%|#########9| 109/110 [1:14:27<01:11, 71.47s/it]"
    row = step_of("verl", bar + "step:109 - train/loss:0.4321 - train/grad_norm:0.5 - train/lr:1e-05")
    assert (row["step"], row["loss"], row["grad_norm"], row["learning_rate"]) == (109, 0.4321, 0.5, 1e-5)


@pytest.mark.parametrize(
    "line", ["step:0 - val-core/gsm8k/reward/mean@1:0.5", "step:10 - val/loss:0.48", "global_step:5 - x"]
)
def test_validation_is_no_step(line: str) -> None:
    assert facts_of("verl", line).steps.is_empty()


def test_a_line_cut_before_any_training_value_is_unparsed() -> None:
    assert step_of("verl", "step:6 - global_seqlen/min:15")["step"] is None


def test_an_mfu_of_zero_was_not_measured() -> None:
    assert step_of("verl", RL.replace("perf/mfu/actor:0.375", "perf/mfu/actor:0"))["mfu_logged"] is None


def test_settings() -> None:
    command = "python3 -m verl.trainer.main_ppo trainer.n_gpus_per_node=8 trainer.nnodes=2 \\"
    assert settings_of("verl", f"{command}\nTotal training steps: 140") == {
        "gpus_per_node": "8",
        "num_nodes": "2",
        "steps_planned": "140",
    }


def test_a_run(tmp_path: Path) -> None:
    run = run_of(tmp_path, f"'n_gpus_per_node': 8\n'nnodes': 2\nTotal training steps: 6\n{RL}\n")
    assert (run["framework"], run["num_gpus"], run["status"]) == ("verl", 16, "completed")


def test_the_progress_bar_tells_the_last_step(tmp_path: Path) -> None:
    bar = "Training Progress: 100%|##########| {}/6 [01:00<00:00, 30.00s/it]\n"
    assert run_of(tmp_path, f"{RL}\n" + bar.format(6))["status"] == "completed"
    assert run_of(tmp_path, RL.replace("step:6", "step:5") + "\n" + bar.format(5))["status"] == "truncated"


def test_the_final_validation_is_the_end(tmp_path: Path) -> None:
    text = f"{RL}\n(TaskRunner pid=2617) Final validation metrics: {{'val-core/x': 0.5}}\n"
    assert run_of(tmp_path, text)["status"] == "completed"


def test_the_actors_micro_batch_of_a_dump(tmp_path: Path) -> None:
    text = f"""\
    (TaskRunner pid=2617) {{'actor_rollout_ref': {{'actor': {{'ppo_epochs': 1,
    (TaskRunner pid=2617)                                  'ppo_micro_batch_size_per_gpu': 4,
    (TaskRunner pid=2617)                                  'strategy': 'fsdp'}}}},
    (TaskRunner pid=2617)  'critic': {{'ppo_micro_batch_size_per_gpu': 8}},
    (TaskRunner pid=2617)  'trainer': {{'n_gpus_per_node': 8, 'nnodes': 2}}}}
    {RL}
    """
    run = run_of(tmp_path, text)
    assert (run["mbs"], run["num_gpus"]) == (4, 16)


def test_older_and_newer_names() -> None:
    row = step_of("verl", RL.replace("perf/mfu/actor", "mfu/actor").replace("perf/max_memory", "actor/perf/max_memory"))
    assert (row["mfu_logged"], row["mem_reserved_bytes"]) == (0.375, 3 * 2**30)


@pytest.mark.parametrize("at", ["actor/gr", "actor/lr", "timing_s/st"])
def test_a_line_that_a_terminal_broke(tmp_path: Path, at: str) -> None:
    place = RL.index(at) + len(at)
    broken = f"{RL[:place]}\n{RL[place:]}\n{RL.replace('step:6', 'step:7')}\n"
    tables = tables_of(tmp_path, broken)
    first, second = tables["steps"].sort("step").to_dicts()
    assert tables["rejects"].is_empty()
    assert [first["step"], second["step"]] == [6, 7]
    assert first["tokens_per_s_per_gpu"] == second["tokens_per_s_per_gpu"] == 1234.5


def test_settings_of_a_launch(tmp_path: Path) -> None:
    actor = "actor_rollout_ref.actor"
    command = (
        "+ python3 -m verl.trainer.main_ppo data.train_batch_size=64 data.max_prompt_length=1024 "
        f"data.max_response_length=3072 {actor}.ulysses_sequence_parallel_size=2 {actor}.strategy=fsdp2 "
        "actor_rollout_ref.model.enable_gradient_checkpointing=True trainer.n_gpus_per_node=8 trainer.nnodes=1 "
        "actor_rollout_ref.rollout.tensor_model_parallel_size=4\n"
    )
    run = run_of(tmp_path, command + RL)
    assert (run["cp"], run["zero_stage"], run["recompute"], run["seq_len"]) == (2, 3, "full", 4096)
    assert (run["num_gpus"], run["dp"], run["tp"]) == (8, 4, 1)
    assert "gbs" not in run


def test_ranks_that_the_degrees_do_not_divide_tell_no_replicas(tmp_path: Path) -> None:
    actor = "actor_rollout_ref.actor"
    launch = f"python3 -m verl.trainer.main_ppo {actor}.strategy=fsdp {actor}.ulysses_sequence_parallel_size=3 "
    run = run_of(tmp_path, f"{launch} trainer.n_gpus_per_node=8\n" + RL)
    assert (run["cp"], run.get("dp")) == (3, None)


def test_batch_of_a_fine_tuning(tmp_path: Path) -> None:
    command = "torchrun -m verl.trainer.fsdp_sft_trainer data.max_length=2048 data.train_batch_size=256\n"
    run = run_of(tmp_path, f"{command}step:1 - train/loss:0.5\n")
    assert (run["gbs"], run["seq_len"], run["zero_stage"]) == (256, 2048, 3)


def test_sequence_parallelism_of_fsdp_is_dumped_outside_of_megatrons_part(tmp_path: Path) -> None:
    run = run_of(tmp_path, "'strategy': 'fsdp2',\n'ulysses_sequence_parallel_size': 4,\n" + RL)
    assert (run["cp"], run["zero_stage"]) == (4, 3)


def test_shape_that_megatron_prints(tmp_path: Path) -> None:
    shape = "num_layers=28, hidden_size=3584, num_attention_heads=28, ffn_hidden_size=18944, moe_ffn_hidden_size=99"
    line = f"(WorkerDict pid=4) TransformerConfig(tensor_model_parallel_size=4, {shape}, params_dtype=torch.bfloat16)"
    run = run_of(tmp_path, f"{line}\n{line.replace('28', '24')}\n{RL}")
    assert (run["num_layers"], run["hidden_size"], run["num_heads"]) == (28, 3584, 28)
    assert (run["ffn_hidden_size"], run["precision"]) == (18944, "bf16")


DUMP = """\
(TaskRunner pid=9)  {{'actor': {{{actor}
(TaskRunner pid=9)             'ppo_micro_batch_size_per_gpu': 2,
(TaskRunner pid=9)   'rollout': {{'tensor_model_parallel_size': 16,
(TaskRunner pid=9)  'critic': {{'megatron': {{'pipeline_model_parallel_size': 1,
(TaskRunner pid=9)                          'tensor_model_parallel_size': 32,
(TaskRunner pid=9)             'ppo_micro_batch_size_per_gpu': 4,
"""


def test_layout_of_a_dump_is_the_actors(tmp_path: Path) -> None:
    own = ("pipeline_model_parallel_size': 4", "tensor_model_parallel_size': 2", "use_distributed_optimizer': True")
    megatron = "'megatron': {'" + "\n(TaskRunner pid=9)    '".join(f"{part}," for part in own)
    run = run_of(tmp_path, DUMP.format(actor=megatron) + "'n_gpus_per_node': 16,\n'nnodes': 1,\n" + RL)
    assert (run["pp"], run["tp"], run["dp"], run["mbs"], run["zero_stage"]) == (4, 2, 2, 2, 1)


def test_a_rollouts_tensor_parallelism_is_no_layout(tmp_path: Path) -> None:
    dump = DUMP.format(actor="'strategy': 'fsdp',").split("(TaskRunner pid=9)  'critic'", maxsplit=1)[0]
    run = run_of(tmp_path, dump + RL)
    assert (run["zero_stage"], run["mbs"], run.get("tp")) == (3, 2, None)


def test_tokens_of_a_fine_tuning() -> None:
    row = step_of(
        "verl", "step:2 - train/loss:0.5 - train/mfu:0.25 - train/global_tokens:3 - train/total_tokens(B):6e-09"
    )
    assert (row["loss"], row["mfu_logged"], row["consumed_tokens"]) == (0.5, 0.25, 6)


def test_gpus_of_a_dump_are_the_trainers_and_its_first_path_is_the_model(tmp_path: Path) -> None:
    """A rollout without a pool of its own has no nodes; `trainer` stands behind it."""
    dump = (
        "(TaskRunner pid=77) {'actor_rollout_ref': {'actor': {'strategy': 'fsdp'},\n"
        "(TaskRunner pid=77)                        'model': {'path': 'example/Tiny-1.5B',\n"
        "(TaskRunner pid=77)                        'rollout': {'n_gpus_per_node': 8, 'name': 'vllm',\n"
        "(TaskRunner pid=77)                                    'nnodes': 0}},\n"
        "(TaskRunner pid=77)  'reward_model': {'path': '/models/Judge-8B', 'n_gpus_per_node': 8,\n"
        "(TaskRunner pid=77)                   'nnodes': 0},\n"
        "(TaskRunner pid=77)  'trainer': {'n_gpus_per_node': 4,\n"
        "(TaskRunner pid=77)              'nnodes': 2,\n"
    )
    run = run_of(tmp_path, dump + RL + "\n")
    assert (run["num_gpus"], run["model"]) == (8, "Tiny-1.5B")


def test_parameters_are_those_of_the_actor() -> None:
    sizes = "Qwen2ForTokenClassification contains 1.54B parameters\nQwen2ForCausalLM contains 3.09B parameters"
    assert settings_of("verl", sizes) == {"params": "3090000000"}


BARS = "".join(
    f"(TaskRunner pid=7) \rTraining Progress:   0%|          | {step}/500 [{step:02d}:06<9:11:02, 66.1s/it]\n"
    for step in range(6)
)
HEAD = "(TaskRunner pid=7) {'actor_rollout_ref': {'actor': {'checkpoint': {'load_contents': ['model',\n"


def test_bars_are_the_steps_of_a_log_without_step_lines() -> None:
    (run,) = ingest_in_memory.tables_of({"train.log": HEAD + BARS})["runs"].to_dicts()
    assert (run["framework"], run["last_step"], run["steps_logged"], run["steps_planned"]) == ("verl", 5, 5, 500)
    assert run["step_time_s"] == 60


def test_bars_beside_step_lines_are_no_steps() -> None:
    lines = "".join(
        f"(TaskRunner pid=7) step:{step} - actor/pg_loss:0.5 - timing_s/step:61.0\n" for step in range(1, 4)
    )
    tables = ingest_in_memory.tables_of({"train.log": HEAD + BARS + lines})
    assert tables["steps"]["step"].to_list() == [1, 2, 3]
    assert tables["steps"]["step_time_s"].to_list() == [61, 61, 61]
