"""Colossal-AI's wrapped messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweepscope.pipeline.logs.engine import extract
from sweepscope.pipeline.logs.registry import DIALECTS
from sweepscope.pipeline.text import lines
from tests.pipeline.logs.logs import facts_of, run_of, settings_of, tables_of

LOG = """\
[11/03/22 10:11:12] INFO     colossalai - colossalai - INFO:
                             /opt/conda/colossalai/initialize.py:69 launch
                    INFO     colossalai - colossalai - INFO: Distributed
                             environment is initialized, world size: 8
                    INFO     colossalai - colossalai - INFO: [1/3] Loss:11.061,
                             Step time: 22.885s, TFLOPS: 5.120, FWD time:
                             3.100s, BWD time: 9.900s, OPTIM time: 1.000s
                    INFO     colossalai - colossalai - INFO: [2/3] Loss:10.912, Step
                             time: 2.250s, TFLOPS: 50.120, FWD time:
                             1.100s
"""


def test_messages_wrapped_at_any_blank(tmp_path: Path) -> None:
    tables = tables_of(tmp_path, LOG)
    assert tables["steps"].select("step", "loss", "step_time_s", "tflops_per_gpu_logged", "line_no").rows() == [
        (1, 11.061, 22.885, 5.12, 5),
        (2, 10.912, 2.25, 50.12, 8),
    ]
    assert tables["rejects"].is_empty()
    run = tables["runs"].row(0, named=True)
    assert (run["framework"], run["num_gpus"], run["steps_planned"]) == ("colossalai", 8, 3)


def test_a_message_cut_inside_its_time_is_a_reject(tmp_path: Path) -> None:
    cut = "                    INFO     colossalai - colossalai - INFO: [3/3] Loss:9.512, Step time: 2.2\n"
    tables = tables_of(tmp_path, LOG + cut)
    assert tables["steps"]["step"].to_list() == [1, 2]
    assert tables["rejects"]["line_no"].to_list() == [11]


def test_messages_without_a_counter_are_numbered(tmp_path: Path) -> None:
    message = "INFO     colossalai - colossalai - INFO: Step time: 22.885\n"
    assert tables_of(tmp_path, message * 3)["steps"]["step"].to_list() == [1, 2, 3]


@pytest.mark.slow
@pytest.mark.parametrize("cut", range(1, 10))
def test_where_a_file_is_cut_does_not_matter(cut: int) -> None:
    parts = LOG.splitlines(keepends=True)
    blocks = [(0, "".join(parts[:cut]).encode(), 1), (0, "".join(parts[cut:]).encode(), cut + 1)]
    apart = extract.merge(
        [extract.extract(lines.split_many([block]), DIALECTS, partial=[0]) for block in blocks], DIALECTS
    )
    whole = extract.extract(lines.split_many([(0, LOG.encode(), 1)]), DIALECTS)
    assert apart.facts.steps.equals(whole.facts.steps)


def test_parallel_sizes_and_peaks(tmp_path: Path) -> None:
    text = """\
    INFO     colossalai - colossalai - INFO: Distributed environment is initialized, data parallel size: 4,
                             pipeline parallel size: 1, tensor parallel size: 2
    Model params: 6.74 B
    Max CUDA memory usage: 100.00 MB
    """
    assert settings_of("colossalai", text) == {"dp": "4", "pp": "1", "tp": "2", "params": "6740000000"}
    assert facts_of("colossalai", text).peaks["value"].to_list() == [100.0 * 2**20]
    assert run_of(tmp_path, text)["num_gpus"] == 8


def test_a_benchmark_ends_with_its_peak_memory(tmp_path: Path) -> None:
    text = "Throughput: 20.10 samples/sec, TFLOPS per GPU by Megatron: 150.1, TFLOPS per GPU: 140.1\n"
    assert run_of(tmp_path, f"Booster init max CUDA memory: 9.00 MB\n{text}")["status"] == "unknown"
    assert run_of(tmp_path, f"{text}Max CUDA memory usage: 30000.10 MB\n")["status"] == "completed"


BAR = "[Epoch {}  / Train]: {:3d}%|###    | {}/4 [00:0{}<00:01,  1.20s/it, loss={}, lr=0.0005, throughput=6.5 sample_per_sec]"


def bar(epoch: int, done: int, loss: float) -> str:
    return BAR.replace("{}  /", f"{epoch} /").format(25 * done, done, done, loss)


def test_bars_of_the_trainer_of_2022(tmp_path: Path) -> None:
    drawn = [(0, 0, 11.0), (0, 1, 11.0), (0, 1, 10.5), (0, 2, 10.5), (1, 0, 9.0), (1, 1, 8.5), (1, 1, 8.0)]
    text = "\r" + "\r".join(bar(*one) for one in drawn) + "\n[Epoch 1 / Test]: 100%|##| 4/4 [00:04<00:00, loss=1.0]\n"
    tables = tables_of(tmp_path, text)
    found = tables["steps"].select("step", "loss", "learning_rate")
    assert found.rows() == [(1, 11.0, 5e-4), (2, 10.5, 5e-4), (5, 8.5, 5e-4)]
    assert tables["runs"].select("framework", "status").rows() == [("colossalai", "truncated")]


def test_the_trainers_limit_is_an_end(tmp_path: Path) -> None:
    end = "INFO     colossalai - colossalai - INFO: Max number of steps 2 has been reached, training is stopped automatically"
    assert run_of(tmp_path, f"{bar(0, 2, 9.5)}\n{end}\n")["status"] == "completed"


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [("Epoch 0", "Epoch 1", "Loss"), ("Epoch 1/2", "Epoch 2/2", "train/loss"), ("Epoch [1/2]", "Epoch [2/2]", "loss")],
)
def test_bars_of_the_example_scripts(tmp_path: Path, first: str, second: str, name: str) -> None:
    drawn = [(first, 0, 2.5), (first, 1, 2.5), (first, 1, 2.25), (first, 2, 2.25), (second, 0, 2.0), (second, 1, 2.0)]
    bars = [f"{epoch}:  50%|###   | {done}/2 [00:05<00:05,  5.00s/it, {name}={loss}]" for epoch, done, loss in drawn]
    text = "INFO     colossalai - colossalai - INFO: Distributed environment is initialized, world size: 4\n"
    tables = tables_of(tmp_path, text + "\r".join(bars) + "\n")
    assert tables["steps"].select("step", "loss").rows() == [(1, 2.5), (2, 2.25), (3, 2.0)]
    assert tables["runs"]["framework"].to_list() == ["colossalai"]


def test_options_of_the_launch(tmp_path: Path) -> None:
    text = """\
        colossalai run --nproc_per_node 8 train.py --plugin {} --batch_size 2 --accumulation_steps 4 \
--max_length 4096 --mixed_precision bf16
        [05/10/24 10:00:00] INFO     colossalai - colossalai - INFO: world size: 8
        Epoch 0:  10%|#         | 1/10 [00:05<00:45,  5.00s/it, Loss=10.1]
    """
    run = run_of(tmp_path, text.format("zero2_cpu"))
    assert (run["mbs"], run["gas"], run["seq_len"], run["precision"], run["zero_stage"]) == (2, 4, 4096, "bf16", 2)
    assert "zero_stage" not in run_of(tmp_path, text.format("3d"))
    assert run_of(tmp_path, text.format("3d --zero_stage 1"))["zero_stage"] == 1


BENCHMARK = """\
args: Namespace(config='13b', plugin='gemini', batch_size=8, num_steps=5, grad_checkpoint=True, max_length=4096, tp=1)
[08/30/23 07:07:34] INFO     colossalai - colossalai - INFO:
                             /opt/examples/language/llama/benchmark.py:218 main
                    INFO     colossalai - colossalai - INFO: Step time: 22.885
                    INFO     colossalai - colossalai - INFO: Step time: 19.714
num_samples: 24, dp_world_size: 8, flop_megatron: 1.0e+16, flop: 8.1e+15, avg_duration: 39.4, avg_throughput: 4.87
Throughput: 4.87 samples/sec, TFLOPS per GPU by Megatron: 185.12, TFLOPS per GPU: 176.84
"""


def test_arguments_that_a_benchmark_prints(tmp_path: Path) -> None:
    run = run_of(tmp_path, BENCHMARK)
    assert (run["mbs"], run["seq_len"], run["tp"], run["zero_stage"]) == (8, 4096, 1, 3)
    assert (run["recompute"], run["dp"]) == ("full", 8)


def test_mean_rate_of_a_benchmark_is_its_last_steps(tmp_path: Path) -> None:
    steps = tables_of(tmp_path, BENCHMARK)["steps"].sort("step")
    assert list(steps.select("step", "step_time_s", "tflops_per_gpu_logged").iter_rows()) == [
        (1, 22.885, None),
        (2, 19.714, 176.84),
    ]


def test_memory_that_the_trainer_of_2022_reports(tmp_path: Path) -> None:
    report = """\
                    INFO     colossalai - colossalai - INFO: [Epoch 4 / Train]:
                             GPU: allocated 544.23 MB, max allocated 1228.5 MB,
                             cached: 1620.0 MB, max cached: 1632.0 MB
"""
    run = run_of(tmp_path, BENCHMARK + report)
    assert run["mem_peak_allocated_bytes"] == 1228.5 * 2**20
    assert run["mem_peak_reserved_bytes"] == 1632 * 2**20
