"""Whatever happens to logs between ingests, each step that was ever there to be read counts once."""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import polars as pl
import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from sweepscope.pipeline.errors import UnreadableError
from sweepscope.pipeline.io.file_names import printable
from sweepscope.pipeline.io.reader import Reader
from tests.pipeline.ingest.lake_of_logs import GPUS, LakeOfLogs, steps
from tests.properties import stated_examples

NAMES = (b"train.log", b"run a.log", b"caf\xe9.log", b"slurm-1001.out")
"""Names that a log can be moved to, in directories of their own."""

OPERATIONS = (
    "new", "append", "append", "ingest", "ingest", "move", "gzip", "zstd", "copy", "rotate", "truncate_copy",
    "overwrite", "shrink", "delete", "break", "fix", "move_folder", "touch",
)  # fmt: skip


@dataclass
class Job:
    """A job and the file it writes to: `open` until the file was compressed, cut or left."""

    number: int
    path: Path
    first: int = 1
    last: int = 0
    is_open: bool = True


@dataclass
class World:
    """Files that change, and what an ingest should have read of them."""

    logs: LakeOfLogs
    jobs: list[Job] = field(default_factory=list)
    count: int = 0
    broken: set[str] = field(default_factory=set)
    seen: set[float] = field(default_factory=set)
    overwritten: set[Path] = field(default_factory=set)
    copied: bool = False

    def __post_init__(self) -> None:
        self.logs.folder.mkdir(parents=True, exist_ok=True)

    def apply(self, operation: str, which: int) -> None:
        """Do it, where it can be done."""
        living = [job for job in self.jobs if job.path.exists()]
        if operation == "new":
            self.begin(self.folder() / os.fsdecode(NAMES[which % len(NAMES)]))
        elif operation == "ingest":
            self.ingest()
        elif operation == "fix":
            self.broken.clear()
        elif living:
            getattr(self, operation if operation != "break" else "break_")(living[which % len(living)])

    def folder(self) -> Path:
        self.count += 1
        return self.logs.folder / f"d{self.count}"

    def begin(self, path: Path) -> None:
        self.jobs.append(Job(len(self.jobs) + 1, path))
        path.parent.mkdir(parents=True, exist_ok=True)
        self.write(path, b"")
        self.append(self.jobs[-1])

    def write(self, path: Path, data: bytes) -> None:
        path.write_bytes(data)
        self.logs.touch(str(path))

    def append(self, job: Job, count: int = 4) -> None:
        if job.is_open:
            text = steps(job.last + 1, job.last + count, run=job.number)
            job.last += count
            self.write(job.path, job.path.read_bytes() + text.encode())

    def parts(self, job: Job) -> list[Path]:
        return [path for path in job.path.parent.iterdir() if path.name.startswith(f"{job.path.name}.")]

    def move(self, job: Job) -> None:
        if not self.parts(job):
            suffix = job.path.suffix if job.path.suffix in {".gz", ".zst"} else ""
            target = self.folder() / (os.fsdecode(NAMES[job.last % len(NAMES)]) + suffix)
            target.parent.mkdir(parents=True)
            self.rename(job, target)

    def rename(self, job: Job, target: Path) -> None:
        before = job.path
        before.rename(target)
        for other in self.jobs:
            other.path = target if other.path == before else other.path

    def move_folder(self, job: Job) -> None:
        if job.path in self.overwritten and self.parts(job):
            return  # nothing tells then which log the other parts belonged to
        before, after = job.path.parent, self.folder()
        before.rename(after)
        for other in self.jobs:
            other.path = after / other.path.name if other.path.parent == before else other.path

    def gzip(self, job: Job) -> None:
        self.pack(job, ".gz", gzip.compress)

    def zstd(self, job: Job) -> None:
        self.pack(job, ".zst", zstandard.compress)

    def pack(self, job: Job, suffix: str, compress: object) -> None:
        if job.path.suffix not in {".gz", ".zst"} and not self.parts(job):
            data = job.path.read_bytes()
            self.rename(job, job.path.with_name(job.path.name + suffix))
            self.write(job.path, compress(data))  # type: ignore[operator]
            self.close(job)

    def close(self, job: Job) -> None:
        for other in self.jobs:
            other.is_open &= other.path != job.path

    def copy(self, job: Job) -> None:
        folder = self.folder()
        folder.mkdir()
        self.copied = True
        for path in (job.path, *self.parts(job)):
            shutil.copy(path, folder / path.name)

    def rotate(self, job: Job) -> None:
        if job.is_open:
            self.shift(job)
            job.path.rename(job.path.with_name(f"{job.path.name}.1"))
            self.write(job.path, b"")
            self.append(job)

    def truncate_copy(self, job: Job) -> None:
        if job.is_open:
            self.shift(job)
            shutil.copy(job.path, job.path.with_name(f"{job.path.name}.1"))
            self.write(job.path, b"")
            self.append(job)

    def shift(self, job: Job) -> None:
        """Give every part the next number, and compress the second."""
        for number in range(9, 0, -1):
            for suffix in ("", ".gz"):
                part = job.path.with_name(f"{job.path.name}.{number}{suffix}")
                if part.exists():
                    part.rename(job.path.with_name(f"{job.path.name}.{number + 1}{suffix}"))
        second = job.path.with_name(f"{job.path.name}.2")
        if second.exists():
            self.write(second.with_name(f"{second.name}.gz"), gzip.compress(second.read_bytes()))
            second.unlink()

    def overwrite(self, job: Job) -> None:
        if self.copied and self.parts(job):
            return  # then some parts would be copies, and others not
        if job.path.suffix not in {".gz", ".zst"}:
            self.close(job)
            self.begin(job.path)
            self.overwritten.add(job.path)

    def shrink(self, job: Job) -> None:
        if job.path.suffix not in {".gz", ".zst"} and not self.parts(job):
            data = job.path.read_bytes()
            size = len(data) * (job.last % 3) // 3
            self.write(job.path, data[: data.rfind(b"\n", 0, size) + 1])
            self.close(job)

    def delete(self, job: Job) -> None:
        job.path.unlink()
        self.close(job)

    def touch(self, job: Job) -> None:
        self.logs.touch(str(job.path))

    def break_(self, job: Job) -> None:
        self.broken.add(str(job.path))

    def ingest(self) -> None:
        """Ingest, and compare the store with what there was to read."""
        whole = Reader.chunks

        def chunks(reader: Reader) -> Iterator[bytes]:
            yield from whole(reader)
            if reader.path in map(printable, self.broken):
                raise UnreadableError(f"Cannot read {reader.path}: Input/output error. Ingest again later.")

        if not any(path.is_file() for path in self.logs.folder.rglob("*")):
            return
        self.see()
        self.overwritten.clear()
        with patch.object(Reader, "chunks", chunks):
            self.logs.ingest()
        lake = self.logs.lake
        assert lake.read("steps", ["loss"])["loss"].sort().to_list() == sorted(self.seen)
        hours = lake.read("runs", ["gpu_hours"])["gpu_hours"].sum()
        assert hours == pytest.approx(self.hours()), lake.read("runs", ["source_path", "steps_logged", "gpu_hours"])

    def see(self) -> None:
        """Note the steps of every file that can be read; a log is read with all of its parts or not at all."""
        for path in self.logs.folder.rglob("*"):
            log = path.name.partition(".log.")[0] + ".log" if ".log." in path.name else path.name
            log = path.name.partition(".out.")[0] + ".out" if ".out." in path.name else log
            same = {path, path.with_name(log), *path.parent.glob(f"{log}.*")} if self.is_rotated(path, log) else {path}
            if path.is_file() and not any(str(one) in self.broken for one in same):
                data = path.read_bytes()
                unpack = {b"\x1f\x8b": gzip.decompress, b"\x28\xb5": zstandard.decompress}.get(data[:2], bytes)
                text = pl.Series(unpack(data).decode().splitlines(), dtype=pl.String)
                found = text.str.extract(r"Loss: +([\d.]+) .*Tokens/s/GPU: [\d.]+ \|").cast(pl.Float64)
                self.seen |= set(found.drop_nulls())

    def is_rotated(self, path: Path, log: str) -> bool:
        return path.with_name(f"{log}.1").exists() and path.with_name(log).exists()

    def hours(self) -> float:
        """GPU-hours of each job from its first to its last step that was there to be read."""
        total = 0.0
        for job in self.jobs:
            numbers = [round((8 - job.number / 10 - loss) * 1000) for loss in self.seen]
            mine = [number for number in numbers if 0 < number < 100]
            total += (max(mine) - min(mine)) / 60 * GPUS if mine else 0
        return total


def run(operations: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(LakeOfLogs(Path(os.path.realpath(folder))))
        for operation, which in [("new", 0), *operations, ("ingest", 0), ("fix", 0), ("ingest", 0), ("ingest", 0)]:
            world.apply(operation, which)


def story(text: str) -> list[tuple[str, int]]:
    """Operations as words, each on the file whose number follows it: "append rotate1"."""
    return [(word.rstrip("0123456789"), int(word[-1]) if word[-1].isdigit() else 0) for word in text.split()]


@pytest.mark.timeout(3_600)  # a search for a smaller example of a failure takes long
@stated_examples(more=30)
@given(st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 5)), max_size=20))
@example(story("ingest append break ingest append fix ingest shrink ingest"))
@example(story("ingest overwrite ingest append ingest overwrite ingest delete"))
@example(story("ingest move append ingest gzip ingest copy ingest move ingest"))
@example(story("new1 new2 ingest copy1 append1 ingest move_folder2 zstd2 ingest delete1"))
@example(story("ingest rotate ingest append rotate ingest truncate_copy ingest move_folder ingest copy ingest"))
@example(story("ingest overwrite truncate_copy ingest rotate ingest move_folder truncate_copy ingest"))
@example(story("rotate ingest overwrite append ingest truncate_copy move_folder ingest"))
@example(story("rotate ingest rotate break ingest fix rotate ingest overwrite ingest append"))
def test_every_step_counts_once(operations: list[tuple[str, int]]) -> None:
    run(operations)
