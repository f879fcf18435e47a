"""litgpt's micro batch lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.ingest_in_memory import tables_of as in_memory
from tests.pipeline.logs.logs import run_of, settings_of, step_of, tables_of

LINE = "Epoch 1 | iter {} step {} | loss train: {}, val: n/a | iter time: 820.25 ms{}"


def test_a_micro_batch_before_the_update_belongs_to_the_next_step() -> None:
    assert step_of("litgpt", LINE.format(5, 1, 2.5, ""))["step"] == 2
    assert step_of("litgpt", LINE.format(8, 2, 2.5, " (step)"))["step"] == 2


def test_the_update_has_the_loss(tmp_path: Path) -> None:
    text = "\n".join(LINE.format(n, n // 2, 3 - n / 4, " (step)" if n % 2 == 0 else "") for n in range(1, 5))
    steps = tables_of(tmp_path, text + "\n")["steps"].sort("step")
    assert steps.select("step", "loss", "step_time_s").rows() == [(1, 2.5, None), (2, 2.0, None)]


def test_the_csv_logger_beside_it_counts_micro_batches() -> None:
    log = "".join(LINE.format(2 * n, n, f"{5 - n / 8:.3f}", " (step)") + "\n" for n in range(1, 9))
    rows = "".join(f"0,{2 * n},{5 - n / 8},{2 * n - 1}\n" for n in range(1, 9))
    files = {"run/train.log": log, "run/out/logs/csv/version_0/metrics.csv": f"epoch,iter,loss,step\n{rows}"}
    tables = in_memory(files)
    assert tables["runs"].height == 1
    assert tables["steps"].sort("step")["step"].to_list() == list(range(1, 9))


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


def test_micro_batches_of_2023_count_from_0() -> None:
    step = step_of("litgpt", "iter 30 step 31: loss 3.5, LR: 0.000090, iter time: 2431.75ms (optimizer.step)")
    assert (step["step"], step["step_time_s"]) == (31, 2.43175)
    assert step_of("litgpt", "iter 3 step 2: loss 3.5, iter time: 92.75ms (optimizer.step)")["step_time_s"] is None


def test_totals_behind_both_numbers() -> None:
    line = "iter 4/100 step 1/25: loss 10.75, iter time: 3010.25ms{} remaining time: 85.11 hours.  or 3.38 days. "
    step = step_of("litgpt", line.format(" (optimizer.step)"))
    assert (step["step"], step["steps_planned"], step["loss"]) == (1, 25, 10.75)
    assert step_of("litgpt", line.format(""))["step"] == 2


def test_lit_llama_prints_micro_batches_only(tmp_path: Path) -> None:
    text = "iter 0: loss 10.5, time: 3021.25ms, speed: - toks/s/device\niter 1: loss 9.5, time: 1021.25ms, speed: 3320"
    run = run_of(tmp_path, text + " toks/s/device\n")
    assert (run["framework"], run["steps_logged"], run["last_step"], run["last_loss"]) == ("litgpt", 2, 1, 9.5)
    assert "step_time_s" not in run
    assert tables_of(tmp_path)["steps"].sort("step")["tokens_per_s_per_gpu"].to_list() == [None, 3320.0]


@pytest.mark.parametrize(
    "line", ["Memory used: 9.25 GB", "| - Memory Used   : 9.25 GB", "| - Memory Used               :  9.25 GB    "]
)
def test_peak_memory(tmp_path: Path, line: str) -> None:
    run = run_of(tmp_path, LINE.format(2, 1, 2.5, " (step)") + f"\n{line}\n")
    assert run["mem_peak_allocated_bytes"] == 9_250_000_000


@pytest.mark.parametrize(
    ("line", "word"),
    [
        (" 'precision': 'bf16-true',", "bf16"),
        ("precision='16-mixed'", "fp16"),
        ("{'precision': '32-true'}", "fp32"),
        ("Using bfloat16 Automatic Mixed Precision (AMP)", "bf16"),
        ("Using 16-bit Automatic Mixed Precision (AMP)", "fp16"),
    ],
)
def test_precision(tmp_path: Path, line: str, word: str) -> None:
    assert run_of(tmp_path, f"{line}\n" + LINE.format(2, 1, 2.5, " (step)"))["precision"] == word


def test_the_scripts_of_2023_end_after_so_many_micro_batches(tmp_path: Path) -> None:
    line = "iter {} step {}: loss 2.5, iter time: 82.25ms (optimizer.step)\n"
    text = "{'gradient_accumulation_steps': 2, 'max_iters': 8}\n" + line.format(5, 3)
    assert run_of(tmp_path, text)["steps_planned"] == 4
    assert run_of(tmp_path, text + line.format(7, 4))["status"] == "completed"


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
    assert (run["vocab_size"], run["ffn_hidden_size"], run["params"]) == (50254, 2048, 70426624)
    assert (run["mbs"], run["gas"]) == (4, 2)


def test_a_padded_vocabulary_counts_only_alone() -> None:
    padded = "Loading model with {'name': 'x', 'padded_vocab_size': 50304, 'n_layer': 6}"
    assert settings_of("litgpt", padded)["arg:padded_vocab_size"] == "50304"
    assert "vocab_size" not in settings_of("litgpt", padded)


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


def test_a_script_of_2023_that_stopped_before_its_first_step(tmp_path: Path) -> None:
    hyperparameters = "{'batch_size': 8, 'micro_batch_size': 4, 'gradient_accumulation_steps': 2, 'max_iters': 50000}\n"
    model = "Loading model with {'name': 'pythia-70m', 'block_size': 2048, 'n_layer': 6}\n"
    end = "Time to instantiate model: 0.13 seconds.\nEstimated TFLOPs: 4.49\nMeasured TFLOPs: 2.81\n"
    launch = "! python pretrain/redpajama.py \\\n  --devices 1 \\\n"
    run = run_of(tmp_path, launch + hyperparameters + model + end)
    assert (run["framework"], run.get("tflops_per_gpu_logged")) == ("litgpt", None)
    assert run["status"] != "completed"
    assert (run["num_gpus"], run["mbs"], run["gas"], run["seq_len"], run["steps_planned"]) == (1, 4, 2, 2048, 25000)
