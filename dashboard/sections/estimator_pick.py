"""The estimator's pick for a cell of the grid, for comparison with the measured best. Answers are kept per question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

import polars as pl
import streamlit as st

from sweepscope.dashboard.app.store import Store, own_constants
from sweepscope.dashboard.queries import explorer as queries
from sweepscope.dashboard.sections import advisor
from sweepscope.dashboard.selection.slices import Slice
from sweepscope.dashboard.text.explorer import constants
from sweepscope.dashboard.view_models import explorer
from sweepscope.dashboard.view_models.explorer import UNKNOWN_SOFTWARE, Pick, Setup, Software
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.estimate.search.whatif import Choice
from sweepscope.pipeline.reference.clusters import find_cluster
from sweepscope.pipeline.reference.model_shape import ModelShape


@st.cache_data(max_entries=8, show_spinner=False, hash_funcs={Store: lambda store: str(store.path)})
def shapes(store: Store, origin: str | None) -> dict[str, ModelShape]:
    """Shapes of the models in one version of the store."""
    return explorer.store_models(queries.models(origin).run(store.con))


@st.cache_data(max_entries=256, show_spinner=False, hash_funcs={Store: lambda store: str(store.path)})
def _shapes_of(store: Store, origin: str | None, models: tuple[str, ...]) -> dict[str, ModelShape]:
    """Shapes of some models, as `shapes` has them: a store may have thousands."""
    return explorer.store_models(queries.of_models(origin, models).run(store.con))


def software_of(store: Store, origin: str | None, accelerator: str | None, framework: str | None) -> Software:
    """The newest software of an origin's runs on a card; unknown of published ones, each of which has its own."""
    if origin in (None, "published") or accelerator is None:
        return UNKNOWN_SOFTWARE
    return explorer.newest_software(queries.software(str(origin), accelerator).run(store.con), framework)


def setup_for(store: Store, chosen: Slice, cell: Mapping[str, Any], framework: str | None) -> Setup | None:
    """The question that a row of the grid asks, by the constants of `framework`; None where it cannot be estimated."""
    shape = _shapes_of(store, chosen.origin, (cell["model"],)).get(cell["model"])
    return setup_of(shape, chosen, cell, framework, software_of(store, chosen.origin, chosen.accelerator, framework))


def setup_of(
    shape: ModelShape | None,
    chosen: Slice,
    cell: Mapping[str, Any],
    framework: str | None,
    software: Software = UNKNOWN_SOFTWARE,
) -> Setup | None:
    """The same of a cell whose model has this shape."""
    nodes, gpus = cell["num_nodes"], cell["num_gpus"]
    cluster = find_cluster(chosen.accelerator) if chosen.accelerator else None
    batch, length = chosen.gbs_tokens, chosen.seq_len
    if shape is None or cluster is None or not (nodes and gpus and batch and length) or batch % length or gpus % nodes:
        return None
    return Setup(
        cell["model"],
        shape,
        cluster.accelerator,
        nodes,
        length,
        batch,
        framework,
        gpus_per_node=gpus // nodes,
        software=software,
    )


def address(setup: Setup, choice: Choice | None = None) -> str:
    """Address of the Explorer with this question, and with this layout rather than the fastest."""
    asked: dict[str, Any] = {
        "model": setup.model,
        "card": setup.accelerator,
        "nodes": setup.nodes,
        "seq": setup.seq_len,
        "batch": setup.gbs_tokens,
        **({"constants": setup.framework} if setup.framework else {}),
    }
    return f"explorer?{urlencode({**asked, **(asdict(choice) if choice else {})})}"


def pick_for(store: Store, chosen: Slice, cell: Mapping[str, Any], framework: str | None) -> Pick | None:
    """The pick for a row of the grid, by the constants of `framework`; None where the question cannot be estimated."""
    return _picked(setup_for(store, chosen, cell, framework))


def _picked(setup: Setup | None) -> Pick | None:
    return None if setup is None else pick_of(setup.request(own_constants()), address(setup))


@lru_cache(maxsize=512)
def pick_of(request: Request, url: str) -> Pick:
    """The pick for a question: the fastest layout of a search, with what it should reach."""
    found = explorer.found_for(request)
    need = found.leanest_bytes + request.asked.profile.outside_bytes
    if not found.fitting:
        return Pick(None, None, None, need, url)
    best = found.layouts.row(0, named=True)
    ends = (best["est_mfu_lo"], best["est_mfu_hi"])
    likely = float(explorer.likely_mfu(found.layouts, found.ranked_by)[0])
    rests_on = constants(request.asked.profile, found.ranked_by)
    return Pick(best, likely, ends if None not in ends else None, need, url, rests_on)


MOST_EMPTY = 24
"""Empty cells that are searched for a page, each of which takes about a tenth of a second once."""


def picks_for_empty(store: Store, chosen: Slice, grid: pl.DataFrame, usual: str | None) -> dict[tuple[str, str], Pick]:
    """The pick for every cell of the grid without a result in which something should fit, by model and scale.

    Untried cells go first; beyond MOST_EMPTY of them there are none.
    """
    empty = grid.filter(pl.col("run_id").is_null() & ~pl.col("cell_state").is_in(["impossible", "wont_fit"]))
    found = {}
    is_tried = ~pl.col("cell_state").is_in(["not_run", "planned"])
    searched = empty.sort(is_tried, maintain_order=True).head(MOST_EMPTY)
    shapes = _shapes_of(store, chosen.origin, tuple(sorted(set(searched["model"]))))
    software = software_of(store, chosen.origin, chosen.accelerator, usual)
    for cell in searched.to_dicts():
        pick = _picked(setup_of(shapes.get(cell["model"]), chosen, cell, usual, software))
        if pick is not None and pick.row is not None:
            found[cell["model"], cell["scale"]] = pick
    return found


def proposed(
    store: Store, chosen: Slice, cells: Iterable[Mapping[str, Any]], usual: str | None
) -> list[tuple[Mapping[str, Any], str]]:
    """The best thing to run next in each of `cells`, with its address on the Explorer; most gain per GPU-hour first.

    Rows are candidates of `next_runs` with `model` and `num_nodes`; a cell where nothing is to be gained has none.
    """
    found, cells = [], list(cells)
    shapes = _shapes_of(store, chosen.origin, tuple(sorted({cell["model"] for cell in cells})))
    for cell in cells:
        framework = cell["framework"] or usual
        software = software_of(store, chosen.origin, chosen.accelerator, framework)
        setup = setup_of(shapes.get(cell["model"]), chosen, cell, framework, software)
        if setup is None:
            continue
        request = setup.request(own_constants())
        rows = advisor.gains(advisor.proposals(store, request, advisor.cell_query(setup, request, chosen.origin)))
        for row in rows.head(1).iter_rows(named=True):
            named = {**row, "model": setup.model, "num_nodes": setup.nodes}
            found.append((named, address(setup, Choice.of(row))))
    return sorted(found, key=lambda proposal: -proposal[0]["gain_per_gpu_hour"])


def usual_framework(grid: pl.DataFrame) -> str | None:
    """The framework that won most cells, for cells without a winner."""
    known = grid["framework"].drop_nulls()
    return None if known.is_empty() else str(known.value_counts(sort=True)["framework"][0])
