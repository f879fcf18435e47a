"""Points of the scaling curves: the fastest layout at each node count, of any kind or per strategy."""

from __future__ import annotations

from sweepscope.dashboard.queries.query import BY_SIZE, Query, all_of, in_slice, layout_condition
from sweepscope.dashboard.selection.filters import Filters
from sweepscope.dashboard.selection.slices import Slice

_COLUMNS = """model, params, accelerator, num_nodes, num_gpus, run_id, layout, mfu, tokens_per_s,
  tokens_per_s_per_gpu, repeats,
  usd_per_m_tokens_of((SELECT usd_per_gpu_hour FROM prices WHERE accelerator = $accelerator), tokens_per_s_per_gpu)
    AS usd_per_m_tokens"""


def best_layouts(chosen: Slice, filters: Filters) -> Query:
    """One row per model, node and GPU count: the fastest layout that passes the filters. `line` is the model."""
    where, params = in_slice(chosen, "ranked_layouts")
    layouts, more = layout_condition(filters)
    sql = f"""SELECT model AS line, {_COLUMNS}
FROM ranked_layouts
WHERE {all_of(where, layouts)}
QUALIFY row_number() OVER (PARTITION BY model, num_nodes, num_gpus ORDER BY rank_in_cell) = 1
ORDER BY {BY_SIZE}, num_nodes, num_gpus"""
    return Query(sql, {**params, **more})


def grids_with_curves(origin: str) -> Query:
    """One row per sequence, batch and accelerator of an origin: the most node counts of a `model`, if two at least."""
    sql = """SELECT accelerator, seq_len, gbs_tokens, model, count(DISTINCT num_nodes) AS num_sizes
FROM ranked_layouts
WHERE origin = $origin AND num_nodes IS NOT NULL
GROUP BY accelerator, seq_len, gbs_tokens, model
HAVING num_sizes > 1
QUALIFY row_number() OVER (PARTITION BY accelerator, seq_len, gbs_tokens ORDER BY num_sizes DESC, model) = 1
ORDER BY num_sizes DESC, accelerator, seq_len, gbs_tokens"""
    return Query(sql, {"origin": origin})


def strategies(chosen: Slice, filters: Filters, model: str) -> Query:
    """One row per strategy, node and GPU count of one model: its fastest layout. `line` is the strategy."""
    where, params = in_slice(chosen, "ranked_layouts")
    layouts, more = layout_condition(filters)
    sql = f"""SELECT strategy AS line, {_COLUMNS}
FROM ranked_layouts
WHERE {all_of(where, layouts, "model = $model", "line IS NOT NULL")}
QUALIFY row_number() OVER (PARTITION BY line, num_nodes, num_gpus ORDER BY rank_in_cell) = 1
ORDER BY line, num_nodes, num_gpus"""
    return Query(sql, {**params, **more, "model": model})
