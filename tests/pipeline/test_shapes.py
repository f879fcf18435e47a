"""What is asked once per shape is what would have been asked of every line."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.nccl import bench
from pipeline.parse.lines import split
from pipeline.shapes import Shapes

LITERALS = ("iteration ", "exit code 137", "step=1", "1", "12", "", "é 7")
PATTERNS = (r"^[0-9]+ ", r"\d{2,3}\b", r"[a-z]=\d", "loss", r"^$", r"\s\d$", "é")
texts = st.lists(st.text(alphabet="019 =stepé\r.", max_size=12), max_size=40)


def shapes_of(printed: list[str]) -> Shapes:
    return Shapes.of(split(0, "\n".join(printed).encode()))


@given(texts)
def test_every_line_answers_as_if_it_had_been_asked_itself(printed: list[str]) -> None:
    shapes = shapes_of(printed)
    for pattern in PATTERNS:
        assert shapes.matching(pattern).tolist() == shapes.text.str.contains(pattern).to_list()
    for literals in ({one} for one in LITERALS):
        held = [any(literal in text for literal in literals) for text in shapes.text]
        assert shapes.holding(literals).tolist() == held
    held = [any(literal in text for literal in LITERALS[:4]) for text in shapes.text]
    assert shapes.holding(LITERALS[:4]).tolist() == held
    assert not shapes.holding(()).any()


@given(texts)
def test_shapes_are_told_apart_by_all_but_their_digits(printed: list[str]) -> None:
    shapes = shapes_of(printed)
    bare = ["".join("0" if character in "0123456789" else character for character in text) for text in shapes.text]
    assert shapes.samples.len() == len(set(bare))
    assert [bare[number] for number in np.unique(shapes.number, return_index=True)[1]] == list(dict.fromkeys(bare))
    assert len({(text, number) for text, number in zip(bare, shapes.number.tolist(), strict=True)}) == len(set(bare))


def test_hashes_that_begin_alike_are_told_apart() -> None:
    hashes = [7, 7 + (1 << 40), 7, 9, 7 + (1 << 40)]
    lines = pl.DataFrame({"text": ["a", "b", "a", "c", "b"], "shape": pl.Series(hashes, dtype=pl.UInt64)})
    shapes = Shapes.of(lines)
    assert (shapes.number.tolist(), shapes.samples.to_list()) == ([0, 1, 0, 2, 1], ["a", "b", "c"])


@pytest.mark.parametrize(("line", "is_one"), [("  float16  ", True), ("  float17  ", False), ("  size  ", True)])
def test_a_pattern_that_names_digits_is_verified(line: str, is_one: bool) -> None:
    shapes = shapes_of([line, "  float99  "])
    found = shapes.matching(bench.TABULAR_BUT_DIGITS, exactly=bench.TABULAR)
    assert found.tolist() == [is_one, False]
