"""A fitted profile as a file: constants, what they were fitted on and when, and how far off unseen rows were."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from typing import Any

import numpy as np

from sweepscope.pipeline.estimate.calibration.cross_validate import Unseen
from sweepscope.pipeline.estimate.calibration.fit import figures
from sweepscope.pipeline.estimate.calibration.recipe_rows import Recipe
from sweepscope.pipeline.estimate.physics.layouts import Array
from sweepscope.pipeline.estimate.physics.profile import EQUATIONS


def _ratio(measured: Array, predicted: Array) -> Array:
    both = np.isfinite(measured) & np.isfinite(predicted)
    ratio: Array = measured[both] / predicted[both]
    return ratio


def accuracy(unseen: Unseen) -> dict[str, Any]:
    """Residuals of rows whose group the fit had not seen; `time_p10`, `time_p90` are of measured over predicted.

    `outcomes_right` is the mean share of right verdicts on runs that fitted and on runs out of memory.
    """
    facts: dict[str, Any] = {"split": f"leave {unseen.rows.recipe.split}"}
    for what, predicted, measured in (
        ("time", unseen.step_time_s, unseen.rows.step_time_s),
        ("memory", unseen.mem_bytes, unseen.rows.mem_bytes),
    ):
        ratio = _ratio(measured, predicted)
        if ratio.size:
            found = figures(predicted, measured)
            facts[f"{what}_rows"] = found["rows"]
            facts[f"{what}_mape"], facts[f"{what}_median"] = round(found["mape"], 4), round(found["median"], 4)
            facts[f"{what}_p10"], facts[f"{what}_p90"] = (round(float(q), 4) for q in np.quantile(ratio, (0.1, 0.9)))
    if (judged := np.isfinite(unseen.rows.ran) & np.isfinite(unseen.mem_bytes)).any():
        fits = unseen.mem_bytes[judged] <= unseen.rows.room_bytes[judged]
        ran = unseen.rows.ran[judged] == 1
        facts["outcomes"] = int(judged.sum())
        facts["outcomes_right"] = round(float(np.mean([np.mean(fits[ran]), np.mean(~fits[~ran])])), 4)
    return facts


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        text = f"{value:.4g}"
        return text if "e" in text or "." in text else f"{text}.0"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_toml(inner)}" for name, inner in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


def render_profile(recipe: Recipe, constants: Mapping[str, float], facts: Mapping[str, Any], *, on: date) -> str:
    """Text of a profile file: constants that a fit moved or its recipe sets. The others come from `default`."""
    about = {
        "kind": "fitted",
        "equations": EQUATIONS,
        "fitted_on": f"{recipe.dataset}, {facts.get('time_rows', facts.get('memory_rows', 0))} rows",
        "fitted_at": on.isoformat(),
        "fitted": sorted(constants),
        **({"kernels": dict(recipe.kernels)} if recipe.kernels else {}),
        **({"covers": dict(recipe.covers)} if recipe.covers else {}),
        **facts,
    }
    lines = ["# Written by `sweepscope calibrate`; not edited by hand.", "[about]"]
    lines += [f"{name} = {_toml(value)}" for name, value in about.items()]
    lines += ["", "[constants]"]
    lines += [f"{name} = {_toml(value)}" for name, value in {**recipe.fixed, **constants}.items()]
    return "\n".join(lines) + "\n"
