"""Cells with their state and outcome under the filters of the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import prod

import polars as pl

from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.devices import CPU, are_ranks, noun
from sweepscope.dashboard.format.symbols import STATUS
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.selection.filters import Filters


def with_outcomes(cells: pl.DataFrame, outcomes: pl.DataFrame, filters: Filters) -> pl.DataFrame:
    """`cells` with the tries that pass the filters counted, and with what the filters make impossible.

    Adds `runs_tried`, `runs_completed` (and ranked), `runs_judged` (completed or failed), `runs_failed`, `outcome`
    ("114 completed, 62 failed"), `failure_rate` (failed over judged, as in `failure_rates`; NULL when none is judged),
    `short_reason` (second line of an empty cell), `unranked_reason` (why completed tries have no rank), and `scale`
    (see `with_scale`).

    `cells` are rows of `queries.cells.cells`, `outcomes` of `queries.cells.outcomes`.
    """
    by_cell: dict[tuple[object, ...], list[Row]] = {}
    for row in outcomes.iter_rows(named=True):
        by_cell.setdefault(_key(row), []).append(row)
    needed = needed_gpus(filters)
    rows = [_outcome_of(cell, by_cell.get(_key(cell), []), needed) for cell in cells.iter_rows(named=True)]
    added = pl.DataFrame(rows, schema=_ADDED)
    return with_scale(cells.drop("cell_state", "cell_reason").hstack(added))


def with_planned(cells: pl.DataFrame, waiting: pl.DataFrame) -> pl.DataFrame:
    """`cells` with `runs_planned` and `plan_id` of the planned runs that no run fills yet, NULL where there are none.

    A cell in which nothing ran is in state "planned" where some are. `waiting` are rows of `queries.plans.waiting`.
    """
    keys = ("model", "num_nodes", "num_gpus")
    is_waiting = pl.col("runs_planned").is_not_null() & (pl.col("cell_state") == "not_run")
    runs = pl.when(pl.col("runs_planned") == 1).then(pl.lit(" run")).otherwise(pl.lit(" runs"))
    return cells.join(waiting, on=keys, how="left", nulls_equal=True, maintain_order="left").with_columns(
        cell_state=pl.when(is_waiting).then(pl.lit("planned")).otherwise("cell_state"),
        cell_reason=pl.when(is_waiting).then("plan_id").otherwise("cell_reason"),
        short_reason=pl.when(is_waiting).then(pl.col("runs_planned").cast(pl.String) + runs).otherwise("short_reason"),
    )


def _key(row: Row) -> tuple[object, ...]:
    return row["model"], row["num_nodes"], row["num_gpus"]


def with_scale(cells: pl.DataFrame) -> pl.DataFrame:
    """Adds `scale`, the name of a cell's column: the node count, with the GPU count where a node count has several.

    On one node, 1, 2 and 4 GPUs are different questions: they become "1 (1 GPU)", "1 (2 GPUs)", "1 (4 GPUs)".
    """
    nodes, gpus = pl.col("num_nodes").cast(pl.String), pl.col("num_gpus")
    one = noun(CPU if are_ranks(cells) else None)
    ending = pl.when(gpus == 1).then(pl.lit(f" {one})")).otherwise(pl.lit(f" {one}s)"))
    named = pl.concat_str(nodes, pl.lit(" ("), gpus.cast(pl.String).fill_null("?"), ending)
    is_plain = gpus.n_unique().over("num_nodes") == 1
    return cells.with_columns(scale=pl.when(is_plain).then(nodes).otherwise(named))


_ADDED = pl.Schema(
    {
        **dict.fromkeys(("cell_state", "cell_reason", "short_reason", "unranked_reason"), pl.String),
        **dict.fromkeys(("runs_tried", "runs_completed", "runs_judged", "runs_failed"), pl.Int64),
        "outcome": pl.String,
        "failure_rate": pl.Float64,
    }
)


def _outcome_of(cell: Row, tries: list[Row], needed: tuple[int, str]) -> Row:
    """The _ADDED columns of one cell; `needed` is what `needed_gpus` has of the filters."""
    by_status: Counter[str] = Counter()
    for row in tries:
        by_status[row["status"]] += row["runs"]
    completed = by_status["completed"]
    unranked_rows = [row for row in tries if row["status"] == "completed" and not row["is_ranked"]]
    unranked = sum(row["runs"] for row in unranked_rows)
    failed = sum(row["runs"] for row in tries if row["is_failure"])
    state, reason, available = cell["cell_state"], cell["cell_reason"], cell["num_gpus"]
    gpus, dimensions = needed
    if state != "measured" and available is not None and gpus > available:
        state, reason = "impossible", f"{dimensions} needs {numbers.count(gpus, 'GPU')}"
    return {
        "cell_state": state,
        "cell_reason": reason,
        "short_reason": short_reason(cell, state, by_status.total(), needed),
        "unranked_reason": next((row["unranked_reason"] for row in unranked_rows if row["unranked_reason"]), None),
        "runs_tried": by_status.total(),
        "runs_completed": completed - unranked,
        "runs_judged": completed + failed,
        "runs_failed": failed,
        "outcome": outcome_text(by_status, unranked),
        "failure_rate": failed / (completed + failed) if completed + failed else None,
    }


def outcome_text(by_status: Mapping[str, int], unranked: int = 0) -> str:
    """How the tries ended, completed first, then by number; `unranked` of the completed ones have no rank.

    >>> outcome_text({"oom": 2, "completed": 114}), outcome_text({"completed": 3}, 1), outcome_text({})
    ('114 completed, 2 OOM', '3 completed (1 not ranked)', 'never tried')
    """
    parts = []
    for status in sorted(by_status, key=lambda status: (status != "completed", -by_status[status], status)):
        aside = f" ({numbers.number(unranked)} not ranked)" if status == "completed" and unranked else ""
        parts.append(f"{numbers.number(by_status[status])} {STATUS[status].word}{aside}")
    return ", ".join(parts) or "never tried"


def without_untried(cells: pl.DataFrame) -> pl.DataFrame:
    """Leaves out models without a try under the filters, and columns where nothing was tried or ruled out."""
    tried = cells.filter((pl.col("runs_tried") > 0).any().over("model"))
    return tried.filter((~pl.col("cell_state").is_in(["not_run", "planned"])).any().over("scale"))


def best_first(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows by MFU, the highest first; by tokens/s/GPU where none has one. No hardware reaches an MFU above 1."""
    reached = pl.when(pl.col("mfu") <= 1).then(pl.col("mfu"))
    by = reached if rows.select(reached.count()).item() else pl.col("tokens_per_s_per_gpu")
    return rows.sort(by, descending=True, nulls_last=True, maintain_order=True)


MOST_MODELS = 24
"""Rows of a grid that are drawn: two screens of them."""


def drawn(cells: pl.DataFrame, picked: str | None = None) -> pl.DataFrame:
    """Rows of the models that a chart has room for: those with most completed, then most tried runs, and `picked`."""
    runs = cells.group_by("model").agg(pl.sum("runs_completed"), pl.sum("runs_tried"))
    order = [pl.col("model").eq(pl.lit(picked)).fill_null(value=False), "runs_completed", "runs_tried"]
    chosen = runs.sort([*order, "model"], descending=[True, True, True, False]).head(MOST_MODELS)
    return cells.join(chosen.select("model"), on="model", how="semi", nulls_equal=True, maintain_order="left")


def needed_gpus(filters: Filters) -> tuple[int, str]:
    """The fewest GPUs that a layout passing the filters needs, and the dimensions that require them.

    `ep` lives inside `dp`, so it needs as many GPUs as the larger of the two.
    """
    low = {name: getattr(getattr(filters, name), "minimum", None) or 1 for name in ("dp", "tp", "pp", "cp", "ep")}
    gpus = max(low["dp"], low["ep"]) * prod(low[name] for name in ("tp", "pp", "cp"))
    return gpus, " ".join(f"{name.upper()}{value}" for name, value in low.items() if value > 1)


def short_reason(cell: Row, state: str, tried: int, needed: tuple[int, str]) -> str | None:
    """At most about twenty characters on why a cell is empty; None for a cell with a result, or without a try.

    Args:
        cell: a row of `queries.cells.cells`.
        state: the cell's state under the filters.
        tried: number of runs in it that pass them.
        needed: by the filters, as `needed_gpus` has it.
    """
    if state in ("measured", "not_run"):
        return None
    if state == "impossible":
        gpus, dimensions = needed
        return f"{dimensions} needs {numbers.count(gpus, 'GPU')}" if dimensions else None
    if state == "wont_fit":
        bound = cell["states_lower_bound_bytes"]
        return None if bound is None else f"{numbers.gib(bound, 0)} + activations"
    if state in ("quarantined", "running"):
        return numbers.count(tried, "run")
    return f"{numbers.number(tried)} of {numbers.number(tried)}"  # all of them failed, or the state would be another


def completed(outcomes: pl.DataFrame) -> int:
    """Completed runs in the cells of a grid; `outcomes` are rows of `queries.cells.outcomes`."""
    return int(outcomes.drop_nulls(["model", "num_nodes"]).filter(status="completed")["runs"].sum())
