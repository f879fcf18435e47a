"""The bundled facts on networks."""

from __future__ import annotations

import polars as pl
import pytest

from sweepscope.pipeline.ingest.bundled import bundled_tables
from sweepscope.pipeline.ingest.validate import validate
from sweepscope.pipeline.reference.accelerators import load_accelerator_links, load_published_bandwidths
from sweepscope.schemas.tables.bandwidths import ACCELERATOR_LINKS, PUBLISHED_BANDWIDTHS


def test_published_bandwidths_keep_their_source_and_their_units() -> None:
    rows = load_published_bandwidths()
    assert validate(PUBLISHED_BANDWIDTHS, rows).rejects.is_empty()
    first = rows.row(0, named=True)
    assert (first["op"], first["num_nodes"], first["nranks"], first["message_bytes"]) == ("AllReduce", 1, 8, 1 << 28)
    assert first["bandwidth_bytes_per_s"] == pytest.approx(435.9668e9)
    assert (first["source_path"], first["line_no"]) == ("data/network/published_bandwidths.csv", 2)
    assert rows["source_url"].str.starts_with("https://").all()
    within = pl.col("bandwidth_bytes_per_s").is_between("bandwidth_p5_bytes_per_s", "bandwidth_p95_bytes_per_s")
    assert rows.select(within.all()).item()


def test_links_are_bytes_per_second_of_one_direction() -> None:
    rows = load_accelerator_links()
    assert validate(ACCELERATOR_LINKS, rows).rejects.is_empty()
    card = rows.row(by_predicate=pl.col("accelerator") == "H100-SXM-80GB", named=True)
    assert (card["link_bytes_per_s"], card["network_bytes_per_s"]) == (450e9, 50e9)


def test_both_are_published_with_the_bundled_tables() -> None:
    assert {"published_bandwidths", "accelerator_links"} <= set(bundled_tables())
