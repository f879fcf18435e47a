"""The worst lines: 100 MB without a line feed, through the whole of reading and the fold, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.properties import THOROUGH

SIZE_BYTES = 100 << 20
GROWTH_MIB = 200
"""Beyond what reading a small log takes: one block of 32 MiB, its lines and their candidates, whatever the file's size."""

STEP = (
    b"[rank0]:[titan] 2026-05-19 19:36:01,730 - root - INFO - step:  1  loss:  7.01706  grad_norm: 31.3750  memory: "
    b"169.20GiB(94.87%)  tps: 9,646  tflops: 812.70  mfu: 36.12%\n"
)

PIECES = [
    b"| tokens_per_sec_per_gpu: 9 RuntimeError: CUDA out of memory. Tried to ",
    b"step:  1  loss:\r",
]
"""Literals that many readers ask for, and a bar that is drawn again and again."""

MORE_PIECES = [b"x", b"\x1b[31m"]
"""What cleaning makes short, which costs less: read with `SWEEPSCOPE_THOROUGH=1`."""

_SCRIPT = textwrap.dedent(
    """
    import json, resource, sys, time
    from datetime import datetime
    from sweepscope.pipeline.ingest import batch, plan

    def read(path):
        tables = batch.parse_batch(plan.find([path]), now=datetime(2035, 1, 1))
        return batch.validate_batch(tables)

    read(sys.argv[1])
    before, begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    tables = read(sys.argv[2])
    print(json.dumps({
        "grown_mib": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024,
        "cpu_s": time.process_time() - begin,
        "steps": tables["steps"]["step"].to_list(),
        "rejects": tables["rejects"]["reason"].to_list(),
    }))
    """
)


@pytest.mark.slow
@pytest.mark.parametrize("piece", [*PIECES, *MORE_PIECES] if THOROUGH else PIECES)
def test_a_line_of_100_mb_costs_bounded_memory(piece: bytes, tmp_path: Path) -> None:
    (tmp_path / "small.log").write_bytes(STEP)
    chunk = piece * ((1 << 20) // len(piece))
    with (tmp_path / "large.log").open("wb") as handle:
        handle.write(STEP)
        for _ in range(SIZE_BYTES // (1 << 20)):
            handle.write(chunk)
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, tmp_path / "small.log", tmp_path / "large.log"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["steps"] == [1]
    assert any("was cut" in reason for reason in found["rejects"])
    assert found["grown_mib"] < GROWTH_MIB, found
    assert found["cpu_s"] < 60, found
