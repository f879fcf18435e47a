"""Resources of the assets: the home, and the processes that read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import dagster as dg
from pydantic import Field

from sweepscope.pipeline.ingest.engine import Engine
from sweepscope.pipeline.ingest.parallel import Cluster
from sweepscope.pipeline.orchestration.lost_runs import working
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake


class HomeResource(dg.ConfigurableResource):  # type: ignore[type-arg]  # the generic parameter is the yielded value, itself
    """The sweepscope home directory."""

    path: str

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator[HomeResource]:
        """The resource, while a run that uses it shows that its process lives; a tick of the sensor is no run."""
        run = context.run if isinstance(context, dg.InitResourceContext) else None
        with working(self.home, run.run_id) if run else nullcontext():
            yield self

    @property
    def home(self) -> Home:
        """The home, created when it is not there. Raises UsageError or StoreError."""
        return Home.resolve(self.path)

    @property
    def lake(self) -> Lake:
        """The lake of that home."""
        return Lake(self.home)


class ReadersResource(dg.ConfigurableResource):  # type: ignore[type-arg]  # as above
    """The processes that read: those of this machine's own pool, or the workers of a Dask cluster."""

    engine: str = Field(default="local", description="`local`, or `dask` (needs the extra sweepscope[dask]).")
    dask_address: str = Field(
        default="", description="Address of a Dask scheduler; without one, workers are started for each run."
    )

    @contextmanager
    def opened(self, home: Home, workers: int) -> Iterator[Cluster | None]:
        """The cluster that reads, if one does. Raises UsageError and WorkerError."""
        with Engine.asked(self.engine, self.dask_address).cluster(home, processes=workers) as cluster:
            yield cluster
