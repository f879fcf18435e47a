"""A SWEEPSCOPE_HOME whose store has the real views over a few runs, for tests that open whole pages."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from sweepscope.pipeline.reference.accelerators import load_accelerators
from sweepscope.schemas.tables.ledger import STORE_INFO
from tests.dashboard.store_rows import write_real_store
from tests.run_rows import Row, completed_frame, run_row


def run(run_id: str, nodes: int = 1, *, tp: int = 1, speed: float | None = 40_000.0, **more: object) -> Row:
    """A run of the 1.34B model on `nodes` x 8 H100; without a speed it ran out of memory."""
    dp = 8 * nodes // tp
    return run_row(
        run_id,
        num_nodes=nodes,
        num_gpus=8 * nodes,
        dp=dp,
        tp=tp,
        mbs=1,
        gas=256 // dp,
        tokens_per_s_per_gpu=speed,
        status="completed" if speed else "oom",
        **more,
    )


def small_sweep(**more: object) -> list[Row]:
    """Two answered node counts with a runner-up, one that only ran out of memory."""
    return [
        run("a", **more),
        run("b", tp=2, speed=39_000.0, **more),
        run("c", 2, speed=36_000.0, **more),
        run("d", 2, tp=2, speed=35_990.0, **more),
        run("e", 4, tp=2, speed=None, **more),
    ]


def make_home(home: Path, rows: list[Row], *, version: int = 1) -> Path:
    """Publishes `rows` as the current version of `home`."""
    store = home / "store"
    store.mkdir(parents=True, exist_ok=True)
    path = store / f"results-{version}.duckdb"
    info: Row = {
        "version": version,
        "release": version,
        "published_at": datetime(2026, 11, 20, 22, 41),
        "package_version": "0.1.0",
        "fingerprint": "0" * 64,
        "row_count": len(rows),
    }
    tables = {"runs": completed_frame(*rows).to_dicts(), "accelerators": load_accelerators().to_dicts()}
    write_real_store(path, **tables, **{STORE_INFO.name: [info]})
    link = store / "results.duckdb"
    link.unlink(missing_ok=True)
    link.symlink_to(path.name)
    return home
