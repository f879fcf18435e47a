"""Batches that wait for a run: one Parquet file of discover.FOUND rows each, in the home."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from sweepscope.pipeline.errors import InputError
from sweepscope.pipeline.ingest.discover import FOUND
from sweepscope.pipeline.io.fault_points import reach
from sweepscope.pipeline.store.home import Home

_KEPT_S = 7 * 86_400  # longer than any run and its retries wait


def batch_file(home: Home, batch_id: str) -> Path:
    """Path of a batch, whether it is there or not."""
    return home.batches / f"{batch_id}.parquet"


def write_batch(home: Home, batch: pl.DataFrame, dialects: Mapping[str, str] | None = None) -> str:
    """Id of a batch, which is stored for the run that will read it; batches of runs that are long over are removed.

    The id is a hash of the files, of what is stated of them and of the dialect files to read with, so the same batch
    has the same id.

    Args:
        batch: discover.FOUND rows.
        dialects: path to content hash of each dialect file.
    """
    facts = batch.select("path", "bytes", "mtime", "stated").write_csv() + json.dumps(dialects or {}, sort_keys=True)
    batch_id = hashlib.blake2b(facts.encode(), digest_size=8).hexdigest()
    home.batches.mkdir(parents=True, exist_ok=True)
    for old in home.batches.glob("*.parquet"):
        if old.stat().st_mtime < time.time() - _KEPT_S:
            old.unlink(missing_ok=True)
    batch.write_parquet(batch_file(home, batch_id))
    reach("batch.stored")
    return batch_id


def read_batch(home: Home, batch_id: str) -> pl.DataFrame:
    """discover.FOUND rows of a batch. Raises InputError when it has been removed."""
    try:
        batch = pl.read_parquet(batch_file(home, batch_id))
    except FileNotFoundError as error:
        raise InputError(
            f"Batch {batch_id} is gone: batches are kept for 7 days. Materialize all assets without configuration to "
            "read what is new."
        ) from error
    # One that was stored by an earlier version may lack a column.
    return batch.with_columns(
        pl.lit(None, dtype).alias(name) for name, dtype in FOUND.items() if name not in batch.columns
    )


def units_of(home: Home, batch_id: str) -> list[str]:
    """Units in a batch; none when it has been removed."""
    path = batch_file(home, batch_id)
    return pl.read_parquet(path, columns=["unit"])["unit"].to_list() if path.exists() else []
