"""The code location that Dagster's webserver and daemon load; the home comes from SWEEPSCOPE_HOME."""

from sweepscope.pipeline.io.event_log import configure
from sweepscope.pipeline.orchestration.build import build

configure()
defs = build()
