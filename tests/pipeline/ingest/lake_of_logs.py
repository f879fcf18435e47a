"""A folder of logs that change between ingests, and the lake that they are ingested into."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl

from sweepscope.pipeline.ingest import plan
from sweepscope.pipeline.ingest.batch import parse_batch, validate_batch
from sweepscope.pipeline.ingest.reconcile import reconcile, with_known_content
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake

BEGIN = datetime(2030, 1, 1)
GPUS = 8


def steps(first: int, last: int, *, run: int = 1, minute: int = 0) -> str:
    """Lines of one job: a step per minute, whose loss tells the job."""
    begin, rate = datetime(2026, 1, 1) + timedelta(days=run, minutes=minute), 1000 + run + minute
    return "".join(
        f"{begin + timedelta(minutes=step):%Y-%m-%dT%H:%M:%SZ} [default0]:[rank 0] Step: {step:<5d} | "
        f"Loss: {8 - step / 1000 - run / 10:7.4f} | Global batch size: 4096 | Tokens/s: {8 * rate}.00 | "
        f"Tokens/s/GPU: {rate}.00 | Tokens: {4096 * step} | MFU: 1.23% | Memory usage:   1.75GB\n"
        for step in range(first, last + 1)
    )


@dataclass
class LakeOfLogs:
    """Logs below `folder`, with modification times that rise."""

    path: Path
    units: int = plan.BATCH_UNITS
    clock: int = field(default=0)

    @property
    def folder(self) -> Path:
        """Where the logs are."""
        return self.path / "logs"

    @property
    def lake(self) -> Lake:
        """What was ingested."""
        return Lake(Home.resolve(str(self.path / "home")))

    def write(self, name: str, data: bytes | str) -> Path:
        """Write a file in place, and date it."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        self.touch(name)
        return path

    def append(self, name: str, data: bytes | str) -> None:
        """Append to a file, and date it."""
        self.write(name, (self.folder / name).read_bytes() + (data.encode() if isinstance(data, str) else data))

    def touch(self, name: str) -> None:
        """Give a file the next time."""
        self.clock += 1
        when = (BEGIN - timedelta(days=1) + timedelta(seconds=self.clock)).replace(tzinfo=UTC).timestamp()
        os.utime(self.folder / name, (when, when))

    def ingest(self, *paths: Path) -> None:
        """Ingest what is new."""
        lake = self.lake
        pending = plan.pending(lake, [str(path) for path in paths or (self.folder,)])
        for found in plan.batches(pending, units=self.units):
            tables = validate_batch(parse_batch(with_known_content(found, lake.read("files")), now=BEGIN))
            reconciled, forget = reconcile(tables, lake)
            lake.commit(reconciled, forget=forget)
        assert lake.verify() == []

    def runs(self) -> list[tuple[str, int]]:
        """Name of the log, and steps, of every run."""
        rows = self.lake.read("runs", ["source_path", "steps_logged"]).sort("source_path", "steps_logged").rows()
        return [(os.path.relpath(path, self.folder), steps) for path, steps in rows]

    def losses(self) -> list[float]:
        """Loss of every step."""
        return sorted(self.lake.read("steps", ["loss"])["loss"].to_list())

    def run_ids(self) -> set[str]:
        """Every run id."""
        return set(self.lake.read("runs", ["run_id"])["run_id"])

    def statuses(self) -> dict[str, str]:
        """Status of each file in the ledger."""
        rows = self.lake.read("files", ["path", "status"]).rows()
        return {os.path.relpath(path, self.folder): status for path, status in rows}


def losses(*texts: str) -> list[float]:
    """Losses that lines of `steps` have."""
    found = pl.Series(texts, dtype=pl.String).str.extract_all(r"Loss: +([\d.]+)").explode()
    return sorted(found.str.extract(r"([\d.]+)").cast(pl.Float64).drop_nulls().to_list())
