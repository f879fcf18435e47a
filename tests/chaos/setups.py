"""How the ingests that get killed read, and where their lake is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from sweepscope.pipeline.io.fault_points import POINTS
from sweepscope.pipeline.store.lake_location import VARIABLE
from tests.s3_server import leading_to, new_bucket, running

_OF_DAGSTERS_RUNS = ("batch.stored", "run.started")  # the watcher is killed at moments
OF_OWN_LAKES = tuple(name for name in POINTS if not name.startswith("shared.") and name not in _OF_DAGSTERS_RUNS)
"""Points that an ingest into a lake of its home comes by."""

OF_SHARED_LAKES = tuple(name for name in POINTS if name not in _OF_DAGSTERS_RUNS)
"""Points that an ingest into a lake on an object store comes by."""

READING = ("record.saved",)
"""Points that are reached by processes that read, which are not the ingest itself where Dask's workers do."""


@dataclass(frozen=True)
class Setup:
    """`options` of ingests and watchers, `environment` of every command; number of homes; points to be killed at.

    Where there are several `homes`, each kill is of one of them, while the others ingest. `has_workers`: the
    processes that read for an ingest are killed, too.
    """

    options: tuple[str, ...] = ()
    points: tuple[str, ...] = OF_OWN_LAKES
    homes: int = 1
    has_workers: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)


ON_THIS_MACHINE = Setup()
"""One home on this machine's disk, read by the process that ingests and its own readers."""


NAMES = ("disk", "dask", "s3")


@contextmanager
def set_up(name: str) -> Iterator[Setup]:
    """The setup of a name: one process and its disk, Dask's workers, or two homes with a lake on S3 (moto's server)."""
    if name == "dask":
        points = tuple(point for point in OF_OWN_LAKES if point not in READING)
        yield Setup(("--engine", "dask"), points, has_workers=True)
    elif name == "s3":
        with running() as endpoint, leading_to(endpoint):
            yield Setup(points=OF_SHARED_LAKES, homes=2, environment={VARIABLE: f"{new_bucket(endpoint)}/lake"})
    else:
        yield ON_THIS_MACHINE
