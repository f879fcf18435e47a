"""torchtune's step lines, bars and configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.logs.logs import run_of, step_of, tables_of

STEP = (
    "Step {} | loss:{} lr:2e-07 tokens_per_second_per_gpu:512.25 peak_memory_active:4.0 peak_memory_alloc:4.5 "
    "peak_memory_reserved:5.5 grad_norm:1.25 "
)
CONFIG = """\
INFO:torchtune.utils._logging:Running FullFinetuneRecipe{} with resolved config:

batch_size: 2
dataset:
  _component_: torchtune.datasets.alpaca_dataset
dtype: bf16
enable_activation_checkpointing: true
epochs: 2
gradient_accumulation_steps: 4
max_steps_per_epoch: {}
model:
  _component_: torchtune.models.llama3_2.lora_llama3_2_1b
tokenizer:
  _component_: torchtune.models.llama3.llama3_tokenizer
  max_seq_len: 2048
"""
BAR = "{}|{}|Loss: {}: {}%|##    | {}/3 [{}<00:40, 20.5s/it]"


def test_a_logged_step() -> None:
    step = step_of("torchtune", STEP.format(3, 1.4375))
    assert (step["step"], step["loss"], step["learning_rate"], step["grad_norm"]) == (3, 1.4375, 2e-07, 1.25)
    assert (step["tokens_per_s_per_gpu"], step["mem_allocated_bytes"]) == (512.25, 4831838208)
    assert step["mem_reserved_bytes"] == 5905580032


def test_memory_of_the_first_versions_is_in_bytes() -> None:
    step = step_of("torchtune", "Step 0 | loss:1.75 lr:2e-05 gpu_resources:13708965376 ")
    assert (step["step"], step["loss"], step["mem_allocated_bytes"]) == (0, 1.75, 13708965376)


@pytest.mark.parametrize("line", ["Step 3 | loss:1.4", "Step 3 | loss:"])
def test_a_cut_loss_is_no_step(line: str) -> None:
    assert step_of("torchtune", line)["step"] is None


def test_a_run_by_its_bar(tmp_path: Path) -> None:
    bars = [
        BAR.format(1, 1, 1.5, 33, 1, "00:21"),
        BAR.format(1, 2, 1.25, 66, 2, "00:41"),
        BAR.format(1, 3, 1.125, 100, 3, "01:01"),
        BAR.format(2, 4, 1.0, 33, 1, "00:20"),
    ]
    text = CONFIG.format("Distributed", 3) + "\r".join(["  0%|   | 0/3 [00:00<?, ?it/s]", *bars])
    run = run_of(tmp_path, text)
    assert (run["framework"], run["status"], run["model"]) == ("torchtune", "truncated", "Llama 3.2 1B")
    assert (run["mbs"], run["gas"], run["seq_len"], run["zero_stage"]) == (2, 4, 2048, 3)
    assert (run["precision"], run["recompute"], run["steps_planned"]) == ("bf16", "full", 6)
    assert (run["steps_logged"], run["first_step"], run["last_step"], run["last_loss"]) == (4, 1, 4, 1.0)
    times = tables_of(tmp_path)["steps"].sort("step")["step_time_s"].to_list()
    assert times == [None, None, 20.0, None]  # redraws at least 30 s apart; the next epoch's clock begins anew


def test_a_single_device_that_reached_its_end(tmp_path: Path) -> None:
    lines = [STEP.format(1, 1.5), STEP.format(2, 1.25), "INFO:torchtune.utils._logging:Saving final epoch checkpoint."]
    run = run_of(tmp_path, CONFIG.format("SingleDevice", "null") + "\n".join(lines))
    assert (run["status"], run["num_gpus"], run["steps_logged"]) == ("completed", 1, 2)
    assert "zero_stage" not in run
    assert "steps_planned" not in run


def test_a_full_bar_without_the_number_of_epochs_may_be_that_of_one(tmp_path: Path) -> None:
    failed = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    bar = "0: " + BAR.format(1, 3, 1.5, 100, 3, "00:21")
    assert run_of(tmp_path, bar)["status"] == "completed"
    assert run_of(tmp_path, f"{bar}\n{failed}")["status"] == "oom"


def test_a_bar_of_the_first_versions_is_drawn_before_it_moves(tmp_path: Path) -> None:
    """And its last drawing may be open: what it says of the step is whole."""
    run = run_of(tmp_path, "1|1|Loss: 1.5:   0%|     | 0/13000 [00:03<?, ?it/s]\r1|2|Loss: 1.25:   0%|     | 1/13000")
    assert (run["steps_logged"], run["last_step"], run["last_loss"]) == (2, 2, 1.25)
