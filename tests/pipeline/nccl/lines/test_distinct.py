"""Values that repeat as numbers."""

from __future__ import annotations

from unittest.mock import patch

import polars as pl

from sweepscope.pipeline.nccl.lines.distinct import coded


def test_nothing_is_coded_without_arrow() -> None:
    with patch.object(pl.Series, "to_arrow", side_effect=AssertionError):
        names, codes = coded(pl.Series([], dtype=pl.String))
    assert names.dtype == pl.String
    assert len(names) == len(codes) == 0
