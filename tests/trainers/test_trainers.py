"""Made-up trainers through the front door: nine facts of ten are right, and one of fifty is wrong at most."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.facts import Score
from tests.leave_one_out import leave_one_out
from tests.paths import CORPUS, NO_CORPUS
from tests.pipeline.ingest.test_resume import Place, differing
from tests.trainers.judge import judge
from tests.trainers.trainer import draw_trainer

_COUNT = 1_000 if os.environ.get("SWEEPSCOPE_THOROUGH") else 25


@pytest.mark.slow
def test_made_up_trainers_are_read() -> None:
    score = Score()
    for begin in range(0, _COUNT, 100):
        score = sum((one for _, one in judge(range(begin, min(begin + 100, _COUNT))).values()), score)
    assert score.share("right") >= 0.9, score.failures
    assert score.share("wrong") <= 0.02, score.failures


@pytest.mark.slow
def test_runs_keep_their_ids_while_their_logs_grow(tmp_path: Path) -> None:
    place, before = Place(tmp_path), set[str]()
    texts = {seed: draw_trainer(seed).text.encode() for seed in range(10 if _COUNT == 25 else 100)}
    for share in (0.2, 0.5, 0.8, 1.0):
        for seed, text in texts.items():
            place.write(f"{seed}/train.log", text[: int(len(text) * share)])
        tables = place.read_on()
        assert differing(tables, place.read_whole()) == []
        found = set(tables["runs"]["run_id"])
        assert before <= found
        before = found
    assert len(before) >= len(texts)


@pytest.mark.slow
@pytest.mark.skipif(not (CORPUS / "logs" / "manifest.csv").is_file(), reason=NO_CORPUS)
def test_logs_are_read_without_their_dialect() -> None:
    score = sum(leave_one_out(CORPUS / "logs").values(), Score())
    assert score.share("right") >= 0.8, score.failures
    assert score.share("wrong") <= 0.02, score.failures
