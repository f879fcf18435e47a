"""The view of rule scores says what the scores in Python say, of the same layouts."""

from __future__ import annotations

import polars as pl
import pytest

from sweepscope.pipeline.estimate.advice.rule_scores import score, weigh
from sweepscope.pipeline.reference.rules import load_rules
from sweepscope.pipeline.store.rule_scores_sql import with_rules
from tests.run_rows import completed_frame, open_store, run_row

SAME = {"cells": "rule_cells", "tested": "cells_tested", "held": "cells_held"}
FIGURES = ("hit_rate", "selects", "winner_rate", "regret", "typical_regret", "other_regret")


def layouts(origin: str, nodes: int) -> list[dict[str, object]]:
    """Eight layouts of one cell, TP 2 the fastest; sharding and pipelines vary."""
    gpus = 8 * nodes
    meshes = [(1, 1, 0), (2, 1, 1), (4, 1, 1), (8, 1, 2), (1, 2, 1), (2, 2, 1), (8, 1, 3), (1, 1, 3)]
    return [
        run_row(
            f"{origin}-{nodes}-{place}",
            origin=origin,
            num_nodes=nodes,
            num_gpus=gpus,
            dp=gpus // (tp * pp),
            tp=tp,
            pp=pp,
            zero_stage=zero,
            mbs=1,
            gas=256 * tp * pp // gpus,
            tokens_per_s_per_gpu=10_000.0 - 700 * abs(tp - 2) - 300 * (pp - 1) - 10 * zero,
        )
        for place, (tp, pp, zero) in enumerate(meshes)
    ]


def test_view_and_python_agree_on_every_rule_and_origin() -> None:
    rows = [*layouts("measured", 1), *layouts("measured", 4), *layouts("published", 16)]
    with open_store(completed_frame(*rows)) as connection:
        view = connection.sql("SELECT * FROM rule_scores").pl()
        ranked = connection.sql(
            "SELECT ranked_layouts.*, runs.num_experts FROM ranked_layouts JOIN runs USING (run_id)"
        ).pl()
    assert set(view["origin"]) == {"measured", "published"}
    assert view["cells_tested"].sum() > 10
    assert 0 < view["cells_held"].sum() < view["cells_tested"].sum()
    for origin in ("measured", "published"):
        told = score(weigh(ranked.filter(origin=origin))).filter(pl.col("cells") > 0).rename(SAME).sort("rule")
        own = view.filter(origin=origin).sort("rule_id")
        assert own["rule_id"].to_list() == told["rule"].to_list()
        assert own.select(SAME.values()).rows() == told.select(SAME.values()).rows()
        for name in FIGURES:
            assert own[name].to_list() == pytest.approx(told[name].to_list(), nan_ok=True), name
        names = ("rule_set", "document", "section", "recipe_step", "says")
        known = {rule.id: rule for rule in load_rules().rules}
        for row in own.select("rule_id", *names).iter_rows():
            rule = known[row[0]]
            assert row[1:] == (rule.set, load_rules().title(rule), rule.section, rule.step, rule.says)


def test_other_views_are_left_as_they_are() -> None:
    assert with_rules("CREATE VIEW one AS SELECT 1") == "CREATE VIEW one AS SELECT 1"
