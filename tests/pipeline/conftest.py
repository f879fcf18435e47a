"""What tests of the pipeline share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

import pytest


@contextmanager
def _few_views() -> Iterator[None]:
    from sweepscope.pipeline.orchestration import steps
    from sweepscope.pipeline.store import publish

    with pytest.MonkeyPatch.context() as patch:
        for module in (publish, steps):
            patch.setattr(module, "VIEWS", dict(islice(module.VIEWS.items(), 2)))
        yield


@pytest.fixture
def few_views() -> Iterator[None]:
    """Stores published in this process have two views: for tests that ask none, as all take most of publishing."""
    with _few_views():
        yield


@pytest.fixture(scope="module")
def few_views_in_module() -> Iterator[None]:
    """The same for all tests of a module and what they share."""
    with _few_views():
        yield
