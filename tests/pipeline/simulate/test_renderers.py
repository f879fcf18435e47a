"""The text of each dialect, held against lines written by hand from the frameworks' format strings."""

from __future__ import annotations

import json

import pytest

from sweepscope.pipeline.simulate.catalogue import MODELS
from sweepscope.pipeline.simulate.render import render
from sweepscope.pipeline.simulate.renderers.registry import RENDERERS
from sweepscope.pipeline.simulate.truth import Layout, Noise, SimulatedRun
from tests.pipeline.simulate.factory import GIB, make_exact, make_run

# 8.03e9 parameters, 32 layers of 4096, sequences of 4096: 54.62e9 FLOPs per token. Batch 4*4*2*4096 = 131072 tokens in
# 2 s on 16 GPUs: 65536 tokens/s, 4096 per GPU, 223.7 TFLOP/s, 22.62 % of 989.
_STEP_LINES = {
    ("nanotron", "2024"): (
        "03/02/2026 08:00:01 [INFO|DP=0|PP=1|TP=0]: iteration: 1 / 3 | consumed_tokens: 131K | "
        "elapsed_time_per_iteration_ms: 2K | tokens_per_sec: 65.5K | tokens_per_sec_per_gpu: 4.1K | "
        "global_batch_size: 32 | lm_loss: 10.8 | lr: 0.0003 | model_tflops_per_gpu: 224 | "
        "hardware_tflops_per_gpu: 224 | grad_norm: 1.5 | cuda_memory_allocated: 42.9G | "
        "cuda_max_memory_reserved: 47.2G | hd_total_memory_tb: 312G | hd_used_memory_tb: 125G | hd_free_memory_tb: 187G"
    ),
    ("nanotron", "2025"): (
        "\x1b[2;3m03/02 08:00:01 [INFO|DP=0|PP=1|TP=0]\x1b[0m: iteration: 1 / 3 | consumed_tokens: 131K | "
        "time_per_iteration_ms: 2K | tokens_per_sec: 65.5K | tokens_per_sec_per_gpu: 4.1K | global_batch_size: 131K | "
        "grad_norm: 1.5 | lm_loss: 10.8 | lr: 0.0003 | model_tflops_per_gpu: 224 | eta: 0:00:04"
    ),
    ("picotron", "pipe"): (
        "[rank 2] Step: 1     | Loss: 10.7500 | Global batch size: 131.07K | Tokens/s:  65.54K | "
        "Tokens/s/GPU:   4.10K | Tokens: 131.07K | MFU: 22.61% | Memory usage:  47.24GB"
    ),
    ("picotron", "comma"): (
        "[rank 2] Step: 1, Loss: 10.7500, Global batch size (with seq_len): 131.07K, Tokens/s: 65.54K, "
        "Tokens/s/GPU: 4.10K, Tokens: 131.07K/393.22K, Memory usage: 47.24GB"
    ),
    ("megatron", "2023"): (
        " iteration        1/       3 | consumed samples:           32 | elapsed time per iteration (ms): 2000.0 | "
        "throughput per GPU (TFLOP/s/GPU): 223.7 | learning rate: 3.000E-04 | global batch size:    32 | "
        "lm loss: 1.075000E+01 | loss scale: 1.0 | grad norm: 1.500 | number of skipped iterations:   0 | "
        "number of nan iterations:   0 |"
    ),
    ("megatron", "2026"): (
        " [2026-03-02 08:00:01.294175] iteration        1/       3 | consumed samples:           32 | "
        "elapsed time per iteration (ms): 2000.0 | throughput per GPU (TFLOP/s/GPU): 223.7 | "
        "learning rate: 3.000000E-04 | global batch size:    32 | lm loss: 1.075000E+01 | loss scale: 1.0 | "
        "grad norm: 1.500 | number of skipped iterations:   0 | number of nan iterations:   0 |"
    ),
    ("torchtitan", "2024-10"): (
        "[titan] 2026-03-02 08:00:01,294 - root - INFO - step:  1  loss: 10.7500  memory: 44.00GiB(55.63%)  "
        "wps: 4,096  mfu: 22.62%"
    ),
    ("torchtitan", "2026-05"): (
        "[titan] 2026-03-02 08:00:01,294 - root - INFO - step:  1  loss: 10.75000  grad_norm:  1.5000  "
        "memory: 44.00GiB(55.63%)  tps: 4,096  tflops: 223.74  mfu: 22.62%"
    ),
}


def _log(run: SimulatedRun) -> list[str]:
    return render(run)[RENDERERS[run.framework].log_name(run)].decode().split("\n")


@pytest.mark.parametrize(("framework", "variant"), _STEP_LINES)
def test_first_step_line_reads_as_the_framework_prints_it(framework: str, variant: str) -> None:
    assert _STEP_LINES[framework, variant] in _log(make_run(framework, variant=variant))


def test_torchtitan_colours_each_field() -> None:
    line = next(line for line in _log(make_run("torchtitan", noise=Noise(colours=True))) if "step:  2" in line)
    for colour in ("\x1b[31mstep", "\x1b[32mloss", "\x1b[38;2;54;234;195mmemory", "\x1b[34mtps", "\x1b[36mtflops"):
        assert colour in line.replace("\x1b[0m", "")


def test_megatron_dump_is_sorted_and_dotted_to_column_48() -> None:
    log = _log(make_run("megatron"))
    dump = log[
        log.index("-" * 24 + " arguments " + "-" * 24) + 1 : log.index("-" * 20 + " end of arguments " + "-" * 21)
    ]
    assert dump == sorted(dump, key=str.lower)
    assert "  tensor_model_parallel_size ...................... 2" in dump


def test_megatron_prints_no_loss_when_it_is_nan() -> None:
    run = make_run("megatron", exact=[make_exact(1, loss=float("nan"))], steps_planned=1)
    line = next(line for line in _log(run) if "iteration        1/" in line)
    assert "lm loss" not in line
    assert "number of nan iterations:   1" in line
    assert run.steps[0].loss is None


def test_megatron_reports_memory_of_every_rank_with_data_parallel_rank_0() -> None:
    ranks = {int(line[6:].split("]")[0]) for line in _log(make_run("megatron")) if line.startswith("[Rank ")}
    assert ranks == {0, 1, 8, 9}  # tp 2 x pp 2, stages 8 ranks apart


def test_nanotron_dump_aligns_fields_behind_their_bracket() -> None:
    texts = [line.split("]: ", 1)[-1] for line in _log(make_run("nanotron", variant="2024"))]
    start = texts.index("Config:") + 1
    assert texts[start].startswith("Config(general=GeneralArgs(project='sweep',")
    assert texts[start + 7] == "       parallelism=ParallelismArgs(dp=4,"
    assert texts[start + 8] == "                                   pp=2,"


def test_new_nanotron_prefix_names_only_dimensions_in_use() -> None:
    log = _log(make_run("nanotron", variant="2025", layout=Layout(dp=16), num_nodes=2))
    assert "[INFO|DP=0]" in log[0]
    assert not any("|TP=" in line for line in log)


def test_picotron_writes_config_log_and_a_status_without_line_feed() -> None:
    files = render(make_run("picotron"))
    assert list(files) == ["config.json", "status.txt", "log_410022.out"]
    assert files["status.txt"] == b"completed"
    assert json.loads(files["config.json"])["distributed"]["dp_size"] == 4


@pytest.mark.parametrize(
    ("status", "failure", "word"),
    [
        ("oom", "torch_2_5", "oom"),
        ("hang", "watchdog", "timeout"),  # the job template takes a watchdog's Timeout for the wall-time limit
        ("timeout", "time_limit", "running"),  # nobody is left to write the word
        ("cancelled", "ctrl_c", "fail"),
    ],
)
def test_picotron_status_is_what_its_job_template_would_write(status: str, failure: str, word: str) -> None:
    assert render(make_run("picotron", status=status, failure=failure))["status.txt"] == word.encode()


def test_torchtitan_early_mesh_names_only_dimensions_in_use() -> None:
    log = _log(make_run("torchtitan", variant="2024-10", layout=Layout(dp=8, tp=2, mbs=4, zero_stage=3)))
    assert any("Building 2-D device mesh with ['dp_shard', 'tp'], [8, 2]" in line for line in log)


@pytest.mark.parametrize("framework", RENDERERS)
def test_a_run_without_steps_still_states_its_configuration(framework: str) -> None:
    run = make_run(framework, exact=[], status="oom", failure="torch_2_5")
    assert run.steps == ()
    assert run.mem_peak_reserved_bytes is None
    assert len(_log(run)) > 10


@pytest.mark.parametrize("framework", RENDERERS)
def test_peaks_are_the_largest_printed(framework: str) -> None:
    steps = [make_exact(1), make_exact(2, mem_reserved_bytes=46 * GIB), make_exact(3)]
    peak = make_run(framework, exact=steps).mem_peak_reserved_bytes
    # Megatron reports memory once, after the first logged step.
    assert peak == pytest.approx((44 if framework == "megatron" else 46) * GIB, rel=2e-3)


def test_stderr_apart_holds_the_tail_alone() -> None:
    files = render(make_run("nanotron", status="oom", failure="torch_2_5", stderr_apart=True))
    assert b"out of memory" not in files["log_410022.out"]
    assert b"out of memory" in files["log_410022.err"]


def test_model_shapes_count_as_published() -> None:
    # Meta's model cards: 1.24B, 8.03B, 70.6B; torchtitan prints 14,768,307,200 for its qwen3 14B (it has query norms).
    counts = {model.name: model.params for model in MODELS}
    assert counts["Llama-3.1-8B"] == 8_030_261_248
    assert counts["Llama-3.1-70B"] == 70_553_706_496
    assert counts["Llama-3.2-1B"] == 1_235_814_400
    assert counts["Qwen3-14B"] == pytest.approx(14_768_307_200, rel=1e-5)


def test_the_job_script_names_card_and_nodes_before_the_framework_speaks() -> None:
    log = _log(make_run("picotron", prologue=True, noise=Noise(tee="default")))
    assert "|   0  NVIDIA H100 80GB HBM3          On  |   00000000:09:00.0 Off |                    0 |" in log
    launch = log.index("+ srun torchrun --nnodes 2 --nproc_per_node 8 --rdzv_backend c10d train.py")
    assert log[launch + 1] == "[default0]:rank 0: Creating tokenizer"
    assert len({len(line) for line in log[2:launch]}) == 1  # a table


@pytest.mark.parametrize("framework", ["picotron", "torchtitan"])
def test_a_memory_that_is_printed_as_nothing_is_unknown(framework: str) -> None:
    run = make_run(framework, exact=[make_exact(1, mem_allocated_bytes=2**20, mem_reserved_bytes=2**21)])
    assert (run.steps[0].mem_reserved_bytes, run.mem_peak_reserved_bytes) == (None, None)
