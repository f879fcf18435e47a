"""Frames of `runs` for tests: one plausible run with overrides, and a store with the real views over such rows."""

from __future__ import annotations

import itertools
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from sweepscope.pipeline.derive.complete import complete_runs
from sweepscope.pipeline.reference.accelerators import load_accelerators
from sweepscope.schemas.core import ddl
from sweepscope.schemas.registry import TABLES
from sweepscope.schemas.tables.runs import RUNS
from tests.empty_store import empty_store

Row = dict[str, Any]
_NUMBERS = itertools.count()

LLAMA_1B: Row = {
    "model": "Llama 1.34B",
    "num_layers": 16,
    "hidden_size": 2048,
    "num_heads": 32,
    "num_kv_heads": 32,
    "ffn_hidden_size": 8192,
    "gated_mlp": True,
    "vocab_size": 131_072,
    "tie_word_embeddings": True,
}
"""The Ultra-Scale Playbook's smallest model: 1,342M parameters, embeddings shared."""


def run_row(run_id: str = "a1", **changes: Any) -> Row:
    """A completed run of the 1.34B model on one H100 node at a batch of 256 x 4,096 tokens."""
    return {
        "run_id": run_id,
        "attempt": 1,
        "source_path": f"/logs/{run_id}.out",
        "line_no": 1,
        "sweep": "sweep",
        "framework": "nanotron",
        "origin": "measured",
        "status": "completed",
        "accelerator": "H100-SXM-80GB",
        "num_nodes": 1,
        "gpus_per_node": 8,
        "num_gpus": 8,
        **LLAMA_1B,
        "seq_len": 4096,
        "dp": 8,
        "tp": 1,
        "pp": 1,
        "cp": 1,
        "zero_stage": 0,
        "mbs": 2,
        "gas": 16,
        "gbs": 256,
        "gbs_tokens": 1_048_576,
        "precision": "bf16",
        "tokens_per_s_per_gpu": 40_000.0,
    } | changes


def runs_frame(*rows: Row) -> pl.DataFrame:
    """Rows in the types of `runs`."""
    return RUNS.conform(pl.DataFrame(list(rows), infer_schema_length=None)) if rows else RUNS.empty()


def completed_frame(*rows: Row) -> pl.DataFrame:
    """Rows as the pipeline completes them."""
    return complete_runs(runs_frame(*rows)).runs


def open_store(
    runs: pl.DataFrame,
    published: pl.DataFrame | None = None,
    events: pl.DataFrame | None = None,
    estimates: pl.DataFrame | None = None,
    arguments: pl.DataFrame | None = None,
) -> duckdb.DuckDBPyConnection:
    """A store with the given runs, the bundled accelerators, and every view."""
    given = {
        "runs": runs,
        "published_runs": published,
        "events": events,
        "estimates": estimates,
        "arguments": arguments,
    }
    frames = {name: TABLES[name].conform(frame) for name, frame in given.items() if frame is not None}
    path = Path(_folder().name) / f"{next(_NUMBERS)}.duckdb"
    path.write_bytes(empty_store())
    connection = duckdb.connect(str(path))
    path.unlink()  # the connection keeps it
    connection.execute("BEGIN")
    for name, frame in {"accelerators": load_accelerators(), **frames}.items():
        if not frame.is_empty():
            connection.register("rows", frame)
            connection.execute(f"INSERT INTO {ddl.quote(name)} SELECT * FROM rows")
            connection.unregister("rows")
    connection.execute("COMMIT")
    return connection


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def rows_of(connection: duckdb.DuckDBPyConnection, query: str) -> list[Row]:
    """Result of a query as dictionaries."""
    return connection.sql(query).pl().to_dicts()
