"""What tests of the pipeline share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

import pytest


@pytest.fixture(scope="module")
def dagster_in_memory() -> Iterator[None]:
    """Ingests in this process leave no records of Dagster's events, and count the rows of two views instead of all.

    Records on disk take as long as everything else, and all views a third of a small ingest. Processes that tests start
    do both.
    """
    import dagster as dg

    from sweepscope.pipeline.orchestration import assets, run

    def forgetful(_home: object) -> dg.DagsterInstance:
        instance = dg.DagsterInstance.ephemeral()
        instance.event_log_storage.store_event = lambda _event: None
        return instance

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "open_instance", forgetful)
        patch.setattr(assets, "VIEWS", list(assets.VIEWS)[:2])
        yield


@contextmanager
def _few_views() -> Iterator[None]:
    from sweepscope.pipeline.store import publish

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publish, "VIEWS", dict(islice(publish.VIEWS.items(), 2)))
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
