"""The sensor that sends alerts: it looks at each published version, and at the clock, and launches no run."""

from __future__ import annotations

import dagster as dg

from sweepscope.pipeline.errors import SweepscopeError
from sweepscope.pipeline.operations.alerting import look
from sweepscope.pipeline.orchestration.resources import HomeResource


@dg.sensor(
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Sends what operations.toml of the home asks for, once for each occurrence: hangs, regressions, new "
    "fastest layouts, rising rejects, no new data.",
)
def alerts(store_home: HomeResource) -> dg.SkipReason:
    """What was sent, as the reason why no run is launched; what fails is tried again at a later tick."""
    try:
        return dg.SkipReason(look(store_home.home).sentence)
    except SweepscopeError as error:
        return dg.SkipReason(str(error))
