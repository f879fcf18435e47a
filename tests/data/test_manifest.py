"""The manifest lists every bundled file, and what it says of them is true."""

from __future__ import annotations

import csv
import gzip
import hashlib

import pytest

from sweepscope import data

MANIFEST = list(csv.DictReader((data.HOME / "manifest.csv").read_text().splitlines()))


def test_lists_every_bundled_table() -> None:
    found = {str(path.relative_to(data.HOME)) for path in data.HOME.glob("*/*.csv*")}
    assert {row["file"] for row in MANIFEST} == found


@pytest.mark.parametrize("row", MANIFEST, ids=lambda row: row["file"])
def test_rows_and_hash_are_those_of_the_file(row: dict[str, str]) -> None:
    raw = (data.HOME / row["file"]).read_bytes()
    assert hashlib.sha256(raw).hexdigest() == row["sha256"]
    text = gzip.decompress(raw) if row["file"].endswith(".gz") else raw
    assert len(list(csv.DictReader(text.decode().splitlines()))) == int(row["rows"])
    assert row["source"]
    assert row["licence"]


def test_gzip_carries_no_timestamp() -> None:
    for path in data.PUBLISHED.glob("*.gz"):
        assert path.read_bytes()[4:8] == b"\0\0\0\0"
