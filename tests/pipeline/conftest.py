"""What tests of the pipeline share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def dagster_in_memory() -> Iterator[None]:
    """Ingests in this process leave Dagster's records in memory: on disk, they take as long as everything else.

    Processes that tests start keep them in their home.
    """
    import dagster as dg

    from sweepscope.pipeline.orchestration import run

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "open_instance", lambda _home: dg.DagsterInstance.ephemeral())
        yield
