"""Every point at which an ingest or a compaction can be killed, once each; `make chaos` kills for longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.killing import OF_OWN_LAKES, Chaos

# Not by every sweep: the first wants a long log, the second a compaction with much to remove.
_RARE = {"record.saved", "lake.pruned"}


@pytest.mark.timeout(1_800)  # dozens of ingests, one behind the other: minutes on a busy machine
def test_what_was_read_is_whole_and_there_once_wherever_its_writers_were_killed(tmp_path: Path) -> None:
    """Real processes: ingests, then Dagster's daemon with its sensor, and a run of it that dies while it works."""
    points = set(OF_OWN_LAKES) - _RARE
    outcome = Chaos(tmp_path, seed=1).run(ingests=len(points) + 3, watches=1, points_per_moment=5, readers_rest=4.0)
    assert outcome.is_clean, outcome
    killed_at = {what.partition(" at ")[2] for what in outcome.kills}
    assert killed_at >= points, "points that were never reached"
    assert outcome.kills["run of the watcher"] == 1
    assert outcome.reads > 0
