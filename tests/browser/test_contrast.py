"""High contrast: the switch, what the browser remembers of it, and the system's preference."""

from __future__ import annotations

from typing import Any

import pytest

from sweepscope.dashboard.format.theme import DARK_HIGH, LIGHT, LIGHT_HIGH
from tests.browser.accessibility import assert_accessible
from tests.browser.visits import settled

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

_INK = "getComputedStyle(document.documentElement).getPropertyValue('--ss-mute').trim() === '{}'"


def _shows(page: Any, color: str) -> None:
    page.wait_for_function(_INK.format(color))
    settled(page)


def test_the_switch_is_remembered_on_the_next_page(browser: Any, own: str) -> None:
    context = browser.new_context(color_scheme="light")
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto(own)
    settled(page)
    _shows(page, LIGHT.mute)
    page.get_by_text("High contrast").click()
    _shows(page, LIGHT_HIGH.mute)
    assert_accessible(page)
    page.goto(f"{own}/runs")
    settled(page)
    _shows(page, LIGHT_HIGH.mute)
    page.get_by_text("High contrast").click()
    _shows(page, LIGHT.mute)
    context.close()


def test_it_is_on_where_the_system_prefers_more_contrast(browser: Any, own: str) -> None:
    context = browser.new_context(color_scheme="dark", contrast="more")
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto(own)
    settled(page)
    _shows(page, DARK_HIGH.mute)
    context.close()
