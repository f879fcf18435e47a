"""DeepSpeed-Chat's own lines: the only steps of a run that ended before the engine spoke."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweepscope.pipeline.logs.engine import extract
from sweepscope.pipeline.logs.registry import DIALECTS
from sweepscope.pipeline.text import lines
from tests.pipeline.logs.logs import tables_of

OLD = """\
epoch: 0|step: {}|ppo_ep: 1|act_loss: {}|cri_loss: 0.125|unsuper_loss: 0.0
average reward score: 1.5
-------------------------------------------------------------------------------------
|E2E latency=3.10s |Gather latency=0.00s (0.00%) |CurSamplesPerSec=0.52 |AvgSamplesPerSec=0.51
"""
NEW = """\
Epoch: 0 | Step: {} | PPO Epoch: 1 | Actor Loss: {} | Critic Loss: 0.125 | Unsupervised Loss: 0.0
End-to-End => Latency: 4.50s, TFLOPs: 6.25, Samples/sec: 1.77, Time/seq 0.56s, Batch Size: 8, Total Seq. Length: 512
Generation => Latency: 3.50s, Per-token Latency 13.67 ms, TFLOPs: 0.75, BW: 99.09 GB/sec, Answer Seq. Length: 256
Training   => Latency: 1.00s, TFLOPs: 20.50
"""
ENGINE = "[2024-03-04 05:06:07,890] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[1e-05], mom=[]\n"


def test_lines_until_august_2023(tmp_path: Path) -> None:
    tables = tables_of(tmp_path, OLD.format(0, -0.25) + OLD.format(1, "inf"))
    assert tables["steps"].select("step", "loss", "step_time_s").rows() == [(0, -0.25, None), (1, float("inf"), None)]
    assert tables["runs"]["framework"].to_list() == ["deepspeed"]


def test_lines_since_then_have_their_pace(tmp_path: Path) -> None:
    tables = tables_of(tmp_path, NEW.format(3, 0.5) + NEW.format(4, 0.25).replace("4.50s", "4.25s"))
    found = tables["steps"].select("step", "loss", "step_time_s", "tflops_per_gpu_logged")
    assert found.rows() == [(3, 0.5, 4.5, 6.25), (4, 0.25, 4.25, 6.25)]
    assert tables["rejects"].is_empty()


def test_the_engine_counts_the_steps_where_it_does(tmp_path: Path) -> None:
    tables = tables_of(tmp_path, NEW.format(8, 0.5) + ENGINE + NEW.format(9, 0.5))
    assert tables["steps"].select("step", "loss").rows() == [(10, None)]
    assert tables["rejects"].is_empty()


def test_a_cut_line_is_a_reject(tmp_path: Path) -> None:
    tables = tables_of(tmp_path, OLD.format(0, 0.5) + "epoch: 0|step: 1|ppo_ep: 1|act_loss: 0.4")
    assert tables["steps"]["step"].to_list() == [0]
    assert tables["rejects"]["line_no"].to_list() == [5]


@pytest.mark.slow
@pytest.mark.parametrize("cut", range(1, 9))
def test_where_a_file_is_cut_does_not_matter(cut: int) -> None:
    text = NEW.format(0, 0.5) + NEW.format(1, 0.5) + ENGINE
    parts = text.splitlines(keepends=True)
    blocks = [(0, "".join(parts[:cut]).encode(), 1), (0, "".join(parts[cut:]).encode(), cut + 1)]
    apart = extract.merge(
        [extract.extract(lines.split_many([block]), DIALECTS, partial=[0]) for block in blocks], DIALECTS
    )
    whole = extract.extract(lines.split_many([(0, text.encode(), 1)]), DIALECTS)
    assert apart.facts.steps.equals(whole.facts.steps)


def test_losses_of_the_first_steps_of_its_training(tmp_path: Path) -> None:
    loss = "Epoch: 0, Step: {}, Rank: {}, loss = {}\n"
    pace = (
        "Model Parameters: 6.738 B, Latency: {}s, TFLOPs: 81.22, Samples/sec: 3.53, Time/seq 0.28s, Batch Size: 16, "
        "Sequence Length: 512\n"
    )
    ranks = [loss.format(step, rank, 2.5 - step - rank / 8) for step in (0, 1) for rank in range(3)]
    text = "".join(ranks[:3]) + pace.format("4.50") + "".join(ranks[3:]) + pace.format("4.25")
    tables = tables_of(tmp_path, text)
    (run,) = tables["runs"].to_dicts()
    assert (run["framework"], run["mbs"], run["seq_len"], run["steps_logged"]) == ("deepspeed", 16, 512, 2)
    steps = tables["steps"].sort("step").select("step", "loss", "step_time_s", "tflops_per_gpu_logged")
    assert steps.rows() == [(0, 2.25, 4.5, None), (1, 1.25, 4.25, None)]  # of equal ranks the last
    assert tables["rejects"].is_empty()
    assert tables_of(tmp_path, text + ENGINE)["steps"]["step"].to_list() == [10]
