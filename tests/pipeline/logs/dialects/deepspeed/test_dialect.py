"""DeepSpeed's own lines: progress, both timer forms, the pipeline engine, its configuration and its launcher."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.logs.logs import facts_of, run_of, settings_of, step_of, tables_of

STAMP = "[2024-03-04 05:06:07,890] [INFO] "
PROGRESS = STAMP + "[logging.py:96:log_dist] [Rank 0] step=20, skipped=3, lr=[1.5e-05, 2e-05], mom=[(0.9, 0.95)]"
TIMER = (
    STAMP + "[timer.py:199:stop] epoch=0/micro_step=40/global_step=20, RunningAvgSamplesPerSec=51.25, "
    "CurrSamplesPerSec=50.5, MemAllocated=2.0GB, MaxMemAllocated=4.5GB"
)
OLD_TIMER = (
    STAMP + "[timer.py:157:stop] 0/40, RunningAvgSamplesPerSec=51.25, CurrSamplesPerSec=50.5, MemAllocated=2.0GB, "
    "MaxMemAllocated=4.5GB"
)
CONFIG = f"""\
    {STAMP}[config.py:995:print] DeepSpeedEngine configuration:
    {STAMP}[config.py:999:print]   bfloat16_enabled ............. True
    {STAMP}[config.py:999:print]   fp16_enabled ................. False
    {STAMP}[config.py:999:print]   gradient_accumulation_steps .. 2
    {STAMP}[config.py:999:print]   train_batch_size ............. 64
    {STAMP}[config.py:999:print]   train_micro_batch_size_per_gpu  4
    {STAMP}[config.py:999:print]   world_size ................... 8
    {STAMP}[config.py:999:print]   zero_optimization_stage ...... 2
"""


def test_progress_line() -> None:
    step = step_of("deepspeed", PROGRESS)
    assert (step["step"], step["learning_rate"]) == (20, 1.5e-05)
    assert str(step["ts"]) == "2024-03-04 05:06:07"


def test_timer_line_tells_the_optimizer_step_and_memory_in_gib() -> None:
    step = step_of("deepspeed", TIMER)
    assert (step["step"], step["mem_allocated_bytes"]) == (20, 2 * 2**30)
    assert facts_of("deepspeed", TIMER).peaks["value"].to_list() == [4.5 * 2**30]


def test_old_timer_counts_micro_batches_and_gives_memory_only() -> None:
    facts = facts_of("deepspeed", OLD_TIMER)
    assert facts.steps.is_empty()
    assert facts.peaks["value"].to_list() == [4.5 * 2**30]


def test_pipeline_engine_line() -> None:
    step = step_of("deepspeed", "steps: 7 loss: 3.2500 iter time (s): 1.250 samples/sec: 51.200")
    assert (step["step"], step["loss"], step["step_time_s"]) == (7, 3.25, 1.25)


@pytest.mark.parametrize(
    "line", [PROGRESS[:-40], TIMER[:-8], "steps: 7 loss: 3.2500 iter time (s): 1.2"], ids=["progress", "timer", "pipe"]
)
def test_cut_lines_are_rejects(line: str) -> None:
    step = step_of("deepspeed", line)
    assert step["step"] is None
    assert step["text"] == line


def test_step_zero_is_the_engine_coming_up() -> None:
    assert facts_of("deepspeed", PROGRESS.replace("step=20", "step=0")).steps.is_empty()


def test_configuration() -> None:
    found = settings_of("deepspeed", CONFIG)
    assert (found["gbs"], found["mbs"], found["gas"], found["zero_stage"], found["dp"]) == ("64", "4", "2", "2", "8")


def test_chat_run_reaches_the_steps_its_epochs_hold(tmp_path: Path) -> None:
    run = run_of(
        tmp_path,
        "cmd = deepspeed main.py --per_device_train_batch_size 4 --max_seq_len 512 --gradient_accumulation_steps 2\n"
        "Beginning of Epoch 1/4, Total Micro Batches 10\n" + CONFIG + PROGRESS + "\n" + TIMER + "\n",
    )
    assert (run["framework"], run["status"]) == ("deepspeed", "completed")
    assert (run["steps_planned"], run["last_step"], run["seq_len"]) == (20, 20, 512)
    assert (run["precision"], run["num_gpus"], run["zero_stage"]) == ("bf16", 8, 2)
    assert run["mem_peak_allocated_bytes"] == round(4.5 * 2**30)


def test_two_engines_report_one_step(tmp_path: Path) -> None:
    second = PROGRESS.replace("1.5e-05", "5e-06")
    steps = tables_of(tmp_path, "\n".join([CONFIG, PROGRESS, TIMER, second]))["steps"]
    assert steps.select("step", "learning_rate").rows() == [(20, 1.5e-05)]


def test_command_of_rlhf() -> None:
    found = settings_of(
        "deepspeed",
        "cmd = deepspeed main.py --actor_model_name_or_path org/model-1b --per_device_training_batch_size 4 "
        "--max_answer_seq_len 256 --max_prompt_seq_len 128 --actor_zero_stage 3",
    )
    assert (found["model"], found["mbs"], found["zero_stage"]) == ("org/model-1b", "4", "3")


def test_ends() -> None:
    text = f"saving the final model ...\n{STAMP}something else\n"
    assert facts_of("deepspeed", text).events["kind"].to_list() == ["training_end"]


def test_precision_of_the_newest_dump() -> None:
    line = "[2025-04-18 01:46:59,171] [INFO] [config.py:1004:print]   {}_config .............. enabled={} x=False\n"
    text = line.format("bfloat16", True) + line.format("float16", False)
    assert settings_of("deepspeed", text) == {"arg:ds_bf16": "True", "arg:ds_fp16": "False"}


def test_length_of_other_scripts() -> None:
    launch = "[2025-01-01 10:00:00,001] [INFO] [runner.py:540:main] cmd = python -u train.py --model_max_length 1024"
    assert settings_of("deepspeed", launch)["seq_len"] == "1024"


def test_a_switch_does_not_hide_the_option_behind_it() -> None:
    launch = "[2025-01-01 10:00:00,001] [INFO] [runner.py:540:main] cmd = python -u main.py --offload --zero_stage 3"
    assert settings_of("deepspeed", launch)["zero_stage"] == "3"


def test_command_that_the_launcher_prints_as_a_list() -> None:
    line = (
        "[2025-01-01 10:00:00,001] [ERROR] [launch.py:320:sigkill_handler] ['python', '-u', 'main.py', '--local_rank=7', "
        "'--per_device_train_batch_size', '4', '--max_seq_len', '512', '--offload', '--zero_stage', '3'] "
        "exits with return code = 1"
    )
    assert settings_of("deepspeed", line) == {"mbs": "4", "seq_len": "512", "zero_stage": "3"}


def test_world_that_mpi_starts() -> None:
    line = (
        "[2023-01-11 13:26:55,976] [INFO] [comm.py:690:mpi_discovery] Discovered MPI settings of world_rank=2, "
        "local_rank=2, world_size=32, master_addr=10.0.0.1, master_port=29500"
    )
    assert settings_of("deepspeed", line) == {"num_gpus": "32"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "place"),
    [
        ("deepspeed --num_gpus 8 train.py", (1, 8)),
        ("deepspeed --num_gpus=4 --num_nodes=2 train.py", (2, 4)),
        ("deepspeed --include localhost:0,1,5 --master_port 29501 train.py", (1, 3)),
        ("deepspeed --num_gpus 8 --hostfile hosts train.py", (None, 8)),
        ("deepspeed --num_gpus 8 \\", (None, 8)),
        ("python train.py --num_gpus 8", (None, None)),
    ],
)
def test_place_of_the_launch(command: str, place: tuple[int | None, int | None]) -> None:
    found = settings_of("deepspeed", f"{command}\n")
    known = tuple(int(found[name]) if name in found else None for name in ("num_nodes", "gpus_per_node"))
    assert known == place


def test_a_log_of_nothing_but_the_engine_is_no_trainers(tmp_path: Path) -> None:
    text = """\
        [2023-04-18 01:41:09,171] [INFO] [launch.py:247:main] dist_world_size=8
        [2023-04-18 01:46:59,171] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[9.5e-06], mom=[(0.9, 0.95)]
    """
    run = run_of(tmp_path, text)
    assert (run["framework"], run["num_gpus"], run["dp"]) == ("deepspeed", 8, 8)
    banner = "  Instantaneous batch size per device = 2\n  Total optimization steps = 16\n"
    assert run_of(tmp_path, banner)["framework"] == "hf-trainer"


@pytest.mark.parametrize("word", ["parallel", "paralel"])
def test_what_the_profile_of_operations_is_headed_with(word: str) -> None:
    head = {"world size": 16, "data parallel size": 8, f"model {word} size": 2, "batch size per GPU": 80}
    text = "\n".join(f"{name + ': ':<70}  {value:<8}" for name, value in head.items())
    assert settings_of("deepspeed", text) == {"num_gpus": "16", "dp": "8", "tp": "2", "mbs": "80"}


def test_the_memory_that_deepspeed_prints_at_its_stages_is_a_peak(tmp_path: Path) -> None:
    stages = "".join(
        f"[2026-02-21 23:35:29,951] [INFO] [utils.py:827:see_memory_usage] MA {now} GB         Max_MA {most} GB"
        "         CA 6.39 GB         Max_CA 6 GB\n"
        for now, most in ((4.89, 5.55), (4.89, 4.89))
    )
    run = run_of(tmp_path, CONFIG + stages + PROGRESS + "\n")
    assert run["mem_peak_allocated_bytes"] == round(5.55 * 2**30)
