"""The Explorer in a real browser: sliders by keyboard, the address, and taking a layout from chart and table."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.browser.visits import opened, settled, until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

QUESTION = "explorer?model=Llama+8.86B&nodes=16"


def slider(page: Any, knob: str) -> Any:
    return page.locator(f".st-key-knob_{knob} input[type=range], .st-key-knob_{knob} [role=slider]").first


def layout(page: Any) -> str:
    return str(page.locator(".ss-verdict .ss-layout").inner_text())


def until_layout(page: Any, pattern: str) -> None:
    page.wait_for_function(
        "pattern => new RegExp(pattern).test(document.querySelector('.ss-verdict .ss-layout')?.innerText ?? '')",
        arg=pattern,
    )


def test_a_slider_turned_by_keyboard_changes_layout_and_address(browser: Any, demo: str) -> None:
    with opened(browser, f"{demo}/{QUESTION}&tp=2&pp=1&cp=1&mbs=2&zero_stage=1&recompute=none") as page:
        until_layout(page, "^DP64 TP2 PP1 · GAS2 MBS2 · Z1$")
        slider(page, "tp").focus()
        page.keyboard.press("ArrowRight")
        until_layout(page, "^DP32 TP4 PP1 · GAS4 MBS2 · Z1$")
        # the fastest layout's own value is left out of the address, and which that is depends on the constants
        page.wait_for_url(lambda url: "tp=2&" not in f"{url}&")


def test_sliders_turned_in_a_hurry_end_where_the_last_key_put_them(browser: Any, demo: str) -> None:
    with opened(browser, f"{demo}/{QUESTION}&tp=2&pp=1&cp=1&mbs=1&zero_stage=1&recompute=none") as page:
        until_layout(page, "TP2 ")
        slider(page, "tp").focus()
        # TP 8 is reached by the last key alone, so that whoever sees it need not wait for anything else.
        for key in ("ArrowRight", "ArrowLeft", "ArrowRight", "ArrowRight"):
            page.keyboard.press(key)
        until_layout(page, "^DP16 TP8 ")
        settled(page)
        assert layout(page).startswith("DP16 TP8 ")


def test_a_click_on_the_front_takes_that_layout_and_the_button_goes_back(browser: Any, demo: str) -> None:
    with opened(browser, f"{demo}/{QUESTION}") as page:
        page.wait_for_selector(".st-key-front .scatterlayer path.point")
        first = layout(page)
        points = page.locator(".st-key-front .scatterlayer .trace").nth(1).locator("path.point")
        is_another = "before => document.querySelector('.ss-verdict .ss-layout').innerText !== before"
        until(
            lambda: points.last.click(force=True),
            lambda: page.wait_for_function(is_another, arg=first, timeout=20_000),
        )
        settled(page)
        page.get_by_role("button", name=re.compile("To the fastest")).click()
        until_layout(page, f"^{re.escape(first)}$")


def test_a_shared_link_names_the_whole_layout(browser: Any, demo: str) -> None:
    with opened(browser, f"{demo}/{QUESTION}&tp=4") as page:
        until_layout(page, "TP4 ")
        page.get_by_role("button", name=re.compile("Share")).click()
        code = page.locator("[data-testid=stPopoverBody] code").first
        code.wait_for()
        link = code.inner_text()
        assert all(f"{name}=" in link for name in ("model", "card", "nodes", "seq", "batch", "tp", "pp", "zero_stage"))
        asked = layout(page)
    with opened(browser, link) as page:
        until_layout(page, f"^{re.escape(asked)}$")


def test_the_recipe_is_walked_and_a_rule_opens_to_its_runs_by_keyboard(browser: Any, demo: str) -> None:
    with opened(browser, f"{demo}/{QUESTION}&way_bottleneck=tp") as page:
        page.locator("[data-testid=stExpander] summary", has_text=re.compile(r"^\D*\d+ rules?$")).last.click()
        rule = page.locator(".ss-rules li", has_text="Keep TP inside a node").first
        rule.locator("summary").focus()
        page.keyboard.press("Enter")
        link = rule.locator("a[href*='run?run=']").first
        link.wait_for(state="visible")
        page.get_by_role("radio", name="GPU-poor").first.click()
        page.wait_for_url("**way_memory=poor*")
        page.get_by_text("Another branch than this question takes").first.wait_for()
