"""Rows for small lakes: what one ingest of a run directory hands to `Lake.commit`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from sweepscope.schemas.registry import TABLES

Tables = dict[str, pl.DataFrame]


def unit(name: str = "a", *, steps: int = 3, loss: float = 2.0, batch_id: str = "b1", **run: Any) -> Tables:
    """The tables of one run directory with a log and a config; `run` overrides columns of its run."""
    directory, log = f"/sweep/{name}", f"/sweep/{name}/log.out"
    rows: dict[str, list[dict[str, Any]]] = {
        "files": [
            {"path": path, "unit": directory, "kind": kind, "status": "parsed", "bytes": 10, "batch_id": batch_id}
            for path, kind in ((log, "log"), (f"{directory}/config.json", "config"))
        ],
        "runs": [
            {
                "run_id": name,
                "source_path": log,
                "line_no": 1,
                "attempt": 1,
                "status": "completed",
                "origin": "measured",
                "framework": "nanotron",
                "model": "8B",
                "num_nodes": 1,
                "num_gpus": 8,
                "seq_len": 4096,
                "gbs_tokens": 1 << 20,
                "accelerator": "H100",
                "dp": 8,
                "tp": 1,
                "pp": 1,
                "mbs": 1,
                "gas": 1,
                "tokens_per_s_per_gpu": 9_000.0,
                "mfu": 0.4,
                **run,
            }
        ],
        "steps": [
            {"run_id": name, "step": step, "loss": loss / step, "source_path": log, "line_no": step}
            for step in range(1, steps + 1)
        ],
        "settings": [
            {
                "run_id": name,
                "name": "tp",
                "value": "1",
                "setting_source": "config_file",
                "is_used": True,
                "source_path": f"{directory}/config.json",
            }
        ],
        "rejects": [{"file": log, "line_no": 9, "table": "steps", "reason": "does not parse", "raw": "step: ?"}],
    }
    return {name: frame(name, content) for name, content in rows.items()}


def frame(table: str, rows: list[dict[str, Any]]) -> pl.DataFrame:
    """`rows` with all columns of a registry table."""
    return TABLES[table].conform(pl.DataFrame(rows, infer_schema_length=None))


def together(batches: Iterable[Tables]) -> Tables:
    """One batch of several units."""
    parts = list(batches)
    names = {name: None for part in parts for name in part}
    return {name: pl.concat([part[name] for part in parts if name in part]) for name in names}


def accelerators(*names: str) -> Tables:
    """The reference table with these accelerators."""
    return {"accelerators": frame("accelerators", [{"accelerator": name} for name in names])}
