from __future__ import annotations

from sweepscope.dashboard.format.metrics import METRICS, performance
from sweepscope.dashboard.text.cell import cell_name, certainty, hover, lead, noise, repeats
from sweepscope.schemas import vocab
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
    assert lead(tie).replace("\xa0", " ") == "0.9 % ahead of the runner-up, within the noise"
    assert lead(settled(margin=0.0, is_tie=True)) == "level with the runner-up, within the noise"
    assert certainty(tie).endswith(" Repeat both to decide.")


def test_a_lead_has_its_chance() -> None:
    assert certainty(settled()).replace("\xa0", " ") == (
        " Chance that it is the best of 114 layouts: 66 % (run-to-run noise 5.0 %)."
    )
    sure = certainty(settled(layouts_completed=2, chance_best=0.999)).replace("\xa0", " ")
    assert sure == " Chance that it is the best of the two: over 99 % (run-to-run noise 5.0 %)."


def test_noise_says_what_it_is_known_from() -> None:
    assert (
        noise(settled()).replace("\xa0", " ") == "5.0 % from run to run, assumed from bundled sweeps, no repeats here"
    )
    pooled = settled(noise_basis="framework", noise_repeats=3)
    assert noise(pooled).replace("\xa0", " ") == "5.0 % from run to run, from 3 repeats on 16 nodes"


def test_every_basis_of_noise_has_its_words() -> None:
    found = {noise(settled(noise_basis=basis, noise_repeats=1)) for basis in vocab.NOISE_BASIS}
    assert len(found) == len(vocab.NOISE_BASIS)


def test_repeats_are_listed_with_their_mean_and_interval() -> None:
    of_three = settled(repeats=3, repeat_speeds="5900 6000 6100", mean_tokens_per_s_per_gpu=6000.0)
    assert repeats(of_three) == "3 runs (5,900, 6,000, 6,100), mean 6,000; 95\xa0% interval 5,465 to 6,649".replace(
        "\xa0", " "
    )
    assert repeats(settled()) == "1 run, no repeat; 95 % interval 5,465 to 6,649"


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
