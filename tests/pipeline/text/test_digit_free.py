"""A pattern that is said to be blind finds the same places whatever the digits are."""

from __future__ import annotations

import re

import pytest

from sweepscope.pipeline.text.digit_free import is_blind


@pytest.mark.parametrize(
    "pattern",
    [
        r"step (\d+)/\s*\d{1,3}",
        r"([-+]?[0-9][0-9,]*\.?[0-9]*)",
        r"\[rank \d+\] (\S+)",
        r"[^\d|]+(x){2}",
        r"[ -~]",
        r"(?:a|b)?(c)",
        r"(?i)\bloss: (\w+)",
    ],
)
def test_names_no_digit(pattern: str) -> None:
    assert is_blind(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "a1",
        "[1-9]",
        r"\{3}",
        r"[\d5]",
        "[^0]",
        r"[0-95]",
        r"\x30",
        "[+-9]",
        "[/-:0]",
        r"\1",
        "0-9",
        r"(?P<g1>x)",  # name a digit
        "[[:digit:]]",
        "[a-z&&[^b]]",
        "[a--b]",
        "x++",
        "x*+",
        r"\d{2}+",  # mean something else in Rust
        r"\pL",
        r"\z",
        "(",
        "(?x-u:a)",  # Python does not know them
    ],
)
def test_is_not_sure(pattern: str) -> None:
    assert not is_blind(pattern)


@pytest.mark.parametrize("pattern", [r"[ -~]", r"[,-:]", r"[^ -~]", r"[!-/]", r"[\w.]"])
def test_digits_are_alike_to_it(pattern: str) -> None:
    assert is_blind(pattern)
    assert len({bool(re.search(pattern, digit)) for digit in "0123456789"}) == 1
