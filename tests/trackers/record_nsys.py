"""Write the reports of Nsight Systems beside this file anew, with NVIDIA's own profiler and no GPU.

    python -m venv build/nsys
    build/nsys/bin/pip install nvtx==0.2.8
    build/nsys/bin/python tests/trackers/record_nsys.py NSYS

NSYS is the program `nsys` (Debian's package nsight-systems of the section non-free, or NVIDIA's). It records the NVTX
ranges of small programs; kernels it sees on a GPU only, so that there are none.

`nsys/NAME.sqlite.gz` is what `nsys export` writes, without the tables that describe the machine and its processes,
and `NAME.json` the ranges by `nsys stats`: those of push and pop with their process, those of start and end by name.
Recorded with Nsight Systems 2022.4.2.
"""

# mypy: ignore-errors

from __future__ import annotations

import gzip
import json
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent / "nsys"
KEPT = ("NVTX_EVENTS", "StringIds")
PROGRAMS = {
    "loop": """
for step in range(5):
    with nvtx.annotate(f"iteration {step}"):
        for part in ("forward", "backward", "optimizer"):
            with nvtx.annotate(part):
                time.sleep(0.002)
""",
    "lightning": """
for step in range(3):
    with nvtx.annotate(f"ProfilerStep#{step + 10}", domain="training"):
        with nvtx.annotate(f"train_step: {step + 10}"):
            time.sleep(0.003)
""",
    "overlapping": """
running = []
for step in range(4):
    running.append(nvtx.start_range(f"global_step {step}"))
    time.sleep(0.002)
    if step:
        nvtx.end_range(running.pop(0))
""",
    "processes": """
def work(rank):
    for step in range(3):
        with nvtx.annotate(f"step {step}"):
            time.sleep(0.002 * (rank + 1))

ranks = [multiprocessing.get_context("spawn").Process(target=work, args=(rank,)) for rank in range(2)]
if __name__ == "__main__":
    [rank.start() for rank in ranks]
    [rank.join() for rank in ranks]
""",
    "threads": """
def load():
    for batch in range(3):
        with nvtx.annotate(f"load batch {batch}"):
            time.sleep(0.002)

loader = threading.Thread(target=load)
loader.start()
for step in range(100, 103):
    with nvtx.annotate(f"Training Iteration={step}"):
        time.sleep(0.003)
loader.join()
""",
    "no_steps": """
for layer in range(4):
    with nvtx.annotate(f"layer {layer}"):
        time.sleep(0.001)
""",
}


def record(nsys: str, scratch: Path, program: str) -> tuple[bytes, dict]:
    """The database, and the ranges as `nsys stats` has them."""
    script, report, database = scratch / "train.py", scratch / "train.nsys-rep", scratch / "train.sqlite"
    script.write_text(f"import multiprocessing, threading, time, nvtx\n{program}")
    asked = ("--trace=nvtx", "--sample=none", "--cpuctxsw=none", f"--output={report}")
    for command in (
        ("profile", *asked, sys.executable, script),
        ("export", "--type=sqlite", f"--output={database}", report),
    ):
        subprocess.run((nsys, *command), check=True, capture_output=True)
    own = {
        name: json.loads(
            subprocess.run(
                (nsys, "stats", "--quiet", f"--report={name}", "--format=json", database),
                check=True,
                capture_output=True,
                text=True,
            ).stdout.strip()
            or "[]"
        )
        for name in ("nvtxpptrace", "nvtxsesum")
    }
    ranges = {
        "push_pop": [
            {"pid": one["PID"], "name": one["Name"], "ns": one["Duration (ns)"]} for one in own["nvtxpptrace"]
        ],
        "start_end": [{"name": one["Range"], "ns": one["Total Time (ns)"]} for one in own["nvtxsesum"]],
    }
    return anonymous(database), ranges


def anonymous(database: Path) -> bytes:
    """The ranges and their names alone."""
    with sqlite3.connect(database) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for name in set(names) - {*KEPT}:
            connection.execute(f'DROP TABLE "{name}"')
        connection.execute(
            "DELETE FROM StringIds WHERE id NOT IN (SELECT textId FROM NVTX_EVENTS WHERE textId NOT NULL)"
        )
        connection.commit()
        connection.execute("VACUUM")
    return database.read_bytes()


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    for each, text in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as folder:
            data, found = record(sys.argv[1], Path(folder), text)
        (HERE / f"{each}.sqlite.gz").write_bytes(gzip.compress(data, mtime=0))
        (HERE / f"{each}.json").write_text(json.dumps(found) + "\n")
