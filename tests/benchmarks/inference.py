"""What it costs to read logs that no dialect knows: one large log, many small ones, and some full of other lines."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from tests.benchmarks.logs import cpu_seconds, measured

LARGE_STEPS = 600_000
SMALL_LOGS, SMALL_STEPS = 200, 150
WORDY_LOGS, WORDY_LINES = 20, 2_000

_HEAD = "hidden_size = 1024\nnum_layers = 24\nseq_len = 2048\nmicro_batch_size = 4\ntensor_parallel = 2\nusing 8 GPUs\n"


def log_of(steps: int, seed: int = 0) -> str:
    """A log of a trainer of nobody's."""
    lines = (
        f"update {step:>8} | train loss {2 + 7 / (1 + step / steps):.4f} | "
        f"grad norm {0.3 + (step + seed) % 97 / 97:.3f} | lr 3.00e-04 | "
        f"{12_000 + (step + seed) * 7 % 2_000:,} tok/s | {0.6 + (step + seed) % 89 / 890:.3f} s/step\n"
        for step in range(1, steps + 1)
    )
    return _HEAD + "".join(lines)


def wordy_log(seed: int) -> str:
    """A log most of whose lines are no steps, all of them different: warnings, settings, bars of blocks."""
    lines = []
    for number in range(WORDY_LINES):
        at = number * 7919 + seed
        lines += [
            f"[worker {at % 64}] WARNING loader.py:{at % 400} shard part-{at:07d}.bin holds {at % 991} short documents",
            f"Loading: {number % 100:3d}%|{'█' * (number % 10):10}| {number}/{WORDY_LINES} [00:{at % 60:02d}<00:09]",
            f"module.{at % 96}.attention.weight: hidden {at % 4096} of 4096, head {at % 32}",
        ]
    return "".join(f"{line}\n" for line in lines) + log_of(SMALL_STEPS, seed)


def inference_rates(scratch: Path) -> pl.DataFrame:
    """MB/s, and milliseconds of the processor for each log, of logs that have to be inferred, beside `grep -c`."""
    logs = {
        "one large log": [log_of(LARGE_STEPS)],
        f"{SMALL_LOGS} small logs": [log_of(SMALL_STEPS, number) for number in range(SMALL_LOGS)],
        f"{WORDY_LOGS} logs full of other lines": [wordy_log(number) for number in range(WORDY_LOGS)],
    }
    rows = []
    for place, (name, texts) in enumerate(logs.items()):
        path, count = scratch / f"logs-{place}", len(texts)
        for number, text in enumerate(texts):
            (path / f"run_{number}").mkdir(parents=True)
            (path / f"run_{number}" / "train.log").write_text(text)
        ours, grep = measured(path), cpu_seconds("grep", "-rc", "loss", str(path))
        size = ours["bytes"] / 1e6
        rows.append((name, size, size / ours["cpu_s"], size / grep, 1e3 * ours["cpu_s"] / count, ours["peak_rss_mb"]))
    columns = ["logs of no known format", "MB", "ours MB/s", "grep -c MB/s", "ms per log", "peak RSS MB"]
    return pl.DataFrame(rows, schema=columns, orient="row")
