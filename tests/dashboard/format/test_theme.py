from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from sweepscope import dashboard
from sweepscope.dashboard.format.theme import (
    DARK,
    DARK_HIGH,
    LIGHT,
    LIGHT_HIGH,
    MFU_SCALE,
    Theme,
    category_colors,
    contrast,
    scale_color,
    text_on,
)

_CONFIG = tomllib.loads((Path(dashboard.__file__).parent / ".streamlit" / "config.toml").read_text())["theme"]
_MODES = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)


@_MODES
def test_streamlit_and_the_charts_use_the_same_colours(theme: Theme) -> None:
    mode = _CONFIG[theme.name]
    assert mode["backgroundColor"] == theme.page
    assert mode["secondaryBackgroundColor"] == theme.surface
    assert mode["textColor"] == theme.ink
    assert mode["primaryColor"] == mode["linkColor"] == theme.accent
    assert mode["borderColor"] == mode["dataframeBorderColor"] == theme.rule
    assert mode["grayTextColor"] == theme.mute
    assert mode["sidebar"]["backgroundColor"] == theme.sidebar


@_MODES
def test_text_can_be_read_on_every_surface(theme: Theme) -> None:
    for color in (theme.ink, theme.soft, theme.mute, theme.accent, theme.failed, theme.warning, theme.completed):
        for surface in (theme.page, theme.surface, theme.sidebar):
            assert contrast(color, surface) >= 4.5, (color, surface)


@pytest.mark.parametrize("theme", [LIGHT_HIGH, DARK_HIGH], ids=lambda theme: theme.name)
def test_high_contrast_is_seven_for_text_and_four_and_a_half_for_lines(theme: Theme) -> None:
    texts = (theme.ink, theme.soft, theme.mute, theme.accent, theme.failed, theme.warning, theme.completed, theme.hang)
    for surface in (theme.page, theme.surface, theme.sidebar):
        assert min(contrast(color, surface) for color in (*texts, theme.infra)) >= 7
    assert contrast(theme.axis, theme.page) >= 4.5
    assert contrast(theme.rule, theme.page) >= 3
    assert contrast(theme.ink, theme.hatch) >= 4.5


@_MODES
def test_lines_and_marks_stand_out(theme: Theme) -> None:
    for color in (*theme.categories, theme.axis):
        assert contrast(color, theme.page) >= 3


@_MODES
def test_numbers_stay_readable_on_a_partly_filled_track(theme: Theme) -> None:
    assert contrast(theme.ink, theme.hatch) >= 4.5
    assert contrast(theme.soft, theme.cell) >= 4.5


def test_cell_text_can_be_read_anywhere_on_the_scale() -> None:
    assert min(contrast(text_on(color := scale_color(i / 500)), color) for i in range(501)) >= 4.5


def test_the_scale_is_clipped_at_its_ends() -> None:
    assert scale_color(-0.1) == scale_color(0.0) == MFU_SCALE[0]
    assert scale_color(0.5) == MFU_SCALE[5]
    assert scale_color(1.0) == scale_color(1.8) == MFU_SCALE[-1]


def test_a_seventh_category_is_grey_instead_of_repeating_a_colour() -> None:
    colors = category_colors([f"model {i}" for i in range(8)], LIGHT)
    assert len(set(list(colors.values())[:6])) == 6
    assert colors["model 6"] == colors["model 7"] == LIGHT.axis
