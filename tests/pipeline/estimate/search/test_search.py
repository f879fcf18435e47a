"""Every layout once, each pruned one with a reason, and the best truly best."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from sweepscope.pipeline.estimate.advice.recipe import search_summary
from sweepscope.pipeline.estimate.physics.estimate import estimate
from sweepscope.pipeline.estimate.physics.layouts import SCHEDULES, Layouts
from sweepscope.pipeline.estimate.physics.profile import choose_profile, load_profiles
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.search.enumerate import BATCH, Request, blocks, divisors
from sweepscope.pipeline.estimate.search.layout_table import room_bytes
from sweepscope.pipeline.estimate.search.search import OUT_OF_MEMORY, search
from sweepscope.pipeline.reference.clusters import find_cluster
from sweepscope.pipeline.reference.model_shape import ModelShape
from sweepscope.pipeline.reference.models import LLAMA_2_7B, find_model, shape_of

DEFAULT = load_profiles()["default"]
H100 = find_cluster("H100 SXM")
assert H100 is not None


def request(shape: ModelShape = LLAMA_2_7B, *, gpus: int = 16, gbs: int = 64, **choices: object) -> Request:
    return Request(Question(shape, H100, DEFAULT, 4096), num_gpus=gpus, gbs=gbs, **choices)  # type: ignore[arg-type]


def every_layout(asked: Request) -> dict[tuple[int, ...], int]:
    """Reason code of each cell of the grid, by its layout."""
    names = ("dp", "tp", "pp", "cp", "ep", "mbs", "zero_stage", "recompute", "vpp")
    found = {}
    for block in blocks(asked):
        columns = [np.broadcast_to(getattr(block.at, name), block.codes.shape).ravel() for name in names]
        for *layout, code in zip(*columns, block.codes.ravel(), strict=True):
            key = tuple(int(value) for value in layout)
            assert key not in found
            found[key] = int(code)
    return found


def test_enumerates_each_layout_once_and_uses_every_accelerator() -> None:
    found = every_layout(request())
    assert all(dp * tp * pp * cp == 16 for dp, tp, pp, cp, *_ in found)


def test_agrees_with_counting_by_hand() -> None:
    # One node of 8, no CP, no interleaving, ZeRO-0: tp, pp and dp with tp x pp x dp = 8, micro-batches that divide 8/dp
    asked = request(gpus=8, gbs=8, max_cp=1, zero_stages=(0,), recompute=("none",), max_vpp=1)
    by_hand = {
        (dp, tp, pp, mbs)
        for tp, pp, mbs in itertools.product((1, 2, 4, 8), repeat=3)
        if 8 % (tp * pp) == 0 and (8 // (dp := 8 // (tp * pp))) % mbs == 0
    }
    launchable = {(dp, tp, pp, mbs) for (dp, tp, pp, _, _, mbs, *_), code in every_layout(asked).items() if code == 0}
    assert launchable == by_hand


def test_every_cell_is_either_kept_or_pruned_with_a_reason() -> None:
    found = search(request())
    assert found.fitting + sum(found.pruned.values()) == found.examined
    assert found.pruned[BATCH] > 0
    assert found.launchable - found.fitting == found.pruned.get(OUT_OF_MEMORY, 0)


def test_the_best_is_the_best_of_all_that_fit() -> None:
    asked = request(gpus=8, gbs=32)
    best = search(asked, top=1, margin=0.1).layouts.row(0, named=True)
    room = 0.9 * H100.memory_bytes - DEFAULT.outside_bytes
    speeds = []
    for block in blocks(asked):
        predicted = estimate(asked.asked, block.at)
        fits = (block.codes == 0) & (np.broadcast_to(predicted.stages.reserved, block.codes.shape) <= room)
        speeds.append(np.broadcast_to(predicted.tokens_per_s_per_gpu, block.codes.shape)[fits].max(initial=0.0))
    assert best["est_tokens_per_s_per_gpu"] == pytest.approx(max(speeds))


def test_a_grid_predicts_what_a_list_of_its_layouts_predicts() -> None:
    asked = request(shape_of(find_model("Mixtral 8x7B") or {}))
    block = next(blocks(asked))
    grid = estimate(asked.asked, block.at)
    listed = estimate(asked.asked, block.at[block.codes == 0])
    for name in ("step_time_s", "mem_bytes", "mfu"):
        cells = np.broadcast_to(getattr(grid, name), block.codes.shape)[block.codes == 0]
        assert cells == pytest.approx(getattr(listed, name), rel=1e-12)


def test_nothing_on_the_front_is_beaten_in_both() -> None:
    front = search(request()).front
    pairs = list(zip(front["est_tokens_per_s_per_gpu"], front["est_mem_reserved_bytes"], strict=True))
    assert all(not (other[0] >= one[0] and other[1] <= one[1]) for one, other in itertools.permutations(pairs, 2))
    assert front["est_tokens_per_s_per_gpu"].is_sorted(descending=True)


def test_a_larger_margin_never_makes_the_best_faster() -> None:
    best = [search(request(), top=1, margin=m).layouts["est_mfu"][0] for m in (0.0, 0.3, 0.6)]
    assert best == sorted(best, reverse=True)


def test_a_model_that_fits_nowhere_has_no_layouts() -> None:
    found = search(request(shape_of(find_model("Llama 3.1 405B") or {}), gpus=8))
    assert found.layouts.is_empty()
    assert found.leanest_bytes > H100.memory_bytes


def test_tells_the_recipe_in_the_searchs_own_figures() -> None:
    asked = request()
    found = search(asked)
    fit, batch, throughput, loss = search_summary(asked, found)
    best = found.layouts.row(0, named=True)
    assert f"{found.fitting:,} of {found.launchable:,} layouts" in fit
    assert f"64 sequences are dp {best['dp']} x gas {best['gas']} x micro-batch {best['mbs']}" in batch
    assert f"{100 * best['est_mfu']:.1f} % MFU" in throughput
    assert loss.startswith("Its largest loss is")


def test_divisors_are_exact_for_large_counts() -> None:
    assert len(divisors(3072)) == 22


def test_layouts_of_a_mask_are_a_list() -> None:
    at = Layouts.of(tp=np.array([[1.0], [2.0]]), mbs=np.array([[1.0, 4.0]]))
    chosen = at[np.array([[True, False], [True, True]])]
    assert chosen.tp.tolist() == [1, 2, 2]
    assert chosen.mbs.tolist() == [1, 1, 4]


def test_every_layout_says_how_its_layers_lie_and_how_much_memory_is_left() -> None:
    asked = request(gpus=24, gbs=48)
    found = search(asked, top=5000)
    for row in found.layouts.iter_rows(named=True):
        counts = [int(count) for count in row["stage_layers"].split("-")]
        assert (len(counts), sum(counts)) == (row["pp"], 32)
        assert row["est_mem_free_bytes"] == pytest.approx(room_bytes(asked) - row["est_mem_reserved_bytes"])
        assert row["est_mem_free_bytes"] >= 0.05 * H100.memory_bytes - 1
    uneven = found.layouts.filter(pl.col("pp") == 3)["stage_layers"].unique().to_list()
    assert uneven == ["11-11-10"]
    summary = search_summary(asked, replace(found, layouts=found.layouts.filter(pl.col("pp") == 3)))
    assert "11-11-10 layers on its stages" in summary[2]


LLAMA_3_405B = shape_of(find_model("Llama 3.1 405B") or {})


def test_the_layout_of_llama_3_is_searched_and_nothing_is_faster() -> None:
    # 2407.21783 table 4, first row: 8,192 H100, TP8 PP16, 126 layers in chunks of one (7 or 8 on each stage).
    question = Question(LLAMA_3_405B, H100, choose_profile("hopper", None), 8192)
    asked = Request(question, num_gpus=8192, gbs=2048, zero_stages=(2, 3))
    found = search(asked, top=20)
    assert found.layouts["tp"][0] == 8
    assert found.layouts["pp"][0] == 16
    assert found.layouts["vpp"][0] > 1
    published = Layouts.of(dp=64, tp=8, pp=16, vpp=8, gas=32, zero_stage=2, sequence_parallel=1, schedule=2)
    predicted = estimate(question, published)
    assert found.rank(float(predicted.tokens_per_s_per_gpu[0])) <= 0.02 * found.fitting
    assert predicted.mfu[0] == pytest.approx(0.43, rel=0.15)


def test_a_small_model_on_many_accelerators_is_not_sharded_over_all_of_them() -> None:
    # Gathers of every layer over 2,048 ranks pay 2,047 hops each: it was the favourite.
    asked = request(gpus=2048, gbs=2048)
    best = search(asked, top=1).layouts.row(0, named=True)
    assert best["zero_stage"] < 3


def test_schedules_and_groups_are_searched_where_they_are_asked_for() -> None:
    wide = request(gpus=64, gbs=128, schedules=SCHEDULES, shard_groups=("all", "node", 2))
    plain = search(request(gpus=64, gbs=128), top=5000)
    found = search(wide, top=50_000)
    layouts = found.layouts
    assert set(layouts["pipeline_schedule"]) == set(SCHEDULES)
    assert plain.layouts["dp_replicate"].unique().to_list() == [1]
    # Groups: the ranks of a node, or 2; never more copies than ranks, never a group of one rank.
    grouped = layouts.filter(pl.col("dp_replicate") > 1)
    ranks = grouped["dp"] * grouped["cp"] // grouped["dp_replicate"]
    inside = pl.Series([max(8 // tp, 1) for tp in grouped["tp"]])
    assert ((ranks == inside) | (ranks == 2)).all()
    assert ranks.min() == 2
    names = (
        "dp",
        "tp",
        "pp",
        "cp",
        "vpp",
        "gas",
        "mbs",
        "zero_stage",
        "dp_replicate",
        "recompute",
        "pipeline_schedule",
    )
    assert layouts.select(names).is_duplicated().sum() == 0
    assert sum(found.pruned.values()) + found.fitting == found.examined
    assert layouts["est_tokens_per_s_per_gpu"][0] >= plain.layouts["est_tokens_per_s_per_gpu"][0]


def test_zero_bubble_schedules_beat_1f1b_at_the_same_degrees() -> None:
    found = search(request(gpus=64, gbs=128, schedules=("1f1b", "zb-h1", "zb-v")), top=50_000).layouts
    one = found.filter(
        (pl.col("pp") == 8)
        & (pl.col("tp") == 2)
        & (pl.col("mbs") == 1)
        & (pl.col("zero_stage") == 1)
        & (pl.col("cp") == 1)
        & (pl.col("recompute") == "none")
    )
    step = dict(zip(one["pipeline_schedule"], one["est_step_time_s"], strict=True))
    assert step["zb-v"] < step["zb-h1"] < step["1f1b"]
