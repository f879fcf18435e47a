"""Made-up trainers through the front door: nine facts of ten are right, and one of fifty is wrong at most."""

from __future__ import annotations

import os

import pytest

from tests.facts import Score
from tests.leave_one_out import leave_one_out
from tests.paths import CORPUS, NO_CORPUS
from tests.trainers.judge import judge

_COUNT = 1_000 if os.environ.get("SWEEPSCOPE_THOROUGH") else 25


@pytest.mark.slow
def test_made_up_trainers_are_read() -> None:
    score = Score()
    for begin in range(0, _COUNT, 100):
        score = sum((one for _, one in judge(range(begin, min(begin + 100, _COUNT))).values()), score)
    assert score.share("right") >= 0.9, score.failures
    assert score.share("wrong") <= 0.02, score.failures


@pytest.mark.slow
@pytest.mark.skipif(not (CORPUS / "logs" / "manifest.csv").is_file(), reason=NO_CORPUS)
def test_logs_are_read_without_their_dialect() -> None:
    score = sum(leave_one_out(CORPUS / "logs").values(), Score())
    assert score.share("right") >= 0.8, score.failures
    assert score.share("wrong") <= 0.02, score.failures
