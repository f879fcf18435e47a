"""The truth of a training against rows of runs and steps: what is right, wrong and missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.facts import Score
from tests.real.judge import judge

RUN = {"run_id": "a", "framework": "hf-trainer", "status": "completed", "mbs": 4, "gas": 1}


def score(folder: Path, runs: list[dict[str, Any]], steps: list[tuple[int, float | None]]) -> Score:
    truth = folder / "truth.json"
    attempts = [{"status": "completed", "steps": [[2, 5.5], [4, 5.25]]}]
    truth.write_text(json.dumps({"framework": "hf-trainer", "facts": {"mbs": 4, "gas": None}, "attempts": attempts}))
    return judge(truth, runs, [{"run_id": "a", "step": step, "loss": loss} for step, loss in steps])


def test_a_run_that_is_read_as_it_was(tmp_path: Path) -> None:
    found = score(tmp_path, [RUN], [(2, 5.5), (4, 5.25)])
    assert (found.failures, found.total) == ([], 6)


@pytest.mark.parametrize(
    ("runs", "steps", "verdict"),
    [
        ([], [], "wrong   runs"),
        ([RUN, {**RUN, "run_id": "b"}], [(2, 5.5), (4, 5.25)], "wrong   runs"),
        ([{**RUN, "framework": "axolotl"}], [(2, 5.5), (4, 5.25)], "wrong   framework"),
        ([{**RUN, "framework": "other"}], [(2, 5.5), (4, 5.25)], "missing framework"),
        ([{**RUN, "status": "crash"}], [(2, 5.5), (4, 5.25)], "wrong   status"),
        ([{**RUN, "mbs": None}], [(2, 5.5), (4, 5.25)], "missing mbs"),
        ([RUN], [(2, 5.5)], "missing steps"),
        ([RUN], [(2, 5.5), (4, 5.25), (5, 5.0)], "wrong   steps"),
        ([RUN], [(2, 5.25), (4, 5.25)], "wrong   losses"),
        ([RUN], [(2, None), (4, 5.25)], "wrong   losses"),
    ],
)
def test_what_is_not(
    tmp_path: Path, runs: list[dict[str, Any]], steps: list[tuple[int, float | None]], verdict: str
) -> None:
    assert [failure.startswith(verdict) for failure in score(tmp_path, runs, steps).failures] == [True]
