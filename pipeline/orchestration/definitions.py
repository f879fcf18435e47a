"""The code location that `dagster dev` and the daemon load; the home comes from SWEEPSCOPE_HOME."""

from sweepscope.pipeline.orchestration.build import build

defs = build()
