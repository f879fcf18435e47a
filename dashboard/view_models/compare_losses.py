"""The waterfalls of two runs subtracted: what the faster one saves, and what it pays for that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from sweepscope.dashboard.queries.query import Row
from sweepscope.pipeline.estimate.rows.waterfall import UNEXPLAINED, waterfall

_SEEN = 5e-4  # share from which a figure is not 0.0
_PART = "est_time_"


@dataclass(frozen=True)
class Term:
    """One part of the step of both runs, as shares on the common scale of `Difference`.

    `gain` is what the first saves: negative where it takes longer.
    """

    term: str
    label: str
    first: float
    second: float

    @property
    def gain(self) -> float:
        """What the first run saves."""
        return self.second - self.first


@dataclass(frozen=True)
class Difference:
    """Two waterfalls on one scale, and their terms in the order of the waterfall.

    `is_same_work`: shares are of the first run's time per token, so that gains add up to how much longer the second
    takes; else each run's shares are of its own step, and gains add up to the difference of their MFU.
    `is_estimated`: the steps are the estimated ones, because one of the two was not measured.
    """

    terms: tuple[Term, ...]
    is_same_work: bool
    is_estimated: bool

    @property
    def total(self) -> float:
        """Sum of all gains."""
        return sum(term.gain for term in self.terms)

    @property
    def unexplained(self) -> float:
        """What of the total the estimate does not account for."""
        return sum(term.gain for term in self.terms if term.term == UNEXPLAINED)


def difference(first: Row, second: Row) -> Difference:
    """The difference of two rows of `queries.compare.estimates`, the first being the faster run."""
    is_estimated = not (_step(first) and _step(second))
    levels = [_shares(row, is_estimated=is_estimated) for row in (first, second)]
    times = [_time_per_token(row, is_estimated=is_estimated) for row in (first, second)]
    is_same = _is_same_model(first, second) and None not in times
    scale = times[1] / times[0] if is_same and times[0] and times[1] else 1.0
    names = dict.fromkeys([*levels[0], *levels[1]])
    terms = [
        Term(name, (levels[0].get(name) or levels[1][name])[0], _of(levels[0], name), scale * _of(levels[1], name))
        for name in names
    ]
    terms.sort(key=lambda term: term.term == UNEXPLAINED)
    at_peak = _at_peak(levels[0]), scale * _at_peak(levels[1])
    if is_same and abs(at_peak[1] - at_peak[0]) >= _SEEN:
        terms.insert(0, Term("flops", "Model FLOPs at peak", *at_peak))
    kept = [term for term in terms if max(abs(term.first), abs(term.second)) >= _SEEN]
    return Difference(tuple(kept), is_same, is_estimated)


def _step(row: Row) -> float | None:
    step: float | None = row["step_time_s"]
    return step


def _shares(row: Row, *, is_estimated: bool) -> dict[str, tuple[str, float]]:
    """Label and share of the step of each term."""
    needed = {name: value for name, value in row.items() if name in _NEEDED or name.startswith(_PART)}
    frame = pl.DataFrame([needed | ({"step_time_s": None} if is_estimated else {})])
    rows = waterfall(frame, measured=None if is_estimated else "step_time_s")
    return {loss["term"]: (loss["label"], loss["share"]) for loss in rows.iter_rows(named=True)}


_NEEDED = ("est_mfu", "est_step_time_s", "step_time_s")


def _at_peak(shares: dict[str, tuple[str, float]]) -> float:
    """What is left when all terms are taken from the step: the time of its FLOPs at peak."""
    return 1.0 - sum(share for _, share in shares.values())


def _of(shares: dict[str, tuple[str, float]], name: str) -> float:
    return shares[name][1] if name in shares else 0.0


def _time_per_token(row: Row, *, is_estimated: bool) -> float | None:
    """Seconds of one GPU for one token; None where the batch or the number of GPUs is unknown."""
    step = row["est_step_time_s"] if is_estimated else _step(row)
    tokens, gpus = row["gbs_tokens"], row["num_gpus"]
    return step * gpus / tokens if step and tokens and gpus else None


def _is_same_model(first: Row, second: Row) -> bool:
    return (
        first["model"] is not None
        and first["model"] == second["model"]
        and (first["accelerator"] == second["accelerator"])
    )


def largest(terms: Sequence[Term], *, sign: int, most: int = 2) -> list[Term]:
    """The terms that the first run saves most in (`sign` 1) or pays most for (-1), largest first, of those that the
    estimate accounts for and that are at least a half of a point.
    """
    found = [term for term in terms if term.term != UNEXPLAINED and sign * term.gain >= 0.005]
    return sorted(found, key=lambda term: -sign * term.gain)[:most]
