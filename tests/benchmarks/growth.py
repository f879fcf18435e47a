"""What it costs to read on in a log that has grown."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import polars as pl

from sweepscope.pipeline.ingest import plan
from sweepscope.pipeline.ingest.batch import parse_batch
from sweepscope.pipeline.store.checkpoints import Records
from tests.long_logs import counted_on, longest_steps, write_log

GROWN_MB = 200


def growth(sweep: Path, scratch: Path) -> pl.DataFrame:
    """Seconds and bytes read when a log of GROWN_MB gets another one, beside reading it whole and what tail does."""
    log, new_bytes = scratch / "grown" / "train.log", 1_000_000
    log.parent.mkdir()
    lines = counted_on(longest_steps(sweep)[0])
    steps = write_log(log, lines, size=GROWN_MB * 1_000_000)
    records, now = Records(scratch / "records", plan.utc_now()), plan.utc_now()

    def read(records: Records | None) -> tuple[float, int]:
        begin = time.process_time()
        tables = parse_batch(plan.find([str(log)]), now=now, records=records)
        return time.process_time() - begin, int(tables["files"]["read_bytes"].sum())

    first, first_bytes = read(records)
    offset = log.stat().st_size
    steps += write_log(log, lines, size=offset + new_bytes)
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
    what = f"a log of {GROWN_MB} MB, {steps:,} steps"
    return pl.DataFrame(rows, schema=[what, "CPU s", "MB read"], orient="row")
