"""Measured layouts against each other: the Pareto front, free plots, parallel coordinates, one factor at a time.

Rows are those of `queries.cells.ranking`: completed layouts of one grid, medians over repeats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from sweepscope.dashboard.format.columns import column_label
from sweepscope.dashboard.format.numbers import GIB, number

NOT_LOGGED = "N/A"
NEAR = 0.9
"""Share of the most on the front from which a layout counts as nearly as good."""
_ROUNDING = 0.01
"""Figures are printed in three or four digits."""
_MANY_VALUES = 24
"""Different values from which a column of numbers is an axis of numbers, not of categories."""


@dataclass(frozen=True)
class Quantity:
    """A measured quantity as an axis: column, label with unit, factor to the shown unit, and which way is better."""

    column: str
    label: str
    factor: float = 1.0
    is_less_better: bool = False


QUANTITIES: dict[str, Quantity] = {
    one.column: one
    for one in (
        Quantity("mfu", "MFU, %", 100),
        Quantity("tokens_per_s_per_gpu", "Tokens/s/GPU"),
        Quantity("mem_peak_bytes", "Peak memory, GiB", 1 / GIB, is_less_better=True),
        Quantity("usd_per_m_tokens", "$ per million tokens", is_less_better=True),
        Quantity("step_time_s", "Step time, s", is_less_better=True),
        Quantity("num_gpus", "GPUs", is_less_better=True),
    )
}
GAINS = ("tokens_per_s_per_gpu", "mfu")
SPENDS = ("mem_peak_bytes", "num_gpus", "usd_per_m_tokens", "step_time_s")
FACTORS = ("framework", "tp", "pp", "cp", "ep", "vpp", "mbs", "zero_stage", "recompute", "precision")
"""What is changed one at a time; data parallelism and accumulation follow from the mesh and the fixed batch."""
DIMENSIONS = ("num_nodes", "dp", "tp", "pp", "cp", "ep", "mbs", "gas", "zero_stage", "recompute", "framework")
LABELS = {"tp": "TP", "pp": "PP", "cp": "CP", "ep": "EP", "dp": "DP", "num_nodes": "Nodes", "zero_stage": "ZeRO"}


def label(name: str) -> str:
    """Name of a column on an axis or in a menu."""
    return QUANTITIES[name].label if name in QUANTITIES else LABELS.get(name) or column_label(name)


def with_peak(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with `mem_peak_bytes`: allocated where it is logged, else reserved."""
    return rows.with_columns(mem_peak_bytes=pl.coalesce("mem_peak_allocated_bytes", "mem_peak_reserved_bytes"))


def known(rows: pl.DataFrame, names: Sequence[str]) -> list[str]:
    """Of some columns those that rows have at least two values of."""
    return [name for name in names if name in rows.columns and rows[name].drop_nulls().n_unique() > 1]


def spends(rows: pl.DataFrame, gain: str) -> list[str]:
    """What may be weighed against `gain`: not its mirror image, as the time of a step is on equal GPUs and batches."""
    return [name for name in known(rows, SPENDS) if not _is_mirror(rows, gain, name)]


def _is_mirror(rows: pl.DataFrame, gain: str, spend: str) -> bool:
    """Whether the product of both is the same in all rows, so that each row has as much of one as it lacks of other."""
    product = rows.drop_nulls([gain, spend]).select((pl.col(gain) * pl.col(spend)).alias("product"))["product"]
    low, high = product.min(), product.max()
    return isinstance(low, float) and isinstance(high, float) and high <= low * (1 + _ROUNDING)


def front(rows: pl.DataFrame, gain: str, spend: str) -> pl.DataFrame:
    """Rows with both values, and `is_front`: no other row has as much of `gain` for as little of `spend`.

    Of rows that are equal in both, all are on the front. Sorted by `spend`.
    """
    found = rows.drop_nulls([gain, spend]).sort([spend, gain], descending=[False, True], maintain_order=True)
    most = found.group_by(spend, maintain_order=True).agg(most=pl.col(gain).max())
    most = most.with_columns(before=pl.col("most").cum_max().shift(1))
    placed = found.join(most, on=spend, how="left", maintain_order="left")
    is_more = pl.col("before").is_null() | (pl.col(gain) > pl.col("before"))
    return placed.with_columns(is_front=(pl.col(gain) == pl.col("most")) & is_more).drop("most", "before")


def best_and_lean(points: pl.DataFrame, gain: str, spend: str) -> tuple[int, int | None] | tuple[()]:
    """Positions in `points` (rows of `front`) of the row with most of `gain`, and of the one that spends least of those
    on the front within a tenth of it; None where that is the same. Nothing of no rows.
    """
    on_front = points.with_row_index("place").filter("is_front")
    if on_front.is_empty():
        return ()
    best = on_front.sort(gain, descending=True, maintain_order=True).row(0, named=True)
    lean = on_front.filter(pl.col(gain) >= NEAR * best[gain]).sort(spend, maintain_order=True).row(0, named=True)
    return best["place"], None if lean["place"] == best["place"] else lean["place"]


@dataclass(frozen=True)
class Axis:
    """One axis of parallel coordinates: positions of the rows, and ticks where values are named."""

    name: str
    label: str
    positions: tuple[float, ...]
    ticks: tuple[float, ...] = ()
    texts: tuple[str, ...] = ()


def axes(rows: pl.DataFrame, names: Sequence[str]) -> list[Axis]:
    """Axes of columns that differ among the rows; a value that is not known has a tick of its own at the foot."""
    return [_axis(rows[name]) for name in names if name in rows.columns and rows[name].n_unique() > 1]


def _axis(values: pl.Series) -> Axis:
    name = values.name
    different = values.drop_nulls().unique().sort()
    if values.dtype.is_numeric() and len(different) > _MANY_VALUES:
        return _number_axis(values)
    texts = [NOT_LOGGED] if values.null_count() else []
    texts += [number(value) if values.dtype.is_numeric() else str(value) for value in different]
    shift = 1 if values.null_count() else 0
    index: Mapping[object, int] = {value: place + shift for place, value in enumerate(different)}
    positions = tuple(float(index[value]) if value is not None else 0.0 for value in values)
    return Axis(name, label(name), positions, tuple(map(float, range(len(texts)))), tuple(texts))


def _number_axis(values: pl.Series) -> Axis:
    """Numbers at their values; unknown ones a tenth of the span below the least, where a tick names them."""
    factor = QUANTITIES[values.name].factor if values.name in QUANTITIES else 1.0
    shown = values.cast(pl.Float64) * factor
    low, high = float(shown.min() or 0.0), float(shown.max() or 0.0)  # type: ignore[arg-type]  # of numbers
    if not values.null_count():
        return Axis(values.name, label(values.name), tuple(shown.to_list()))
    foot = low - 0.1 * ((high - low) or 1.0)
    ticks = (foot, *(low + part * (high - low) / 4 for part in range(5)))
    texts = (NOT_LOGGED, *(number(tick, 1 if high < 100 else 0) for tick in ticks[1:]))
    return Axis(values.name, label(values.name), tuple(shown.fill_null(foot).to_list()), ticks, texts)


@dataclass(frozen=True)
class Change:
    """A layout that differs from another in one factor: its values there and here, and the ratio of throughputs."""

    factor: str
    before: str
    after: str
    ratio: float
    run_id: str
    layout: str


def one_factor(rows: pl.DataFrame, base: Mapping[str, object]) -> list[Change]:
    """Layouts of the base's cell that differ from it in exactly one of FACTORS, by factor and value.

    Of several with one value the fastest counts. Values that are unknown are no difference that one could name.
    """
    names = [name for name in FACTORS if name in rows.columns]
    cell = rows.filter(
        pl.all_horizontal(pl.col(name).eq_missing(pl.lit(base[name])) for name in ("model", "num_nodes", "num_gpus"))
    )
    found: dict[tuple[str, str], Change] = {}
    speed = float(base["tokens_per_s_per_gpu"])  # type: ignore[arg-type]  # a ranked layout has one
    for row in cell.iter_rows(named=True):
        differing = [name for name in names if row[name] != base[name]]
        if len(differing) != 1 or row[differing[0]] is None or base[differing[0]] is None:
            continue
        name = differing[0]
        change = Change(
            name,
            str(base[name]),
            str(row[name]),
            row["tokens_per_s_per_gpu"] / speed,
            row["run_id"],
            row["layout"] or "layout unknown",
        )
        key = (name, change.after)
        if key not in found or found[key].ratio < change.ratio:
            found[key] = change
    order = {name: place for place, name in enumerate(names)}
    return sorted(found.values(), key=lambda one: (order[one.factor], _number(one.after), one.after))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
