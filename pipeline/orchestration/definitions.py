"""The code location that `dagster dev` and the daemon load; the home comes from SWEEPSCOPE_HOME."""

from sweepscope.pipeline.io.event_log import configure
from sweepscope.pipeline.orchestration.build import build

configure()
defs = build()
