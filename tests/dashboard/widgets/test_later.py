"""A part of a page that takes longer than the rest is drawn when it is there, and holds nothing up before."""

from __future__ import annotations

from concurrent.futures import Future

import pytest
from streamlit.testing.v1 import AppTest

from sweepscope.dashboard.widgets import later

NOTE = '<p class="ss-note">{}</p>'


def _page(result):  # type: ignore[no-untyped-def]  # run as a script of its own, which has no Future
    from sweepscope.dashboard.widgets import basic, later

    later.draw_later(result, basic.note, lambda: basic.note("searching"))
    basic.note("below")


def _texts(test: AppTest) -> list[str]:
    return [element.proto.body for element in test.get("html")]


def test_the_rest_of_the_page_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(later, "PATIENCE_S", 0.0)
    result: Future[str] = Future()
    test = AppTest.from_function(_page, args=(result,)).run()
    assert _texts(test) == [NOTE.format("searching"), NOTE.format("below")]
    result.set_result("found")
    assert _texts(test.run()) == [NOTE.format("found"), NOTE.format("below")]


def test_what_the_work_raised_is_raised_where_it_would_be_drawn() -> None:
    result: Future[str] = Future()
    result.set_exception(ValueError("no such layout"))
    test = AppTest.from_function(_page, args=(result,)).run()
    assert [error.message for error in test.exception] == ["no such layout"]
