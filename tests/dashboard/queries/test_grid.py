"""The grid's queries over a real DuckDB store with the real views."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, log, sqrt
from statistics import NormalDist

import duckdb
import pytest

from sweepscope.dashboard.queries import cells, overview, scaling, slices
from sweepscope.dashboard.queries import run as run_queries
from sweepscope.dashboard.queries.query import Query
from sweepscope.dashboard.selection.filters import Filters, Range
from sweepscope.dashboard.selection.slices import Slice, resolve_slice
from sweepscope.dashboard.view_models import cells as cell_models
from tests.run_rows import Row, completed_frame, open_store, run_row

_ALL = Slice("measured", "H100-SXM-80GB", 4096, 1_048_576)
_MONDAY = Slice("measured", "H100-SXM-80GB", 4096, 1_048_576, "monday")


def _run(
    run_id: str, *, nodes: int = 1, dp: int = 8, tp: int = 1, speed: float | None = 40_000.0, **more: object
) -> Row:
    gas = 256 // (dp * 2) or 1
    return run_row(
        run_id,
        num_nodes=nodes,
        num_gpus=8 * nodes,
        dp=dp,
        tp=tp,
        gas=gas,
        tokens_per_s_per_gpu=speed,
        status="completed" if speed else "oom",
        **more,
    )


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    rows = [
        _run("a", sweep="monday"),
        _run("b", sweep="monday", dp=4, tp=2, speed=39_000.0),
        _run("b2", sweep="tuesday", dp=4, tp=2, speed=39_200.0),
        _run("c", sweep="monday", nodes=2, dp=16, speed=38_000.0),
        _run("d", sweep="monday", nodes=2, dp=8, tp=2, speed=None),
        _run("e", sweep="monday", nodes=4, dp=16, tp=2, speed=None),
        _run("f", sweep="tuesday", nodes=4, dp=16, tp=2, speed=None, framework="megatron"),
        _run("g", sweep="tuesday", num_layers=32, model="Llama 2.4B", speed=20_000.0),
        _run("h", sweep="other", seq_len=8192, gbs=128, gbs_tokens=1_048_576, speed=30_000.0),
        _run("p", sweep="paper", origin="published", speed=99_000.0),
    ]
    with open_store(completed_frame(*rows)) as connection:
        yield connection


def test_cells_hold_the_winner_and_the_runner_up(con: duckdb.DuckDBPyConnection) -> None:
    frame = cells.cells(_ALL, Filters()).run(con)
    first = frame.row(0, named=True)
    assert (first["num_nodes"], first["run_id"], first["layout"]) == (1, "a", "DP8 TP1 PP1 · GAS16 MBS2 · Z0")
    assert first["runner_up_layout"] == "DP4 TP2 PP1 · GAS32 MBS2 · Z0"
    assert first["margin"] == pytest.approx(40_000 / 39_100 - 1)
    # 1 % on one node as bundled, drawn towards the one repeat, which is 200 / 39,100 from the other run
    one_run = sqrt((4 * 0.01**2 + log(39_200 / 39_000) ** 2 / 2) / 5)
    assert first["noise"] == pytest.approx(exp(one_run * sqrt(1 + 1 / 2)) - 1)
    assert (first["run_noise"], first["noise_basis"], first["noise_repeats"]) == (
        pytest.approx(one_run),
        "framework",
        1,
    )
    assert first["chance_best"] == pytest.approx(
        NormalDist().cdf(log(40_000 / 39_100) / (one_run * sqrt(1.5))), abs=1e-3
    )


def test_a_cell_of_several_versions_has_the_best_of_each_as_a_row_of_its_own() -> None:
    rows = [
        _run("old", framework_version="1.0", speed=16_388.0, sweep="monday"),
        _run("old2", framework_version="1.0", speed=16_400.0, sweep="monday"),
        _run("new", framework_version="2.0", speed=27_313.0, sweep="tuesday"),
        _run("alone", nodes=2, dp=16, framework_version="2.0", sweep="tuesday"),
    ]
    with open_store(completed_frame(*rows)) as connection:
        first, second = cells.cells(_ALL, Filters()).run(connection).to_dicts()
        ranked = cells.ranking(_ALL, Filters(), first).run(connection)
        of_monday = cells.cells(_MONDAY, Filters()).run(connection).row(0, named=True)
        place = run_queries.place_in_cell("old2").run(connection).row(0, named=True)
    assert (first["run_id"], first["framework_version"], first["repeats"]) == ("new", "2.0", 1)
    assert (first["runner_up_framework_version"], first["differing"]) == ("1.0", ["framework_version"])
    assert first["runner_up_tokens_per_s_per_gpu"] == 16_394.0
    assert (second["run_id"], second["differing"]) == ("alone", [])
    assert ranked["framework_version"].to_list() == ["2.0", "1.0"]
    assert ranked["repeats"].to_list() == [1, 2]
    assert (of_monday["framework_version"], of_monday["runner_up_run_id"]) == ("1.0", None)
    assert (place["rank_in_cell"], place["framework_version"], place["winner_framework_version"]) == (2, "1.0", "2.0")


def test_a_sweep_is_shown_whatever_its_name_and_apart_from_one_of_another_origin() -> None:
    rows = [
        _run("a", sweep="tp, then pp"),
        _run("b", sweep="other", dp=4, tp=2),
        _run("c", sweep="tp, then pp", origin="published", dp=4, tp=2),
    ]
    chosen = Slice("measured", "H100-SXM-80GB", 4096, 1_048_576, "tp, then pp")
    with open_store(completed_frame(*rows)) as connection:
        assert cells.cells(chosen, Filters()).run(connection)["run_id"].to_list() == ["a"]
        assert cells.ranking(chosen, Filters()).run(connection)["run_id"].to_list() == ["a"]


def test_without_filters_cells_agree_with_the_views(con: duckdb.DuckDBPyConnection) -> None:
    shown = cells.cells(_ALL, Filters()).run(con)
    for table in ("best_configs", "grid_cells"):
        rows = con.sql(f"SELECT * FROM {table} WHERE origin = 'measured' AND seq_len = 4096").pl().to_dicts()
        view = {(row["model"], row["num_nodes"]): row for row in rows}
        for row in shown.iter_rows(named=True):
            expected = view.get((row["model"], row["num_nodes"]))
            assert row["run_id"] == (expected["run_id"] if expected else None)
            if expected and table == "best_configs":
                assert row["margin"] == expected["margin"]
                assert row["is_tie"] == expected["is_tie"]
                assert row["chance_best"] == expected["chance_best"]
            if expected and table == "grid_cells":
                assert row["cell_state"] == expected["cell_state"]


def test_states_settled_here_are_those_of_the_view(con: duckdb.DuckDBPyConnection) -> None:
    # a filter that every run passes takes the path that derives states from outcomes
    everything = Filters(dp=Range(1))
    narrowed = cell_models.with_outcomes(
        cells.cells(_ALL, everything).run(con), cells.outcomes(_ALL, everything).run(con), everything
    )
    view = con.sql(
        "SELECT model, num_nodes, cell_state FROM grid_cells WHERE origin = 'measured' AND seq_len = 4096"
    ).pl()
    assert set(narrowed.select("model", "num_nodes", "cell_state").rows()) == set(view.rows())


def test_layout_filters_choose_another_winner(con: duckdb.DuckDBPyConnection) -> None:
    frame = cells.cells(_ALL, Filters(tp=Range(2))).run(con)
    winners = dict(frame.select("num_nodes", "layout").head(3).iter_rows())
    assert winners == {1: "DP4 TP2 PP1 · GAS32 MBS2 · Z0", 2: None, 4: None}


def test_outcomes_count_what_passes_the_filters(con: duckdb.DuckDBPyConnection) -> None:
    rows = cells.outcomes(_ALL, Filters(framework=("megatron",))).run(con)
    assert rows.select("num_nodes", "status", "runs").rows() == [(4, "oom", 1)]


def test_a_single_sweep_shows_its_own_cells_and_winners_only(con: duckdb.DuckDBPyConnection) -> None:
    frame = cells.cells(_MONDAY, Filters()).run(con)
    assert set(frame["model"]) == {"Llama 1.34B"}
    assert cells.outcomes(_MONDAY, Filters()).run(con)["runs"].sum() == 5
    assert overview.repeats(_MONDAY).run(con).row(0) == (
        3,
        1,
    )  # the layout of b counts, although b2 of another sweep stands for it


def test_the_ranking_is_of_one_cell_or_of_the_slice(con: duckdb.DuckDBPyConnection) -> None:
    cell = cells.cells(_ALL, Filters()).run(con).row(0, named=True)
    assert cells.ranking(_ALL, Filters(), cell).run(con)["rank_in_cell"].to_list() == [1, 2]
    assert cells.ranking(_ALL, Filters()).run(con).height == 4


def test_the_ranking_states_leads_as_the_best_configurations_do(con: duckdb.DuckDBPyConnection) -> None:
    cell = cells.cells(_ALL, Filters()).run(con).row(0, named=True)
    ranked = cells.ranking(_ALL, Filters(), cell).run(con)
    assert ranked["winner_lead"].to_list() == pytest.approx([0, cell["margin"]])
    assert ranked["ties_with_first"].to_list() == [True, False]


def test_facets_hold_the_values_of_the_slice(con: duckdb.DuckDBPyConnection) -> None:
    row = cells.facets(_ALL).run(con).row(0, named=True)
    assert (row["tp"], row["framework"], row["ep"]) == ([1, 2], ["megatron", "nanotron"], None)


def test_the_slices_of_a_store(con: duckdb.DuckDBPyConnection) -> None:
    frame = slices.slices().run(con)
    assert frame["runs_tried"].sum() == 10
    assert resolve_slice(Filters(), frame)[0] == _ALL
    assert resolve_slice(Filters(origin="published"), frame)[0] == Slice(
        "published", "H100-SXM-80GB", 4096, 1_048_576, "paper"
    )
    assert slices.runs_of("measured").run(con)["runs"].item() == 9


def test_slices_count_results_with_an_mfu_and_name_their_models(con: duckdb.DuckDBPyConnection) -> None:
    monday = slices.slices().run(con).filter(sweep="monday").row(0, named=True)
    assert (monday["runs_tried"], monday["runs_completed"], monday["runs_with_mfu"]) == (5, 3, 3)
    assert monday["models"] == ["Llama 1.34B"]


def test_runs_that_stand_in_no_grid_say_what_is_missing() -> None:
    rows = [_run("a"), _run("b", seq_len=None, gbs_tokens=None), _run("c", gbs=None, gbs_tokens=None, mbs=None)]
    with open_store(completed_frame(*rows)) as con:
        found = overview.without_cell("measured").run(con)
        assert dict(found.select("run_id", "missing").rows()) == {"b": "sequence, batch", "c": "batch"}
        assert overview.problems("measured").run(con)["runs_without_cell"].item() == 2


def test_scaling_points_agree_with_the_view(con: duckdb.DuckDBPyConnection) -> None:
    best = scaling.best_layouts(_ALL, Filters()).run(con)
    view = con.sql(
        "SELECT model, num_nodes, run_id FROM scaling_efficiency "
        "WHERE strategy = 'best' AND origin = 'measured' AND seq_len = 4096"
    ).pl()
    assert set(best.select("line", "num_nodes", "run_id").rows()) == set(view.rows())


def test_strategies_are_named_as_in_the_view(con: duckdb.DuckDBPyConnection) -> None:
    own = scaling.strategies(_ALL, Filters(), "Llama 1.34B").run(con)
    view = con.sql(
        "SELECT strategy, num_nodes, run_id FROM scaling_efficiency WHERE strategy <> 'best' "
        "AND origin = 'measured' AND seq_len = 4096 AND model = 'Llama 1.34B'"
    ).pl()
    assert set(own.select("line", "num_nodes", "run_id").rows()) == set(view.rows())
    assert set(own["line"]) == {"DP", "DP+TP"}


def test_layout_filters_reach_the_curves(con: duckdb.DuckDBPyConnection) -> None:
    points = scaling.best_layouts(_ALL, Filters(tp=Range(2))).run(con)
    assert points["num_nodes"].to_list() == [1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    [
        cells.cells(_MONDAY, Filters(tp=Range(1, 2), framework=("nanotron",), zero_stage=(0, 1))),
        cells.outcomes(_ALL, Filters(recompute=("none",))),
        cells.facets(Slice("measured", None, 4096, 1)),
        scaling.strategies(_MONDAY, Filters(pp=Range(1)), "Llama 1.34B"),
        slices.slices(),
        overview.audit("measured"),
        overview.problems("measured"),
        overview.finding("measured", "logged_mfu_differs"),
        overview.quarantined("measured"),
        overview.conflicts("measured"),
        overview.without_cell("measured"),
    ],
)
def test_the_sql_shown_to_readers_gives_the_same_rows(con: duckdb.DuckDBPyConnection, query: Query) -> None:
    assert con.sql(query.runnable()).pl().equals(query.run(con))


def test_values_are_never_pasted_into_the_sql_that_runs(con: duckdb.DuckDBPyConnection) -> None:
    hostile = Slice("measured", "'; DROP TABLE runs; --", 4096, 1)
    query = cells.cells(hostile, Filters())
    assert "DROP" not in query.sql
    assert query.run(con).is_empty()
    assert con.sql(query.runnable()).pl().is_empty()
    assert con.sql("SELECT count(*) FROM runs").pl().item() == 10
