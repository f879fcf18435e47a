"""Rules are valid data, apply where they say, and are scored by what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sweepscope.pipeline.errors import InputError
from sweepscope.pipeline.estimate.advice.recipe import in_words, walk
from sweepscope.pipeline.estimate.advice.rule_scores import (
    AGAINST,
    EVIDENCE,
    FOR,
    SCORES,
    UNTESTED,
    score,
    score_sets,
    weigh,
)
from sweepscope.pipeline.estimate.physics.profile import load_profiles
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.estimate.search.search import PHYSICS, search
from sweepscope.pipeline.reference.clusters import find_cluster
from sweepscope.pipeline.reference.models import LLAMA_2_7B
from sweepscope.pipeline.reference.rules import QUESTION, Book, Rule, Step, applicable, load_rules, question_of


def question(**changes: Any) -> dict[str, Any]:
    usual = {
        "params": 8e9,
        "num_gpus": 64,
        "num_nodes": 8,
        "gpus_per_node": 8,
        "seq_len": 4096,
        "gbs_tokens": 2**20,
        "is_moe": False,
        "is_gpu_poor": False,
    }
    return {**usual, **changes}


def ids(**changes: Any) -> set[str]:
    return {rule.id for rule in applicable(question(**changes))}


def test_every_rule_cites_a_section_of_a_document_and_has_its_own_name() -> None:
    book = load_rules()
    assert len({rule.id for rule in book.rules}) == len(book.rules) > 40
    assert {rule.document for rule in book.rules} == set(book.documents)
    assert all(rule.section and rule.says for rule in book.rules)
    assert [step.id for step in book.steps] == ["fit", "batch", "throughput"]


def test_size_borders_are_those_of_each_document() -> None:
    assert {"chapter-small", "heuristics-13b", "slides-small"} <= ids(params=8e9)
    assert {"chapter-medium", "heuristics-13b"} <= ids(params=12e9)
    assert {"chapter-medium", "heuristics-70b"} <= ids(params=70e9)
    assert "heuristics-large" in ids(params=80e9)
    assert "chapter-large" in ids(params=100e9)
    assert not {"chapter-small", "playbook-small", "notes-a"} & ids(params=10e9)


def test_scale_and_special_cases() -> None:
    assert {"chapter-8"} == {
        name for name in ids(num_gpus=8, num_nodes=1) if name in ("chapter-8", "chapter-16", "chapter-tp-inside")
    }
    assert "chapter-128" in ids(num_gpus=128)
    assert {"chapter-512", "playbook-512", "notes-c", "slides-scale"} <= ids(num_gpus=512)
    assert {"chapter-1024", "playbook-1024", "notes-d"} <= ids(num_gpus=1024)
    assert "notes-long" in ids(seq_len=32768)
    assert "chapter-long" not in ids(seq_len=32768)
    assert {"chapter-long", "playbook-long"} <= ids(seq_len=131072)
    assert {"chapter-moe", "slides-frontier-deepseek"} <= ids(is_moe=True)
    assert {"chapter-poor-recompute", "notes-poor"} <= ids(is_gpu_poor=True)
    assert "chapter-small" not in ids(is_gpu_poor=True)


def test_a_question_that_does_not_tell_meets_no_condition_on_it() -> None:
    assert "chapter-tp-first" not in ids(gpus_per_node=None)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"when": "params <"}, "is no condition"),
        ({"advice": "colour = 'red'"}, "asks for colour"),
        ({"when": "tp = 8"}, "asks for tp"),
        ({"step": "dance"}, "unknown document or step"),
    ],
)
def test_a_wrong_rule_is_named(tmp_path: Path, changed: dict[str, str], words: str) -> None:
    rule = {
        "id": "odd",
        "set": "s",
        "document": "d",
        "section": "1",
        "step": "fit",
        "says": "x",
        "when": "TRUE",
        "advice": "tp = 1",
    } | changed
    path = tmp_path / "rules.toml"
    lines = [
        "[documents.d]",
        'title = "D"',
        'short = "d"',
        "[[step]]",
        'id = "fit"',
        'name = "F"',
        'question = "?"',
        "[[rule]]",
    ]
    path.write_text("\n".join([*lines, *(f'{name} = "{value}"' for name, value in rule.items())]))
    with pytest.raises(InputError, match=f"odd.*{words}"):
        load_rules(path)


BOOK = Book(
    {"d": "Document"},
    {"d": "doc"},
    (Step("fit", "Fit", "?"),),
    (
        Rule("tp8", "s", "d", "1", "fit", "TP 8", "params < 10e9", "tp = 8"),
        Rule("tp1", "s", "d", "2", "fit", "TP 1", "params < 10e9", "tp = 1"),
        Rule("piped", "s", "d", "3", "fit", "many", "TRUE", "gas >= 16", "pp > 1"),
        Rule("large", "t", "d", "4", "fit", "large", "params > 100e9", "tp = 8"),
    ),
)


def ranked(*layouts: dict[str, Any], **cell: Any) -> pl.DataFrame:
    usual = {
        "origin": "measured",
        "model": "m",
        "num_nodes": 2,
        "num_gpus": 16,
        "seq_len": 4096,
        "gbs_tokens": 2**20,
        "accelerator": "H100-SXM-80GB",
        "gpus_per_node": None,
        "params": 7_000_000_000,
        "cp": None,
        "ep": None,
        "vpp": None,
        "mbs": 1,
        "gas": 16,
        "zero_stage": 1,
        "recompute": None,
        "pp": 1,
    }
    rows = [
        {
            **usual,
            **cell,
            "run_id": f"{cell.get('model', 'm')}{i}",
            "layout": f"L{i}",
            "dp": 16 // layout.get("tp", 1),
            **layout,
        }
        for i, layout in enumerate(layouts)
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


FIVE = (
    {"tp": 1, "tokens_per_s_per_gpu": 100.0},
    {"tp": 2, "tokens_per_s_per_gpu": 99.0},
    {"tp": 8, "tokens_per_s_per_gpu": 97.0},
    {"tp": 8, "mbs": 2, "tokens_per_s_per_gpu": 50.0},
    {"tp": 4, "tokens_per_s_per_gpu": 60.0},
)


def test_a_rule_holds_where_its_best_layout_is_within_two_percent() -> None:
    evidence = weigh(ranked(*FIVE), BOOK)
    assert evidence.schema == EVIDENCE
    told = {row["rule"]: row for row in evidence.iter_rows(named=True)}
    assert set(told) == {"tp8", "tp1"}  # no layout has a pipeline, the model is not large
    assert told["tp1"]["verdict"] == FOR
    assert told["tp1"]["is_winner"]
    lost = told["tp8"]
    assert (lost["verdict"], lost["advised"], lost["layouts"]) == (AGAINST, 2, 5)
    assert (lost["regret"], lost["typical_regret"], lost["other_regret"]) == pytest.approx((0.03, 0.265, 0.01))
    assert (lost["winner_run_id"], lost["advised_run_id"]) == ("m0", "m2")


def test_scores_count_tested_cells_and_name_runs() -> None:
    other = ranked(*({**one, "tokens_per_s_per_gpu": 200.0 if one["tp"] == 8 else 100.0} for one in FIVE), model="n")
    few = ranked(*FIVE[:4], model="o")
    scores = score(weigh(pl.concat([ranked(*FIVE), other, few]), BOOK), BOOK)
    assert scores.schema == SCORES
    tp8 = scores.row(by_predicate=pl.col("rule") == "tp8", named=True)
    assert (tp8["cells"], tp8["tested"], tp8["held"], tp8["hit_rate"], tp8["hit_rate_5"]) == (3, 2, 1, 0.5, 1.0)
    assert tp8["selects"] == pytest.approx(0.4)
    assert (tp8["runs_for"], tp8["runs_against"]) == (["n2"], ["m0"])
    large = scores.row(by_predicate=pl.col("rule") == "large", named=True)
    assert (large["cells"], large["tested"], large["hit_rate"], large["runs_for"]) == (0, 0, None, [])
    assert [row["verdict"] for row in weigh(few, BOOK).iter_rows(named=True)] == [UNTESTED, UNTESTED]


def test_a_set_holds_where_all_of_its_tested_rules_do() -> None:
    sets = {row["set"]: row for row in score_sets(weigh(ranked(*FIVE), BOOK), BOOK).iter_rows(named=True)}
    assert (sets["s"]["tested"], sets["s"]["held"], sets["s"]["regret"]) == (1, 0, pytest.approx(0.03))
    assert sets["t"]["tested"] is None


def test_among_narrows_what_is_compared() -> None:
    piped = [
        {"tp": 1, "pp": 2, "gas": gas, "tokens_per_s_per_gpu": speed}
        for gas, speed in ((4, 50.0), (8, 55.0), (16, 60.0), (32, 59.5), (2, 20.0))
    ]
    evidence = weigh(ranked({"tp": 1, "tokens_per_s_per_gpu": 100.0}, *piped), BOOK).filter(pl.col("rule") == "piped")
    assert evidence.select("verdict", "layouts", "advised").row(0) == (FOR, 5, 2)


def test_an_empty_store_tests_nothing() -> None:
    scores = score(weigh(ranked(*FIVE).head(0), BOOK), BOOK)
    assert scores["tested"].to_list() == [0, 0, 0, 0]


def small_request(num_gpus: int = 16) -> Request:
    cluster = find_cluster("H100-SXM-80GB")
    assert cluster is not None
    return Request(Question(LLAMA_2_7B, cluster, load_profiles()["hopper-nanotron"], 4096), num_gpus=num_gpus, gbs=256)


def test_the_question_of_a_request_has_every_name() -> None:
    asked = question_of(small_request())
    assert set(asked) == set(QUESTION)
    assert (asked["num_nodes"], asked["gbs_tokens"], asked["is_moe"], asked["is_gpu_poor"]) == (2, 2**20, False, False)
    assert question_of(small_request(2))["is_gpu_poor"]  # 54 GB of states on each of two


def test_the_recipe_says_who_follows_and_what_others_cost() -> None:
    request = small_request()
    pool = search(request, top=300, by=PHYSICS).layouts
    stops = walk(request, pool)
    assert [stop.step.id for stop in stops] == ["fit", "batch", "throughput"]
    assert stops[0].branch.startswith("GPU-rich: 6.74B parameters are 6.3 GiB of states")
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
    words = "\n".join(in_words(stops))
    assert "[chapter 9, Chapter 3, rule of thumb]" in words
    assert "cells" not in words  # nothing was scored


def test_the_recipe_tells_how_rules_did_on_the_store() -> None:
    request = small_request()
    scores = score(weigh(ranked(*FIVE)))
    stops = walk(request, search(request, top=50, by=PHYSICS).layouts, scores)
    words = "\n".join(in_words(stops))
    assert "held in 0 of 1 cells: First raise TP up to the node's size [chapter 9" in words
    assert "never tested here" in words
