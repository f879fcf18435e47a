"""Large frames on disk are the same frames."""

from __future__ import annotations

import itertools
import os
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepscope.pipeline.io import spill

ROWS = 1_000


@pytest.fixture(autouse=True)
def _everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "SPILL_BYTES", 1)
    monkeypatch.setattr(spill, "SLICE_ROWS", 64)


def rows(count: int = ROWS) -> pl.DataFrame:
    """Columns of every type that facts have, with and without NULLs, and texts short and long."""
    number = pl.int_range(count, dtype=pl.Int64)
    return pl.select(
        number=number,
        gaps=pl.when(number % 3 > 0).then(number),
        nothing=pl.lit(None, pl.Float64),
        value=number / 7,
        time=(number * 1_000_003).cast(pl.Datetime("us")),
        short=number.cast(pl.String),
        long=pl.when(number % 5 > 0).then(pl.format("a text of more than twelve bytes: {}", number)),
        path=pl.lit("/the/same/long/path/of/all/rows.log"),
        no_text=pl.lit(None, pl.String),
        word=pl.when(number % 2 > 0).then(pl.lit("step")).cast(pl.Enum(["step", "batch"])),
    )


def test_a_spilled_frame_is_the_same_frame_in_one_piece() -> None:
    frame = rows()
    spilled = spill.spilled(frame)
    assert spilled.schema == frame.schema
    assert spilled.equals(frame)
    assert set(spilled.n_chunks("all")) == {1}
    assert spill.spilled(spilled[100:]).equals(frame[100:])


@given(st.lists(st.integers(0, ROWS), max_size=4))
def test_where_a_frame_is_cut_into_pieces_does_not_matter(cuts: list[int]) -> None:
    bounds = [0, *sorted(cuts), ROWS]
    frame = rows()
    parts = [frame[start:stop] for start, stop in itertools.pairwise(bounds)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spill, "SPILL_BYTES", 1)
        patch.setattr(spill, "SLICE_ROWS", 64)
        assert spill.spilled(pl.concat(parts)).equals(frame)


def test_a_change_of_single_rows_gives_the_same_in_slices() -> None:
    def change(part: pl.DataFrame) -> pl.DataFrame:
        return part.filter(pl.col("number") % 11 > 2).with_columns(new=pl.col("gaps") + 1, long="path")

    assert spill.in_slices(rows(), change).equals(change(rows()))
    assert spill.in_slices(rows(), lambda part: part.clear()).equals(rows(0))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 150)), max_size=6))
def test_stretches_of_a_long_column_are_those_of_the_whole(runs: list[tuple[int, int]]) -> None:
    column = pl.Series([value for value, length in runs for _ in range(length)], dtype=pl.Int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spill, "SLICE_ROWS", 64)
        assert spill.stretches(column).rows() == column.rle().struct.unnest().rows()


def test_the_few_rows_that_are_wanted_are_those_of_the_whole_frame() -> None:
    frame, is_wanted = rows(), pl.col("gaps") % 100 == 1
    assert spill.few_of(frame, is_wanted).equals(frame.filter(is_wanted))


def test_a_frame_that_is_not_large_stays_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "SPILL_BYTES", 1 << 30)
    frame = rows()
    assert spill.spilled(frame) is frame


def test_pages_are_given_back_and_come_again() -> None:
    frame = pl.DataFrame({"number": np.arange(4_000_000)})
    frame = frame.with_columns(word=pl.lit("batch", pl.Enum(["step", "batch"])))
    spilled = spill.spilled(frame)
    assert spilled["number"].sum() == frame["number"].sum()
    spill.release()
    assert mapped_bytes(spilled["number"]) == mapped_bytes(spilled["word"].to_physical()) == 0
    assert spilled["number"].sum() == frame["number"].sum()
    assert (spilled["word"] == "batch").all()


def mapped_bytes(column: pl.Series) -> int:
    """Resident bytes of the mapping that holds a column."""
    address = column.to_arrow().buffers()[1].address
    begins = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        span, _, rest = line.partition(" ")
        if "-" in span and rest:
            low, high = (int(part, 16) for part in span.split("-"))
            begins = low <= address < high
        elif begins and span == "Rss:":
            return int(rest.split()[0]) * 1024
    raise LookupError(address)


def test_no_file_is_seen_in_the_folder(tmp_path: Path) -> None:
    with spill.spilling_to(tmp_path):
        spilled = spill.spilled(rows())
    assert not list(tmp_path.iterdir())
    assert spilled.equals(rows())


@pytest.mark.parametrize("broken", ["open", "write"])
def test_where_the_disk_does_not_take_it_a_frame_stays_in_memory(monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    def full(*_args: object, **_options: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile if broken == "open" else os, "TemporaryFile" if broken == "open" else "pwrite", full)
    assert spill.spilled(rows()).equals(rows())
