"""Gathers assets, jobs, sensors, schedules and resources. Nothing is computed and no asset is defined here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

from sweepscope.pipeline.ingest.engine import Engine
from sweepscope.pipeline.orchestration.alert_sensor import alerts
from sweepscope.pipeline.orchestration.assets import ASSETS
from sweepscope.pipeline.orchestration.jobs import hourly, ingest_job, load_job, new_runs
from sweepscope.pipeline.orchestration.reread import reread_job
from sweepscope.pipeline.orchestration.resources import HomeResource, ReadersResource
from sweepscope.pipeline.orchestration.run_memory import run_memory
from sweepscope.pipeline.orchestration.upkeep import upkeep, upkeep_job
from sweepscope.pipeline.store.home import Home


def build(home: str | None = None, overrides: Mapping[str, Any] | None = None) -> dg.Definitions:
    """Definitions for one home. `overrides` replaces resources, for tests and for the command line's progress."""
    engine = Engine.of_environment()
    resources: dict[str, Any] = {
        "store_home": HomeResource(path=str(Home.resolve(home).path)),
        "readers": ReadersResource(engine=engine.name, dask_address=engine.address),
        "io_manager": run_memory,
    }
    return dg.Definitions(
        assets=ASSETS,
        jobs=[ingest_job, load_job, reread_job, upkeep_job],
        sensors=[new_runs, alerts],
        schedules=[hourly, upkeep],
        resources={**resources, **(overrides or {})},
        executor=dg.in_process_executor,
    )
