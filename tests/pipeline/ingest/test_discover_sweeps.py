from __future__ import annotations

import pytest

from sweepscope.pipeline.ingest.discover import discover
from sweepscope.pipeline.io.files import Entry


def sweeps(*paths: str) -> dict[str, str]:
    found = discover([Entry(path, 10, 1.0) for path in paths], is_simulated=lambda _: False)
    return dict(found.select("path", "sweep").iter_rows())


@pytest.mark.parametrize(
    ("paths", "sweep"),
    [
        (("/a/sweep/tp2/run.log", "/a/sweep/tp4/run.log"), "sweep"),  # a directory per run
        (("/a/sweep/tp2/run.out", "/a/sweep/tp2/run.err", "/a/sweep/tp4/run.out"), "sweep"),
        (("/a/sweep/tp2.log", "/a/sweep/tp4.log"), "sweep"),  # a file per run
        (("/a/sweep/run.log",), "sweep"),  # one run alone: nothing says that its directory is not the sweep
        (("/a/sweep/tp2/config.json", "/a/sweep/tp2/log_1001.out"), "sweep"),  # a run directory with its configuration
    ],
)
def test_the_sweep_is_the_directory_that_holds_the_runs(paths: tuple[str, ...], sweep: str) -> None:
    assert set(sweeps(*paths).values()) == {sweep}
