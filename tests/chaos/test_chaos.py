"""Every point at which an ingest or a compaction can be killed, once each; `make chaos` kills for longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.killing import Chaos
from tests.chaos.setups import OF_OWN_LAKES, set_up

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


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("over", ["dask", "s3"])
def test_the_same_holds_over_dask_and_for_two_homes_that_share_a_lake_on_s3(tmp_path: Path, over: str) -> None:
    with set_up(over) as setup:
        outcome = Chaos(tmp_path, seed=2, setup=setup).run(ingests=4, watches=0, points_per_moment=1, readers_rest=4.0)
    assert outcome.is_clean, outcome
    assert sum(outcome.kills.values()) >= 4
    assert outcome.reads > 0
