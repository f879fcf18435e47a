"""The tables that come with the package: published results, accelerators and their links."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from sweepscope.data import PUBLISHED
from sweepscope.pipeline.ingest.published import load_published, published_ledger
from sweepscope.pipeline.reference.accelerators import (
    load_accelerator_links,
    load_accelerators,
    load_published_bandwidths,
)

if TYPE_CHECKING:
    from sweepscope.pipeline.ingest.batch import Tables
    from sweepscope.pipeline.store.lake import (
        Lake,  # its libraries take 16 MB, which processes that only read logs save
    )


def bundled_is_pending(lake: Lake) -> bool:
    """Whether a bundled table is new, or has changed since the lake's ledger saw it."""
    known = lake.read("files", ["path", "sha256", "parser_version"], pl.col("kind") == "published")
    return not published_ledger(PUBLISHED).select(known.columns).join(known, on=known.columns, how="anti").is_empty()


def bundled_tables() -> Tables:
    """Rows of `published_runs`, `runs`, `settings`, `files`, `published_bandwidths` and the hardware tables."""
    return {**load_published(PUBLISHED), "published_bandwidths": load_published_bandwidths(), **hardware_tables()}


def hardware_tables() -> Tables:
    """Rows of `accelerators` and `accelerator_links`, against which every run is judged."""
    return {"accelerators": load_accelerators(), "accelerator_links": load_accelerator_links()}


def hardware_is_pending(lake: Lake) -> bool:
    """Whether accelerators or links in the lake differ from the bundled ones."""
    return any(
        not lake.read(name).sort(pl.all()).equals(rows.sort(pl.all())) for name, rows in hardware_tables().items()
    )
