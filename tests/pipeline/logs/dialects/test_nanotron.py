"""nanotron's step line, Config dump and memory lines, old and new."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.logs.logs import facts_of, run_of, settings_of, step_of, step_of_each, tables_of

HEAD = "01/27/2025 15:50:16 [INFO|DP=0|PP=0|TP=0]: "
OLD = (
    HEAD
    + "iteration: 3 / 120000 | consumed_tokens: 49.2K | elapsed_time_per_iteration_ms: 1.35K | tokens_per_sec: 30.4K "
    "| tokens_per_sec_per_gpu: 15.2K | global_batch_size: 4 | lm_loss: 14.4 | lr: 1.5e-07 | model_tflops_per_gpu: 357 | "
    "hardware_tflops_per_gpu: 357 | grad_norm: 66.1"
)
NEW = (
    "10/17/2025 16:31:56 [INFO|DP=0|TP=0|nid001]: iteration: 327281 / 378950 | consumed_tokens: 515B | "
    "time_per_iteration_ms: 11.5K | tokens_per_sec: 137K | tokens_per_sec_per_gpu: 2.14K | global_batch_size: 1.57M | "
    "grad_norm: 0.35 | lm_loss: 2.25 | lr: 1.87e-05 | model_tflops_per_gpu: 45.1 | eta: 131 days, 1:45:39"
)


def test_old_line() -> None:
    step = step_of("nanotron", OLD)
    assert (step["step"], step["steps_planned"], step["loss"], step["grad_norm"]) == (3, 120000, 14.4, 66.1)
    assert (step["step_time_s"], step["tokens_per_s"], step["tokens_per_s_per_gpu"]) == (1.35, 30400.0, 15200.0)
    assert (step["consumed_tokens"], step["learning_rate"], step["tflops_per_gpu_logged"]) == (49200, 1.5e-07, 357.0)
    assert str(step["ts"]) == "2025-01-27 15:50:16"


def test_new_line() -> None:
    step = step_of("nanotron", NEW)
    assert (step["step"], step["loss"], step["grad_norm"], step["step_time_s"]) == (327281, 2.25, 0.35, 11.5)
    assert (step["consumed_tokens"], step["tokens_per_s_per_gpu"]) == (515_000_000_000, 2140.0)


def test_giga_and_billion_are_the_same() -> None:
    assert step_of("nanotron", NEW.replace("515B", "515G"))["consumed_tokens"] == 515_000_000_000


def test_large_gradient_norm_has_a_suffix() -> None:
    assert step_of("nanotron", OLD.replace("66.1", "4.14M"))["grad_norm"] == 4_140_000.0


def test_memory_fields_of_the_first_steps() -> None:
    line = OLD + " | cuda_memory_allocated: 9.94G | cuda_max_memory_reserved: 50.9G | hd_total_memory_tb: 312G"
    assert step_of("nanotron", line)["mem_allocated_bytes"] == 9_940_000_000
    # 50.9 may be anything from 50.85 on
    assert facts_of("nanotron", line).peaks["value"].to_list() == [pytest.approx(50.85e9)]


def test_exact_memory_lines_win_over_the_rounded_field(tmp_path: Path) -> None:
    text = (
        HEAD
        + " Memory usage: 3092.36MiB. Peak allocated 41138.03MiB. Peak reserved: 48542.00MiB. CPU rss: 1.0MiB\n"
        + OLD
        + " | cuda_memory_allocated: 9.94G | cuda_max_memory_reserved: 50.9G | hd_total_memory_tb: 312G\n"
    )
    run = run_of(tmp_path, text)
    assert run["mem_peak_reserved_bytes"] == 48542 * 2**20
    assert run["mem_peak_allocated_bytes"] == round(41138.03 * 2**20)


@pytest.mark.parametrize("line", [OLD, NEW])
def test_a_cut_line_never_gives_a_wrong_value(line: str) -> None:
    cuts = range(line.index("/") + 70, len(line) - 4, 17)
    whole, *found = step_of_each("nanotron", [line, *(line[:at] for at in cuts)])
    for at, cut in zip(cuts, found, strict=True):
        for name in ("step", "loss", "step_time_s", "tokens_per_s", "learning_rate", "tflops_per_gpu_logged"):
            assert cut[name] in (None, whole[name]), (at, name)


def test_a_line_cut_before_its_loss_is_no_step() -> None:
    assert step_of("nanotron", OLD[: OLD.index("lm_loss") + 10])["step"] is None


def test_ranks_that_print_the_same_steps_count_once(tmp_path: Path) -> None:
    printed = [(0, 3), (1, 3), (1, 4), (0, 4), (0, 5), (1, 5)]
    lines = [OLD.replace("iteration: 3", f"iteration: {step}").replace("DP=0", f"DP={dp}") for dp, step in printed]
    tables = tables_of(tmp_path, "\n".join(lines) + "\n")
    assert tables["steps"]["step"].to_list() == [3, 4, 5]
    assert tables["runs"].height == 1


CONFIG = """\
{h}Config(general=GeneralArgs(project='p',
{h}                           run='r',
{h}                           benchmark_csv_path=None),
{h}       parallelism=ParallelismArgs(dp=4,
{h}                                   pp=2,
{h}                                   tp=2,
{h}                                   pp_engine=<nanotron.parallel.pipeline_parallel.engine.AllForwardAllBackwardPipelineEngine object at 0x7f>,
{h}                                   tp_mode=<TensorParallelLinearMode.REDUCE_SCATTER: 2>,
{h}                                   tp_linear_async_communication=True,
{h}                                   recompute_layer=True,
{h}                                   expert_parallel_size=1),
{h}       model=ModelArgs(model_config=LlamaConfig(bos_token_id=1,
{h}                                                hidden_size=2048,
{h}                                                intermediate_size=8192,
{h}                                                num_attention_heads=32,
{h}                                                num_hidden_layers=16,
{h}                                                num_key_value_heads=8,
{h}                                                rope_theta=500000.0,
{h}                                                tie_word_embeddings=True,
{h}                                                vocab_size=131072),
{h}                       dtype=torch.bfloat16,
{h}                       ddp_bucket_cap_mb=25),
{h}       tokens=TokensArgs(sequence_length=4096,
{h}                         train_steps=100,
{h}                         micro_batch_size=2,
{h}                         batch_accumulation_per_replica=8,
{h}                         val_check_interval=-1),
{h}       optimizer=OptimizerArgs(zero_stage=1,
{h}                               clip_grad=1.0))
"""


def test_config_dump(tmp_path: Path) -> None:
    run = run_of(tmp_path, CONFIG.format(h=HEAD) + OLD + "\n")
    wanted = {
        "dp": 4,
        "tp": 2,
        "pp": 2,
        "cp": 1,
        "ep": 1,
        "num_gpus": 16,
        "mbs": 2,
        "gas": 8,
        "gbs": 64,
        "seq_len": 4096,
        "zero_stage": 1,
        "recompute": "full",
        "sequence_parallel": True,
        "precision": "bf16",
        "pipeline_schedule": "afab",
        "num_layers": 16,
        "hidden_size": 2048,
        "ffn_hidden_size": 8192,
        "num_heads": 32,
        "num_kv_heads": 8,
        "vocab_size": 131072,
        "tie_word_embeddings": True,
        "gated_mlp": True,
    }
    assert {name: run.get(name) for name in wanted} == wanted


def test_expert_ranks_count_as_data_parallel_ones(tmp_path: Path) -> None:
    run = run_of(
        tmp_path, CONFIG.format(h=HEAD).replace("expert_parallel_size=1", "expert_parallel_size=2") + OLD + "\n"
    )
    assert (run["dp"], run["ep"], run["num_gpus"]) == (8, 2, 32)


def test_start_line() -> None:
    line = HEAD + (
        "[Start training] datetime: 2025-01-27 15:50:02.653631 | mbs: 4 | grad_accum: 1 | global_batch_size: 4 | "
        "sequence_length: 4096 | train_steps: 120000 | start_iteration_step: 0 | consumed_train_samples: 0"
    )
    assert settings_of("nanotron", line) == {"mbs": "4", "gas": "1", "seq_len": "4096", "steps_planned": "120000"}


def test_parameter_count() -> None:
    line = HEAD + "Total number of parameters: 3.21G (6128.17MiB)"
    assert settings_of("nanotron", line)["params"] == "3210000000"


def test_prose_with_an_equals_sign_is_no_setting() -> None:
    assert settings_of("nanotron", HEAD + "Resuming with dp=3 and zero_stage=2 from a checkpoint") == {}


def test_a_second_config_begins_a_second_attempt(tmp_path: Path) -> None:
    config = CONFIG.format(h=HEAD)
    text = config + OLD + "\n" + config.replace("pp=2", "pp=4") + OLD.replace("iteration: 3", "iteration: 4") + "\n"
    runs = tables_of(tmp_path, text)["runs"]
    assert runs["pp"].to_list() == [2, 4]


def test_benchmark_mode_ends_after_a_few_steps(tmp_path: Path) -> None:
    assert run_of(tmp_path, OLD + "\n" + HEAD + "Throughput logging complete\n")["status"] == "completed"


def test_the_last_step_is_the_end(tmp_path: Path) -> None:
    assert run_of(tmp_path, OLD.replace("3 / 120000", "3 / 3") + "\n")["status"] == "completed"
