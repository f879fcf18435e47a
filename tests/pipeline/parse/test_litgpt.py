"""litgpt's micro batch lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.parse.logs import run_of, step_of, tables_of

LINE = "Epoch 1 | iter {} step {} | loss train: {}, val: n/a | iter time: 820.25 ms{}"


def test_a_micro_batch_before_the_update_belongs_to_the_next_step() -> None:
    assert step_of("litgpt", LINE.format(5, 1, 2.5, ""))["step"] == 2
    assert step_of("litgpt", LINE.format(8, 2, 2.5, " (step)"))["step"] == 2


def test_the_update_has_the_loss(tmp_path: Path) -> None:
    text = "\n".join(LINE.format(n, n // 2, 3 - n / 4, " (step)" if n % 2 == 0 else "") for n in range(1, 5))
    steps = tables_of(tmp_path, text + "\n")["steps"].sort("step")
    assert steps.select("step", "loss", "step_time_s").rows() == [(1, 2.5, None), (2, 2.0, None)]


def test_a_step_of_one_micro_batch_has_a_time() -> None:
    assert step_of("litgpt", LINE.format(3, 3, 2.5, " (step) remaining time: 1 day"))["step_time_s"] == 0.82025


def test_line_of_2023() -> None:
    step = step_of("litgpt", "iter 4 step 2: loss 2.5000, iter time: 82.25ms (optimizer.step)")
    assert (step["step"], step["loss"]) == (2, 2.5)


@pytest.mark.parametrize("at", [30, 50, 60, 66])
def test_a_cut_line_is_no_step(at: int) -> None:
    assert step_of("litgpt", LINE.format(5, 1, 2.5, "")[:at])["step"] is None


def test_end(tmp_path: Path) -> None:
    run = run_of(tmp_path, LINE.format(2, 1, 2.5, " (step)") + "\nTraining time: 12.5s\n")
    assert (run["status"], run["framework"]) == ("completed", "litgpt")


def test_line_of_early_2024() -> None:
    step = step_of("litgpt", "iter 1760 | step 220: loss 1.5625, iter time: 263.85 ms (optimizer.step)")
    assert (step["step"], step["loss"]) == (220, 1.5625)


def test_shape_and_parameters_of_2023(tmp_path: Path) -> None:
    text = """\
        {'model_name': 'pythia-70m', 'batch_size': 8, 'micro_batch_size': 4, 'gradient_accumulation_steps': 2}
        Loading model with {'name': 'pythia-70m', 'block_size': 2048, 'vocab_size': 50254, 'padded_vocab_size': 50304, \
'n_layer': 6, 'n_head': 8, 'n_embd': 512, 'n_query_groups': 8, 'intermediate_size': 2048, 'head_size': 64}
        Total parameters 70,426,624
        iter 1 step 1: loss 10.8750, LR: 0.000000, iter time: 91.75ms (optimizer.step)
    """
    run = run_of(tmp_path, text)
    assert (run["num_layers"], run["hidden_size"], run["num_heads"], run["num_kv_heads"]) == (6, 512, 8, 8)
    assert (run["vocab_size"], run["ffn_hidden_size"], run["params"]) == (50304, 2048, 70426624)
    assert (run["mbs"], run["gas"]) == (4, 2)


def test_settings_of_a_dict_with_a_name_a_line(tmp_path: Path) -> None:
    text = """\
        {'data': TinyLlama(num_workers=8),
         'devices': 4,
         'model_config': {'n_embd': 2048,
                          'n_head': 32},
         'num_nodes': 2,
         'train': TrainArgs(log_interval=1,
                            global_batch_size=512,
                            micro_batch_size=4,
                            max_seq_length=2048)}
        Epoch 1 | iter 16 step 1 | loss train: 10.5, val: n/a | iter time: 310.25 ms (step)
    """
    run = run_of(tmp_path, text)
    assert [run[name] for name in ("num_gpus", "dp", "mbs", "gas", "seq_len", "num_heads")] == [8, 8, 4, 16, 2048, 32]


def test_the_processes_that_fabric_starts(tmp_path: Path) -> None:
    line = "All distributed processes registered. Starting with 2 processes"
    run = run_of(tmp_path, line + "\n" + LINE.format(2, 1, 2.5, " (step)") + "\n")
    assert (run["framework"], run["num_gpus"], run["dp"]) == ("litgpt", 2, 2)
