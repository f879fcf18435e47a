"""Rows by generation and precision."""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.estimate.rows.strata import strata_of


def test_what_is_no_16_bit_runs_in_8_where_the_card_can() -> None:
    rows = pl.DataFrame(
        {
            "accelerator": ["H100-SXM-80GB", "H100-SXM-80GB", "A100-SXM-80GB", "abacus", None],
            "precision": ["fp8", None, "fp8", "fp8", "bf16"],
        }
    )
    assert strata_of(rows).rows() == [
        ("hopper", True),
        ("hopper", False),
        ("ampere", False),
        (None, False),
        (None, False),
    ]
