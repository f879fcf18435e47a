"""The style sheet names no colour that a theme does not give it."""

from __future__ import annotations

import re

import pytest

from sweepscope.dashboard.format.style_sheet import colors, sheet
from sweepscope.dashboard.format.theme import DARK, LIGHT, named_theme


@pytest.mark.parametrize("is_high", [False, True])
@pytest.mark.parametrize("name", ["light", "dark"])
def test_each_colour_that_the_rules_use_is_given(name: str, is_high: bool) -> None:
    given = set(re.findall(r"(--ss-[\w-]+):#", colors(named_theme(name, is_high=is_high))))
    used = set(re.findall(r"var\((--ss-[\w-]+)\)", sheet()))
    assert used
    assert used <= given


def test_the_document_has_the_colours_that_the_system_prefers() -> None:
    before, _, after = sheet().partition("@media (prefers-color-scheme:dark)")
    assert before == colors(LIGHT)
    assert after.startswith(f"{{{colors(DARK)}}}")
