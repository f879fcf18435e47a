"""Which grid a page shows: one origin, accelerator, sequence length and batch, and of published runs one study.

Origins never mix. Simulated rows are not offered once measured ones exist; published ones always stay one click away.
Of published runs one study is shown at first, because two studies rarely measure alike; own sweeps belong together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from sweepscope.dashboard.selection.filters import ALL, GRID, SLICE, UNKNOWN, Filters

_PREFERRED = ("measured", "published", "simulated")
_ACCELERATED = pl.col("accelerator").ne_missing("CPU")
"""False for grids of a CPU, whose runs test a set-up and not the speed of a layout on accelerators."""

_COUNTS = ("runs_tried", "runs_completed", "runs_with_mfu")


@dataclass(frozen=True)
class Slice:
    """Runs that may be compared cell by cell.

    A None in `accelerator`, `seq_len` or `gbs_tokens` means that the store has NULL there; in `sweep`, all sweeps.
    """

    origin: str
    accelerator: str | None
    seq_len: int | None
    gbs_tokens: int | None
    sweep: str | None = None

    @property
    def study(self) -> str | None:
        """Name of the one sweep on screen; published ones are named after their file, so it reads better in words."""
        return self.sweep.replace("_", " ") if self.sweep and self.origin == "published" else self.sweep


def offered_origins(origins: Sequence[str]) -> list[str]:
    """Origins to choose from, in order of preference.

    >>> offered_origins(["simulated", "published"]), offered_origins(["simulated", "measured"])
    (['published', 'simulated'], ['measured'])
    """
    return [
        origin for origin in _PREFERRED if origin in origins and not (origin == "simulated" and "measured" in origins)
    ]


def default_origin(slices: pl.DataFrame) -> str | None:
    """Measured if it has a grid with a completed run, else published, else simulated; None for an empty store.

    `slices` are rows of `queries.slices.slices`, one per sweep and slice.
    """
    offered = offered_origins(slices["origin"].unique().to_list())
    answered = slices.filter(pl.col("runs_completed") > 0)["origin"].unique().to_list()
    return next((origin for origin in offered if origin in answered), offered[0] if offered else None)


def resolve_slice(filters: Filters, slices: pl.DataFrame) -> tuple[Slice | None, tuple[str, ...]]:
    """The slice that fits the chosen values and answers most (`_ranked`), and the filters that could not be applied.

    A choice that no slice has (an old link) is skipped and its name returned; the others still hold.
    """
    left = slices
    ignored: list[str] = []
    for name in GRID:
        wanted = getattr(filters, name)
        if name == "origin":
            if wanted is not None and wanted not in offered_origins(slices["origin"].unique().to_list()):
                ignored.append(name)
                wanted = None
            wanted = wanted or default_origin(slices)
        if wanted is None or wanted == ALL:
            continue
        fits = left.filter(_equals(name, None if wanted == UNKNOWN else wanted))
        if fits.is_empty():
            ignored.append(name)
        else:
            left = fits
    if left.is_empty():
        return None, tuple(ignored)
    is_one_study = filters.sweep != ALL and (_fixed_sweep(filters, ignored) or left["origin"][0] == "published")
    keys = list(GRID if is_one_study else SLICE)
    first = _ranked(left, keys).row(0, named=True)
    return Slice(**{name: first[name] for name in keys}), tuple(ignored)


def _fixed_sweep(filters: Filters, ignored: Sequence[str]) -> bool:
    return filters.sweep is not None and "sweep" not in ignored


def _equals(name: str, value: object) -> pl.Expr:
    return pl.col(name).is_null() if value is None else pl.col(name).eq(pl.lit(value))


def _ranked(slices: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Slices by `keys` with sums of counts and their models, those that answer most first, in an order that is stable.

    A completed run shows which layout is fast, and with an MFU how far it is from the hardware's limit: it counts
    twice then. Grids of accelerators come before those of a CPU.
    """
    models = pl.col("models").explode().unique().sort()
    found = slices.group_by(keys).agg(pl.col(_COUNTS).sum(), models, _ACCELERATED.any().alias("is_accelerated"))
    answers = pl.col("runs_completed") + pl.col("runs_with_mfu")
    order = ["is_accelerated", answers, "runs_with_mfu", "runs_tried", *keys]
    return found.sort(order, descending=[True] * 4 + [False] * len(keys))


@dataclass(frozen=True)
class Other:
    """A further grid in a list: what it is, its models, and how much it holds."""

    slice: Slice
    models: tuple[str, ...]
    runs_completed: int
    runs_tried: int


def others(chosen: Slice, slices: pl.DataFrame) -> list[Other]:
    """Further grids of the same origin in which something completed, those that answer most first.

    Of published runs these are studies, as `resolve_slice` has it.
    """
    of_origin = slices.filter(pl.col("origin") == chosen.origin)
    keys = list(GRID if chosen.sweep is not None or chosen.origin == "published" else SLICE)
    found = []
    for row in _ranked(of_origin, keys).filter(pl.col("runs_completed") > 0).iter_rows(named=True):
        grid = Slice(**{name: row[name] for name in keys})
        if grid != chosen:
            found.append(Other(grid, tuple(row["models"]), row["runs_completed"], row["runs_tried"]))
    return found


def options(name: str, chosen: Slice, slices: pl.DataFrame) -> list[object]:
    """Values of `name` that exist given the choices before it in `GRID`, as `_ranked` has it; NULL as UNKNOWN.

    Sweeps begin with ALL.
    """
    if name == "origin":
        return list(offered_origins(slices["origin"].unique().to_list()))
    left = slices
    for earlier in GRID[: GRID.index(name)]:
        left = left.filter(_equals(earlier, getattr(chosen, earlier)))
    if name == "sweep":
        return [ALL, *_ranked(left.drop_nulls("sweep"), ["sweep"])["sweep"]]
    return [UNKNOWN if value is None else value for value in _ranked(left, [name])[name]]
