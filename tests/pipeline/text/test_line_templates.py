"""What is asked once per template is what would have been asked of every line."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sweepscope.pipeline.nccl.bench import printed_table
from sweepscope.pipeline.text.line_templates import LineTemplates
from sweepscope.pipeline.text.lines import split
from sweepscope.pipeline.text.word_boundaries import ascii_bounded

LITERALS = ("iteration ", "exit code 137", "step=1", "1", "12", "", "é 7")
PATTERNS = (r"^[0-9]+ ", r"\d{2,3}\b", r"[a-z]=\d", "loss", r"^$", r"\s\d$", "é")
texts = st.lists(st.text(alphabet="019 =stepé\r.", max_size=12), max_size=40)


def templates_of(printed: list[str]) -> LineTemplates:
    return LineTemplates.of(split(0, "\n".join(printed).encode()))


@given(texts)
@example(["00é"])
def test_every_line_answers_as_if_it_had_been_asked_itself(printed: list[str]) -> None:
    templates = templates_of(printed)
    bare = templates.text.str.strip_chars_end("\r\n")
    for pattern in PATTERNS:
        assert templates.matching(pattern).tolist() == bare.str.contains(ascii_bounded(pattern)).to_list()
    for literals in ({one} for one in LITERALS):
        held = [any(literal in text for literal in literals) for text in templates.text]
        assert templates.holding(literals).tolist() == held
    held = [any(literal in text for literal in LITERALS[:4]) for text in templates.text]
    assert templates.holding(LITERALS[:4]).tolist() == held
    assert not templates.holding(()).any()


def test_a_word_ends_where_another_script_begins() -> None:
    templates = templates_of(["显存gas 4", "gas=4", "gasé", "biogas"])
    assert templates.matching(r"\bgas\b").tolist() == [True, True, True, False]


@given(texts)
def test_shapes_are_told_apart_by_all_but_their_digits(printed: list[str]) -> None:
    templates = templates_of(printed)
    bare = ["".join("0" if character in "0123456789" else character for character in text) for text in templates.text]
    pairs = set(zip(bare, templates.number.tolist(), strict=True))
    assert len(pairs) == len(set(bare)) == len(set(templates.number.tolist()))


def lines_of(texts: list[str], hashes: list[int]) -> pl.DataFrame:
    return pl.DataFrame({"text": texts, "template": pl.Series(hashes, dtype=pl.UInt64)})


def test_hashes_that_begin_alike_are_told_apart() -> None:
    one, other, third = 7, 7 + (1 << 40), 9
    first = LineTemplates.of(lines_of(["a", "b", "a"], [one, other, one]))
    assert [first.matching(letter).tolist() for letter in "ab"] == [[True, False, True], [False, True, False]]
    then = LineTemplates.of(lines_of(["b", "c", "a", "c"], [other, third, one, third]))
    assert then.number[0] == first.number[1]
    assert [then.matching(letter).tolist().index(True) for letter in "bca"] == [0, 1, 2]


def test_what_was_asked_before_is_not_asked_again() -> None:
    asked: list[str] = []

    def is_long(text: pl.Series) -> pl.Series:
        asked.extend(text)
        return text.str.len_chars() > 8

    for printed in (["never met A1", "short B2"], ["never met A7", "short B3", "never met C"]):
        templates = templates_of(printed)
        assert templates.answers(is_long).tolist() == [text.startswith("never") for text in printed]
    assert [text for text in asked if text.endswith(("A1", "A7", "C"))] == ["never met A1", "never met C"]


@pytest.mark.parametrize("limit", ["_MOST_TEMPLATES", "_MOST_BYTES"])
def test_more_templates_than_are_remembered(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"sweepscope.pipeline.text.line_templates.{limit}", 20)
    blocks = [[f"{word} {limit} {letter}" for letter in "abcdefghij"] for word in ("one", "two", "three")]
    before = [templates_of(block) for block in blocks]
    assert all(
        templates.matching("[cd]$").tolist() == [letter in "cd" for letter in "abcdefghij"] for templates in before
    )
    assert len({id(templates.cache) for templates in before}) > 1
    everything = templates_of([text for block in blocks for text in block])
    assert everything.matching("^two").tolist() == [False] * 10 + [True] * 10 + [False] * 10


@pytest.mark.parametrize(("line", "is_one"), [("  float16  ", True), ("  float17  ", False), ("  size  ", True)])
def test_a_pattern_that_names_digits_is_verified(line: str, is_one: bool) -> None:
    templates = templates_of([line, "  float99  "])
    found = templates.matching(printed_table.TABULAR_BUT_DIGITS, exactly=printed_table.TABULAR)
    assert found.tolist() == [is_one, False]
