"""Which grid a page shows: one origin, accelerator, sequence length and batch. Pure.

Origins never mix. Simulated rows are not offered once measured ones exist; published ones always stay one click away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from dashboard.filters import SLICE, UNKNOWN, Filters

_PREFERRED = ("measured", "published", "simulated")


@dataclass(frozen=True)
class Slice:
    """Runs that may be compared cell by cell. A None besides `origin` means that the store has NULL there."""

    origin: str
    accelerator: str | None
    seq_len: int | None
    gbs_tokens: int | None

    def params(self) -> dict[str, object]:
        """Bound parameters for `queries.query.IN_SLICE`."""
        return {name: getattr(self, name) for name in SLICE}


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

    `slices` has one row per slice: the four key columns, `runs_tried` and `runs_completed`.
    """
    offered = offered_origins(slices["origin"].unique().to_list())
    answered = slices.filter(pl.col("runs_completed") > 0)["origin"].unique().to_list()
    return next((origin for origin in offered if origin in answered), offered[0] if offered else None)


def resolve_slice(filters: Filters, slices: pl.DataFrame) -> tuple[Slice | None, tuple[str, ...]]:
    """The slice that fits the chosen values and has most completed runs, and the filters that could not be honoured.

    A choice that no slice has (an old link) is skipped and its name returned; the others still hold.
    """
    left = slices.sort("runs_completed", "runs_tried", descending=True, maintain_order=True)
    ignored: list[str] = []
    for name in SLICE:
        wanted = getattr(filters, name)
        if name == "origin":
            offered = offered_origins(slices["origin"].unique().to_list())
            if wanted is not None and wanted not in offered:
                ignored.append(name)
                wanted = None
            wanted = wanted or default_origin(slices)
        if wanted is None:
            continue
        fits = left.filter(pl.col(name).is_null() if wanted == UNKNOWN else pl.col(name) == wanted)
        if fits.is_empty():
            ignored.append(name)
        else:
            left = fits
    if left.is_empty():
        return None, tuple(ignored)
    row = left.row(0, named=True)
    return Slice(**{name: row[name] for name in SLICE}), tuple(ignored)


def options(name: str, chosen: Slice, slices: pl.DataFrame) -> list[object]:
    """Values of `name` that exist given the choices before it in `SLICE`, fullest first; NULL as UNKNOWN."""
    if name == "origin":
        return list(offered_origins(slices["origin"].unique().to_list()))
    left = slices
    for earlier in SLICE[: SLICE.index(name)]:
        value = getattr(chosen, earlier)
        left = left.filter(pl.col(earlier).is_null() if value is None else pl.col(earlier) == value)
    counts = left.group_by(name).agg(pl.col("runs_completed").sum()).sort("runs_completed", name, descending=True)
    return [UNKNOWN if value is None else value for value in counts[name]]
