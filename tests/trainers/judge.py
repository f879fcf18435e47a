"""What was read of made-up trainers, compared with the truth."""

from __future__ import annotations

import polars as pl

from tests.facts import Score, status_verdict, verdict
from tests.pipeline.ingest_in_memory import tables_of
from tests.trainers.trainer import Trainer, draw_trainer

_TOLERANCES = {"last_loss": 6e-3, "step_time_s": 0.05, "tokens_per_s": 0.05}


def judge(seeds: range) -> dict[int, tuple[Trainer, Score]]:
    """The score of each seed's trainer, all of them read as one sweep."""
    trainers = {seed: draw_trainer(seed) for seed in seeds}
    files = {f"{seed:06d}/train.log": trainer.text for seed, trainer in trainers.items()}
    tables = tables_of(files)
    runs = tables["runs"].partition_by("source_path", as_dict=True)
    steps = tables["steps"].partition_by("source_path", as_dict=True)
    found = {}
    for seed, trainer in trainers.items():
        path = (f"{seed:06d}/train.log",)
        mine = runs.get(path, tables["runs"].clear()).sort("attempt")
        found[seed] = (trainer, _score(trainer, mine, steps.get(path, tables["steps"].clear())))
    return found


def _score(trainer: Trainer, runs: pl.DataFrame, steps: pl.DataFrame) -> Score:
    score = Score()
    rows = runs.to_dicts()
    status = rows[-1]["status"] if rows else None
    wanted = sorted(trainer.statuses)
    score.add(status_verdict(set(wanted), status), f"status want {wanted} got {status!r}")
    first = steps.filter(pl.col("run_id") == rows[0]["run_id"]) if rows else steps
    last = steps.filter(pl.col("run_id") == rows[-1]["run_id"]) if rows else steps
    of_steps: dict[str, list[object]] = {
        "steps": [steps.height] if steps.height else [],
        "first_step": [first["step"].min()],
        "last_step": [last["step"].max()],
        "last_loss": last.sort("step")["loss"].drop_nulls().tail(1).to_list(),
        "step_time_s": [steps["step_time_s"].median()],
        "tokens_per_s": [steps["tokens_per_s"].median()],
    }
    for name, value in trainer.truth.items():
        got = of_steps.get(name, [row.get(name) for row in rows])
        score.add(verdict(value, got, _TOLERANCES.get(name, 0.0)), f"{name} want {value:.6g} got {got}")
    return score
