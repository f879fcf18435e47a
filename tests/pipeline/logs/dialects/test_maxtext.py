"""MaxText's step line and configuration dump."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.pipeline.logs.logs import run_of, settings_of, step_of

NEW = (
    "I0811 21:54:55.531340 1383 metric_logger.py:226] completed step: 7, seconds: 5.610, TFLOP/s/device: 130.250, "
    "Tokens/s/device: 8600.125, total_weights: 196608, loss: 9.871"
)
OLD = "completed step: 0, seconds: 40.500, TFLOP/s: 12.500, loss: 0.000"


def test_new_line() -> None:
    row = step_of("maxtext", NEW)
    names = ("step", "loss", "step_time_s", "tflops_per_gpu_logged", "tokens_per_s_per_gpu")
    assert tuple(row[name] for name in names) == (7, 9.871, 5.61, 130.25, 8600.125)


def test_old_line_has_no_tokens() -> None:
    row = step_of("maxtext", OLD)
    assert (row["step"], row["loss"], row["tflops_per_gpu_logged"], row["tokens_per_s_per_gpu"]) == (0, 0.0, 12.5, None)


def test_a_loss_that_is_not_a_number_is_a_value() -> None:
    assert step_of("maxtext", OLD.replace("0.000", "nan"))["step"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("end", ["step: 7,", "seconds: 5.61", "total_weights: 19", "loss:", "loss: 9.8"])
def test_a_cut_line_is_unparsed(end: str) -> None:
    text = NEW[: NEW.index(end) + len(end)]
    row = step_of("maxtext", text)
    assert row["step"] is None
    assert text.endswith(row["text"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("losses", "loss"),
    [
        ("loss: 9.871, main_model_loss: 8.974, mtp_loss: 0.897", 9.871),
        ("loss: 9.871, lm_loss: 8.974, perplexity: 7895.125, moe_lb_loss: 0.010", 9.871),
        ("main_model_loss: 8.974, mtp_loss: 0.897", 8.974),
        ("mtp_loss: 0.897, main_model_loss: 8.974", 8.974),
        ("loss: inf, main_model_loss: 8.974", math.inf),
    ],
)
def test_losses_of_multi_token_prediction(losses: str, loss: float) -> None:
    row = step_of("maxtext", NEW.replace("loss: 9.871", losses))
    assert (row["step"], row["loss"]) == (7, loss)


def test_a_line_cut_in_the_only_loss_is_unparsed() -> None:
    assert step_of("maxtext", NEW.replace("loss: 9.871", "main_model_loss: 8.9"))["step"] is None


def test_a_step_whose_time_the_profiler_spoils() -> None:
    row = step_of("maxtext", "completed profiler activation/deactivation step: 6, total_weights: 196608, loss: 9.871")
    assert (row["step"], row["loss"], row["step_time_s"]) == (6, 9.871, None)


DUMP = """\
System Information: Jax Version: 0.7.1
TFRT TPU v5
Num_devices: 8, shape (1, 1, 4, 1, 1, 2)
Config param model_name: llama3-8b
Config param steps: 3
Config param per_device_batch_size: {batch}
Config param max_target_length: 2048
Config param ici_tensor_parallelism: 2
Config param dcn_tensor_parallelism: 1
Config param ici_context_parallelism: {context}
Config param dtype: bfloat16
Config param quantization: {quantization}
Config param remat_policy: full
Config param base_num_decoder_layers: 32
Config param num_experts: 1
number parameters: 8.030 billion
completed step: 0, seconds: 30.000, TFLOP/s/device: 10.000, Tokens/s/device: 100.000, loss: 12.000
completed step: 1, seconds: 0.100, TFLOP/s/device: 9000.000, Tokens/s/device: 90000.000, loss: 11.900
completed step: 2, seconds: 5.000, TFLOP/s/device: 120.000, Tokens/s/device: 3200.000, loss: 11.800
"""


def test_a_run_from_dump_to_last_step(tmp_path: Path) -> None:
    run = run_of(tmp_path, DUMP.format(batch="4.0", context=1, quantization=""))
    assert (run["status"], run["steps_planned"], run["last_step"]) == ("completed", 2, 2)
    assert (run["num_gpus"], run["tp"], run["cp"], run["mbs"], run["seq_len"]) == (8, 2, 1, 4, 2048)
    assert (run["precision"], run["recompute"], run["num_layers"]) == ("bf16", "full", 32)
    assert run["params"] == 8_030_000_000
    assert "num_experts" not in run


@pytest.mark.parametrize(("kind", "latent"), [("mla", (1536, 512, 64)), ("global", (None, None, None))])
def test_latent_widths_count_with_latent_attention_only(tmp_path: Path, kind: str, latent: tuple[object, ...]) -> None:
    widths = f"Config param attention_type: {kind}\nConfig param q_lora_rank: 1536\nConfig param kv_lora_rank: 512\n"
    dump = DUMP.replace("number param", widths + "Config param qk_rope_head_dim: 64\nnumber param")
    run = run_of(tmp_path, dump.format(batch="4.0", context=1, quantization=""))
    assert tuple(run.get(name) for name in ("q_lora_rank", "kv_lora_rank", "qk_rope_head_dim")) == latent


@pytest.mark.parametrize(
    ("policy", "word"),
    [("minimal_with_context", "selective"), ("save_qkv_proj", "selective"), ("nothing", "full"), ("custom", None)],
)
def test_policies_of_rematerialisation(tmp_path: Path, policy: str, word: str | None) -> None:
    dump = DUMP.replace("remat_policy: full", f"remat_policy: {policy}")
    assert run_of(tmp_path, dump.format(batch="4.0", context=1, quantization="")).get("recompute") == word


def test_what_does_not_follow_stays_unknown(tmp_path: Path) -> None:
    run = run_of(tmp_path, DUMP.format(batch="0.5", context=-1, quantization="fp8"))
    assert "mbs" not in run
    assert "cp" not in run
    assert run["precision"] == "fp8"


def test_names_in_the_dump() -> None:
    said = settings_of("maxtext", "Config param gradient_accumulation_steps: 4\nConfig param enable_dropout: False")
    assert said == {"gas": "4"}


def test_the_command_line_tells_the_last_step(tmp_path: Path) -> None:
    command = (
        "+ python3 -m MaxText.train MaxText/configs/base.yml run_name=x per_device_batch_size=4 steps=3 "
        "max_target_length=2048 ici_tensor_parallelism=2\n"
    )
    steps = DUMP[DUMP.index("completed step") :]
    run = run_of(tmp_path, command + steps)
    assert (run["status"], run["steps_planned"], run["seq_len"], run["mbs"]) == ("completed", 2, 2048, 4)
    assert run_of(tmp_path, command.replace("steps=3", "steps=30") + steps)["status"] == "truncated"


def test_the_dump_beats_the_command_line(tmp_path: Path) -> None:
    text = "python3 -m maxtext.trainers.pre_train.train base.yml steps=9\nConfig param steps: 11\n"
    assert run_of(tmp_path, text)["steps_planned"] == 10


def test_a_command_line_that_was_wrapped(tmp_path: Path) -> None:
    text = """\
        python3 MaxText/train.py MaxText/configs/base.yml base_output_directory=${OUTPUT} run_name=a \\
        per_device_batch_size=24 enable_checkpointing=false async_checkpointing=false \\
        model_name=default ici_fsdp_parallelism=4 steps=10 max_target_length=2048 \\
        profiler=xplane
        completed step: 9, seconds: 1.341, TFLOP/s/device: 257.929, Tokens/s/device: 36653.244, loss: 0.000
    """
    run = run_of(tmp_path, text)
    assert (run["seq_len"], run["mbs"], run["steps_planned"], run["status"]) == (2048, 24, 9, "completed")


@pytest.mark.parametrize(("code", "status"), [("0", "completed"), ("1", "crash")])
def test_the_word_of_xpk(code: str, status: str, tmp_path: Path) -> None:
    text = f"""\
        XPK Start: Fri Apr 24 07:16:13 UTC 2026
        I0424 07:16:55.308476 135241581811520 max_utils.py:800] System Information: Jax Version: 0.9.2
        completed step: 5, seconds: 1.341, TFLOP/s/device: 257.929, Tokens/s/device: 36653.244, loss: 9.125
        XPK End: Fri Apr 24 07:26:13 UTC 2026
        EXIT_CODE={code}
    """
    assert run_of(tmp_path, text)["status"] == status
