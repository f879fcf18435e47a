"""Bundled facts on networks: bandwidths of collectives that others published, and the links of accelerators."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from sweepscope import data
from sweepscope.schemas.tables.nccl import ACCELERATOR_LINKS, PUBLISHED_BANDWIDTHS

_GB_PER_S, _GBIT_PER_S = 1e9, 1e9 / 8


def load_published_bandwidths(path: Path = data.NETWORK / "published_bandwidths.csv") -> pl.DataFrame:
    """The `published_bandwidths` table; the line is that of the CSV."""
    rows = pl.read_csv(path).with_row_index("line_no", offset=2)
    return PUBLISHED_BANDWIDTHS.conform(rows.with_columns(source_path=pl.lit(f"data/network/{path.name}")))


def load_accelerator_links(path: Path = data.HARDWARE / "links.csv") -> pl.DataFrame:
    """The `accelerator_links` table in bytes/s, per accelerator and one direction."""
    return ACCELERATOR_LINKS.conform(
        pl.read_csv(path).with_columns(
            memory_bytes_per_s=pl.col("memory_gb_per_s") * _GB_PER_S,
            link_bytes_per_s=pl.col("link_gb_per_s") * _GB_PER_S,
            network_bytes_per_s=pl.col("network_gbit_per_s") * _GBIT_PER_S,
        )
    )
