"""Clusters with a name in a home: rows of the table `clusters`, and the bandwidths that were measured on each."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import polars as pl

from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from sweepscope.pipeline.store.publish import publish
from sweepscope.schemas.tables.clusters import CLUSTERS

_BANDWIDTHS = ("source_path", "op", "nranks", "num_nodes", "message_bytes", "busbw_bytes_per_s")


def stored(home: Home) -> pl.DataFrame:
    """CLUSTERS rows by name. Raises StoreError when the lake is damaged."""
    return Lake(home).read("clusters").sort("cluster")


def find(home: Home, name: str) -> dict[str, Any]:
    """The row of a cluster. Raises UsageError for a name that none has, and StoreError."""
    rows = stored(home)
    found = rows.filter(pl.col("cluster") == name).to_dicts()
    if not found:
        known = ", ".join(rows["cluster"]) or "none; `sweepscope cluster add` describes one"
        raise UsageError(f"{name}: no cluster of this home. Known: {known}.")
    return found[0]


def keep(home: Home, row: Mapping[str, Any]) -> None:
    """Keep a cluster, in place of an earlier one of its name, and publish. Raises StoreError."""
    whole = {**row, "described_at": datetime.now(UTC).replace(tzinfo=None)}
    Lake(home).commit({"clusters": CLUSTERS.conform(pl.DataFrame([whole], infer_schema_length=None))})
    publish(home)


def remove(home: Home, name: str) -> None:
    """Forget a cluster and publish. Raises UsageError for an unknown name, and StoreError."""
    find(home, name)
    Lake(home).commit({}, forget=[name])
    publish(home)


def measured(home: Home, row: Mapping[str, Any]) -> pl.DataFrame:
    """Rows of `nccl_bench` (`op`, `nranks`, `num_nodes`, `message_bytes`, `busbw_bytes_per_s`) of a cluster.

    None where it names no results, or none of them were ingested.
    """
    rows = Lake(home).read("nccl_bench", list(_BANDWIDTHS))
    path = str(row["nccl_tests"] or "").rstrip("/")
    if not path:
        return rows.clear()
    below = (pl.col("source_path") == path) | pl.col("source_path").str.starts_with(f"{path}/")
    return rows.filter(below, pl.col("busbw_bytes_per_s") > 0)
