"""Where another kind of layout begins to win: the fastest of each kind over cluster sizes, and over global batches.

A kind is which dimensions a layout uses. Each point is a whole search at one size and batch; a condition *flips* at the
first value from which it holds at every larger one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sweepscope.pipeline.estimate.physics.estimate import estimate
from sweepscope.pipeline.estimate.physics.layouts import Layouts
from sweepscope.pipeline.estimate.search.enumerate import Request, blocks
from sweepscope.pipeline.estimate.search.layout_table import NO_LAYOUTS, layout_table, room_bytes
from sweepscope.pipeline.estimate.search.search import MARGIN

KINDS: Final = {
    "data": "replicas, sharded or not (TP 1, PP 1)",
    "tensor": "tensor groups inside a domain of links (PP 1)",
    "pipeline": "pipeline stages, tensor groups inside a domain",
    "tensor_out": "tensor groups over several domains",
}
"""Kinds of layouts by what they use beside replicas, in the order of what is tried first."""
RULE_OF_THUMB: Final = 10.0
"""Compute over communication that the heuristics ask for."""
KEPT: Final = 0.9
"""Share of the efficiency of the smallest cluster that counts as kept."""

CONDITIONS: Final = {
    "fits": "the model fits",
    "tensor_pays": "tensor parallelism pays off",
    "dp_shows": "the data-parallel exchange outlasts the passes that could hide it",
    "ratio_low": "compute is less than ten times communication",
    "pipeline_pays": "pipeline stages pay off",
    "batch_short": "there are more accelerators than sequences in a batch",
    "tensor_leaves": "tensor groups leave the domain of links",
    "efficiency_lost": "less than 90 % of the smallest cluster's efficiency is left",
}
"""Conditions that flip over accelerators at a fixed batch, in the order of the recipe."""


@dataclass(frozen=True)
class Flip:
    """A condition of CONDITIONS and the first value from which it holds on; None: not within the values tried."""

    condition: str
    value: int | None


def kinds_of(at: Layouts, gpus_per_domain: int) -> NDArray[np.int8]:
    """Index in KINDS of each layout."""
    inside = np.where(at.pp > 1, 2, np.where(at.tp > 1, 1, 0))
    return np.where(at.tp > gpus_per_domain, 3, inside).astype(np.int8)


def fastest_of_each_kind(request: Request, *, margin: float = MARGIN) -> pl.DataFrame:
    """The fastest layout that fits of each kind, with its prediction, as rows of a search with `kind`, in its order.

    By what physics allows: penalties of layouts that were never run are unknown.
    """
    asked, room = request.asked, room_bytes(request) - margin * request.asked.cluster.memory_bytes
    best: dict[int, tuple[float, Layouts]] = {}
    for block in blocks(request):
        can = block.codes == 0
        if not can.any():
            continue
        predicted = estimate(asked, block.at)
        fits = can & (np.broadcast_to(predicted.stages.reserved, can.shape) <= room)
        speed = np.where(fits, np.broadcast_to(predicted.tokens_per_s_per_gpu, can.shape), 0.0)
        kinds = np.broadcast_to(kinds_of(block.at, asked.cluster.gpus_per_domain), can.shape)
        for kind in range(len(KINDS)):
            of_kind = np.where(kinds == kind, speed, 0.0)
            index = int(np.argmax(of_kind))
            if of_kind.flat[index] > best.get(kind, (0.0, None))[0]:
                mask = np.zeros(can.shape, np.bool_)
                mask.flat[index] = True
                best[kind] = float(of_kind.flat[index]), block.at[mask]
    tables = [
        layout_table(request, at).with_columns(pl.lit(list(KINDS)[kind]).alias("kind"))
        for kind, (_, at) in sorted(best.items())
    ]
    empty = layout_table(request, NO_LAYOUTS).with_columns(pl.lit(None, pl.String).alias("kind"))
    sized = pl.concat([empty, *tables])
    return sized.with_columns(
        num_gpus=pl.lit(request.num_gpus, pl.Int64),
        gbs_tokens=pl.lit(request.gbs * asked.seq_len, pl.Int64),
    )


def over_gpus(request: Request, counts: Sequence[int]) -> pl.DataFrame:
    """`fastest_of_each_kind` on each number of accelerators, at the batch of `request`."""
    return pl.concat([fastest_of_each_kind(replace(request, num_gpus=count)) for count in counts])


def over_batches(request: Request, batches: Sequence[int]) -> pl.DataFrame:
    """The same at each global batch in sequences, on the accelerators of `request`."""
    return pl.concat([fastest_of_each_kind(replace(request, gbs=batch)) for batch in batches])


def _best(rows: pl.DataFrame, kinds: Sequence[str] = tuple(KINDS)) -> dict[str, float | int | str | None] | None:
    """The fastest of `rows` among some kinds."""
    of_kinds = rows.filter(pl.col("kind").is_in(kinds)).sort("est_tokens_per_s_per_gpu", descending=True)
    return of_kinds.row(0, named=True) if of_kinds.height else None


def _mfu(row: dict[str, float | int | str | None] | None) -> float:
    return float(row["est_mfu"] or 0.0) if row is not None else 0.0


def flips_over_gpus(rows: pl.DataFrame, counts: Sequence[int], gbs: int, gpus_per_domain: int) -> list[Flip]:
    """Each condition of CONDITIONS with the accelerators from which it holds. `rows` are those of `over_gpus`."""
    holds: dict[str, list[bool]] = {name: [] for name in CONDITIONS}
    base = 0.0
    for count in counts:
        here = rows.filter(num_gpus=count)
        best, flat = _best(here), _best(here, ("data", "tensor"))
        data, tensor, staged = (_best(here, (kind,)) for kind in ("data", "tensor", "pipeline"))
        base = base or _mfu(best)
        holds["fits"].append(best is not None)
        holds["tensor_pays"].append(_mfu(tensor) > _mfu(data))
        holds["dp_shows"].append(flat is not None and float(flat["est_dp_per_pass"] or 0.0) > 1.0)
        ratio = best["est_compute_per_comm"] if best is not None else None
        holds["ratio_low"].append(ratio is not None and float(ratio) < RULE_OF_THUMB)
        holds["pipeline_pays"].append(_mfu(staged) > _mfu(flat))
        holds["batch_short"].append(count > gbs)
        holds["tensor_leaves"].append(best is not None and int(best["tp"] or 1) > gpus_per_domain)
        holds["efficiency_lost"].append(best is not None and _mfu(best) < KEPT * base)
    return [Flip(name, _from(list(counts), held)) for name, held in holds.items()]


def _from(values: list[int], held: list[bool]) -> int | None:
    """The first of ascending `values` from which all are held.

    >>> _from([1, 2, 4], [True, False, True]), _from([1, 2], [True, False])
    (4, None)
    """
    first = None
    for value, is_held in zip(reversed(values), reversed(held), strict=True):
        if not is_held:
            break
        first = value
    return first


def least_batch(rows: pl.DataFrame, base_mfu: float) -> int | None:
    """The smallest global batch in tokens from which on the fastest layout keeps KEPT of `base_mfu`; None: none does.

    `rows` are those of `over_batches`.
    """
    batches = sorted(set(rows["gbs_tokens"].to_list()))
    held = [_mfu(_best(rows.filter(gbs_tokens=batch))) >= KEPT * base_mfu for batch in batches]
    return _from(batches, held)
