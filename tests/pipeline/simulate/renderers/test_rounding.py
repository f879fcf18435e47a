"""What is printed and what it stands for are computed apart; they must agree for every number."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from sweepscope.pipeline.simulate.renderers.rounding import (
    human_text,
    mib_value,
    readable_text,
    readable_value,
    significant,
)

_SCALE = {"K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}


def _read(text: str) -> float:
    return float(text[:-1]) * _SCALE[text[-1]] if text[-1] in _SCALE else float(text)


@given(st.floats(1e-9, 9e17))
def test_human_text_shows_three_significant_digits(value: float) -> None:
    assert math.isclose(_read(human_text(value)), significant(value), rel_tol=1e-9)


@given(st.floats(0.01, 9e14))
def test_readable_text_shows_two_decimals_of_its_unit(value: float) -> None:
    assert math.isclose(_read(readable_text(value)), readable_value(value), rel_tol=1e-9)


def test_a_number_that_rounds_up_to_the_next_unit_changes_suffix_only_in_nanotron() -> None:
    assert human_text(999.6) == "1K"
    assert readable_text(999.999) == "1000.00"


def test_old_nanotron_calls_1e9_g() -> None:
    assert human_text(2.5e9, "KMGTPE") == "2.5G"
    assert human_text(2.5e9) == "2.5B"


def test_nan_is_printed_as_such() -> None:
    assert human_text(float("nan")) == "nan"


@given(st.integers(1, 2**40))
def test_sizes_in_mib_lose_less_than_a_hundredth(count: int) -> None:
    assert abs(mib_value(count) - count) <= 0.005 * 2**20 + 1
