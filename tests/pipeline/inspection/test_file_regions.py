"""A file cut into regions says what it says when it is read from its first line to its last."""

from __future__ import annotations

import codecs
import gzip
import os
from pathlib import Path

import polars as pl
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from sweepscope.pipeline.inspection.file_regions import Region, regions_of, scan_any
from sweepscope.pipeline.io import stream
from sweepscope.pipeline.nccl.facts import Facts
from sweepscope.pipeline.nccl.lines.block import Part
from sweepscope.pipeline.nccl.lines.scan import Scan, scan_task
from tests.benchmarks.nccl import coll_block
from tests.properties import draws


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "CHUNK_BYTES", 4_000)


def log(place: Path, data: bytes) -> Path:
    path = place / "nccl.node-0.1"
    path.write_bytes(data)
    return path


def cut(path: Path) -> list[Region]:
    return regions_of(7, str(path), with_calls=True)


def test_regions_are_whole_lines_and_cover_the_file(tmp_path: Path) -> None:
    data = coll_block(50_000)
    regions = cut(log(tmp_path, data))
    assert len(regions) >= 12
    pieces = [data[region.begin : region.end] for region in regions]
    assert b"".join(pieces) == data
    assert all(piece.endswith(b"\n") for piece in pieces)
    assert all(len(piece) <= 2 * 4_000 for piece in pieces)


@settings(max_examples=draws(60), deadline=None)
@given(st.lists(st.sampled_from([0, 1, 90, 3_999, 4_000, 4_001, 9_000]), min_size=3, max_size=30), st.booleans())
def test_lines_of_any_length_stay_whole(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], is_ended: bool
) -> None:
    data = b"\n".join(b"x" * length for length in lengths) + b"\n" * is_ended
    regions = cut(log(tmp_path_factory.mktemp("lines"), data))
    pieces = [data[region.begin : region.end] for region in regions]
    assert b"".join(pieces) == (data if len(data) >= 8_000 else b"")
    assert all(piece.endswith(b"\n") for piece in pieces[:-1])


def summed(facts: Facts) -> pl.DataFrame:
    key = ["source", "pid", "comm", "op", "datatype", "count"]
    found = facts["coll"].group_by(key).agg(pl.col("line_no").min(), pl.col("last_line").max(), pl.col("lines").sum())
    return found.sort(key)


def test_what_regions_say_is_what_the_file_says(tmp_path: Path) -> None:
    data = coll_block(60_000).replace(b"NCCL INFO Send", b"oops", 9) + b"no line feed: NCCL WARN x"
    path = log(tmp_path, data)
    whole = scan_task(Scan([Part(7, data, 1)], {7: str(path)}))
    lines, found = 0, []
    for region in cut(path):
        scanned = scan_any(region)
        found.append(scanned.shifted(lines))
        lines += scanned.lines
    facts = Facts.merge(one.facts for one in found)
    assert summed(facts).equals(summed(whole.facts))
    assert whole.calls is not None
    assert [number for one in found if one.calls is not None for number in one.calls["line_no"]] == list(
        whole.calls["line_no"]
    )


@pytest.mark.parametrize(
    "data",
    [
        coll_block(7_000),
        gzip.compress(os.urandom(20_000)),
        zstandard.compress(os.urandom(20_000)),
        b"\0" * 9_000 + coll_block(9_000),
        codecs.BOM_UTF16_LE + coll_block(20_000).decode().encode("utf-16-le"),
        b'{"log":"step 1\\n","stream":"stdout","time":"2025-05-16T16:39:51.2Z"}\n' * 2_000,
        b"\x7fELF" + bytes(20_000),
    ],
    ids=["small", "gzip", "zstd", "hole", "utf-16", "container", "binary"],
)
def test_what_must_be_read_in_one_go_has_no_regions(tmp_path: Path, data: bytes) -> None:
    assert cut(log(tmp_path, data)) == []


def test_neither_has_what_is_not_here(tmp_path: Path) -> None:
    assert regions_of(1, "s3://bucket/nccl.log", with_calls=False) == []
    assert cut(tmp_path / "missing") == []


def test_a_file_that_is_gone_when_its_turn_comes_is_named(tmp_path: Path) -> None:
    path = log(tmp_path, coll_block(20_000))
    region = cut(path)[0]
    path.unlink()
    with pytest.raises(FileNotFoundError, match=str(path)):
        scan_any(region)
