"""Fault points kill where and when they are told to, and nowhere else."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from sweepscope.pipeline.io.fault_points import POINTS, VARIABLE, reach
from tests.paths import ROOT

_CODE = "from sweepscope.pipeline.io.fault_points import reach\nfor n in range(4): print(n, flush=True); reach('run.started')"


@pytest.mark.parametrize(
    ("wanted", "printed", "code"),
    [("run.started:3", "0 1 2", -9), ("run.started", "0", -9), ("store.built", "0 1 2 3", 0), ("", "0 1 2 3", 0)],
)
def test_the_nth_time_is_the_last(wanted: str, printed: str, code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _CODE],
        env={VARIABLE: wanted, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.split(), done.returncode) == (printed.split(), code)


def test_every_point_is_listed_and_every_listed_one_exists() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "pipeline").rglob("*.py"))
    assert set(re.findall(r'\breach\("([a-z._]+)"\)', sources)) == set(POINTS)
    with pytest.raises(KeyError):
        reach("no.such.point")
