from __future__ import annotations

from sweepscope.dashboard.format.metrics import METRICS, performance
from sweepscope.dashboard.text.cell import cell_name, certainty, hover, lead
from tests.dashboard.grid_rows import Row, cell, empty, grid, only


def settled(**changes: object) -> Row:
    return only(grid(cell(**changes)))


def test_a_lead_is_a_difference_of_throughput() -> None:
    assert lead(settled()).replace("\xa0", " ") == "5.8 % faster than the runner-up"
    assert lead(settled(margin=1.06)).replace("\xa0", " ") == "2.1 × as fast as the runner-up"
    assert lead(settled(margin=0.0004)).replace("\xa0", " ") == "under 0.1 % faster than the runner-up"


def test_a_lead_over_another_framework_names_it() -> None:
    assert lead(settled(runner_up_framework="torchtitan")).endswith(" faster than the runner-up in torchtitan")
    assert lead(settled(runner_up_framework=None)).endswith(" faster than the runner-up")


def test_a_lead_over_another_version_or_cluster_names_it() -> None:
    assert lead(settled(framework_version="2", runner_up_framework_version="1")).endswith("the runner-up in version 1")
    assert lead(settled(cluster="North")).endswith("the runner-up on an unknown cluster")
    same = settled(torch_version="2.4", runner_up_torch_version="2.3", runner_up_layout=settled()["layout"])
    assert lead(same).endswith(" faster than the same layout with torch 2.3")


def test_without_mfu_the_performance_is_the_throughput() -> None:
    assert performance(settled(mfu=None)) == "6,028 tokens/s/GPU"


def test_a_margin_within_the_noise_is_a_tie() -> None:
    tie = settled(margin=0.009, is_tie=True)
    assert lead(tie) == "level with the runner-up"
    assert "repeat both to decide" in certainty(tie)


def test_one_run_proves_nothing() -> None:
    assert certainty(settled()) == " The winner ran once, so treat the lead as likely, not proven."


def test_repeats_say_how_sure_a_lead_is() -> None:
    text = certainty(settled(repeats=3, repeat_spread=0.004, noise=0.004))
    assert text.replace("\xa0", " ") == " The winner ran 3 times, and the lead exceeds their spread of 0.4 %."


def test_a_single_layout_leads_nobody() -> None:
    alone = settled(runner_up_run_id=None, margin=None)
    assert lead(alone) == "the only layout that completed"
    assert certainty(alone) == ""


def test_a_place_names_gpus_where_nodes_do_not_tell() -> None:
    frame = grid(cell("tiny", 1, num_gpus=1), cell("tiny", 1, num_gpus=4))
    assert [cell_name(row) for row in frame.iter_rows(named=True)] == [
        "tiny on 1 node with 1 GPU",
        "tiny on 1 node with 4 GPUs",
    ]
    assert cell_name(settled()) == "8.86B on 16 nodes"


def test_a_hover_has_five_lines_at_most() -> None:
    for metric in METRICS.values():
        assert hover(settled(), metric).count("<br>") <= 4
        assert hover(only(grid(empty(cell_reason="57 of 57 failed"))), metric).count("<br>") <= 4


def test_a_hover_escapes_other_peoples_names() -> None:
    text = hover(settled(model="<img src=x>", layout="<b>"), METRICS["mfu"])
    assert "<img" not in text
    assert "&lt;b&gt;" in text
