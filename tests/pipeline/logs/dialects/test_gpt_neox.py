"""GPT-NeoX's step line, its dump with origins, and what it shares with DeepSpeed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.logs.logs import facts_of, run_of, settings_of, step_of

LINE = (
    " samples/sec: 64.000 | iteration       30/     100 | elapsed time per iteration (ms): 2000.0 | learning rate: "
    "3.000E-04 | approx flops per GPU: 120.5TFLOPS | lm_loss: 4.250000E+00 | loss scale: 4096.0 | number of skipped "
    "iterations:   0 | number of nan iterations:   0 |"
)
DUMP = """\
    NeoXArgs.from_ymls() ['configs/small.yml']
    -------------------- arguments --------------------
      activation ...................... swiglu......................updated
      checkpoint_activations .......... True........................updated
      global_num_gpus ................. 16..........................updated
      gradient_accumulation_steps ..... 2...........................updated
      hidden_size ..................... 1024........................updated
      model_parallel_size ............. 2...........................updated
      no_weight_tying ................. True........................updated
      num_attention_heads ............. 16..........................updated
      num_layers ...................... 24..........................updated
      pipe_parallel_size .............. 0...........................updated
      precision ....................... bfloat16....................updated
      save ............................ /checkpoints/a-path-that-fills-its-columnupdated
      seq_length ...................... 2048........................updated
      train_batch_size ................ 128.........................updated
      train_iters ..................... 100.........................updated
      train_micro_batch_size_per_gpu .. 8...........................updated
      zero_stage ...................... 1...........................updated
      mlp_type ........................ regular.....................default
      num_kv_heads .................... None........................default
      world_size ...................... None........................default
    ---------------- end of arguments ----------------
    NeoXArgs.configure_distributed_args() using world size: 1 and model-parallel size: 2
     > total params: 354,871,296
"""


def test_step_line() -> None:
    step = step_of("gpt-neox", LINE)
    assert (step["step"], step["steps_planned"], step["loss"]) == (30, 100, 4.25)
    assert (step["step_time_s"], step["tflops_per_gpu_logged"], step["learning_rate"]) == (2.0, 120.5, 3e-4)


def test_flops_with_another_unit() -> None:
    assert step_of("gpt-neox", LINE.replace("120.5TFLOPS", "1.2PFLOPS"))["tflops_per_gpu_logged"] == 1200.0


def test_skipped_step_has_no_loss() -> None:
    step = step_of("gpt-neox", LINE.replace("lm_loss: 4.250000E+00 | ", ""))
    assert (step["step"], step["loss"]) == (30, None)


@pytest.mark.parametrize("end", [" lm_loss:", " | elapsed", "/     100"])
def test_cut_line_is_a_reject(end: str) -> None:
    assert step_of("gpt-neox", LINE[: LINE.index(end)])["step"] is None


def test_line_of_the_pipeline_engine_is_not_a_step() -> None:
    assert facts_of("gpt-neox", "steps: 30 loss: 4.2500 iter time (s): 1.990 samples/sec: 64.322").steps.is_empty()


def test_dump() -> None:
    found = settings_of("gpt-neox", DUMP)
    assert (found["num_gpus"], found["tp"], found["mbs"], found["gas"], found["gbs"]) == ("16", "2", "8", "2", "128")
    assert (found["zero_stage"], found["seq_len"], found["params"]) == ("1", "2048", "354871296")


def test_run(tmp_path: Path) -> None:
    run = run_of(
        tmp_path,
        DUMP + LINE + "\n[2024-01-02 03:04:05,006] [INFO] [launch.py:346:main] Process 9 exits successfully.\n",
    )
    assert (run["framework"], run["status"], run["num_gpus"]) == ("gpt-neox", "completed", 16)
    assert (run["tp"], run["pp"], run["dp"]) == (2, 1, 8)
    assert (run["precision"], run["recompute"], run["gated_mlp"], run["num_kv_heads"]) == ("bf16", "full", True, 16)
    assert run["tie_word_embeddings"] is False


def test_parameters_of_the_pipeline_engine(tmp_path: Path) -> None:
    text = """\
        gpu250: NeoXArgs.from_ymls() ['configs/20B.yml']
        gpu250: [2023-07-05 15:08:29,918] [INFO] [engine.py:83:__init__] CONFIG: micro_batches=6 micro_batch_size=1
        gpu250: [2023-07-05 15:08:30,157] [INFO] [engine.py:138:__init__] RANK=0 STAGE=0 LAYERS=13 [0, 13) \
STAGE_PARAMS=2646199296 (2646.199M) TOTAL_PARAMS=20553056256 (20553.056M) UNIQUE_PARAMS=20553056256 (20553.056M)
    """
    run = run_of(tmp_path, text)
    assert (run["framework"], run["params"], run["mbs"], run["gas"]) == ("gpt-neox", 20553056256, 1, 6)


def test_expert_parallelism() -> None:
    text = """\
  moe_expert_parallel_size ........ 4...........................updated
  moe_num_experts ................. 8...........................updated
"""
    assert settings_of("gpt-neox", text) == {"ep": "4", "arg:moe_num_experts": "8"}


@pytest.mark.parametrize(("count", "experts"), [("8", 8), ("1", None)])
def test_one_expert_is_a_dense_model(tmp_path: Path, count: str, experts: int | None) -> None:
    text = f"""\
        NeoXArgs.from_ymls() ['configs/moe.yml']
          moe_num_experts ................. {count}...........................updated
          moe_top_k ....................... 2...........................updated
    """
    run = run_of(tmp_path, text)
    assert (run.get("num_experts"), run.get("experts_per_token")) == (experts, experts and 2)


@pytest.mark.parametrize(
    "prefix", ["2024-05-01 12:00:07 ", "[2024-05-01 12:00:07,112] [INFO] [logging.py:60:print_rank_0]"]
)
def test_a_logger_may_stand_in_front_of_the_step(prefix: str) -> None:
    step = step_of("gpt-neox", prefix + LINE)
    assert (step["step"], step["loss"], str(step["ts"])) == (30, 4.25, "2024-05-01 12:00:07")


def test_deepspeeds_own_line_is_no_step() -> None:
    line = "steps: 30 loss: 4.2500 iter time (s): 2.000 samples/sec: 64.000"
    assert facts_of("gpt-neox", line).steps.is_empty()
