"""What a home holds of the trainings, compared with what they wrote down."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.published import connect, current
from tests.facts import Score, status_verdict, verdict

_LOSS_TOLERANCE = 6e-3
"""Version 5 of transformers prints four significant digits, litgpt three decimals, Lightning's tqdm three digits."""

_SHOWN = 12

_RUNS = """
SELECT * FROM runs WHERE origin = 'measured' AND duplicate_of IS NULL AND starts_with(source_path, ?)
ORDER BY source_path, attempt
"""
_STEPS = "SELECT steps.* FROM steps SEMI JOIN (SELECT unnest(?) AS run_id) USING (run_id) ORDER BY step"


def read(home: Path, place: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of `runs` of one folder, in order, and those of `steps`."""
    connection = connect(current(Home.resolve(str(home)).path))
    try:
        runs = _rows(connection.execute(_RUNS, [f"{place}/"]))
        return runs, _rows(connection.execute(_STEPS, [[run["run_id"] for run in runs]]))
    finally:
        connection.close()


def _rows(result: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    names = [column[0] for column in result.description or ()]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def attempts_in(truth: Path) -> int:
    """How often a training was started so far."""
    return len(json.loads(truth.read_text())["attempts"]) if truth.exists() else 0


def judge(truth: Path, runs: Sequence[dict[str, Any]], steps: Sequence[dict[str, Any]]) -> Score:
    """The score of one training."""
    wanted, score = json.loads(truth.read_text()), Score()
    attempts = _as_read(wanted["attempts"], runs)
    score.add("right" if len(runs) == len(attempts) else "wrong", f"runs want {len(attempts)} got {len(runs)}")
    if not runs:
        return score
    frameworks = {run["framework"] for run in runs}
    known = "missing" if frameworks == {"other"} else "right" if frameworks == {wanted["framework"]} else "wrong"
    score.add(known, f"framework want {wanted['framework']} got {frameworks}")
    for number, attempt in enumerate(attempts):
        run = runs[number] if number < len(runs) else None
        mine = [step for step in steps if run and step["run_id"] == run["run_id"]]
        _judge_attempt(score, attempt, run, mine, f" of attempt {number + 1}" if len(attempts) > 1 else "")
    for name, value in wanted["facts"].items():
        if value is not None:
            got = [run[name] for run in runs if run[name] is not None]
            score.add(verdict(value, got, 0.01 if name == "params" else 0.0), f"{name} want {value} got {got}")
    return score


def _judge_attempt(
    score: Score, wanted: dict[str, Any], run: dict[str, Any] | None, steps: Sequence[dict[str, Any]], of: str
) -> None:
    status = run["status"] if run else None
    verdict_of_status = "right" if status == wanted["status"] else status_verdict({wanted["status"]}, status)
    if wanted["status"] == "truncated" and status == "running":
        verdict_of_status = "right"  # nothing tells them apart so soon
    score.add(verdict_of_status, f"status{of} want {wanted['status']} got {status}")
    known = {int(step): float(loss) for step, loss in wanted["steps"]}
    read_rows = {step["step"]: step["loss"] for step in steps}
    missing, invented = sorted(known.keys() - read_rows.keys()), sorted(read_rows.keys() - known.keys())
    kept = "wrong" if invented else "missing" if missing else "right"
    score.add(kept, f"steps{of} want {_few(sorted(known))} got {_few(sorted(read_rows))}")
    both = known.keys() & read_rows.keys()
    others = {
        step: (known[step], read_rows[step])
        for step in both
        if read_rows[step] is None or not math.isclose(known[step], read_rows[step], rel_tol=_LOSS_TOLERANCE)
    }
    if known:
        score.add(
            "wrong" if others else "right" if both else "missing",
            f"losses{of} (want, got) {_few(list(others.items()))}",
        )


def _as_read(attempts: list[dict[str, Any]], runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The attempts, or all as one where one run was read: nothing but a bar that begins anew tells of another start."""
    if len(runs) != 1 or len(attempts) == 1:
        return attempts
    steps = {step: loss for attempt in attempts for step, loss in attempt["steps"]}
    return [{**attempts[-1], "steps": sorted(steps.items())}]


def _few(values: list[Any]) -> str:
    """A list as text, without its middle if it is long."""
    return str(values) if len(values) <= _SHOWN else f"{len(values)}: {values[:4]} ... {values[-4:]}"
