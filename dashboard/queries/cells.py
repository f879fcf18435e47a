"""Cells of a grid, their outcomes and their ranked layouts, under the filters of the page."""

from __future__ import annotations

from collections.abc import Mapping

from sweepscope.dashboard.format.implementation import IMPLEMENTATION
from sweepscope.dashboard.queries.options import naming_options
from sweepscope.dashboard.queries.query import BY_SIZE, Query, all_of, in_slice, layout_condition
from sweepscope.dashboard.selection.filters import Filters
from sweepscope.dashboard.selection.slices import Slice

_WINNER = (
    "run_id, layout, variant, options_id, framework, framework_version, torch_version, nccl_version, cluster, "
    "dp, tp, pp, cp, ep, vpp, zero_stage, dp_replicate, mbs, gas, recompute, "
    "precision, sequence_parallel, pipeline_schedule, strategy, mfu, mfu_logged, "
    "hfu, tokens_per_s_per_gpu, tokens_per_s, step_time_s, model_tflops_per_gpu, "
    "mem_peak_allocated_bytes, mem_peak_reserved_bytes, repeats, repeat_spread, mean_tokens_per_s_per_gpu, "
    "repeat_speeds, run_noise, noise_basis, noise_repeats, low_tokens_per_s_per_gpu, high_tokens_per_s_per_gpu"
)


_PRICE = "(SELECT usd_per_gpu_hour FROM prices WHERE accelerator = $accelerator)"


def cells(chosen: Slice, filters: Filters) -> Query:
    """One row per cell (model, node and GPU count): winner and runner-up among the layouts that pass the filters.

    `cell_state` is that of the tries that pass them; `cell_reason` is about the whole cell, and NULL where the filters
    leave a part of it. `differing` lists what of IMPLEMENTATION differs among the layouts of the cell.
    `view_models.cells.with_outcomes` marks cells in which no layout can pass a filter.
    """
    where, params = in_slice(chosen, "ranked_layouts")
    in_grid, _ = in_slice(chosen, "grid_cells")
    in_runs, _ = in_slice(chosen, "runs")
    is_whole = "cell.cell_state = 'wont_fit'" if filters.narrows_layouts else "true"
    layouts, more = layout_condition(filters)
    winner = ", ".join(f"winner.{name.strip()}" for name in _WINNER.split(","))
    runner_up = ", ".join(f"runner_up.{name} AS runner_up_{name}" for name in IMPLEMENTATION)
    several = ",\n    ".join(
        f"CASE WHEN count(DISTINCT {name}) > 1 OR count({name}) NOT IN (0, count(*)) THEN '{name}' END"
        for name in IMPLEMENTATION
    )
    sql = f"""WITH ranked AS (
  SELECT *, row_number() OVER (PARTITION BY model, num_nodes, num_gpus ORDER BY rank_in_cell) AS place
  FROM ranked_layouts
  WHERE {all_of(where, layouts)}
),
implementations AS (
  SELECT model, num_nodes, num_gpus, list_filter([
    {several}
  ], lambda name: name IS NOT NULL) AS differing,
    count(*) AS layouts_completed,
    chance_of_first(list(tokens_per_s_per_gpu ORDER BY place), list(speed_noise ORDER BY place)) AS chance_first
  FROM ranked
  GROUP BY ALL
),
tried AS (
  SELECT model, num_nodes, num_gpus, list(DISTINCT status) AS statuses
  FROM runs
  WHERE {all_of("duplicate_of IS NULL", in_runs, layouts)}
  GROUP BY ALL
)
SELECT cell.model, cell.params, $accelerator::VARCHAR AS accelerator, cell.num_nodes,
  cell.num_gpus, cell.gpus_per_node, cell.memory_bytes,
  cell.states_lower_bound_bytes,
  cell_state_of(winner.run_id IS NOT NULL, statuses, states_lower_bound_bytes, memory_bytes) AS cell_state,
  CASE WHEN {is_whole} THEN cell.cell_reason END AS cell_reason, {winner},
  coalesce(winner.mem_peak_allocated_bytes, winner.mem_peak_reserved_bytes) AS mem_peak_bytes,
  runner_up.run_id AS runner_up_run_id, runner_up.layout AS runner_up_layout,
  {runner_up}, coalesce(differing, []) AS differing, layouts_completed,
  runner_up.tokens_per_s_per_gpu AS runner_up_tokens_per_s_per_gpu,
  lead_over(winner.tokens_per_s_per_gpu, runner_up.tokens_per_s_per_gpu) AS margin,
  CASE WHEN runner_up_run_id IS NOT NULL THEN lead_noise(winner.speed_noise, runner_up.speed_noise) END AS noise,
  is_tied(margin, noise) AS is_tie,
  CASE WHEN runner_up_run_id IS NOT NULL THEN chance_first END AS chance_best,
  {_PRICE} AS usd_per_gpu_hour, usd_per_m_tokens_of({_PRICE}, winner.tokens_per_s_per_gpu) AS usd_per_m_tokens
FROM (SELECT * FROM grid_cells WHERE {in_grid}) AS cell
LEFT JOIN tried ON tried.model = cell.model AND tried.num_nodes = cell.num_nodes
  AND tried.num_gpus IS NOT DISTINCT FROM cell.num_gpus
LEFT JOIN implementations AS ran ON ran.model = cell.model AND ran.num_nodes = cell.num_nodes
  AND ran.num_gpus IS NOT DISTINCT FROM cell.num_gpus
LEFT JOIN ranked AS winner
  ON winner.model = cell.model AND winner.num_nodes = cell.num_nodes
  AND winner.num_gpus IS NOT DISTINCT FROM cell.num_gpus AND winner.place = 1
LEFT JOIN ranked AS runner_up
  ON runner_up.model = cell.model AND runner_up.num_nodes = cell.num_nodes
  AND runner_up.num_gpus IS NOT DISTINCT FROM cell.num_gpus AND runner_up.place = 2
ORDER BY cell.params, cell.model, cell.num_nodes, cell.num_gpus"""
    return Query(sql, {**params, **more})


def outcomes(chosen: Slice, filters: Filters) -> Query:
    """One row per cell, status and place in the ranking of the runs that pass the filters, with their number.

    `unranked_reason` is the commonest reason why they are kept out of rankings.
    """
    where, params = in_slice(chosen, "runs")
    layouts, more = layout_condition(filters)
    sql = f"""SELECT model, num_nodes, num_gpus, status,
  may_be_ranked(status, quarantine_reason, tokens_per_s_per_gpu) AS is_ranked,
  is_failure_of(status) AS is_failure, count(*) AS runs, mode(quarantine_reason) AS unranked_reason
FROM runs
WHERE {all_of("duplicate_of IS NULL", where, layouts)}
GROUP BY ALL
ORDER BY model, num_nodes, num_gpus, runs DESC, status"""
    return Query(sql, {**params, **more})


def ranking(chosen: Slice, filters: Filters, cell: Mapping[str, object] | None = None) -> Query:
    """Completed layouts that pass the filters in rank order: of one cell (a row of `cells`), or of the whole slice.

    `variant` has the options in which rows of one layout differ; `winner_lead` is the tokens/s/GPU of the first of the
    cell over a layout's, minus 1, as in `best_configs`; `ties_with_first` is true of the first as well.
    """
    where, params = in_slice(chosen, "ranked_layouts")
    layouts, more = layout_condition(filters)
    within = "true"
    if cell is not None:
        within = "model = $model AND num_nodes = $num_nodes AND num_gpus IS NOT DISTINCT FROM $num_gpus"
        more = {**more, **{name: cell[name] for name in ("model", "num_nodes", "num_gpus")}}
    sql = f"""SELECT model, params, num_nodes, rank_in_cell, num_gpus, {_WINNER},
  lead_over(first(tokens_per_s_per_gpu) OVER cell, tokens_per_s_per_gpu) AS winner_lead,
  is_tied(
    winner_lead,
    lead_noise(first(speed_noise) OVER cell, speed_noise)
  ) AS ties_with_first,
  usd_per_m_tokens_of({_PRICE}, tokens_per_s_per_gpu) AS usd_per_m_tokens
FROM ranked_layouts
WHERE {all_of(where, layouts, within)}
WINDOW cell AS (
  PARTITION BY model, num_nodes, num_gpus ORDER BY rank_in_cell
  ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
)"""
    return naming_options(Query(sql, {**params, **more}), f"{BY_SIZE}, num_nodes, num_gpus, rank_in_cell")


def ranked_layouts(chosen: Slice, filters: Filters) -> Query:
    """One row: how many rows `ranking` has of the whole slice."""
    where, params = in_slice(chosen, "ranked_layouts")
    layouts, more = layout_condition(filters)
    return Query(f"SELECT count(*) AS layouts FROM ranked_layouts WHERE {all_of(where, layouts)}", {**params, **more})


def tries(chosen: Slice, cell: Mapping[str, object]) -> Query:
    """How the runs of a cell ended: one row per layout and status, with their number."""
    where, params = in_slice(chosen, "runs")
    within = "model = $model AND num_nodes = $num_nodes AND num_gpus IS NOT DISTINCT FROM $num_gpus"
    sql = f"""SELECT dp, tp, pp, cp, ep, vpp, gas, mbs, zero_stage, dp_replicate, recompute, status, count(*) AS runs
FROM runs
WHERE {all_of("duplicate_of IS NULL", where, within)}
GROUP BY ALL
ORDER BY ALL"""
    return Query(sql, {**params, **{name: cell[name] for name in ("model", "num_nodes", "num_gpus")}})


def facets(chosen: Slice) -> Query:
    """One row of lists: the values that each layout filter can take within the slice."""
    where, params = in_slice(chosen, "runs")
    names = ("framework", "zero_stage", "recompute", "precision", "dp", "tp", "pp", "cp", "ep")
    lists = ",\n  ".join(f"list_sort(list(DISTINCT {name}) FILTER ({name} IS NOT NULL)) AS {name}" for name in names)
    return Query(f"SELECT {lists}\nFROM runs\nWHERE {where}", params)
