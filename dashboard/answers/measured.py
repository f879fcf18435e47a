"""Questions on the runs of a store: each method is one. Its first paragraph and its arguments are what callers read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from uuid import uuid4

import polars as pl
from pydantic import Field

from sweepscope.dashboard.answers.answer import Answer, of_section, plain, table
from sweepscope.dashboard.answers.arguments import Accelerator, GbsTokens, Limit, Model, Nodes, Origin, SeqLen, Sweep
from sweepscope.dashboard.answers.opened import opened, unknown
from sweepscope.dashboard.format.numbers import count
from sweepscope.dashboard.format.theme import LIGHT
from sweepscope.dashboard.queries import cells, dictionary, failures
from sweepscope.dashboard.queries.slices import runs_of, slices
from sweepscope.dashboard.report import grids, outcomes, question
from sweepscope.dashboard.sandbox.run_query import run_query
from sweepscope.dashboard.sandbox.turns import TURNS
from sweepscope.dashboard.selection.filters import Filters
from sweepscope.dashboard.text import best as best_texts
from sweepscope.pipeline.errors import StoreError
from sweepscope.pipeline.estimate.calibration.own_runs import with_own
from sweepscope.pipeline.store import published


class Measured:
    """What the store of one home answers; each question opens the version that is current."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._choose = with_own(home / "calibration")

    def overview(self, *, origin: Origin = None, sweep: Sweep = None, limit: Limit = 50) -> Answer:
        """What the store holds: the question that the runs put, and every grid (accelerator, sequence, batch) in it."""
        with opened(self._home) as store:
            scope = store.scope(origin, sweep)
            part = question.question(store.con, scope)
            if part is None:
                raise StoreError("The store has no run yet. Run `sweepscope ingest PATH` first.")
            found = slices().run(store.con).filter(origin=scope.origin)
            found = found if sweep is None else found.filter(sweep=sweep)
            given = of_section(part, version=store.version, limit=limit)
            ordered = found.sort("runs_tried", descending=True)
            return given.model_copy(update={"tables": [table("Grids, the most tried first", ordered, limit=limit)]})

    def best_configs(
        self,
        *,
        model: Model = None,
        nodes: Nodes = None,
        accelerator: Accelerator = None,
        seq_len: SeqLen = None,
        gbs_tokens: GbsTokens = None,
        origin: Origin = None,
        sweep: Sweep = None,
        limit: Limit = 20,
    ) -> Answer:
        """The fastest layout (DP, TP, PP, CP, EP, ZeRO ...) of each model and node count of a grid: its lead over the
        runner-up, how sure that is (`is_tie`, `chance_best`), and how the runs ended where none completed."""
        filters = Filters(origin=origin, accelerator=accelerator, seq_len=seq_len, gbs_tokens=gbs_tokens, sweep=sweep)
        with opened(self._home) as store:
            chosen = store.grid(filters, model)
            grid = grids.whole_grid(store.con, chosen)
            if model is not None:
                grid = grid.filter(model=model)
            if nodes is not None:
                if nodes not in grid["num_nodes"]:
                    raise unknown("nodes", str(nodes), grid["num_nodes"].drop_nulls())
                grid = grid.filter(num_nodes=nodes)
            of_model, scale = best_texts.default_cell(grid)
            of_origin = runs_of(chosen.origin).run(store.con)["runs"].item()
            return Answer(
                answer=plain(best_texts.cell_answer(grid.row(by_predicate=_cell(of_model, scale), named=True))),
                tables=[table("The winner of each cell", grid, grids.CELLS, limit=limit)],
                notes=[plain(best_texts.conditions(chosen, grid, of_origin))],
                origins=[chosen.origin],
                sql={"Cells": cells.cells(chosen, Filters()).runnable()},
                store_version=store.version,
            )

    def scaling(
        self,
        *,
        model: Model = None,
        accelerator: Accelerator = None,
        seq_len: SeqLen = None,
        gbs_tokens: GbsTokens = None,
        origin: Origin = None,
        sweep: Sweep = None,
        limit: Limit = 50,
    ) -> Answer:
        """Throughput per accelerator that is left as nodes are added, of the fastest layout at each node count."""
        filters = Filters(origin=origin, accelerator=accelerator, seq_len=seq_len, gbs_tokens=gbs_tokens, sweep=sweep)
        with opened(self._home) as store:
            part = grids.scales(store.con, store.grid(filters, model), LIGHT, model=model)
            return of_section(part, version=store.version, limit=limit)

    def failures(self, *, origin: Origin = None, sweep: Sweep = None, limit: Limit = 20) -> Answer:
        """How runs ended (OOM, hang, time limit, crash ...) with the deciding line of the log, what that cost in
        GPU-hours, which settings fail more often than chance, and what is worth submitting again."""
        with opened(self._home) as store:
            scope = store.scope(origin, sweep)
            part = outcomes.failed(store.con, scope.origin, scope.sweep, LIGHT)
            if part is None:
                raise StoreError("The store has no run yet. Run `sweepscope ingest PATH` first.")
            reasons = failures.reasons(scope)
            found = of_section(part, version=store.version, limit=limit)
            lines = table("Deciding lines, the most frequent first", reasons.run(store.con), limit=limit)
            sql = {**found.sql, lines.title: reasons.runnable()}
            return found.model_copy(update={"tables": [*found.tables, lines], "sql": sql})

    def next_runs(
        self,
        *,
        model: Model = None,
        nodes: Nodes = None,
        origin: Origin = None,
        sweep: Sweep = None,
        limit: Limit = 20,
    ) -> Answer:
        """Layouts that were not run yet and promise most throughput per GPU-hour of a test, each with its reason, and
        planned runs that are left."""
        with opened(self._home) as store:
            scope = store.scope(origin, sweep)
            part = question.next_steps(store.con, scope, self._choose, model=model, nodes=nodes)
            if part is None:
                raise StoreError(
                    f"No cell of these runs has {question.LEAST_RUNS} measured runs that can be estimated. "
                    "Ask for another model or number of nodes, or ingest more runs."
                )
            return of_section(part, version=store.version, limit=limit)

    def describe(
        self,
        *,
        table_name: Annotated[str | None, Field(description="default: the list of all tables and views")] = None,
    ) -> Answer:
        """The tables and views of the store with their grain, or the columns of one with type, unit and meaning: read
        this before `sql`."""
        with opened(self._home) as store:
            relations = dictionary.relations().run(store.con)
            if table_name is None:
                shown = relations.select("table_name", "comment")
                answer = f"The store has {shown.height} tables and views. Unknown is NULL."
            elif table_name not in relations["table_name"]:
                raise unknown("table", table_name, relations["table_name"])
            else:
                shown = dictionary.columns().run(store.con).filter(table_name=table_name).drop("table_name")
                answer = str(relations.filter(table_name=table_name)["comment"].item())
            return Answer(
                answer=answer,
                tables=[table(table_name or "Tables and views", shown, limit=shown.height)],
                store_version=store.version,
            )

    def sql(
        self,
        *,
        query: Annotated[str, Field(description="one SELECT (DuckDB's dialect); `describe` lists tables and columns")],
        limit: Limit = 200,
    ) -> Answer:
        """Rows of one reading SQL statement on the store. It runs in a process without files or network, with limits
        of time, memory and rows."""
        path = published.current(self._home)
        turn = TURNS.take(uuid4().hex, lambda stop: run_query(path, query, stop=stop))
        result = turn.result()
        cut = ["The result has more rows than a query may return; those beyond are missing."] * result.truncated
        rows = result.frame.height
        first = f", the first {limit:,} listed" if rows > limit else ""
        return Answer(
            answer=plain(f"{count(rows, 'row')}{first}."),
            tables=[table("Result", result.frame, limit=limit)],
            notes=cut,
            sql={"Query": query},
            store_version=published.version_of(path),
        )


def _cell(model: str, scale: str) -> pl.Expr:
    return (pl.col("model") == model) & (pl.col("scale") == scale)
