"""Plans: within their budget, no two runs alike, and what each purpose asks for."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl
import pytest

from sweepscope.pipeline.derive.complete import complete_runs
from sweepscope.pipeline.estimate.advice.near_equal import are_alike, features
from sweepscope.pipeline.estimate.physics.profile import choose_profile
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.planning.candidates import Terms, oom_probability, pool_of
from sweepscope.pipeline.estimate.planning.order import by_gain
from sweepscope.pipeline.estimate.planning.plan import TOO_DEAR, Budget, Plan, make_plan
from sweepscope.pipeline.estimate.planning.planned_requests import request_of
from sweepscope.pipeline.estimate.planning.planned_rows import Heading, new_plan_id, planned_rows
from sweepscope.pipeline.estimate.rows.stated_facts import with_usual_facts
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.ingest.validate import validate
from sweepscope.pipeline.reference.clusters import find_cluster
from sweepscope.pipeline.reference.layout_text import layout_key
from sweepscope.pipeline.reference.models import find_model, shape_of
from sweepscope.schemas.tables.plans import PLANNED_RUNS
from sweepscope.schemas.tables.runs import RUNS
from sweepscope.schemas.vocab.plans import PLAN_PURPOSE

TERMS = Terms(steps=20)


def request(nodes: int = 2, **changes: Any) -> Request:
    cluster = find_cluster("H100-SXM-80GB")
    row = find_model("Llama 3 8B")
    assert cluster
    assert row
    profile = with_usual_facts(choose_profile(cluster.generation, "nanotron"), "nanotron")
    asked = Question(shape_of(row), cluster, profile, 4096)
    return Request(asked, num_gpus=8 * nodes, gbs=256, **{"max_cp": 1, **changes})


def measured(of: Request, layout: dict[str, Any], *, seconds: float, status: str = "completed") -> pl.DataFrame:
    """A row of `runs` of the request's cell."""
    row = {
        "run_id": "m1",
        "origin": "measured",
        "framework": "nanotron",
        "status": status,
        "model": "Llama 3 8B",
        "accelerator": "H100-SXM-80GB",
        "num_nodes": of.num_gpus // 8,
        "gpus_per_node": 8,
        "num_gpus": of.num_gpus,
        "seq_len": 4096,
        "gbs_tokens": of.gbs * 4096,
        "step_time_s": seconds,
        **layout,
    }
    return RUNS.conform(complete_runs(RUNS.conform(pl.DataFrame([row]))).runs)


def planned(plan: Plan) -> list[dict[str, Any]]:
    return [{**pick.pool.rows.row(pick.row, named=True), "num_gpus": pick.pool.request.num_gpus} for pick in plan.picks]


def test_of_a_trainer_that_may_be_eager_or_compiled_less_is_sure() -> None:
    """Sequences so short that launches count: the slow end is that of eager runs."""

    def slow_end(execution: str | None) -> float:
        profile = with_usual_facts(choose_profile("hopper", None), None, {"execution": execution})
        of = request()
        short = replace(of, asked=replace(of.asked, profile=profile, seq_len=128), gbs=16)
        rows = pool_of(short, RUNS.empty(), TERMS).rows
        return float((rows["believed_hi_s"] / rows["believed_step_time_s"]).median())

    assert slow_end(None) > 1.2 * slow_end("graphs")


@pytest.mark.parametrize("purpose", PLAN_PURPOSE)
@pytest.mark.parametrize("hours", [3.0, 11.0])
def test_a_plan_keeps_to_its_budget_and_its_number_of_runs(purpose: str, hours: float) -> None:
    plan = make_plan([(request(), RUNS.empty())], purpose, TERMS, Budget(hours, 4))
    assert 0 < len(plan.picks) <= 4
    assert plan.hours <= hours
    assert len({layout_key(row) for row in planned(plan)}) == len(plan.picks)


def test_no_two_runs_of_a_cell_are_near_equal() -> None:
    plan = make_plan([(request(), RUNS.empty())], "best", TERMS, Budget(100.0, 12))
    rows = pl.DataFrame(planned(plan), infer_schema_length=None)
    points, times = features(rows), rows["believed_step_time_s"].to_numpy()
    assert rows.height > 3
    for row in range(rows.height):
        assert are_alike(points, times, row).sum() == 1


def test_scaling_plans_every_node_count_before_a_second_layout_of_any() -> None:
    cells = [(request(nodes), RUNS.empty()) for nodes in (1, 2, 4)]
    plan = make_plan(cells, "scaling", TERMS, Budget(100.0, 6))
    assert [row["num_gpus"] for row in planned(plan)] == [8, 16, 32] * 2


def test_an_ablation_turns_one_knob_of_the_fastest_measured_layout() -> None:
    of = request()
    base = {"dp": 4, "tp": 4, "pp": 1, "cp": 1, "mbs": 2, "gas": 32, "zero_stage": 1, "recompute": "none"}
    plan = make_plan([(of, measured(of, base, seconds=9.0))], "ablation", TERMS, Budget(100.0, 20))
    knobs = ("tp", "pp", "mbs", "zero_stage", "recompute", "vpp", "dp_replicate")
    rows = planned(plan)
    assert rows
    for row in rows:
        turned = [name for name in knobs if row[name] != base.get(name, 1)]
        assert 1 <= len(turned) <= 2, "one knob, and one that has to follow it"
    assert {name for row in rows for name in knobs if row[name] != base.get(name, 1)} >= {
        "tp",
        "pp",
        "mbs",
        "recompute",
    }


def test_a_plan_for_memory_is_of_layouts_that_may_or_may_not_fit() -> None:
    plan = make_plan([(request(), RUNS.empty())], "memory", TERMS, Budget(30.0, 5))
    assert all(0.01 < row["oom_probability"] < 0.99 for row in planned(plan))
    others = make_plan([(request(), RUNS.empty())], "best", TERMS, Budget(30.0, 5))
    assert all(row["oom_probability"] <= 0.5 for row in planned(others))


def test_what_was_measured_is_not_planned_again_and_sets_what_is_to_be_beaten() -> None:
    of = request()
    first = planned(make_plan([(of, RUNS.empty())], "best", TERMS, Budget(5.0, 1)))[0]
    layout = {name: first[name] for name in ("dp", "tp", "pp", "cp", "mbs", "gas", "zero_stage", "recompute")}
    slow = make_plan([(of, measured(of, layout, seconds=50.0))], "best", TERMS, Budget(50.0, 5))
    assert layout_key(first) not in {layout_key(row) for row in planned(slow)}
    assert all(pick.gain is not None and pick.gain > 0 for pick in slow.picks)
    least = 0.9 * min(pool_of(of, RUNS.empty(), TERMS).rows["est_step_time_s"])
    fast = make_plan([(of, measured(of, layout, seconds=least))], "best", TERMS, Budget(50.0, 5))
    assert not fast.picks, "nothing is believed to beat a run that is faster than physics allows the others"


def test_what_a_framework_refuses_is_left_out_and_counted() -> None:
    def refuse(row: dict[str, Any]) -> str | None:
        return "no tensor parallelism" if row["tp"] > 1 else None

    plan = make_plan([(request(), RUNS.empty())], "best", TERMS, Budget(50.0, 5), refuse)
    assert plan.picks
    assert all(row["tp"] == 1 for row in planned(plan))
    assert plan.excluded["no tensor parallelism"] > 0


def test_degrees_stay_below_their_limits() -> None:
    pool = pool_of(request(max_tp=2, max_pp=1), RUNS.empty(), TERMS)
    assert pool.rows["tp"].max() == 2
    assert pool.rows["pp"].max() == 1


def test_a_pick_makes_layouts_like_it_more_certain() -> None:
    picks = [pick for pick, _ in zip(by_gain(pool_of(request(), RUNS.empty(), TERMS)), range(3), strict=False)]
    assert picks[0].gain is None
    assert all(pick.gain is not None for pick in picks[1:])


def test_a_budget_that_nothing_fits_into_plans_nothing() -> None:
    plan = make_plan([(request(), RUNS.empty())], "best", TERMS, Budget(0.001, 5))
    assert not plan.picks
    assert plan.excluded[TOO_DEAR] > 0


def test_the_chance_to_run_out_of_memory_follows_the_interval() -> None:
    rows = pl.DataFrame(
        {
            "est_mem_bytes": [40.0, 60.0, 80.0, 60.0],
            "est_mem_reserved_bytes": [44.0, 66.0, 88.0, 66.0],
            "est_mem_lo_bytes": [30.0, 50.0, 70.0, None],
            "est_mem_hi_bytes": [50.0, 70.0, 90.0, None],
        }
    )
    chance = oom_probability(rows, 66.0)
    assert chance[0] < 0.1
    assert 0.3 < chance[1] < 0.6
    assert chance[2] > 0.9
    assert chance[3] is None
    middle = float(np.sqrt(50.0 * 70.0)) * 1.1
    assert oom_probability(rows[1:2], middle)[0] == pytest.approx(0.5)


def test_rows_of_a_plan_keep_the_rules_of_their_table() -> None:
    cells = [(request(nodes), RUNS.empty()) for nodes in (1, 2)]
    heading = Heading("scaling", "nanotron", "Llama 3 8B", 20, datetime(2026, 1, 1))
    name = new_plan_id(heading, {}, frozenset())
    assert new_plan_id(heading, {}, frozenset({name})) != name
    rows = planned_rows(name, make_plan(cells, "scaling", TERMS, Budget(20.0, 6)).picks, heading, after=4)
    assert validate(PLANNED_RUNS, rows).rejects.is_empty()
    assert rows["planned_run_id"][0] == f"{name}-005"
    ranks = rows["dp"] * rows["tp"] * rows["pp"] * rows["cp"]
    assert ranks.equals(rows["num_gpus"].alias("dp"))
    assert (rows["dp"] * rows["mbs"] * rows["gas"]).to_list() == rows["gbs"].to_list()
    assert shape_of(rows.row(0, named=True)) == cells[0][0].asked.shape
    assert (rows["walltime_s"] >= 20 * rows["believed_hi_s"]).all()
    empty = planned_rows(name, (), replace(heading, steps=1))
    assert empty.is_empty()


@pytest.mark.parametrize(("stated", "asked"), [("fp8", "fp8"), ("bf16", "bf16"), (None, "bf16")])
def test_a_planned_run_is_asked_again_in_its_precision(stated: str | None, asked: str) -> None:
    plan = make_plan([(request(1), RUNS.empty())], "scaling", TERMS, Budget(20.0, 1))
    heading = Heading("scaling", None, "Llama 3 8B", 20, datetime(2026, 1, 1))
    row = planned_rows("plan-000001", plan.picks, heading).row(0, named=True)
    assert row["precision"] == "bf16"
    assert request_of({**row, "precision": stated}, choose_profile).asked.precision == asked
