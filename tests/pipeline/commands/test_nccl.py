"""`sweepscope nccl`: logs and dumps straight to a summary, for people and for programs."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import polars as pl
import pytest
import zstandard

from sweepscope.pipeline.__main__ import main
from sweepscope.pipeline.commands import nccl
from sweepscope.pipeline.inspection.file_regions import Region
from sweepscope.pipeline.io.process_pool import ProcessPool
from sweepscope.pipeline.nccl.lines.scan import Scan, Scanned
from tests.pipeline.nccl.bench.test_printed_table import HEADER, ROW, TAIL
from tests.pipeline.nccl.flight_recorder.test_dump import WAITING, dump, history
from tests.pipeline.nccl.nccl_logs import Job, render
from tests.pipeline.nccl.tables.test_hangs import timeout


def test_a_summary_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = render(Job("2.24.3", nodes=2, gpus=4, calls=8, warns=2))
    (tmp_path / "train.log").write_text(job.text() + "".join(timeout(rank) for rank in range(7)))
    (tmp_path / "bench.log").write_text(HEADER + ROW + TAIL)
    assert main(["nccl", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    library = "NCCL 2.24.3+cuda12.4 · 8 ranks · 2 nodes · 1 communicator · 4 channels"
    assert f"{tmp_path}/train.log\n  library      {library}\n" in out
    assert "  transports   P2P/CUMEM/read (6 links), NET/IB/GDRDMA (2 links)\n" in out
    assert "  init         1.07 s for the slowest communicator (8 ranks, slowest is rank 7, 0.50 s of it" in out
    assert "  collectives  AllGather:" in out
    assert "  warnings     fatal: 2 x NET/IB : Got completion from peer" in out
    assert "ALLREDUCE seq 7 of group 0(default_pg): ranks 0,1,2,3,4,5,6 waited, rank 7 silent\n" in out
    assert "suspect: 7; silent while 7 of 8 timed out on ALLREDUCE seq 7" in out
    assert (
        "  bandwidth    AllGather · 2 ranks · 113.6 GB/s bus bandwidth at 256 MiB · average 113.3 GB/s · 1 size\n"
        in out
    )


def test_values_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for rank in range(3):
        last = history(5) if rank == 2 else history(6, **WAITING)
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(dump(last, ranks="[0, 1, 2]"), protocol=2))
    assert main(["nccl", "--json", str(tmp_path)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["flight_records"] for one in told] == [6, 6, 5]
    assert [hang["suspect"] for one in told for hang in one["nccl_hangs"]] == ["2"]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many processes each command had."""
    numbers: list[int] = []

    def told(work: str, number: int) -> ProcessPool[Scan | Region, Scanned]:
        numbers.append(number)
        return ProcessPool(work, number)

    monkeypatch.setattr(nccl, "ProcessPool", told)
    monkeypatch.setattr(nccl, "_WORTH_BYTES", 10_000)
    return numbers


@pytest.mark.parametrize("workers", ["1", "3"])
def test_compressed_and_with_workers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], started: list[int], workers: str
) -> None:
    job = render(Job(nodes=1, gpus=4, calls=400))
    path = tmp_path / "nccl.node-0.4000.zst"
    path.write_bytes(zstandard.compress(job.text().encode()))
    assert main(["nccl", "--json", "--workers", workers, str(path)]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert told["file"]["coll_calls"] == 1600
    assert sum(row["calls"] for row in told["nccl_collectives"]) == 1600
    assert started == [int(workers)]


def test_small_files_are_read_alone_and_large_directories_are_not(tmp_path: Path, started: list[int]) -> None:
    text = render(Job(nodes=1, gpus=2, calls=1)).text()
    (tmp_path / "nccl.node-0.1").write_text(text)
    assert main(["nccl", "--workers", "2", str(tmp_path)]) == 0
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "nccl.node-0.2").write_text(text * (10_000 // len(text)))
    assert main(["nccl", "--workers", "2", str(tmp_path)]) == 0
    assert main(["nccl", "--workers", "2", "s3://"]) != 0
    assert started == [1, 2, 2]


def test_what_cannot_be_read_is_said_and_the_rest_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "nccl_trace_rank_0").write_bytes(b"\x80\x04cposix\nsystem\n.")
    (tmp_path / "bench.log").write_text(HEADER + ROW + TAIL)
    assert main(["nccl", str(tmp_path)]) == 0
    told = capsys.readouterr()
    assert "bandwidth" in told.out
    assert "GLOBAL, imports code" in told.err


def test_nothing_to_say_is_a_failure_with_a_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.log").write_text("nothing here\n")
    assert main(["nccl", str(tmp_path)]) == 1
    assert "Set NCCL_DEBUG=INFO" in capsys.readouterr().err
    assert main(["nccl", str(tmp_path / "missing.log")]) == 2
    assert main(["nccl", "--workers", "0", str(tmp_path)]) == 2


@pytest.mark.parametrize("workers", ["1", "3"])
def test_every_call_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str], workers: str) -> None:
    job = render(Job(nodes=1, gpus=4, calls=50))
    (tmp_path / "nccl.node-0.1").write_text(job.text())
    (tmp_path / "nccl.node-1.2.zst").write_bytes(zstandard.compress(job.text().encode()))
    out = tmp_path / "calls.parquet"
    assert main(["nccl", str(tmp_path), "--raw-collectives", str(out), "--workers", workers]) == 0
    assert f"400 calls written to {out}" in capsys.readouterr().err
    calls = pl.read_parquet(out)
    assert calls.group_by("source_path").len()["len"].to_list() == [200, 200]
    assert calls["op_count"].max() == 49
    assert not list(tmp_path.glob(".calls*"))


def test_calls_go_into_parquet_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "nccl.node-0.1").write_text(render(Job(calls=1)).text())
    assert main(["nccl", str(tmp_path), "--raw-collectives", str(tmp_path / "calls.csv")]) == 2
    assert "does not end in .parquet" in capsys.readouterr().err
    assert main(["nccl", str(tmp_path), "--raw-collectives", str(tmp_path / "none" / "calls.parquet")]) == 1
    assert "Cannot write" in capsys.readouterr().err
    assert main(["nccl", str(tmp_path / "missing"), "--raw-collectives", str(tmp_path / "calls.parquet")]) == 2
    assert not list(tmp_path.glob("*.parquet"))


def test_devices_and_findings_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = render(Job("2.24.3", nodes=2, gpus=4))
    text = job.text().replace("via NET/IB/0/GDRDMA", "via NET/IB/0").replace("via NET/IB/1/GDRDMA", "via NET/IB/1")
    devices = "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>"
    (tmp_path / "train.log").write_text(f"node-0:4000:4000 [0] NCCL INFO {devices}\n{text}")
    assert main(["nccl", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "  devices      IB: mlx5_0, mlx5_1 · IB · on 1 host\n" in out
    assert "  findings     gdrdma_off: 2 of 2 RDMA links go without GDRDMA" in out
    assert "NCCL_NET_GDR_LEVEL" in out
    assert main(["nccl", "--json", str(tmp_path)]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert [row["nccl_rule"] for row in told["nccl_findings"]] == ["gdrdma_off"]
    assert {row["device_name"] for row in told["nccl_devices"]} == {"mlx5_0", "mlx5_1"}


def test_an_operation_that_the_table_does_not_print(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "out.log"
    path.write_text(
        "   268435456   8388608   float   none   -1   1000.0  268.44  234.88  N/A  1001.0  268.17  234.65  N/A\n"
    )
    assert main(["nccl", "--json", "--op", "AlltoAll", str(path)]) == 0
    (row,) = json.loads(capsys.readouterr().out)[0]["nccl_bench"]
    assert (row["op"], row["op_source"], row["nranks"]) == ("AlltoAll", "option", 8)


def test_a_set_of_dumps_with_one_missing_still_names_the_suspect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for rank in (0, 2):
        last = history(5) if rank == 2 else history(6, **WAITING)
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(dump(last, ranks="[0, 1, 2]"), protocol=2))
    assert main(["nccl", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "suspect: 2; did not join" in out
    assert "there is no dump of 1" in out
