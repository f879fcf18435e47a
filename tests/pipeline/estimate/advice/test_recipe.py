"""The recipe compares each rule with the layouts of a search."""

from __future__ import annotations

import polars as pl
import pytest

from sweepscope.pipeline.estimate.advice.recipe import recipe_lines, walk
from sweepscope.pipeline.estimate.advice.rule_scores import score, weigh
from sweepscope.pipeline.estimate.search.search import PHYSICS, search
from tests.pipeline.estimate.advice.requests import small_request
from tests.pipeline.estimate.advice.test_rule_scores import FIVE, ranked


def test_the_recipe_says_who_follows_and_what_others_cost() -> None:
    request = small_request()
    pool = search(request, top=300, by=PHYSICS).layouts
    stops = walk(request, pool)
    assert [stop.step.id for stop in stops] == ["fit", "batch", "throughput"]
    assert stops[0].branch.startswith("GPU-rich: 6.74B parameters are 7.1 GiB of states")
    advice = {one.rule.id: one for stop in stops for one in stop.advice}
    best = pool.row(0, named=True)
    inside = advice["chapter-tp-inside"]
    assert inside.is_followed is (best["tp"] <= 8)
    for one in advice.values():
        if one.is_followed:
            assert one.cost == pytest.approx(0.0)
        assert one.cost is None or 0.0 <= one.cost < 1.0
    first = advice["slides-tp"]
    fastest = pool.filter(pl.col("tp") > 1).row(0, named=True)
    assert first.cost == pytest.approx(1 - fastest["est_tokens_per_s_per_gpu"] / best["est_tokens_per_s_per_gpu"])
    assert advice["slides-zero3"].layout is None or "Z3" in advice["slides-zero3"].layout
    words = "\n".join(recipe_lines(stops))
    assert "[chapter 9, Chapter 3, rule of thumb]" in words
    assert "cells" not in words  # nothing was scored


def test_the_recipe_tells_how_rules_did_on_the_store() -> None:
    request = small_request()
    scores = score(weigh(ranked(*FIVE)))
    stops = walk(request, search(request, top=50, by=PHYSICS).layouts, scores)
    words = "\n".join(recipe_lines(stops))
    assert "held in 0 of 1 cells: First raise TP up to the node's size [chapter 9" in words
    assert "never tested here" in words
