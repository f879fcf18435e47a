"""One thread or several: the same tables of whatever logs, in whatever state they are."""

from __future__ import annotations

import gzip
import random
import threading
from pathlib import Path

import polars as pl
import pytest
import zstandard

from pipeline import read_nccl, read_network, tape
from pipeline.calls_file import CallsFile
from pipeline.nccl.block import Part
from pipeline.nccl.scan import Scan, Scanned, scan_task
from tests.benchmarks.nccl import coll_block
from tests.pipeline.nccl.nccl_logs import VERSIONS, Job, render
from tests.pipeline.nccl.test_bench import HEADER, ROW, TAIL
from tests.pipeline.nccl.test_hangs import timeout

Tables = dict[str, pl.DataFrame]


@pytest.fixture
def scanned_in(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Small blocks; the thread in which each was scanned."""
    names: list[str] = []

    def told(task: Scan) -> Scanned:
        names.append(threading.current_thread().name)
        return scan_task(task)

    monkeypatch.setattr(read_network, "scan_task", told)
    monkeypatch.setattr(read_nccl, "_SCAN_BYTES", 20_000)
    monkeypatch.setattr(tape, "CHUNK_BYTES", 30_000)
    return names


def job(seed: int, **how: object) -> bytes:
    told = render(Job(VERSIONS[seed % len(VERSIONS)], nodes=2, gpus=2, per_node=True, warns=5, seed=seed, **how))  # type: ignore[arg-type]  # fields of Job by name
    hang = "".join(timeout(rank) for rank in range(3))
    return (told.text() + HEADER + ROW * 3 + TAIL + hang).encode()


def flipped(data: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(data)
    for at in rng.sample(range(len(damaged)), len(damaged) // 200):
        damaged[at] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def shuffled(one: bytes, other: bytes, size: int) -> bytes:
    most = max(len(one), len(other))
    return b"".join(part for at in range(0, most, size) for part in (one[at : at + size], other[at : at + size]))


def write_logs(place: Path, seed: int) -> None:
    """Whole and damaged logs, plain and compressed; one whose stream is cut."""
    rng = random.Random(seed)  # noqa: S311  # the same lines every time
    calls = coll_block(200_000, seed)
    cut = calls[rng.randrange(500) : -rng.randrange(1, 500)]
    (place / "nccl.node-0.1").write_bytes(job(seed, calls=40) + calls)
    (place / "nccl.node-1.2.zst").write_bytes(zstandard.compress(job(seed + 1, calls=40) + cut))
    (place / "nccl.node-2.3.gz").write_bytes(gzip.compress(flipped(job(seed + 2, calls=60) + calls, rng)))
    (place / "nccl.node-3.4").write_bytes(shuffled(job(seed + 3), calls, rng.randrange(64, 4096)))
    (place / "nccl.node-4.5").write_bytes(shuffled(job(seed + 4, calls=9), job(seed + 5, calls=9), 777))
    (place / "nccl.node-5.6.zst").write_bytes(zstandard.compress(flipped(calls, rng))[:-9])


def read(place: Path, count: int, calls: Path | None = None) -> tuple[Tables, list[str]]:
    if calls is None:
        return read_network.read_network([str(place)], workers=count)
    with CallsFile(str(calls)) as file:
        return read_network.read_network([str(place)], workers=count, calls=file)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_tables_are_the_same_whoever_reads(tmp_path: Path, scanned_in: list[str], seed: int) -> None:
    write_logs(tmp_path, seed)
    alone, errors = read(tmp_path, 1)
    assert alone["nccl_collectives"]["calls"].sum() > 2_000
    assert alone["nccl_hangs"].height > 0
    assert len(errors) == 1
    assert "nccl.node-5.6.zst" in errors[0]
    assert set(scanned_in) == {threading.main_thread().name}
    for count in (2, 3):
        scanned_in.clear()
        shared, same_errors = read(tmp_path, count)
        assert 2 <= len(set(scanned_in)) <= count
        assert same_errors == errors
        for name, frame in alone.items():
            assert shared[name].sort(pl.all()).equals(frame.sort(pl.all())), name


def test_calls_are_written_in_order_whoever_reads(tmp_path: Path, scanned_in: list[str]) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "nccl.node-0.1").write_bytes(coll_block(300_000, 5))
    (logs / "nccl.node-1.2").write_bytes(coll_block(300_000, 6))
    read(logs, 1, tmp_path / "one.parquet")
    read(logs, 3, tmp_path / "three.parquet")
    assert len(set(scanned_in)) >= 2
    alone = pl.read_parquet(tmp_path / "one.parquet")
    assert alone.height > 3_000
    assert pl.read_parquet(tmp_path / "three.parquet").equals(alone)


def test_what_fails_in_another_thread_fails_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_task: Scan) -> Scanned:
        if threading.current_thread() is threading.main_thread():
            return scan_task(Scan([], {}))
        raise MemoryError("no room for a block")

    monkeypatch.setattr(read_network, "scan_task", fails)
    (tmp_path / "nccl.node-0.1").write_bytes(coll_block(20_000))
    with pytest.raises(MemoryError, match="no room"):
        read(tmp_path, 2)


def test_a_scan_tells_the_calls_of_the_files_that_are_asked_for() -> None:
    parts = [Part(0, coll_block(2_000), 1), Part(1, coll_block(2_000), 11)]
    facts, none = scan_task(Scan(parts, {}))
    assert none is None
    assert set(facts["coll"]["source"]) == {0, 1}
    _, calls = scan_task(Scan(parts, {1: "/logs/b"}))
    assert calls is not None
    assert set(calls["source_path"]) == {"/logs/b"}
    assert calls["line_no"].min() == 11
