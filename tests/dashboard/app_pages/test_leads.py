"""No page shows a winner that is slower than its runner-up: cells of the demo's store.

Of each accelerator of each sweep the grid with most completed runs, and every grid with `SWEEPSCOPE_THOROUGH=1`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import polars as pl
import pytest

from sweepscope.dashboard.format.metrics import METRICS
from sweepscope.dashboard.format.numbers import MINUS
from sweepscope.dashboard.queries import cells as cell_queries
from sweepscope.dashboard.queries import explorer as explorer_queries
from sweepscope.dashboard.queries import run as run_queries
from sweepscope.dashboard.queries import slices
from sweepscope.dashboard.selection.filters import GRID, Filters, Range
from sweepscope.dashboard.selection.slices import Slice
from sweepscope.dashboard.text import best, cell, overview, run
from sweepscope.dashboard.text import explorer as explorer_texts
from sweepscope.dashboard.text import explorer_layout as layout_texts
from sweepscope.dashboard.view_models import cells, explorer, explorer_layout
from sweepscope.dashboard.view_models.ranking import ranked_rows
from sweepscope.pipeline.estimate.physics.profile import choose_profile
from sweepscope.pipeline.reference.clusters import find_cluster
from sweepscope.pipeline.store import published
from tests.properties import THOROUGH

FILTERS = (Filters(), Filters(tp=Range(2)))

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def con(demo_home: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with published.connect(published.current(demo_home)) as connection:
        for view in ("ranked_layouts", "grid_cells"):  # each grid asks for them again
            connection.execute(f"CREATE TEMP TABLE {view} AS SELECT * FROM {view}")
        yield connection


@pytest.fixture(scope="module")
def grids(con: duckdb.DuckDBPyConnection) -> list[tuple[Slice, Filters, pl.DataFrame]]:
    """Grids, each under no filter and under one that chooses other winners."""
    offered = slices.slices().run(con).with_columns(sweep=pl.when(origin="published").then("sweep"))  # as pages do
    offered = offered.group_by(GRID).agg(pl.col("runs_completed").sum()).sort("runs_completed", *GRID, descending=True)
    if not THOROUGH:
        offered = offered.unique(["origin", "accelerator", "sweep"], keep="first", maintain_order=True)
    found = []
    for grid in (Slice(*row) for row in offered.select(GRID).iter_rows()):
        for filters in FILTERS:
            rows = cell_queries.cells(grid, filters).run(con)
            tries = cell_queries.outcomes(grid, filters).run(con)
            found.append((grid, filters, cells.with_outcomes(rows, tries, filters)))
    return found


def answered(grid: pl.DataFrame) -> list[dict[str, object]]:
    return grid.filter(pl.col("run_id").is_not_null()).to_dicts()


def test_no_lead_is_negative(grids: list[tuple[Slice, Filters, pl.DataFrame]]) -> None:
    compared = 0
    for _, filters, grid in grids:
        for row in answered(grid):
            texts = [best.cell_answer(row), cell.lead(row), cell.certainty(row)]
            texts += [cell.hover(row, metric) for metric in METRICS.values()]
            assert not [text for text in texts if MINUS in text]
            if row["margin"] is not None:
                compared += 1
                assert row["margin"] >= 0
                assert row["tokens_per_s_per_gpu"] >= row["runner_up_tokens_per_s_per_gpu"]
        shown = [overview.answer(grid), best.filtered_answer(grid, filters) if filters != Filters() else ""]
        shown += [item.value for item in overview.worth_running(grid, limit=100)]
        assert not [text for text in shown if MINUS in text]
    assert compared > 50


def test_no_winner_is_below_its_runner_up(
    con: duckdb.DuckDBPyConnection, grids: list[tuple[Slice, Filters, pl.DataFrame]]
) -> None:
    for chosen, filters, grid in grids:
        for row in answered(grid):
            ranked = cell_queries.ranking(chosen, filters, row).run(con)
            assert ranked["tokens_per_s_per_gpu"].is_sorted(descending=True)
            assert ranked["run_id"][0] == row["run_id"]
            rows = ranked_rows(ranked, limit=100)
            values = [float(shown.value.replace(",", "")) for shown in rows]
            assert values == sorted(values, reverse=True)
            assert all(0 < shown.share <= 1 for shown in rows)
            assert all(shown.gap.startswith(("+", "0.0")) or "×" in shown.gap for shown in rows[1:])
            assert ranked["winner_lead"].min() == 0
            if len(rows) > 1:  # the head and the bars state one difference of the same two layouts
                assert ranked["winner_lead"][1] == pytest.approx(row["margin"])
                assert rows[1].gap.lstrip("+").split()[0] in cell.lead(row) or row["margin"] < 0.001


def test_the_explorer_names_no_slower_run_as_the_fastest(
    con: duckdb.DuckDBPyConnection, grids: list[tuple[Slice, Filters, pl.DataFrame]]
) -> None:
    asked = 0
    for chosen, filters, grid in grids:
        cluster = find_cluster(chosen.accelerator) if chosen.accelerator else None
        if cluster is None or filters != Filters() or chosen.gbs_tokens is None:
            continue
        shapes = explorer.store_models(explorer_queries.models(chosen.origin).run(con))
        for row in answered(grid)[: None if THOROUGH else 3]:  # each asks for a search of all layouts
            shape, nodes = shapes.get(str(row["model"])), int(str(row["num_nodes"]))
            if shape is None or chosen.seq_len is None or row["num_gpus"] != nodes * cluster.gpus_per_node:
                continue
            asked += 1
            setup = explorer.Setup(
                str(row["model"]), shape, cluster.accelerator, nodes, chosen.seq_len, chosen.gbs_tokens
            )
            request = setup.request(choose_profile)
            found = explorer.found_for(request)
            runs = explorer_queries.alike(chosen.origin, setup.model, shape, setup.accelerator, has_estimates=True).run(
                con
            )
            text = explorer_texts.answer(setup, request, found, runs)
            assert MINUS not in text
            same = runs.filter(num_gpus=request.num_gpus, seq_len=setup.seq_len, gbs_tokens=setup.gbs_tokens).sort(
                "tokens_per_s_per_gpu", descending=True, nulls_last=True
            )
            if " trained fastest with " in text and same.height:
                assert str(same["layout"][0] or "an unknown layout").replace(" ", "\xa0") in text
            if found.fitting:
                facts = layout_texts.facts(explorer_layout.answer_for(request, explorer.start_of(request)), found)
                assert not [value for _, value in facts if MINUS in value]
    assert asked > 10


def test_no_ranked_run_is_ahead_of_its_winner(con: duckdb.DuckDBPyConnection) -> None:
    repeated = con.sql(
        "SELECT run_id FROM runs WHERE status = 'completed' AND origin = 'simulated' ORDER BY run_id"
    ).fetchall()
    for (run_id,) in repeated:
        for row in run_queries.place_in_cell(run_id).run(con).to_dicts():
            assert row["winner_lead"] >= 0
            assert MINUS not in run.rank_text(row)
