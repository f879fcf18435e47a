"""A query as a value: its text and its bound parameters, so that a page can run it and show exactly what it ran."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import duckdb
import polars as pl

from sweepscope.dashboard.queries.reader import Reader
from sweepscope.dashboard.selection.filters import LAYOUT_RANGES, SLICE, Filters
from sweepscope.dashboard.selection.slices import Slice
from sweepscope.schemas.core import ddl

Row = Mapping[str, Any]
"""A row of a result, by the names of its columns."""

IN_SLICE = """origin = $origin
  AND accelerator IS NOT DISTINCT FROM $accelerator
  AND seq_len IS NOT DISTINCT FROM $seq_len
  AND gbs_tokens IS NOT DISTINCT FROM $gbs_tokens"""

BY_SIZE = "min(params) OVER (PARTITION BY model), model"
"""Order of models, small first; by their least size, because runs of one model may state shapes that differ."""


@dataclass(frozen=True)
class Query:
    """SQL with `$name` parameters. Values are bound, never pasted into the text that runs."""

    sql: str
    params: Mapping[str, object] = field(default_factory=dict)

    def run(self, con: duckdb.DuckDBPyConnection | Reader) -> pl.DataFrame:
        """The result as a frame. Raises duckdb.Error when the store lacks a table or column."""
        if isinstance(con, Reader):
            return con.frame(self.sql, self.params)
        frame: pl.DataFrame = con.sql(self.sql, params=dict(self.params)).pl()
        return frame

    def runnable(self) -> str:
        """The same query with its values written out, to copy into any SQL prompt. For reading only."""
        return re.sub(r"\$([a-z_0-9]+)", lambda match: _written(self.params[match[1]]), self.sql)


def _written(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_written, value)) + "]"
    return ddl.literal(str(value))


ESTIMATED_MFU = "coalesce(mfu * step_time_s / est_step_time_s, est_mfu)"
"""SQL: the estimated MFU of a run by the FLOPs that its own `mfu` counts, so that both differ by time alone; by those
of the estimate where it has none."""


def in_slice(chosen: Slice, table: Literal["runs", "ranked_layouts", "grid_cells"]) -> tuple[str, dict[str, object]]:
    """Condition and parameters for the rows of one slice in `table`.

    A cell, and a layout in it, belong to every sweep that tried them; their medians are over all sweeps' repeats.
    """
    params: dict[str, object] = {name: getattr(chosen, name) for name in SLICE}
    if chosen.sweep is None:
        return IN_SLICE, params
    return f"{IN_SLICE}\n  AND {_OF_SWEEP[table]}", {**params, "sweep": chosen.sweep}


_OF_SWEEP = {
    "runs": "sweep = $sweep",
    "ranked_layouts": """EXISTS (
    SELECT 1 FROM runs AS own
    WHERE own.sweep = $sweep AND own.origin = ranked_layouts.origin
      AND own.model = ranked_layouts.model AND own.num_nodes = ranked_layouts.num_nodes
      AND own.num_gpus IS NOT DISTINCT FROM ranked_layouts.num_gpus
      AND own.layout IS NOT DISTINCT FROM ranked_layouts.layout
      AND own.framework_version IS NOT DISTINCT FROM ranked_layouts.framework_version
      AND own.torch_version IS NOT DISTINCT FROM ranked_layouts.torch_version
      AND own.nccl_version IS NOT DISTINCT FROM ranked_layouts.nccl_version
      AND own.cluster IS NOT DISTINCT FROM ranked_layouts.cluster
      AND own.seq_len = ranked_layouts.seq_len AND own.gbs_tokens = ranked_layouts.gbs_tokens
  )""",
    # searched rather than split: a name may itself hold a comma
    "grid_cells": "contains(', ' || sweeps || ', ', ', ' || $sweep || ', ')",
}


def all_of(*conditions: str) -> str:
    """Conditions joined by AND, one a line; those that are always true are left out.

    >>> all_of("a = 1", "true"), all_of("true")
    ('a = 1', 'true')
    """
    return "\n  AND ".join(condition for condition in conditions if condition != "true") or "true"


def layout_condition(filters: Filters) -> tuple[str, dict[str, object]]:
    """Condition and parameters for the filters that narrow a slice ("true" when there are none).

    A run whose value is unknown does not match a filter on it.
    """
    parts: list[str] = []
    params: dict[str, object] = {}
    for name in ("framework", "zero_stage", "recompute", "precision"):
        chosen = getattr(filters, name)
        if chosen:
            parts.append(f"list_contains(${name}, {name})")
            params[name] = list(chosen)
    for name in LAYOUT_RANGES:
        span = getattr(filters, name)
        for bound, sign in (("minimum", ">="), ("maximum", "<=")):
            value = getattr(span, bound, None)
            if value is not None:
                parts.append(f"{name} {sign} ${name}_{bound}")
                params[f"{name}_{bound}"] = value
    return all_of(*parts), params
