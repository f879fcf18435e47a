"""Names of the nodes of a simulated run."""

from __future__ import annotations

from sweepscope.pipeline.simulate.truth import SimulatedRun


def hosts(run: SimulatedRun) -> list[str]:
    """The first is the one that the run's last words name (`failures.tail`)."""
    return [f"gpu-{(run.job_id + node) % 97:03d}" for node in range(run.num_nodes)]
