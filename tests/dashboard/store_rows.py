"""Rows for small stores: a factory per table with overrides, and a writer that makes a real DuckDB file of them.

Only what a test is about is written out; everything else is a plausible measured run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from sweepscope.pipeline.store.publish import macros
from sweepscope.schemas.core import ddl
from sweepscope.schemas.registry import ALL
from sweepscope.schemas.tables.ledger import STORE_INFO
from tests.empty_store import empty_store, store_file

Row = dict[str, Any]
_STARTED = datetime(2026, 11, 20, 22, 41)


def run_row(run_id: str = "a1", **changes: Any) -> Row:
    """One completed 8B run on 16 MI300X, as a parser would write it."""
    return {
        "run_id": run_id,
        "attempt": 1,
        "source_path": f"/logs/{run_id}/train.out",
        "run_dir": f"/logs/{run_id}",
        "sweep": "rocm",
        "framework": "megatron",
        "origin": "measured",
        "job_id": "2691",
        "status": "completed",
        "status_confidence": "high",
        "status_evidence": "last step reached",
        "started_at": _STARTED,
        "ended_at": _STARTED + timedelta(minutes=20),
        "accelerator": "MI300X",
        "num_nodes": 2,
        "gpus_per_node": 8,
        "num_gpus": 16,
        "model": "Llama 8B",
        "params": 8_030_000_000,
        "active_params": 8_030_000_000,
        "seq_len": 2048,
        "dp": 16,
        "tp": 1,
        "pp": 1,
        "cp": 1,
        "ep": 1,
        "zero_stage": 1,
        "mbs": 5,
        "gas": 2,
        "gbs": 160,
        "gbs_tokens": 327_680,
        "layout": "DP16 TP1 PP1 · GAS2 MBS5 · Z1",
        "recompute": "none",
        "precision": "bf16",
        "torch_version": "2.5.1",
        "parser": "megatron",
        "parser_version": 1,
        "steps_planned": 10,
        "steps_logged": 10,
        "first_step": 1,
        "last_step": 10,
        "last_loss": 8.2,
        "warmup_steps_dropped": 2,
        "step_time_s": 2.93,
        "step_time_p10_s": 2.90,
        "step_time_p90_s": 2.97,
        "tokens_per_s": 111_836.0,
        "tokens_per_s_per_gpu": 6_990.0,
        "model_tflops_per_gpu": 282.0,
        "mfu": 0.216,
        "mfu_basis": "6N + 12Lhs over tokens/s",
        "peak_tflops": 1307.0,
        "mem_peak_allocated_bytes": 141_600_000_000,
        "mem_peak_reserved_bytes": 142_900_000_000,
        "gpu_hours": 5.3,
    } | changes


def step_rows(run_id: str = "a1", times_s: Sequence[float] = (58.6, 2.87, 2.93, 2.91, 2.9, 2.92)) -> list[Row]:
    """One row per step time, in order, with a falling loss."""
    return [
        {
            "run_id": run_id,
            "step": step,
            "ts": _STARTED + timedelta(seconds=step),
            "loss": 11.0 - step / 4,
            "step_time_s": time_s,
            "tokens_per_s_per_gpu": 20_480 / time_s,
            "source_path": f"/logs/{run_id}/train.out",
            "line_no": 100 + step,
        }
        for step, time_s in enumerate(times_s, start=1)
    ]


def event_row(run_id: str = "a1", **changes: Any) -> Row:
    """The line of the last step."""
    return {
        "run_id": run_id,
        "source_path": f"/logs/{run_id}/train.out",
        "line_no": 14_898,
        "ts": None,
        "kind": "training_end",
        "rank": 0,
        "host": None,
        "text": "iteration 10/ 10 | consumed samples: 1600",
    } | changes


def setting_row(run_id: str = "a1", **changes: Any) -> Row:
    """The value in use of one setting."""
    return {
        "run_id": run_id,
        "name": "tp",
        "value": "1",
        "setting_source": "argument_dump",
        "is_used": True,
        "source_path": f"/logs/{run_id}/train.out",
        "line_no": 40,
    } | changes


def file_row(path: str = "/logs/a1/train.out", **changes: Any) -> Row:
    """A log that was read to its end."""
    return {
        "path": path,
        "unit": "/logs/a1",
        "kind": "log",
        "bytes": 52_000,
        "mtime": 1_795_000_000.0,
        "sha256": "0" * 64,
        "parser": "megatron",
        "parser_version": 1,
        "status": "parsed",
        "error": None,
        "rows_parsed": 12,
        "lines_rejected": 0,
        "batch_id": "b1",
    } | changes


def reject_row(**changes: Any) -> Row:
    """A metric line that did not parse."""
    return {
        "file": "/logs/a1/train.out",
        "line_no": 77,
        "table": "steps",
        "column": "step",
        "reason": "looks like a metric line but did not parse",
        "raw": "iteration  x/ 10 | <b>lm loss</b>",
    } | changes


def frontier_row(run_id: str = "f1", **changes: Any) -> Row:
    """A comparable published configuration."""
    return {
        "run_id": run_id,
        "model": "Llama 3.1 405B",
        "total_params_b": 405.85,
        "num_gpus": 16_384,
        "accelerator": "H100-SXM-80GB",
        "seq_len": 8192,
        "dp": 128,
        "tp": 8,
        "pp": 16,
        "cp": 1,
        "precision": "bf16",
        "tflops_per_gpu": 400.0,
        "mfu": 0.412,
        "mfu_logged": 0.41,
        "hfu": None,
        "comparability": "comparable",
        "verification": "paper-text",
        "source_title": "The Llama 3 Herd of Models",
        "source_url": "https://arxiv.org/abs/2407.21783",
        "table_or_figure": "Table 4",
    } | changes


def estimate_row(run_id: str = "a1", **changes: Any) -> Row:
    """The estimate of one run: 2 s a step at 40 % MFU, 1.2 s of it in kernels; parts add up."""
    times = {
        "linear": 0.9,
        "attention": 0.2,
        "elementwise": 0.2,
        "head": 0.1,
        "recompute": 0.0,
        "tp": 0.1,
        "cp": 0.0,
        "ep": 0.0,
        "pp": 0.05,
        "dp": 0.2,
        "stall": 0.0,
        "bubble": 0.1,
        "optimizer": 0.1,
        "rest": 0.05,
        "stragglers": 0.0,
    }
    return {
        "run_id": run_id,
        "origin": "measured",
        "est_status": "ok",
        "est_assumptions": None,
        "est_profile": "hopper-nanotron",
        "est_mem_bytes": 100e9,
        "est_mem_reserved_bytes": 105e9,
        "est_fits": True,
        "est_step_time_s": 2.0,
        "est_tokens_per_s_per_gpu": 10_000.0,
        "est_mfu": 0.4,
        **{f"est_time_{part}_s": seconds for part, seconds in times.items()},
        "source_path": f"/logs/{run_id}/train.out",
    } | changes


def best_row(run_id: str = "a1", **changes: Any) -> Row:
    """The winner of one cell."""
    return {
        "run_id": run_id,
        "origin": "measured",
        "model": "Llama 8B",
        "num_nodes": 2,
        "seq_len": 2048,
        "gbs_tokens": 327_680,
        "accelerator": "MI300X",
        "num_gpus": 16,
        "layout": "DP16 TP1 PP1 · GAS2 MBS5 · Z1",
        "precision": "bf16",
        "mfu": 0.216,
        "tokens_per_s_per_gpu": 6_990.0,
        "framework": "megatron",
        "torch_version": "2.5.1",
    } | changes


_STORE_INFO: Row = {
    "version": 1,
    "release": 1,
    "published_at": datetime(2026, 11, 20, 22, 45),
    "package_version": "0.1.0",
    "fingerprint": "0" * 64,
    "row_count": 1,
}


def write_store(path: Path, **rows: Sequence[Row]) -> Path:
    """A store file with every table and view; the named ones filled, the others empty.

    Views are plain tables here, so that a test can state their rows without building the runs behind them.
    """
    return _filled(path, _empty_store(), rows)


def write_real_store(path: Path, **rows: Sequence[Row]) -> Path:
    """A store file whose views are the real ones over the given tables."""
    return _filled(path, empty_store(), rows)


@cache
def _empty_store() -> bytes:
    """The file of a store without rows: over a thousand statements, which a process runs once and then copies."""
    comments = [
        text
        for table in ALL.values()
        for text in (
            f"COMMENT ON TABLE {ddl.quote(table.name)} IS {ddl.literal(table.description)}",
            *ddl.comments(table)[1:],
        )
    ]
    return store_file([macros(), *map(ddl.create_table, ALL.values()), *comments])


def _filled(path: Path, empty: bytes, rows: Mapping[str, Sequence[Row]]) -> Path:
    path.write_bytes(empty)
    with duckdb.connect(str(path)) as connection:
        for name, given in {STORE_INFO.name: [_STORE_INFO], **rows}.items():
            if given:
                frame = ALL[name].conform(pl.DataFrame(list(given), infer_schema_length=None))
                connection.register("new_rows", frame)
                connection.execute(f"INSERT INTO {ddl.quote(name)} SELECT * FROM new_rows")
                connection.unregister("new_rows")
    return path


def make_real_home(home: Path, **rows: Sequence[Row]) -> Path:
    """A SWEEPSCOPE_HOME whose published version 1 has the real views over `rows`."""
    store = home / "store"
    store.mkdir(parents=True)
    write_real_store(store / "results-1.duckdb", **rows)
    (store / "results.duckdb").symlink_to("results-1.duckdb")
    return home


def make_home(home: Path, **rows: Sequence[Row]) -> Path:
    """A SWEEPSCOPE_HOME whose published version 1 holds `rows`."""
    store = home / "store"
    store.mkdir(parents=True)
    write_store(store / "results-1.duckdb", **rows)
    (store / "results.duckdb").symlink_to("results-1.duckdb")
    return home
