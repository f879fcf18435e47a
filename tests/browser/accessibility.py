"""What every page is held to in a browser: axe-core's rules, and the contrast of text that axe skips."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from sweepscope.dashboard.format.theme import contrast, named_theme
from tests.browser.visits import settled

AXE = Path(os.environ.get("AXE_HOME") or Path.home() / ".cache" / "sweepscope-axe") / "node_modules/axe-core/axe.min.js"
LEAST_CONTRAST = 4.5  # WCAG 2.2, 1.4.3
_CHART_TEXT = ", ".join(
    f".js-plotly-plot {part}"
    for part in (".xtick text", ".ytick text", ".annotation-text", ".g-xtitle text", ".g-ytitle text")
)

# Waits for text and reads it in one step: between two, plotly may draw the chart anew, and none is there.
_FILLS = """query => {
    const fills = [...document.querySelectorAll(query)].map(node => getComputedStyle(node).fill);
    return fills.length && fills;
}"""


def assert_accessible(page: Any) -> None:
    """No violation of axe-core's rules, whatever its impact. Skips the test where axe-core is not installed."""
    if not AXE.exists():
        pytest.skip(f"axe-core is not installed below {AXE.parents[2]}: npm install --prefix there axe-core")
    if not page.evaluate("'axe' in window"):
        page.add_script_tag(path=str(AXE))
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")["violations"]
    assert not [(rule["id"], rule["impact"], [node["html"][:160] for node in rule["nodes"][:3]]) for rule in found]


def assert_accessible_unfolded(page: Any) -> None:
    """The same of what a page holds back: with all folds open, then with each popover open."""
    folds = page.locator(".stMain [data-testid=stExpander] summary")
    for index in range(folds.count()):
        folds.nth(index).click()
        settled(page)
    assert_accessible(page)
    popovers = page.locator(".stMain [data-testid=stPopover] button:visible")
    for index in range(popovers.count()):
        popovers.nth(index).click()
        page.locator("[data-testid=stPopoverBody]").wait_for()
        settled(page)
        assert_accessible(page)
        page.keyboard.press("Escape")
        page.locator("[data-testid=stPopoverBody]").wait_for(state="hidden")


def assert_chart_text_stands_out(page: Any, scheme: str) -> None:
    """Axes and annotations on the page's own background, which axe skips; not for text on coloured cells."""
    for fill in set(page.wait_for_function(_FILLS, arg=_CHART_TEXT).json_value()):
        red, green, blue = (int(part) for part in fill.removeprefix("rgb(").removesuffix(")").split(","))
        assert contrast(f"#{red:02X}{green:02X}{blue:02X}", named_theme(scheme).page) >= LEAST_CONTRAST, fill
