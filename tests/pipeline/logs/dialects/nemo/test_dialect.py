"""NeMo's printed lines and tqdm bars, process groups and endings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.logs.logs import run_of, settings_of, step_of, tables_of

LINE = (
    "pre.train/0 [default0]:Training epoch 0, iteration 7/19 | lr: 1.5e-06 | global_batch_size: 512 | global_step: 7 | "
    "reduced_train_loss: 10.25 | train_step_timing in s: 7.5 | TFLOPS_per_GPU: 4.125e+02 | "
    "tokens_per_sec_per_gpu: 6.859e+03 | consumed_samples: 4096"
)
BAR = "Epoch 0:   4%|#         | 2/50 [00:02<01:53,  0.43it/s, v_num=0, train/loss={}, train_step_timing in s={}]"


def test_printed_line() -> None:
    step = step_of("nemo", LINE)
    assert (step["step"], step["loss"], step["step_time_s"], step["rank"]) == (7, 10.25, 7.5, 0)
    assert (step["tflops_per_gpu_logged"], step["tokens_per_s_per_gpu"]) == (412.5, 6859.0)


def test_another_order_of_the_fields() -> None:
    line = "Training epoch 0, iteration 7/19 | lr: 1e-06 | consumed_samples: 9 | reduced_train_loss: 9.5 | train_step_timing in s: 2.5"
    step = step_of("nemo", line)
    assert (step["step"], step["loss"], step["step_time_s"]) == (7, 9.5, 2.5)


@pytest.mark.parametrize("end", ["reduced_train_lo", "reduced_train_loss", "reduced_train_loss:"])
def test_a_line_cut_before_its_loss_is_no_step(end: str) -> None:
    assert step_of("nemo", LINE[: LINE.index("reduced_train_loss")] + end)["step"] is None


def test_a_bar_that_moved_before_its_values_came(tmp_path: Path) -> None:
    stale, fresh = BAR.format("9.500", "3.500"), BAR.format("9.250", "1.500")
    text = "[NeMo I 2025-01-02 03:04:05 x:1] begin\n" + stale + "\r" + fresh + "\r" + fresh + "\n"
    steps = tables_of(tmp_path, text)["steps"]
    assert steps.select("step", "loss", "step_time_s").rows() == [(1, 9.25, 1.5)]


def test_bars_of_a_second_epoch_count_on() -> None:
    assert step_of("nemo", BAR.format(9.5, 1.5).replace("Epoch 0", "Epoch 1"))["step"] == 51


def test_a_bar_with_its_global_step() -> None:
    line = "Epoch 0: :   1%|          | 10/1000 [01:02<9:00, v_num=1, reduced_train_loss=9.110, global_step=9.000, consumed_samples=80.00, train_step_timing in s=5.200]"
    step = step_of("nemo", line)
    assert (step["step"], step["loss"], step["step_time_s"]) == (9, 9.11, 5.2)


@pytest.mark.parametrize(
    ("done", "total", "shown", "step"),
    [
        (1995, 4000, "1994.0", 1994),
        (1996, 4000, "2e+3", 1995),
        (123457, 200000, "1.23e+5", 123456),
        (17, 40, "2e+3", 2000),  # of a run that was resumed: nothing tells more than the rounded number
    ],
)
def test_a_rounded_global_step_is_counted(done: int, total: int, shown: str, step: int) -> None:
    line = f"Epoch 0: :  49%|####      | {done}/{total} [01:02<9:00, reduced_train_loss=9.110, global_step={shown}, train_step_timing in s=5.200]"
    assert step_of("nemo", line)["step"] == step


@pytest.mark.parametrize(
    ("epoch", "fields", "step"),
    [
        (0, "reduced_train_loss=0.674", 6),
        (1, "reduced_train_loss=0.674, global_step=31.00", 31),
        (1, "reduced_train_loss=0.674", None),
    ],
)
def test_a_bar_without_a_total(epoch: int, fields: str, step: int | None) -> None:
    line = f"[2026-01-02 03:04:05,678] [INFO] Epoch {epoch}: : 7it [00:04,  4.36s/it, v_num=1, {fields}]"
    assert step_of("nemo", line)["step"] == step


def test_an_open_bar_is_no_step() -> None:
    assert step_of("nemo", BAR.format(9.5, 1.5)[:-3])["step"] is None


def test_process_groups() -> None:
    text = (
        "All distributed processes registered. Starting with 16 processes\n"
        "[NeMo I 2025-01-02 03:04:05 megatron_init:1] Rank 0 has data parallel group : [0, 4, 8, 12]\n"
        "[NeMo I 2025-01-02 03:04:05 megatron_init:1] All tensor model parallel group ranks: [[0, 1], [2, 3]]\n"
        "[NeMo I 2025-01-02 03:04:05 megatron_init:1] All pipeline model parallel group ranks: [[0, 8], [1, 9]]\n"
        "[NeMo I 2025-01-02 03:04:05 megatron_init:1] All context parallel group ranks: [[0], [1]]\n"
    )
    assert settings_of("nemo", text) == {"num_gpus": "16", "dp": "4", "tp": "2", "pp": "2", "cp": "1"}


def test_process_groups_of_rank_0_alone() -> None:
    text = (
        "[NeMo I 2023-01-02 03:04:05 megatron_init:1] Rank 0 has tensor model parallel group: [0, 1, 2, 3]\n"
        "[NeMo I 2023-01-02 03:04:05 megatron_init:1] Rank 0 has model parallel group: [0, 1, 2, 3, 8, 9, 10, 11]\n"
        "[NeMo I 2023-01-02 03:04:05 megatron_init:1] Rank 0 has pipeline model parallel group: [0, 8]\n"
        "[NeMo I 2023-01-02 03:04:05 megatron_init:1] Rank 0 has context parallel group: [0]\n"
    )
    assert settings_of("nemo", text) == {"tp": "4", "pp": "2", "cp": "1"}


def test_a_training_that_reached_its_limit(tmp_path: Path) -> None:
    run = run_of(tmp_path, LINE + "\n`Trainer.fit` stopped: `max_steps=20` reached.\n")
    assert (run["status"], run["framework"], run["steps_planned"]) == ("completed", "nemo", 19)


def test_bars_before_the_step_timer_came(tmp_path: Path) -> None:
    bar = "Epoch 0: {n}%|#         | {n}/100 [00:52<07:51,  4.90s/it, loss=9.89, v_num=0, reduced_train_loss=9.790, global_step={g}.00]\n"
    run = run_of(tmp_path, bar.format(n=10, g=9) + bar.format(n=20, g=19))
    assert (run["framework"], run["last_step"], run["last_loss"]) == ("nemo", 19, 9.79)


def test_memory_of_the_printed_line(tmp_path: Path) -> None:
    line = "Training epoch 0, iteration 3/9 | {} | reduced_train_loss: 10.25 | train_step_timing in s: 7.5"
    both = step_of("nemo", line.format("max_memory_reserved: 57466159104 | max_memory_allocated: 53930270720"))
    assert (both["mem_reserved_bytes"], both["mem_allocated_bytes"]) == (57466159104, 53930270720)
    peak = step_of("nemo", line.format("peak_memory_usage: 7.083e+10 | memory_allocated: 44271689728"))
    assert (peak["mem_reserved_bytes"], peak["mem_allocated_bytes"]) == (None, 70830000000)


PRINTED = (
    "Training epoch {}, iteration {}/{} | lr: 1.5e-06 | global_batch_size: 512 | global_step: {} | "
    "reduced_train_loss: 10.25 | train_step_timing in s: 7.5"
)


@pytest.mark.parametrize("first", [0, 1])  # what global_step counts from; iterations count from 0
def test_the_last_of_the_printed_iterations_is_the_end(first: int, tmp_path: Path) -> None:
    run = run_of(tmp_path, "\n".join(PRINTED.format(0, n, 19, n + first) for n in (9, 19)) + "\n")
    assert (run["status"], run["steps_planned"], run["gbs"]) == ("completed", 19 + first, 512)


def test_an_iteration_short_of_the_last_is_no_end(tmp_path: Path) -> None:
    run = run_of(tmp_path, "\n".join(PRINTED.format(0, n, 19, n) for n in (9, 18)) + "\n")
    assert (run["status"], run["steps_planned"]) == ("truncated", 19)


def test_the_total_of_an_epoch_is_not_that_of_the_run(tmp_path: Path) -> None:
    text = "\n".join(PRINTED.format(epoch, n, 19, epoch * 20 + n) for epoch in (0, 1) for n in (9, 19))
    run = run_of(tmp_path, text + "\n")
    assert (run["status"], run["last_step"], run.get("steps_planned")) == ("truncated", 39, None)


def test_the_total_of_the_run_holds_over_epochs(tmp_path: Path) -> None:
    text = "\n".join(PRINTED.format(n // 10, n % 10, 29, n) for n in (9, 19, 29))
    run = run_of(tmp_path, text + "\n")
    assert (run["status"], run["steps_planned"]) == ("completed", 29)


FAILED = "[rank2]: Traceback (most recent call last):\n[rank2]: ValueError: the validation set is empty\n"


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        ("", FAILED, "crash"),  # measured in epochs, as far as the log tells
        ("max_steps: 20\n", FAILED, "completed"),
        ("Copying Trainer's 'max_steps' (20) to LR scheduler's 'max_steps'.\n", FAILED, "completed"),
        ("max_steps: 60\n", FAILED, "crash"),
        ("", "", "completed"),
        ("", "`Trainer.fit` stopped: `max_epochs=1` reached.\n" + FAILED, "completed"),
    ],
)
def test_a_death_at_the_end_of_the_first_epoch(tmp_path: Path, before: str, after: str, status: str) -> None:
    printed = "\n".join(PRINTED.format(0, n, 19, n) for n in (9, 19))
    assert run_of(tmp_path, before + printed + "\n" + after)["status"] == status


def test_a_total_that_holds_over_epochs_is_the_runs(tmp_path: Path) -> None:
    printed = "\n".join(PRINTED.format(n // 10, n % 10, 29, n) for n in (9, 19, 29))
    assert run_of(tmp_path, printed + "\n" + FAILED)["status"] == "completed"


AUTOMODEL = (
    "2026-08-10 15:55:{:02d} | INFO | root | step {} | epoch 0 | loss 0.6875 | grad_norm 1.5 | lr 1.00e-05 | "
    "mem 24.50 GiB | tps 11278.50(1409.75/gpu) | num_label_tokens 21541"
)


def test_line_of_automodel(tmp_path: Path) -> None:
    step = step_of("nemo", AUTOMODEL.format(20, 9))
    assert (step["step"], step["loss"], step["grad_norm"], step["learning_rate"]) == (9, 0.6875, 1.5, 1e-05)
    assert (step["tokens_per_s"], step["tokens_per_s_per_gpu"]) == (11278.5, 1409.75)
    assert (step["mem_allocated_bytes"], str(step["ts"])) == (26306674688, "2026-08-10 15:55:20")
    assert step_of("nemo", AUTOMODEL.format(20, 9)[:110])["step"] is None
    run = run_of(tmp_path, "\n".join(AUTOMODEL.format(n, n) for n in (9, 10)) + "\n")
    assert (run["framework"], run["steps_logged"]) == ("nemo", 2)


def test_configuration_of_nemo_1(tmp_path: Path) -> None:
    text = """\
        [NeMo I 2024-05-01 10:00:00 megatron_gpt_pretraining:35]
            trainer:
              devices: 8
              num_nodes: 2
            model:
              micro_batch_size: 4
              global_batch_size: 256
              tensor_model_parallel_size: 2
              pipeline_model_parallel_size: 1
              context_parallel_size: 1
              encoder_seq_length: 4096
    """
    run = run_of(tmp_path, text)
    assert [run[name] for name in ("num_gpus", "dp", "tp", "mbs", "gas", "seq_len")] == [16, 8, 2, 4, 8, 4096]


def test_processes_that_did_not_all_register() -> None:
    assert settings_of("nemo", "Initializing distributed: GLOBAL_RANK: 3, MEMBER: 4/16")["num_gpus"] == "16"


def test_micro_batches_and_options_of_a_notebook() -> None:
    text = """\
    !train_evo2 \\
        --devices 2 \\
        --seq-length 8192 \\
        --micro-batch-size 1 \\
        [NeMo I 2025-06-18 21:56:38 num_microbatches_calculator:228] setting number of microbatches to constant 4
    """
    assert settings_of("nemo", text) == {"gpus_per_node": "2", "seq_len": "8192", "mbs": "1", "gas": "4"}


@pytest.mark.parametrize(
    ("value", "word"), [("bf16", "bf16"), ("bf16-mixed", "bf16"), ("16", "fp16"), ("'16-true'", "fp16"), ("32", "fp32")]
)
def test_precision_of_the_configuration(tmp_path: Path, value: str, word: str) -> None:
    line = "Training epoch 0, iteration 1/9 | lr: 1e-05 | reduced_train_loss: 2.5 | train_step_timing in s: 1.5"
    assert run_of(tmp_path, f"    precision: {value}\n{line}\n")["precision"] == word
