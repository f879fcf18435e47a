"""Storage, ticks and releases stay bounded and no row is lost, for a few ingests; `make soak` takes a whole day."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from sweepscope.pipeline.orchestration import retention
from sweepscope.pipeline.orchestration.instance import open_instance
from sweepscope.pipeline.orchestration.run import ingest_paths
from sweepscope.pipeline.orchestration.upkeep import keep_up
from sweepscope.pipeline.store import maintenance
from tests.soak.measuring import age, memory_below, take
from tests.soak.soaking import Soak

INGESTS = 12


@pytest.mark.timeout(1_200)
def test_a_home_that_is_written_to_again_and_again_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DAGSTER_HOME", "SWEEPSCOPE_HOME"):
        monkeypatch.setenv(name, "")  # opening the instance sets them
    monkeypatch.setattr(retention, "KEPT_OF_EACH_JOB", 2)
    monkeypatch.setattr(maintenance, "_MANY_RELEASES", 2)
    soak = Soak(tmp_path)
    soak.home.operations.write_text("[retention]\nsucceeded_days = 2\n")
    for day in range(INGESTS):
        soak.sweep.grow()
        ingest_paths(soak.home, [str(soak.sweep.folder)], with_published=False)
        age(soak.home, timedelta(days=1))
        with open_instance(soak.home) as instance:
            keep_up(soak.home, instance)
        soak.outcome.samples.append(take(soak.home, 24.0 * day))
    early, late = soak.outcome.samples[3:7], soak.outcome.samples[7:]
    for name in ("dagster_runs", "dagster_bytes", "ticks", "releases"):
        before, after = (max(getattr(sample, name) for sample in part) for part in (early, late))
        assert after <= 1.2 * before, (name, before, after)
    assert max(sample.dagster_runs for sample in late) <= 4
    done = soak.judge()
    assert (done.lost, done.problems) == ([], [])


def test_memory_is_that_of_a_process_and_what_it_started() -> None:
    import os
    import subprocess
    import sys

    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()', 'dagster'])"
    with subprocess.Popen([sys.executable, "-c", code, "watch"], stdin=subprocess.PIPE) as parent:
        while memory_below(parent.pid) == 0:
            assert parent.poll() is None
        alone = int(Path(f"/proc/{parent.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        while memory_below(parent.pid) <= alone * 1.2:
            assert parent.poll() is None
        assert parent.stdin is not None
        parent.stdin.write(b"\n")
        parent.stdin.close()
