"""What tests of the dashboard share."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cache

import pytest
from streamlit.components.v2 import manifest_scanner

from sweepscope.dashboard.sandbox import run_query, turns, worker
from sweepscope.dashboard.sections import first_screen
from sweepscope.dashboard.widgets import folds
from sweepscope.pipeline.io.sandbox import Answer, ProcessLimits, Stop


@pytest.fixture(scope="session", autouse=True)
def _components_are_looked_up_once() -> Iterator[None]:
    """Every run of an AppTest reads the metadata of all installed packages; a server does it once, at its start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests))
        yield


@pytest.fixture(scope="session", autouse=True)
def _queries_are_waited_for() -> Iterator[None]:
    """A page run by an AppTest has the answer to its query: nothing draws the page again when it comes later."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turns, "PATIENCE_S", 60.0)
        yield


@pytest.fixture(scope="session", autouse=True)
def _folds_are_open() -> Iterator[None]:
    """A page run by an AppTest has what a reader sees who opens all of it: an AppTest cannot open a part."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folds, "ARE_OPEN", True)
        yield


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_read_ahead() -> Iterator[None]:
    """A page run by an AppTest leaves no thread behind."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(first_screen, "start", lambda _store: None)
        yield


class NoSandbox:
    """Answers in this process, by the code that a child runs: what it refuses does not hang on the child's limits."""

    def run(self, chunks: list[bytes], _limits: ProcessLimits, *, answer_bytes: int, stop: Stop) -> Answer:  # noqa: ARG002 -- over at once
        out = io.BytesIO()
        worker.answer_query(io.BytesIO(b"".join(chunks)), out)
        return Answer(out.getvalue()[: answer_bytes + 1], 0, False)


@pytest.fixture
def no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spares statements that need no limits a process each, which takes a third of a second."""
    monkeypatch.setattr(run_query, "_SANDBOX", NoSandbox())
