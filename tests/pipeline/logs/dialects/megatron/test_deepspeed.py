"""What Megatron-DeepSpeed adds to Megatron's lines and arguments, in its old and new versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.logs.logs import facts_of, run_of, settings_of, step_of, tables_of

LINE = (
    " iteration        3/       4 | consumed samples:           48 | consumed tokens:        98304 | elapsed time per "
    "iteration (ms): 4000.0 | learning rate: 1.500E-05 | global batch size:    16 | lm loss: 9.500000E+00 | loss scale: "
    "4096.0 | actual seqlen:  2048 | number of skipped iterations:   0 | number of nan iterations:   0 | samples per "
    "second: 4.000 | tokens per gpu per second (tgs): 1024.000 | TFLOPs: 55.25 |"
)
DUMP = """\
    using world size: 8, data-parallel-size: 4, tensor-model-parallel size: 2, pipeline-model-parallel size: 1
    ------------------------ arguments ------------------------
      deepspeed ....................................... True
      deepspeed_activation_checkpointing .............. False
      ds_sequence_parallel_size ....................... 1
      fp16 ............................................ True
      global_batch_size ............................... 16
      micro_batch_size ................................ 2
      moe_expert_parallel_size ........................ 1
      num_experts ..................................... [1]
      params_dtype .................................... torch.float16
      pipeline_model_parallel_size .................... 1
      seq_length ...................................... 2048
      tensor_model_parallel_size ...................... 2
      topk ............................................ 1
      zero_stage ...................................... 3
    -------------------- end of arguments ---------------------
"""
OLD = """\
    using world size: 32 and model-parallel size: 2
    -------------------- arguments --------------------
      batch_size ...................... 4
      deepspeed ....................... True
      deepspeed_activation_checkpointing  False
      gas ............................. 16
      model_parallel_size ............. 2
      params_dtype .................... torch.float16
      pipe_parallel_size .............. 8
      seq_length ...................... 1024
      world_size ...................... 32
      zero_stage ...................... 0
    ---------------- end of arguments ----------------
"""


def test_step_line() -> None:
    step = step_of("megatron-deepspeed", LINE)
    assert (step["step"], step["steps_planned"], step["loss"], step["step_time_s"]) == (3, 4, 9.5, 4.0)
    assert (step["tflops_per_gpu_logged"], step["tokens_per_s_per_gpu"], step["consumed_tokens"]) == (
        55.25,
        1024,
        98304,
    )


def test_cut_line_is_a_reject() -> None:
    assert step_of("megatron-deepspeed", LINE[: LINE.index(" lm loss")])["step"] is None


def test_engine_lines_are_not_steps_of_their_own() -> None:
    text = "steps: 3 loss: 9.5000 iter time (s): 3.990 samples/sec: 4.010\n" + LINE
    assert facts_of("megatron-deepspeed", text).steps["step"].to_list() == [3]


def test_run_with_deepspeed_on(tmp_path: Path) -> None:
    run = run_of(tmp_path, DUMP + LINE + "\n")
    assert (run["framework"], run["num_gpus"], run["dp"], run["tp"], run["pp"]) == ("megatron-deepspeed", 8, 4, 2, 1)
    assert (run["zero_stage"], run["precision"], run["mbs"], run["gas"]) == (3, "fp16", 2, 2)
    assert "num_experts" not in run


def test_stage_is_inert_with_deepspeed_off(tmp_path: Path) -> None:
    text = DUMP.replace(
        "deepspeed ....................................... True",
        "deepspeed ....................................... False",
    )
    assert run_of(tmp_path, text + LINE + "\n")["zero_stage"] == 0


def test_experts_are_a_list(tmp_path: Path) -> None:
    text = DUMP.replace("[1]", "[64]").replace(
        "moe_expert_parallel_size ........................ 1", "moe_expert_parallel_size ........................ 4"
    )
    run = run_of(tmp_path, text + LINE + "\n")
    assert (run["num_experts"], run["ep"], run["experts_per_token"]) == (64, 4, 1)


def test_names_of_2021(tmp_path: Path) -> None:
    found = settings_of("megatron-deepspeed", OLD)
    assert (found["mbs"], found["gas"], found["tp"], found["num_gpus"]) == ("4", "16", "2", "32")
    run = run_of(tmp_path, OLD)
    assert (run["framework"], run["pp"], run["dp"], run["gbs"]) == ("megatron-deepspeed", 8, 2, 128)


def test_runs_in_one_file_are_attempts(tmp_path: Path) -> None:
    last = LINE.replace("3/       4", "4/       4")
    longer = DUMP.replace("2048", "4096")
    runs = tables_of(tmp_path, DUMP + last + "\n" + longer + LINE + "\n")["runs"].sort("attempt")
    assert runs.select("seq_len", "status", "last_step").rows() == [(2048, "completed", 4), (4096, "truncated", 3)]


EQUAL = (
    "[2024-06-21 10:50:42][INFO][training:1609] -  iteration=       {}/  317892 | consumed_samples=         768 | "
    "consumed_tokens=     3145728 | elapsed_time_per_iteration_ms=108893.2 | learning_rate=1.88743e-08 | "
    "global_batch_size=  768 | lm loss=11.125000 | loss_scale=1.0 | grad_norm=6.363 | actual_seqlen= 4096 | "
    "number_of_skipped_iterations=  0 | number_of_nan_iterations=  0 | samples_per_second=7.053 | "
    "tokens_per_gpu_per_second_tgs=1203.674 | {} |"
)


@pytest.mark.parametrize(
    "rate", ["TFLOPs=49.66", "[LM]TFLOPs=49.66 | [DS]TFLOPs=73.32", "[LM]-TFLOPs=49.66 | [DS]-TFLOPs=7"]
)
def test_step_line_with_equal_signs(rate: str, tmp_path: Path) -> None:
    step = step_of("megatron-deepspeed", EQUAL.format(1, rate))
    assert (step["step"], step["steps_planned"], step["loss"], step["step_time_s"]) == (1, 317892, 11.125, 108.8932)
    assert (step["tokens_per_s_per_gpu"], step["tflops_per_gpu_logged"]) == (1203.674, 49.66)
    assert (step["consumed_tokens"], step["grad_norm"], str(step["ts"])) == (3145728, 6.363, "2024-06-21 10:50:42")
    run = run_of(tmp_path, EQUAL.format(1, rate) + "\n")
    assert (run["framework"], run["gbs"]) == ("megatron-deepspeed", 768)


def test_step_line_with_equal_signs_and_no_loss() -> None:
    line = EQUAL.replace(" lm loss=11.125000 |", "").format(1, "TFLOPs=49.66")
    assert (step_of("megatron-deepspeed", line)["step"], step_of("megatron-deepspeed", line)["loss"]) == (1, None)
    assert step_of("megatron-deepspeed", line[:230])["step"] is None


def test_a_pipeline_of_deepspeeds_beside_the_two_sizes_of_2020(tmp_path: Path) -> None:
    text = "using world size: 64 and model-parallel size: 4\n  pipe_parallel_size .............. {}\n" + LINE
    assert run_of(tmp_path, text.format(16))["pp"] == 16
    assert run_of(tmp_path, text.format(0))["pp"] == 1


def test_bloom_printed_the_step_time_in_seconds() -> None:
    step = step_of("megatron-deepspeed", LINE.replace("iteration (ms): 4000.0", "iteration (s): 105.08"))
    assert (step["step"], step["step_time_s"], step["loss"]) == (3, 105.08, 9.5)


def test_the_length_of_sequences_without_the_dump(tmp_path: Path) -> None:
    run = run_of(tmp_path, f"{LINE}\n")
    assert (run["seq_len"], run["gbs"], run["tokens_per_s"]) == (2048, 16, 16 * 2048 / 4)
    assert run_of(tmp_path, DUMP.replace("2048", "4096") + LINE)["seq_len"] == 4096
