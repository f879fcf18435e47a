"""The sentences on whose runs a page shows, where they are not one's own."""

from __future__ import annotations

from sweepscope.dashboard.format.numbers import count

NO_MEMORY = "log no GPU memory"
NO_NETWORK = "have no NCCL output"
NO_FAILURE = "have no known end"
NO_ESTIMATE = "have no estimate to compare with (the page of a run says why)"
NOT_IN_A_GRID = "are in no grid, as model, nodes, sequence or batch was not logged (add it on Data health)"
NOT_ESTIMATED = "are of no model and accelerator that can be estimated"
NONE_COMPLETED = "have no completed result for a grid"


def instead(own_runs: int, lack: str, shown: str) -> str:
    """Why a page shows the runs of others.

    >>> instead(24, NO_MEMORY, "published")
    'Your **24 runs log no GPU memory**; shown instead: published results.'
    >>> instead(1, NO_NETWORK, "simulated")
    'Your **1 run has no NCCL output**; shown instead: simulated results.'
    """
    verb, _, rest = lack.partition(" ")
    clause = lack if own_runs > 1 else f"{_SINGULAR.get(verb, verb + 's')} {rest}"
    return f"Your **{count(own_runs, 'run')} {clause}**; shown instead: {shown} results."


_SINGULAR = {"have": "has", "are": "is"}
