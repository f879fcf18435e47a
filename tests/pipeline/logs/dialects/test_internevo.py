"""InternEvo's metric lines, in the spellings of 2023 and since."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweepscope.pipeline.logs.engine import extract
from sweepscope.pipeline.logs.registry import DIALECTS
from sweepscope.pipeline.text import lines
from tests.pipeline.logs.logs import run_of, step_of, tables_of

COMMAS = (
    "2023-07-07 12:28:57,802\tINFO train.py:323 in record_current_batch_training_metrics -- tflops=63.25,step=0,"
    "loss=11.625,tgs (tokens/gpu/second)=1424.64,lr=4.0e-07,loss_scale=65536.0,grad_norm=63.5,micro_num=4,"
    "num_consumed_tokens=131072,inf_nan_skip_batches=0,num_samples_in_batch=19,adam_beta2=0.95,fwd_bwd_time=6.48"
)
BLANKS = (
    "2023-11-10T11:46:16.409+08:00 INFO [training_internlm.py, line 600, in record_current_batch_training_metrics] "
    "- pid=117775 : tflops=180.5 step={} loss={} real_tgs=3300.5 tgs (tokens/gpu/second)=3345.75 tgs/last_tgs_1=1.0 "
    "tgs/tgs_all=2.0 lr=1e-05 loss_scale=65536.0 grad_norm={{'0_default': 0.25, '1_fp32': 0.5}} moe_loss=3.5 micro_num=8 "
    "num_consumed_tokens=10485760 inf_nan_skip_batches=0 fwd_bwd_time=4.13 loss_from_metric=0.0075 loss/en=nan"
)


def test_line_of_2023() -> None:
    step = step_of("internevo", COMMAS)
    assert (step["step"], step["loss"], step["tflops_per_gpu_logged"]) == (0, 11.625, 63.25)
    assert (step["tokens_per_s_per_gpu"], step["learning_rate"], step["grad_norm"]) == (1424.64, 4e-07, 63.5)
    assert (step["consumed_tokens"], str(step["ts"])) == (131072, "2023-07-07 12:28:57")
    assert step["step_time_s"] is None  # fwd_bwd_time leaves the optimizer out


def test_line_since() -> None:
    step = step_of("internevo", BLANKS.format(19, 2.5))
    assert (step["step"], step["loss"], step["tokens_per_s_per_gpu"]) == (19, 2.5, 3345.75)
    assert (step["grad_norm"], step["learning_rate"], str(step["ts"])) == (0.25, 1e-05, "2023-11-10 11:46:16")


@pytest.mark.slow
@pytest.mark.parametrize("at", [" step=", " loss=", " lr=", "micro_num", "485760 inf"])
def test_a_cut_line_is_no_step(at: str) -> None:
    line = BLANKS.format(19, 2.5)
    assert step_of("internevo", line[: line.index(at)])["step"] is None


def test_a_run(tmp_path: Path) -> None:
    sizes = "data parallel size: 4, pipeline parallel size: 2, tensor parallel size: 8"
    text = f"""\
        2023-11-10 11:45:25,162 INFO launch.py:409 in launch -- Distributed environment is initialized, {sizes}
        2023-11-10 11:45:40,621 INFO hybrid_zero_optim.py:268 in _partition_param_list -- Number of elements on ranks: \
[1262168320, 1269084160], rank:0
        {BLANKS.format(0, 11.5)}
        {BLANKS.format(1, 11.25)}
    """
    run = run_of(tmp_path, text)
    assert (run["framework"], run["dp"], run["pp"], run["tp"], run["num_gpus"]) == ("internevo", 4, 2, 8, 64)
    assert (run["gas"], run["zero_stage"], run["steps_logged"], run["last_loss"]) == (8, 1, 2, 11.25)


def test_a_single_share_of_the_optimizer_is_no_zero(tmp_path: Path) -> None:
    split = (
        "2023-11-10 11:45:40,621 INFO hybrid_zero_optim.py:268 in f -- Number of elements on ranks: [17785543], rank:8"
    )
    runs = tables_of(tmp_path, f"{split}\n{BLANKS.format(0, 11.5)}\n")["runs"]
    assert runs["zero_stage"].to_list() == [None]


@pytest.mark.slow
def test_it_does_not_matter_where_a_file_is_cut() -> None:
    rows = [f"{BLANKS.format(n, 11.5 - n)}\n" for n in range(4)]
    whole = extract.extract(lines.split(0, "".join(rows).encode()), DIALECTS).facts
    for cut in range(1, 4):
        parts = [("".join(rows[:cut]), 1), ("".join(rows[cut:]), cut + 1)]
        blocks = [extract.extract(lines.split(0, part.encode(), first), DIALECTS, partial=[0]) for part, first in parts]
        facts = extract.merge(blocks, DIALECTS).facts
        assert facts.steps.equals(whole.steps)
        assert facts.settings.equals(whole.settings)
