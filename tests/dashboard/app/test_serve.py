"""What the server does before the first reader comes."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from sweepscope.dashboard.app import serve
from sweepscope.dashboard.app.rehearsal import Seen


@pytest.fixture
def collecting() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_collections_pass_over_what_lasts(collecting: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamlit collects after each run of a script, and nothing is sent to the browser meanwhile."""
    kept: list[object] = []
    frozen: list[int] = []

    async def rehearse(pages: Sequence[str], _: Callable[[], bool]) -> list[str]:
        frozen.append(gc.get_freeze_count())
        kept.extend([page] for page in pages)
        return list(pages)

    monkeypatch.setattr(serve, "rehearse", rehearse)
    with ThreadPoolExecutor(1) as thread:  # the loop of a browser's tests may run in this one
        thread.submit(asyncio.run, serve._prepare(Seen())).result()
    assert frozen[0] > 100_000, "the modules"
    assert not [one for one in gc.get_objects() if any(one is page for page in kept)], "and what the pages have kept"
