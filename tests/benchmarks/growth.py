"""What it costs to read on in a log that has grown."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import polars as pl

from sweepscope.pipeline.ingest import plan
from sweepscope.pipeline.ingest.batch import parse_batch
from sweepscope.pipeline.store.checkpoints import Records

GROWN_MB = 200


def growth(sweep: Path, scratch: Path) -> pl.DataFrame:
    """Seconds and bytes read when a log of GROWN_MB gets another one, beside reading it whole and what tail does.

    The log is one run: the steps of a simulated one, counted on, with what a real log has between them.
    """
    log, new_bytes = scratch / "grown" / "train.log", 1_000_000
    log.parent.mkdir()
    steps = max(
        (
            line
            for path in sorted((sweep / "picotron").rglob("*.out"))
            for line in path.open("rb")
            if b" Step: " in line
        ),
        key=len,
    )
    number = re.compile(rb"Step: *\d+ *")
    noise = b"[default0]:a line that says nothing, as data loaders and compilers print them by the thousand\n" * 60
    with log.open("wb") as file:
        step = 0
        while file.tell() < GROWN_MB * 1_000_000:
            step += 1
            file.write(number.sub(b"Step: %-9d" % step, steps) + noise)
    records, now = Records(scratch / "records", plan.utc_now()), plan.utc_now()

    def read(records: Records | None) -> tuple[float, int]:
        begin = time.process_time()
        tables = parse_batch(plan.find([str(log)]), now=now, records=records)
        return time.process_time() - begin, int(tables["files"]["read_bytes"].sum())

    first, first_bytes = read(records)
    offset = log.stat().st_size
    with log.open("ab") as file:
        while file.tell() < offset + new_bytes:
            step += 1
            file.write(number.sub(b"Step: %-9d" % step, steps) + noise)
    again, again_bytes = read(records)
    whole, whole_bytes = read(None)
    tail = f"tail -c +{offset} '{log}' | grep -c 'Step: '"
    begin = time.perf_counter()
    subprocess.run(["sh", "-c", tail], capture_output=True, check=True)
    grep = time.perf_counter() - begin
    log.unlink()
    rows = [
        ("first read, remembered", first, first_bytes / 1e6),
        ("1 MB more: read on", again, again_bytes / 1e6),
        ("1 MB more: read whole", whole, whole_bytes / 1e6),
        ("tail -c +N | grep -c", grep, new_bytes / 1e6),
    ]
    what = f"a log of {GROWN_MB} MB, {step:,} steps"
    return pl.DataFrame(rows, schema=[what, "CPU s", "MB read"], orient="row")
