"""OpenRLHF's bars, its lines of global steps, and its options."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweepscope.pipeline.logs.engine.extract import extract
from sweepscope.pipeline.logs.registry import DIALECTS
from sweepscope.pipeline.text.lines import split
from tests.pipeline.logs.logs import run_of, settings_of, tables_of

LAUNCH = (
    "deepspeed --module openrlhf.cli.train_sft --train_batch_size 32 --micro_train_batch_size 2 --max_len 4096 "
    "--pretrain Qwen/Qwen2-7B --zero_stage 2 --bf16 --gradient_checkpointing\n"
)
ENGINE = (
    "[2024-07-23 10:00:00,000] [INFO] [config.py:997:print]   world_size ................... 8\n"
    "[2024-07-23 10:00:00,000] [INFO] [config.py:997:print]   gradient_accumulation_steps .. 2\n"
)


def drawn(name: str, done: int, total: int, values: str = "", clock: str = "00:10") -> str:
    values = f", {values}" if values else ""
    return f"{name}: {100 * done // total:3d}%|##        | {done}/{total} [{clock}<00:20,  1.00s/it{values}]\n"


def batches(epoch: int, losses: dict[int, float], total: int = 4) -> str:
    name = f"Train step of epoch {epoch}"
    return "".join(drawn(name, n, total, f"gpt_loss={loss}, loss_mean=0.1") for n, loss in losses.items())


def steps_of(directory: Path, text: str) -> list[tuple[int, float]]:
    return list(tables_of(directory, text)["steps"].sort("line_no").select("step", "loss").iter_rows())


def test_batches_are_gathered_to_steps(tmp_path: Path) -> None:
    text = ENGINE + batches(0, {1: 2.5, 2: 2.0, 3: 1.75, 4: 1.5}) + batches(1, {1: 1.25, 2: 1.0})
    assert steps_of(tmp_path, text) == [(1, 2.0), (2, 1.5), (3, 1.0)]


def test_options_tell_the_batches_of_a_step_where_deepspeed_does_not(tmp_path: Path) -> None:
    text = LAUNCH + ENGINE.split("\n", 1)[0] + "\n" + batches(0, {2: 2.0, 4: 1.5})
    assert steps_of(tmp_path, text) == [(1, 2.0), (2, 1.5)]


def test_where_nothing_tells_them_a_batch_is_a_step_without_a_time(tmp_path: Path) -> None:
    steps = tables_of(tmp_path, batches(0, {1: 2.5, 2: 2.0}))["steps"]
    assert (steps["step"].to_list(), steps["step_time_s"].null_count()) == ([1, 2], 2)


def test_the_first_drawing_of_a_count_is_its_own(tmp_path: Path) -> None:
    bar = drawn("Train step of epoch 0", 0, 4, "loss=3.0, acc=0.5") + drawn("Train step of epoch 0", 1, 4, "loss=3.0")
    bar += drawn("Train step of epoch 0", 1, 4, "loss=2.0") + drawn("Train step of epoch 0", 2, 4, "loss=2.0, lr=1e-6")
    assert steps_of(tmp_path, bar) == [(1, 3.0), (2, 2.0)]


def test_time_of_a_step_is_that_of_its_batches(tmp_path: Path) -> None:
    name = "Train step of epoch 0"
    bar = "".join(drawn(name, n, 64, "gpt_loss=1.0", f"{n // 2:02d}:{30 * (n % 2):02d}") for n in range(1, 9))
    steps = tables_of(tmp_path, ENGINE + bar)["steps"].sort("step")
    assert steps["step_time_s"].drop_nulls().to_list() == [60.0] * 4


def test_episodes_are_steps_and_the_epochs_within_are_not(tmp_path: Path) -> None:
    actor = "(ActorModelRayActor pid=675352) "
    text = "".join(
        actor + drawn("Train epoch [1/1]", 2, 2, "pg=0.5, act_lr=1e-6") + actor + drawn(name, done, 3, values)
        for name, done, values in (
            ("Episode [1/2]", 2, "policy_loss=0.25, actor_lr=1e-6"),
            ("Episode [1/2]", 3, "policy_loss=0.125, actor_lr=1e-6"),
            ("Episode [2/2]", 1, "policy_loss=-0.5, actor_lr=1e-6"),
        )
    )
    assert steps_of(tmp_path, text) == [(2, 0.25), (3, 0.125), (4, -0.5)]


def test_lines_of_global_steps_need_no_bar(tmp_path: Path) -> None:
    line = (
        "(PPOTrainer pid=1) INFO 06-10 10:00:11 ppo_trainer.py:271] \u2728 Global step {}: {{'policy_loss': {}, "
        "'actor_lr': 1e-06, 'reward': 0.4, 'timing/step_total': {}}}\n"
    )
    text = line.format(1, 0.5, 70.5) + drawn("Episode [1/2]", 1, 3, "policy_loss=9.0") + line.format(2, -0.25, 71.5)
    steps = tables_of(tmp_path, text)["steps"].sort("step")
    assert list(steps.select("step", "loss", "step_time_s", "learning_rate").iter_rows()) == [
        (1, 0.5, 70.5, 1e-6),
        (2, -0.25, 71.5, 1e-6),
    ]


def test_a_cut_line_is_a_reject(tmp_path: Path) -> None:
    tables = tables_of(tmp_path, "(PPOTrainer pid=1) x] \u2728 Global step 7: {'policy_loss': 0.1, 'openrlhf/a': 1\n")
    assert (tables["steps"].height, tables["rejects"].height) == (0, 1)


def test_options(tmp_path: Path) -> None:
    run = run_of(tmp_path, LAUNCH + ENGINE + batches(0, {2: 2.0}))
    assert (run["framework"], run["num_gpus"], run["dp"], run["mbs"], run["gas"]) == ("openrlhf", 8, 8, 2, 2)
    assert (run["gbs"], run["seq_len"], run["zero_stage"]) == (32, 4096, 2)
    assert (run["precision"], run["recompute"], run["model"]) == ("bf16", "full", "Qwen2-7B")


def test_options_as_the_launcher_lists_them() -> None:
    said = settings_of("openrlhf", "['python', '-m', 'openrlhf.cli.train_ppo', '--zero_stage', '2', '--bf16']")
    assert (said["zero_stage"], said["arg:bf16"]) == ("2", "true")


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("Train epoch: 100%|##########| 1/1 [01:04<00:00, 64.1s/it]\n", "completed"),
        ("Train epoch:  50%|#####     | 1/2 [01:04<01:04, 64.1s/it]\n", "truncated"),
        ("Episode [2/2]: 100%|##########| 3/3 [03:51<00:00, 19.27s/it]\n", "completed"),
        ("Episode [1/2]: 100%|##########| 3/3 [03:51<00:00, 19.27s/it]\n", "truncated"),
    ],
)
def test_the_last_bar_tells_the_end(tmp_path: Path, end: str, status: str) -> None:
    assert run_of(tmp_path, batches(0, {1: 2.5}) + end)["status"] == status


def test_options_in_sections(tmp_path: Path) -> None:
    launch = (
        "deepspeed --num_gpus 8 --module openrlhf.cli.train_sft \\\n  --train.batch_size 32 \\\n"
        "  --train.micro_batch_size 2 \\\n  --data.max_len 8192 \\\n  --model.model_name_or_path Qwen/Qwen2.5-7B \\\n"
        "  --ds.zero_stage 2 \\\n  --ds.param_dtype bf16 \\\n  --model.gradient_checkpointing_enable\n"
    )
    world = "[2024-07-23 10:00:00,000] [INFO] [launch.py:256:main] dist_world_size=8\n"
    bars = batches(0, {1: 2.5, 2: 2.0})
    run = run_of(tmp_path, launch + world + bars)
    assert (run["gbs"], run["mbs"], run["dp"], run["gas"], run["seq_len"]) == (32, 2, 8, 2, 8192)
    assert (run["zero_stage"], run["precision"], run["recompute"], run["model"]) == (2, "bf16", "full", "Qwen2.5 7B")
    assert run["last_step"] == 1


def test_lengths_of_prompts_and_answers(tmp_path: Path) -> None:
    launch = "python3 -m openrlhf.cli.train_ppo_ray --prompt_max_len 1024 --generate_max_len 3072 --actor_num_nodes 2\n"
    run = run_of(tmp_path, launch + "--actor_num_gpus_per_node 8\n" + batches(0, {1: 2.5}))
    assert (run["seq_len"], run["num_gpus"]) == (4096, 16)


def test_what_else_a_bar_shows(tmp_path: Path) -> None:
    values = "gpt_loss=0.75, lr=tensor(5.5e-07), grad_norm=38.5"
    step = tables_of(tmp_path, drawn("Train step of epoch 0", 1, 4, values))["steps"].row(0, named=True)
    assert (step["loss"], step["learning_rate"], step["grad_norm"]) == (0.75, 5.5e-07, 38.5)


@pytest.mark.parametrize("line", ["Episode [{}/30]: reward=3.5\n", "Train epoch [{}/30]\n"])
def test_epochs_and_episodes_of_others_are_no_run(tmp_path: Path, line: str) -> None:
    text = "".join(line.format(n) for n in range(30))
    assert tables_of(tmp_path, text, name="progress.txt")["runs"].is_empty()


def test_ranks_that_the_degrees_do_not_divide_tell_no_replicas(tmp_path: Path) -> None:
    launch = "deepspeed --num_gpus 8 --module openrlhf.cli.train_sft --ds_tensor_parallel_size 3 --ring_attn_size 1\n"
    world = "[2024-07-23 10:00:00,000] [INFO] [launch.py:256:main] dist_world_size=8\n"
    run = run_of(tmp_path, launch + world + batches(0, {1: 2.5}))
    assert (run["num_gpus"], run["tp"], run.get("dp")) == (8, 3, None)


def test_a_script_under_deepspeed_that_counts_global_steps_is_none_of_openrlhf() -> None:
    text = (
        "[2024-05-01 10:00:06,000] [INFO] [config.py:996:print] DeepSpeedEngine configuration:\n"
        "at Global step 10 loss 1.0\n"
        "[2024-05-01 11:00:00,000] [ERROR] [launch.py:322:sigkill_handler] ['python'] exits with return code = 1\n"
    )
    assert extract(split(0, text.encode()), DIALECTS).dialect_of == {0: "deepspeed"}
