"""The digest tells different content apart, and nothing else."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweepscope.pipeline.store.checksum import Digest, digest
from sweepscope.schemas.tables.runs import SETTINGS

_COLUMNS = {column.name: column for column in SETTINGS.columns}
TABLE = replace(SETTINGS, columns=tuple(_COLUMNS[name] for name in ("run_id", "name", "line_no", "is_used")))
CONNECTION = duckdb.connect()
Row = tuple[Any, ...]


def digest_of(rows: list[Row]) -> Digest:
    CONNECTION.register("rows", pl.DataFrame(rows, schema=TABLE.polars_schema, orient="row"))
    return digest(CONNECTION, TABLE, "FROM rows")


def test_nothing_has_a_digest_too() -> None:
    assert digest_of([]) == Digest(0, "0" * 32)


def test_can_be_computed_without_duckdb() -> None:
    texts = ("a\x1ftp\x1f1\x1ftrue", "b\x1f\x1e\x1f\x1e\x1f\x1e")
    halves = [
        int.from_bytes(hashlib.md5(text.encode(), usedforsecurity=False).digest()[8:], "little") for text in texts
    ]
    assert digest_of([("a", "tp", 1, True), ("b", None, None, None)]).content == f"{sum(halves):032x}"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([("a", "b", 1, True)], [("a", "b", 2, True)]),
        ([("a", "", 1, True)], [("a", None, 1, True)]),
        ([("ab", "c", 1, True)], [("a", "bc", 1, True)]),
        ([("a", "b", None, True)], [("a", "b", 0, True)]),
        ([("a", "b", 1, None)], [("a", "b", 1, False)]),
        ([("a", "b", 1, True)] * 2, []),
        ([("a", "b", 1, True)] * 3, [("a", "b", 1, True)]),
    ],
)
def test_other_content_has_another_digest(one: list[Row], other: list[Row]) -> None:
    assert digest_of(one) != digest_of(other)


_ROW = st.tuples(st.sampled_from("ab"), st.none() | st.text(max_size=3), st.none() | st.integers(0, 9), st.booleans())


@settings(max_examples=40)
@given(st.lists(_ROW, max_size=6), st.randoms(use_true_random=False))
def test_does_not_depend_on_the_order_of_rows(rows: list[Row], random: Any) -> None:
    shuffled = random.sample(rows, len(rows))
    assert digest_of(shuffled) == digest_of(rows)
