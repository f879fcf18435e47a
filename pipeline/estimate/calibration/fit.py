"""Fit a profile's constants to measured rows: damped least squares on the logarithm of predicted over measured.

Constants are searched in a transformed space in which each stays in its range (efficiencies between 0 and 1, others
positive), with a weak pull towards where they start: few rows cannot carry a constant far from its published value.
Large residuals count less (Huber), because measured sweeps hold runs that no physics explains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sweepscope.pipeline.estimate.physics.layouts import Array, Layouts
from sweepscope.pipeline.estimate.physics.profile import choose_profile, with_values
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.rows.asking import ChooseProfile, ask
from sweepscope.pipeline.estimate.rows.estimate_rows import reasons_against, same_question
from sweepscope.pipeline.estimate.rows.read_rows import read_rows
from sweepscope.pipeline.estimate.rows.row_layouts import layouts_of

SHARES = frozenset(
    (
        *("gemm_peak_share", "gemm_wave_loss", "memory_share", "attention_efficiency", "link_share", "network_share"),
        *("slow_node_chance", "slow_node_cost", "multicast_share", "tp_hidden", "dp_hidden", "pp_hidden", "fp8_gain"),
        "expert_efficiency",
    )
)
"""Constants between 0 and 1."""


@dataclass(frozen=True)
class Batch:
    """Rows that share a question: their layouts, and their indices in the table."""

    asked: Question
    at: Layouts
    indices: NDArray[np.intp]


def batches(table: pl.DataFrame, choose: ChooseProfile = choose_profile) -> list[Batch]:
    """Every row of `table` that can be estimated, grouped by question."""
    found = []
    for group in same_question(read_rows(table)):
        rows = group.to_dicts()
        asked, _, _ = ask(rows[0], choose)
        if asked is None:
            continue
        usable = [row for row, reason in zip(rows, reasons_against(asked, rows), strict=True) if not reason]
        if usable:
            indices = np.array([row["row"] for row in usable])
            found.append(Batch(asked, layouts_of(usable, asked.profile), indices))
    return found


def with_constants(asked: Question, constants: Mapping[str, float]) -> Question:
    """The question under other constants."""
    return replace(asked, profile=with_values(asked.profile, constants))


Figure = Callable[[Question, Layouts], Array]
"""One figure per layout of a question."""


def predict(rows: Sequence[Batch], constants: dict[str, float], size: int, figure: Figure) -> Array:
    """`figure` of the rows under `constants`, at their indices of an array of `size`; NaN elsewhere."""
    out = np.full(size, np.nan)
    for batch in rows:
        out[batch.indices] = figure(with_constants(batch.asked, constants), batch.at)
    return out


def _forward(name: str, value: float) -> float:
    if name in SHARES:
        value = min(max(value, 1e-3), 1 - 1e-3)
        return float(np.log(value / (1 - value)))
    return float(np.log(max(value, 1e-12)))


def _backward(name: str, value: float) -> float:
    return float(1 / (1 + np.exp(-value))) if name in SHARES else float(np.exp(value))


def fit(
    residuals: Callable[[dict[str, float]], Array],
    start: dict[str, float],
    *,
    begin: dict[str, float] | None = None,
    pull: float = 0.02,
    huber: float = 0.1,
    rounds: int = 25,
) -> dict[str, float]:
    """Constants that minimise the Huber loss of `residuals` plus `pull` x squared distance from `start`.

    Levenberg-Marquardt with a numerical Jacobian and reweighting; deterministic. The search begins at `start`, or at
    `begin` of a similar fit.
    """
    names = list(start)
    origin = np.array([_forward(name, start[name]) for name in names])

    def constants(x: Array) -> dict[str, float]:
        return {name: _backward(name, value) for name, value in zip(names, x, strict=True)}

    def loss(errors: Array, x: Array) -> float:
        size = np.abs(errors)
        parts = np.where(size <= huber, 0.5 * errors**2, huber * (size - 0.5 * huber))
        return float(np.mean(parts) + 0.5 * pull**2 * np.mean((x - origin) ** 2))

    x = origin.copy() if begin is None else np.array([_forward(name, begin[name]) for name in names])
    damping = 1e-2
    errors = residuals(constants(x))
    best = loss(errors, x)
    for _ in range(rounds):
        step = 1e-4
        jacobian = np.stack(
            [(residuals(constants(x + step * unit)) - errors) / step for unit in np.eye(len(names))], axis=1
        )
        weights = 1.0 / np.maximum(1.0, np.abs(errors) / huber) / errors.size
        ridge = pull**2 / len(names)
        gradient = jacobian.T @ (weights * errors) + ridge * (x - origin)
        hessian = (jacobian * weights[:, None]).T @ jacobian + ridge * np.eye(len(names))
        improved = False
        for _ in range(8):
            move = np.linalg.solve(hessian + damping * np.diag(np.diag(hessian) + 1e-9), -gradient)
            candidate = x + np.clip(move, -1.0, 1.0)
            tried = residuals(constants(candidate))
            value = loss(tried, candidate)
            if np.isfinite(value) and value < best:
                gain = best - value
                x, errors, best, damping, improved = candidate, tried, value, damping / 5, gain > 1e-7
                break
            damping *= 4
        if not improved:
            break
    return constants(x)


def figures(predicted: Array, measured: Array) -> dict[str, Any]:
    """Mean and median absolute percentage error over the rows that have both."""
    both = np.isfinite(predicted) & np.isfinite(measured)
    errors = np.abs(predicted[both] / measured[both] - 1)
    return {"rows": int(both.sum()), "mape": float(np.mean(errors)), "median": float(np.median(errors))}
