"""The memory that a log takes hardly grows with its length."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

STEPS = (100_000, 600_000)

MOST_BYTES_PER_STEP = 150
"""What each further step may take, where its facts have 160 bytes and each copy of them as many again."""

INGEST = """
import json, pathlib, sys
from sweepscope.schemas import limits
from sweepscope.pipeline.logs.runs import long_logs
limits.SPILL_BYTES, long_logs.ENOUGH = 8 << 20, 1 << 14  # so that a small log shows what a large one takes
from sweepscope.pipeline.ingest import plan
from sweepscope.pipeline.ingest.batch import parse_batch, validate_batch
tables = validate_batch(parse_batch(plan.find([sys.argv[1]]), now=plan.utc_now()))
status = pathlib.Path("/proc/self/status").read_text()
# Not ru_maxrss: that begins with what the process had that started this one.
peak = 1024 * int(status.partition("VmHWM:")[2].split()[0])
print(json.dumps({"steps": tables["steps"].height, "rejects": tables["rejects"].height, "peak": peak}))
"""


def write_log(path: Path, steps: int, launches: int = 1) -> Path:
    """A log of Megatron with so many steps, in which a training begins as often."""
    with path.open("w") as file:
        file.write("  hidden_size ..................................... 4096\n")
        for number in range(steps):
            launch, step = divmod(number, steps // launches)
            clock = f"{step // 360_000:02}:{step // 6_000 % 60:02}:{step // 100 % 60:02}"
            values = f"elapsed time per iteration (ms): {800 + step % 97}.5 | lm loss: {2 + step % 5}.25"
            file.write(f" [2026-01-{2 + launch:02} {clock}] iteration {step + 1:8}/ 9999999 | {values} |\n")
    return path


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells the peak of a process there")
@pytest.mark.parametrize("launches", [1, 4])
def test_memory_hardly_grows_with_the_length_of_a_log(tmp_path: Path, launches: int) -> None:
    peaks = []
    for steps in STEPS:
        log = write_log(tmp_path / f"{steps}.log", steps, launches)
        done = subprocess.run(
            [sys.executable, "-c", INGEST, str(log)], cwd=ROOT, capture_output=True, text=True, check=True
        )
        found = json.loads(done.stdout)
        assert (found["steps"], found["rejects"]) == (steps, 0)
        peaks.append(found["peak"])
    assert (peaks[1] - peaks[0]) / (STEPS[1] - STEPS[0]) < MOST_BYTES_PER_STEP
