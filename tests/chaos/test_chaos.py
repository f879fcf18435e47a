"""Every point at which an ingest or a compaction can be killed, once each; `make chaos` kills for longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.killing import OF_OWN_LAKES, Chaos


@pytest.mark.timeout(1_800)  # dozens of ingests, one behind the other: minutes on a busy machine
def test_what_was_read_is_whole_and_there_once_wherever_its_writers_were_killed(tmp_path: Path) -> None:
    outcome = Chaos(tmp_path, seed=1).run(ingests=2 * len(OF_OWN_LAKES), watches=0)
    assert outcome.is_clean, outcome
    killed_at = {what.partition(" at ")[2] for what in outcome.kills}
    assert killed_at >= set(OF_OWN_LAKES) - {"record.saved", "lake.pruned"}, "points that were never reached"
    assert outcome.reads > 0


@pytest.mark.timeout(1_800)  # likewise
def test_a_run_of_the_watcher_that_is_killed_is_read_again_by_itself(tmp_path: Path) -> None:
    """Real processes: Dagster's daemon, its sensor, and a run that dies while it works."""
    outcome = Chaos(tmp_path, seed=2).run(ingests=0, watches=1)
    assert outcome.is_clean, outcome
    assert outcome.kills == {"run of the watcher": 1}
