"""The flowchart takes a question's own way, and the rules of another branch are those of the question changed so."""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.estimate.advice.applicable_rules import question_of
from sweepscope.pipeline.estimate.advice.branches import BOTTLENECKS, bottleneck, chosen_branches, decisions, questions
from sweepscope.pipeline.estimate.advice.recipe import Stop, walk
from sweepscope.pipeline.estimate.search.search import PHYSICS, search
from tests.pipeline.estimate.advice.requests import small_request

REQUEST = small_request()
POOL = search(REQUEST, top=60, by=PHYSICS).layouts


def rules(stops: list[Stop]) -> set[str]:
    return {advice.rule.id for stop in stops for advice in stop.advice}


def test_the_own_way_asks_the_question_as_it_is() -> None:
    made = decisions(REQUEST, POOL)
    chosen = chosen_branches(made, {})
    own = question_of(REQUEST)
    assert {decision.id: decision.own for decision in made}["memory"] == "rich"
    assert questions(REQUEST, made, chosen)["fit"] == own
    assert questions(REQUEST, made, chosen)["throughput"] == own


def test_another_branch_has_the_rules_of_that_case() -> None:
    made = decisions(REQUEST, POOL)
    own = rules(walk(REQUEST, POOL, made=made, chosen=chosen_branches(made, {})))
    poor = rules(walk(REQUEST, POOL, made=made, chosen=chosen_branches(made, {"memory": "poor", "size": "large"})))
    assert "chapter-small" in own
    assert "chapter-poor-recompute" not in own
    assert "chapter-poor-recompute" in poor
    assert "heuristics-large" in poor
    assert "chapter-small" not in poor


def test_a_bottleneck_shows_the_rules_that_act_on_it() -> None:
    made = decisions(REQUEST, POOL)
    for name, (_, _, moves) in BOTTLENECKS.items():
        (stop,) = walk(REQUEST, POOL, made=made, chosen=chosen_branches(made, {"bottleneck": name}))[2:]
        for advice in stop.advice:
            assert set(moves) & set(pl.sql_expr(advice.rule.advice).meta.root_names())


def test_the_bottleneck_is_what_the_best_layout_loses_most_to() -> None:
    row = {f"est_time_{part}_s": 0.0 for _, parts, _ in BOTTLENECKS.values() for part in parts}
    assert bottleneck(pl.DataFrame([row])) is None
    assert bottleneck(pl.DataFrame([row | {"est_time_bubble_s": 1.0, "est_time_dp_s": 0.6}])) == "pp"
    assert bottleneck(POOL.clear()) is None


def test_an_address_with_an_unknown_branch_takes_the_own_way() -> None:
    made = decisions(REQUEST, POOL)
    assert chosen_branches(made, {"memory": "middling"}) == chosen_branches(made, {})
