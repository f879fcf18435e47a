"""Which processes read: those of this machine's own pool, or the workers of a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.store.home import Home

if TYPE_CHECKING:
    from sweepscope.pipeline.ingest.parallel import Cluster

ENGINES = ("local", "dask")

_ENGINE_VARIABLE = "SWEEPSCOPE_ENGINE"
_ADDRESS_VARIABLE = "SWEEPSCOPE_DASK_ADDRESS"


@dataclass(frozen=True)
class Engine:
    """`name` is one of ENGINES. `address`: of a Dask scheduler; "": workers on this machine, for as long as needed."""

    name: str = "local"
    address: str = ""

    @classmethod
    def asked(cls, name: str | None, address: str | None) -> Engine:
        """The engine of a user who named it, or the address of a scheduler, or neither. Raises UsageError."""
        found = cls(name or ("dask" if address else "local"), address or "")
        if found.name not in ENGINES:
            raise UsageError(f"There is no engine {found.name!r}. Choose one of {', '.join(ENGINES)}.")
        if found.address and found.name != "dask":
            raise UsageError("An address of a Dask scheduler was given, which --engine local does not use. Drop one.")
        return found

    @classmethod
    def of_environment(cls) -> Engine:
        """The engine that `to_environment` of another process states."""
        return cls.asked(os.environ.get(_ENGINE_VARIABLE), os.environ.get(_ADDRESS_VARIABLE))

    def to_environment(self) -> Mapping[str, str]:
        """Variables by which processes that are started know the engine."""
        return {_ENGINE_VARIABLE: self.name, _ADDRESS_VARIABLE: self.address}

    def check(self) -> None:
        """Raise UsageError where it is not installed."""
        if self.name == "dask" and find_spec("distributed") is None:
            raise UsageError("--engine dask needs Dask. Install it with: pip install 'sweepscope[dask]'")

    @contextmanager
    def cluster(self, home: Home, *, processes: int) -> Iterator[Cluster | None]:
        """The cluster that reads; None: `parse_sharded` starts what it needs itself.

        Args:
            home: for which it reads.
            processes: how many, where they are started here.

        Raises:
            UsageError: Dask is not installed. WorkerError: the cluster cannot be used.
        """
        self.check()
        if self.name == "local":
            yield None
            return
        from sweepscope.pipeline.ingest.dask_cluster import dask_cluster  # needs the extra, and a second to import

        with dask_cluster(home, address=self.address, processes=processes) as cluster:
            yield cluster
