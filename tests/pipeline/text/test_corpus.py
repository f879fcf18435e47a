"""Real logs hold few credentials: what is hidden in them is counted, and must be next to nothing."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from sweepscope.pipeline.text.secret_columns import hide_series
from tests.paths import CORPUS, GOLDEN, NO_CORPUS

MOST_PER_10_000 = 1


def _lines(folder: Path) -> Iterator[pl.Series]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            data = gzip.decompress(data) if path.suffix == ".gz" else data
            if b"\0" not in data[:4096]:
                yield pl.Series(data.decode("utf-8", "replace").splitlines(), dtype=pl.String)


@pytest.mark.parametrize("folder", [GOLDEN, CORPUS])
def test_at_most_one_line_of_ten_thousand_is_changed(folder: Path) -> None:
    if not folder.is_dir():
        pytest.skip(NO_CORPUS)
    total, changed = 0, []
    for texts in _lines(folder):
        total += texts.len()
        shown = hide_series(texts)
        changed += texts.filter(texts != shown).to_list()
    assert len(changed) <= max(1, total / 10_000 * MOST_PER_10_000), changed[:20]
