"""Health findings in the answer of a run."""

from __future__ import annotations

from typing import Any

import pytest

from sweepscope.dashboard.text.health_findings import health_findings
from sweepscope.schemas.vocab import EVENT_KIND, HEALTH_FINDINGS
from tests.dashboard.store_rows import event_row

RUN: dict[str, Any] = {"status": "completed", "status_confidence": "high", "diverged_at_step": None}


def said(*kinds: str, **run: Any) -> str:
    rows = [event_row(kind=kind, text=f"{kind} costs 3 min") for kind in kinds]
    return health_findings({**RUN, **run}, rows)


def test_a_sound_run_has_none() -> None:
    assert said() == said("launch", "exception", "training_end") == ""


def test_the_event_is_the_sentence() -> None:
    assert said("slowdown") == " Slowdown costs 3 min."


def test_the_costliest_two_come_first() -> None:
    assert said("silence", "straggler", "slowdown", "diverged") == " Diverged costs 3 min. Slowdown costs 3 min."


def test_ranks_that_straggle_are_counted() -> None:
    assert said("straggler", "straggler", "straggler") == " Straggler costs 3 min, and 2 more like it."


def test_a_nan_has_its_step_when_it_stayed() -> None:
    assert said("nan_loss") == ""
    assert said("nan_loss", diverged_at_step=1200) == " The loss or its gradient is NaN or infinite from step 1,200 on."


def test_a_silence_that_decided_the_status_is_not_repeated() -> None:
    assert said("silence", status="hang", status_confidence="low") == ""
    assert said("silence", status="timeout") == " Silence costs 3 min."


@pytest.mark.parametrize("kind", HEALTH_FINDINGS)
def test_every_finding_is_a_kind_of_event_and_has_a_sentence(kind: str) -> None:
    assert kind in EVENT_KIND
    assert said(kind, diverged_at_step=1) == "" or said(kind, diverged_at_step=1).endswith(".")
