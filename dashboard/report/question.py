"""Sections that frame a report: the question, what came since a day, and what to run next."""

from __future__ import annotations

from datetime import date

import polars as pl

from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.queries import report as queries
from sweepscope.dashboard.queries.failures import Scope
from sweepscope.dashboard.queries.reader import Reader
from sweepscope.dashboard.report.section import Listing, Section
from sweepscope.dashboard.text import report as texts
from sweepscope.pipeline.estimate.advice.cell import KEY, Cell, cells, is_sound
from sweepscope.pipeline.estimate.advice.next_runs import next_runs
from sweepscope.pipeline.estimate.rows.asking import ChooseProfile
from sweepscope.schemas.thresholds import WORTHWHILE_GAIN

MOST_CELLS = 8
"""Cells whose layouts are searched, those with most measured runs first: each takes some tenths of a second."""
LEAST_RUNS = 3
PER_CELL = 3

_LEADS = names("model num_nodes accelerator layout tokens_per_s_per_gpu layout_before margin is_tie led_from")
_FAILED = names("status model runs_failed gpu_hours_lost status_evidence")
_NEXT = names("model num_nodes accelerator framework layout gain chance test_gpu_hours believed_step_time_s tried why")
_PLANNED = names("planned_run_id plan_outcome status model num_nodes layout planned_gpu_hours why")


def question(con: Reader, scope: Scope) -> Section | None:
    """What the runs are to find out; None where the scope has no run."""
    query = queries.extent(scope)
    row = query.run(con).row(0, named=True)
    if not row["runs_tried"]:
        return None
    return Section(
        "question",
        "The question",
        texts.question(row),
        origins=(scope.origin,),
        figures=texts.question_figures(row),
        queries={"What was tried": query},
    )


def recent(con: Reader, scope: Scope, day: date) -> Section:
    """What came since a day: runs, new leaders, failures."""
    total, leads, failed = (
        queries.since(scope, day),
        queries.leads_since(scope, day),
        queries.failures_since(scope, day),
    )
    row, led, lost = total.run(con).row(0, named=True), leads.run(con), failed.run(con)
    listings = [Listing("Cells that another layout leads", led, _LEADS)] if led.height else []
    listings += [Listing("What failed", lost, _FAILED)] if lost.height else []
    return Section(
        "recent",
        f"Since {day.day} {day:%b %Y}",
        texts.recent(row, led.to_dicts(), day),
        texts.recent_meta(row),
        (scope.origin,),
        listings=listings,
        queries={"Runs": total, "New leaders": leads, "Failures": failed},
    )


def next_steps(
    con: Reader, scope: Scope, choose: ChooseProfile, *, model: str | None = None, nodes: int | None = None
) -> Section | None:
    """Untried layouts that promise a gain, and planned runs that are left; None where no cell can be searched.

    `model` and `nodes` leave out the cells of other models and node counts.

    Cells with fewer than LEAST_RUNS measured runs are left out, and of the others those beyond MOST_CELLS; both are
    counted.
    """
    query, planned = queries.cell_runs(scope, model=model, nodes=nodes), queries.open_plans()
    runs = query.run(con)
    possible = [cell for cell in cells(runs, choose) if cell.request is not None]
    measured = {id(cell): cell.runs.filter(is_sound()).height for cell in possible}
    enough = sorted(
        (cell for cell in possible if measured[id(cell)] >= LEAST_RUNS), key=lambda cell: -measured[id(cell)]
    )
    open_runs = planned.run(con) if scope.origin != "published" else pl.DataFrame()
    if not enough and open_runs.is_empty():
        return None
    searched = enough[:MOST_CELLS]
    proposals = _proposals(searched)
    notes = [f"{numbers.count(len(enough) - MOST_CELLS, 'cell')} with fewer runs not searched."] * (
        len(enough) > MOST_CELLS
    )
    few = len(possible) - len(enough)
    notes += [f"{numbers.count(few, 'cell')} with fewer than {LEAST_RUNS} measured runs left out."] * bool(few)
    listings = [Listing("Untried layouts, most gain per GPU-hour first", proposals, _NEXT)] if proposals.height else []
    listings += [Listing("Planned runs to make or to mend", open_runs, _PLANNED)] if open_runs.height else []
    return Section(
        "next",
        "What to run next",
        texts.next_answer(proposals.head(1).to_dicts(), len(searched), open_runs.height),
        "estimated from the runs of each cell",
        (scope.origin, "estimated"),
        listings=listings,
        queries={"Runs of the cells": query, "Planned runs": planned},
        notes=notes,
    )


def _proposals(searched: list[Cell]) -> pl.DataFrame:
    """Candidates of all cells with a gain that can be noticed, with the columns of KEY."""
    found = []
    for cell in searched:
        if cell.request is not None:
            candidates = next_runs(cell.request, cell.runs, top=PER_CELL).candidates
            keys = [pl.lit(cell.key[name]).alias(name) for name in KEY]
            found.append(candidates.filter(pl.col("gain") >= WORTHWHILE_GAIN).with_columns(keys).select(_PROPOSAL))
    rows = (
        pl.concat(found, how="vertical_relaxed") if found else pl.DataFrame(schema=dict.fromkeys(_PROPOSAL, pl.String))
    )
    return rows.sort("gain_per_gpu_hour", descending=True) if found else rows


_PROPOSAL = (
    *KEY,
    *names("layout gain chance test_gpu_hours gain_per_gpu_hour believed_step_time_s tried why"),
)
