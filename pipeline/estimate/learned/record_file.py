"""A track record as the text of its file, and back."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from sweepscope.pipeline.errors import InputError
from sweepscope.pipeline.estimate.learned.penalty import FEATURES, Penalty, Settings
from sweepscope.pipeline.estimate.learned.track_record import LearnedPenalty, Residuals, TrackRecord
from sweepscope.pipeline.estimate.physics.profile import Profile, constants_digest


def _learned_value(learned: LearnedPenalty) -> dict[str, Any]:
    return {
        "features": list(FEATURES),
        **asdict(learned.model.settings),
        "lowest": learned.lowest,
        "highest": learned.highest,
        "ranges": {name: list(ends) for name, ends in learned.ranges.items()},
        "points": np.round(learned.model.points, 4).tolist(),
        "weights": [float(f"{weight:.5g}") for weight in learned.model.weights],
    }


def _read_learned(stated: dict[str, Any] | None, path: Path, remedy: str) -> LearnedPenalty | None:
    if stated is None:
        return None
    if tuple(stated["features"]) != FEATURES:
        raise InputError(f"{path} was learned on other features than this version has. {remedy}")
    settings = Settings(tuple(stated["reach"]), float(stated["noise"]), str(stated["kind"]))
    model = Penalty(settings, np.array(stated["points"], np.float64), np.array(stated["weights"], np.float64))
    ranges = {name: (float(low), float(high)) for name, (low, high) in stated["ranges"].items()}
    return LearnedPenalty(model, float(stated["lowest"]), float(stated["highest"]), ranges)


def render_record(record: TrackRecord) -> str:
    """Text of a record's file."""

    def lists(residuals: Residuals) -> dict[str, list[float]]:
        return {name: [round(float(value), 4) for value in values] for name, values in residuals.by_pattern.items()}

    value: dict[str, Any] = {
        "about": record.about,
        "time": lists(record.time),
        "memory": lists(record.memory),
        "penalised": lists(record.penalised),
        "needed": lists(record.needed),
        "choices": sorted(record.choices),
    }
    for name, learned in (("penalty", record.penalty), ("memory_factor", record.memory_factor)):
        if learned is not None:
            value[name] = _learned_value(learned)
    entries = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(part, separators=(',', ':'))}" for name, part in value.items()
    )
    return "{\n" + entries + "\n}\n"


def read_record(path: Path) -> TrackRecord:
    """A record's file. Raises InputError, with the remedy, for one that is damaged or of another version."""
    remedy = "Fit it again: sweepscope calibrate."
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        penalty = _read_learned(value.get("penalty"), path, remedy)
        factor = _read_learned(value.get("memory_factor"), path, remedy)
        parts = {
            name: Residuals({pattern: np.array(values, np.float64) for pattern, values in entries.items()})
            for name, entries in (
                ("time", value["time"]),
                ("memory", value["memory"]),
                ("penalised", value["penalised"]),
                ("needed", value.get("needed", {})),
            )
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is no track record ({error}). {remedy}") from error
    choices = frozenset(value["choices"])
    return TrackRecord(path.stem, value["about"], **parts, choices=choices, penalty=penalty, memory_factor=factor)


@lru_cache(maxsize=64)
def _read_once(path: Path, _changed_ns: tuple[int, int]) -> TrackRecord | None:
    record = read_record(path)
    return record if record.about.get("constants") == constants_digest(path.with_suffix(".toml")) else None


def find_record(profile: Profile) -> TrackRecord | None:
    """The record beside a profile's file; None where there is none, or one that was learned with other constants."""
    if profile.folder is None:
        return None
    path = profile.folder / f"{profile.name}.json"
    try:
        changed = path.stat().st_mtime_ns, path.with_suffix(".toml").stat().st_mtime_ns
    except OSError:
        return None
    return _read_once(path, changed)
