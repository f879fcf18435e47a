"""Rules are scored by what was measured."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

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
from sweepscope.pipeline.reference.rules import Book, Rule, Step

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
    by_rule = {row["rule"]: row for row in evidence.iter_rows(named=True)}
    assert set(by_rule) == {"tp8", "tp1"}  # no layout has a pipeline, the model is not large
    assert by_rule["tp1"]["verdict"] == FOR
    assert by_rule["tp1"]["is_winner"]
    lost = by_rule["tp8"]
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
