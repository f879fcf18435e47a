"""Layouts in the names of folders and files, as far as surer sources do not contradict them.

A name promises; what a run prints and what its configuration states is what was started. So a degree of a name counts
only where nothing follows from the others, and where all of them together have the printed size.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import polars as pl

from sweepscope.pipeline.derive.normalize import FILLED, derive_layout
from sweepscope.pipeline.logs.runs.setting_precedence import widen
from sweepscope.schemas.tables.runs import RUNS

_SOURCE = "folder_name"
_LAWS = ((("dp", "tp", "pp", "cp"), "num_gpus"), (("dp", "gas", "mbs"), "gbs"))
"""Factors and their product."""


@dataclass(frozen=True)
class Named:
    """Settings (`setting_precedence.choose`) of which names that are contradicted are not used; and events on those."""

    chosen: pl.DataFrame
    conflicts: pl.DataFrame


def without_contradicted(chosen: pl.DataFrame) -> Named:
    """`chosen`, in which a folder's name gives no value that does not go with those of surer sources."""
    is_named = (pl.col("setting_source") == _SOURCE) & pl.col("is_used") & pl.col("name").is_in(FILLED)
    named = chosen.filter(is_named)
    if named.is_empty():
        return Named(chosen, _events([]))
    of_runs = chosen.join(named, on="run_id", how="semi").filter(pl.col("setting_source") != _SOURCE)
    sure = _wide(of_runs, named)
    derived = {row["run_id"]: row for row in derive_layout(sure).iter_rows(named=True)}
    stated = {row["run_id"]: row for row in _wide(named, named).iter_rows(named=True)}
    paths = dict(named.select("run_id", "source_path").iter_rows())
    gone: list[tuple[str, str]] = []
    events: list[dict[str, str]] = []
    for run, names in stated.items():
        values = {name: value for name in FILLED if (value := names[name]) is not None}
        wrong = _contradicted(values, derived[run])
        gone += [(run, name) for name in wrong]
        events += [
            {"run_id": run, "source_path": paths[run], "text": f"{name}: {_SOURCE} says {values[name]}, {why}"}
            for name, why in wrong.items()
        ]
    keys = pl.DataFrame(gone, schema={"run_id": pl.String, "name": pl.String}, orient="row")
    marked = chosen.join(
        keys.with_columns(setting_source=pl.lit(_SOURCE), is_wrong=pl.lit(value=True)),
        on=["run_id", "name", "setting_source"],
        how="left",
        maintain_order="left",
    )
    used = pl.col("is_used") & pl.col("is_wrong").is_null()
    return Named(marked.with_columns(is_used=used).drop("is_wrong"), _events(events))


def _wide(settings: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """One row per run of `runs` with FILLED columns."""
    columns = [column for column in RUNS.columns if column.name in FILLED]
    known = runs.select("run_id").unique(maintain_order=True)
    wide = known.join(widen(settings, columns), on="run_id", how="left", maintain_order="left")
    missing = [pl.lit(None, pl.Int64).alias(name) for name in FILLED if name not in wide.columns]
    return wide.with_columns(missing)


def _contradicted(values: dict[str, int], sure: dict[str, int | None]) -> dict[str, str]:
    """Names that do not go with what is sure, and why."""
    wrong = {
        name: f"surer sources give {sure[name]}; the latter counts"
        for name, value in values.items()
        if sure[name] not in (None, value)
    }
    for factors, product in _LAWS:
        whole, known = sure[product], {name: sure[name] or values.get(name) for name in factors}
        degrees = [value for value in known.values() if value is not None]
        is_open = len(degrees) < len(factors)
        if whole is None or wrong.keys() & set(factors) or not degrees:
            continue
        if whole % prod(degrees) if is_open else prod(degrees) != whole:
            wrong |= {
                name: f"which does not go with {product} {whole}; it does not count"
                for name in factors
                if name in values and sure[name] is None
            }
    return wrong


def _events(rows: list[dict[str, str]]) -> pl.DataFrame:
    schema = {"run_id": pl.String, "source_path": pl.String, "text": pl.String}
    return pl.DataFrame(rows, schema=schema).with_columns(
        line_no=pl.lit(None, pl.Int64), kind=pl.lit("config_conflict")
    )
