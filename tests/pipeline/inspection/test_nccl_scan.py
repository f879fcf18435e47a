"""One process or several: the same tables of whatever logs, in whatever state they are."""

from __future__ import annotations

import gzip
import os
import random
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import zstandard

from sweepscope.pipeline.ingest import nccl_collector
from sweepscope.pipeline.inspection import nccl_scan
from sweepscope.pipeline.inspection.calls_parquet import CallsFile
from sweepscope.pipeline.inspection.file_regions import Region, regions_of, scan_any
from sweepscope.pipeline.io import stream
from sweepscope.pipeline.io.process_pool import ProcessPool
from sweepscope.pipeline.nccl.lines.block import Part
from sweepscope.pipeline.nccl.lines.scan import Scan, Scanned
from tests.benchmarks.nccl import coll_block
from tests.pipeline.nccl.bench.test_json_report import document, row
from tests.pipeline.nccl.bench.test_printed_table import HEADER, ROW, TAIL
from tests.pipeline.nccl.nccl_logs import VERSIONS, Job, render
from tests.pipeline.nccl.tables.test_hangs import timeout
from tests.properties import THOROUGH

Tables = dict[str, pl.DataFrame]


@pytest.fixture
def scanned_by(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Small blocks; a directory with a file for every process that scanned one."""
    place = tmp_path_factory.mktemp("scanned")
    monkeypatch.setenv("SWEEPSCOPE_TEST_SCANNED", str(place))
    monkeypatch.setattr(nccl_collector, "_SCAN_BYTES", 20_000)
    monkeypatch.setattr(stream, "CHUNK_BYTES", 30_000)
    return place


def scan_noted(task: Scan | Region) -> Scanned:
    Path(os.environ["SWEEPSCOPE_TEST_SCANNED"], str(os.getpid())).touch()
    return scan_any(task)


def scan_elsewhere(task: Scan | Region) -> Scanned:
    if os.environ["SWEEPSCOPE_TEST_PARENT"] == str(os.getpid()):
        return scan_any(Scan([], {}))
    raise MemoryError(f"no room for {task}")


def job(seed: int, **how: object) -> bytes:
    rendered = render(Job(VERSIONS[seed % len(VERSIONS)], nodes=2, gpus=2, per_node=True, warns=5, seed=seed, **how))  # type: ignore[arg-type]  # fields of Job by name
    hang = "".join(timeout(rank) for rank in range(3))
    return (rendered.text() + HEADER + ROW * 3 + TAIL + hang).encode()


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


def read(place: Path, pool: ProcessPool[Scan | Region, Scanned], calls: Path | None = None) -> tuple[Tables, list[str]]:
    for worker in pool._workers:
        worker.receive()  # that it is ready: else small logs are read before the others have begun
    if calls is None:
        return nccl_scan.read_network([str(place)], scanners=pool)
    with CallsFile(str(calls)) as file:
        return nccl_scan.read_network([str(place)], scanners=pool, calls=file)


@pytest.mark.parametrize("seed", [1, 2, 3] if THOROUGH else [2])
def test_the_tables_are_the_same_whoever_reads(tmp_path: Path, scanned_by: Path, seed: int) -> None:
    write_logs(tmp_path, seed)
    alone, errors = read(tmp_path, ProcessPool(scan_noted, 1))
    assert alone["nccl_collectives"]["calls"].sum() > 2_000
    assert alone["nccl_hangs"].height > 0
    assert len(errors) == 1
    assert "nccl.node-5.6.zst" in errors[0]
    assert os.listdir(scanned_by) == [str(os.getpid())]
    for count in (2, 3) if THOROUGH else (3,):
        with ProcessPool(scan_noted, count) as pool:
            shared, same_errors = read(tmp_path, pool)
            others = {str(worker.process.pid) for worker in pool._workers}
        assert others & set(os.listdir(scanned_by))
        assert same_errors == errors
        for name, frame in alone.items():
            assert shared[name].sort(pl.all()).equals(frame.sort(pl.all())), name


def test_calls_are_written_in_order_whoever_reads(tmp_path: Path, scanned_by: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "nccl.node-0.1").write_bytes(coll_block(300_000, 5))
    (logs / "nccl.node-1.2").write_bytes(coll_block(300_000, 6))
    read(logs, ProcessPool(scan_noted, 1), tmp_path / "one.parquet")
    with ProcessPool(scan_noted, 3) as pool:
        read(logs, pool, tmp_path / "three.parquet")
    assert len(os.listdir(scanned_by)) >= 2
    alone = pl.read_parquet(tmp_path / "one.parquet")
    assert alone.height > 3_000
    assert pl.read_parquet(tmp_path / "three.parquet").equals(alone)


def test_what_fails_in_another_process_fails_here(
    tmp_path: Path, scanned_by: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWEEPSCOPE_TEST_PARENT", str(os.getpid()))
    (tmp_path / "nccl.node-0.1").write_bytes(coll_block(200_000))
    with pytest.raises(MemoryError, match="no room"), ProcessPool(scan_elsewhere, 2) as pool:
        read(tmp_path, pool)


def test_a_file_that_goes_while_others_read_it_ends_all(
    tmp_path: Path, scanned_by: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not noted as an error of the file whose turn it is."""
    (tmp_path / "nccl.node-0.1").write_bytes(coll_block(200_000))
    (tmp_path / "nccl.node-1.2").write_bytes(coll_block(200_000))
    gone = tmp_path / "gone"

    def renamed(source: int, path: str, *, with_calls: bool) -> list[Region]:
        return [replace(region, path=str(gone)) for region in regions_of(source, path, with_calls=with_calls)]

    monkeypatch.setattr(nccl_scan, "regions_of", renamed)
    with pytest.raises(FileNotFoundError, match=str(gone)), ProcessPool(scan_noted, 2) as pool:
        read(tmp_path, pool)


def test_a_scan_tells_the_calls_of_the_files_that_are_asked_for() -> None:
    parts = [Part(0, coll_block(2_000), 1), Part(1, coll_block(2_000), 11)]
    found = scan_any(Scan(parts, {}))
    assert found.calls is None
    assert set(found.facts["coll"]["source"]) == {0, 1}
    calls = scan_any(Scan(parts, {1: "/logs/b"})).calls
    assert calls is not None
    assert set(calls["source_path"]) == {"/logs/b"}
    assert calls["line_no"].min() == 11


def test_the_json_of_nccl_tests_is_read_as_ingest_does(tmp_path: Path) -> None:
    (tmp_path / "all_reduce.json").write_text(document(row(64), row(128)))
    (tmp_path / "damaged.log").write_text(document()[:150])
    tables, errors = nccl_scan.read_network([str(tmp_path)])
    assert tables["nccl_bench"]["message_bytes"].to_list() == [64, 128]
    assert len(errors) == 1
    assert "damaged.log does not hold what its name promises: not a document of nccl-tests" in errors[0]
