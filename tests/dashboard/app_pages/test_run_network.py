"""The network part of a run's page, headless over small stores with the real views."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dashboard.app_pages.test_data_pages import open_page, text_of
from tests.dashboard.store_rows import file_row, make_real_home, run_row
from tests.nccl_rows import collective_row, communicator_row, hang_row, link_row, nccl_file_row, warning_row

OWN = {"source_path": "/logs/a.log", "run_dir": "/logs"}


def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **rows: list[dict[str, object]]) -> str:
    home = make_real_home(tmp_path / "home", **rows)
    return text_of(open_page(home, monkeypatch, "run", run="r1")).replace("\xa0", " ")


def test_facts_findings_and_hangs_of_the_runs_own_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = page(
        tmp_path,
        monkeypatch,
        runs=[run_row("r1", **OWN, status="hang"), run_row("r2", source_path="/logs/b.log")],
        nccl_files=[nccl_file_row("a"), nccl_file_row("b", nccl_version="2.99.0")],
        nccl_communicators=[
            communicator_row("a", init_time_s=4.25, init_slowest_rank=3, init_bootstrap_s=3.0, nvls_channels=0),
            communicator_row("a", comm_index=2, nranks=8, num_nodes=1, line_no=25),
        ],
        nccl_links=[link_row("a", transport="NET/Socket", line_no=61)],
        nccl_collectives=[collective_row("a")],
        nccl_warnings=[warning_row("a")],
        nccl_hangs=[hang_row("a", op="ALL<b>")],
    )
    assert "NCCL 2.21.5" in text
    assert "2.99.0" not in text
    assert "1 of 16 ranks, 1 of 8 ranks" in text
    assert "4.25 s" in text
    assert "slowest rank 3, 3.00 s in bootstrap" in text
    assert "10 GiB" in text
    assert "NVLink SHARP not in use" in text
    assert "1 of 1 network links use NET/Socket; NCCL found IB" in text
    assert "hang?at=%2Flogs%2Fa.log%3A950" in text
    assert "ALL&lt;b&gt; seq 118 of group 0: suspect: rank 3" in text


def test_files_beside_the_log_speak_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = page(
        tmp_path,
        monkeypatch,
        runs=[run_row("r1", source_path="/logs/train.log", run_dir="/logs")],
        files=[file_row("/logs/train.log", unit="/logs"), file_row("/logs/a.log", unit="/logs")],
        nccl_files=[nccl_file_row("a")],
    )
    assert "NCCL output of 1 file" in text


def test_files_in_the_directory_speak_for_the_one_log_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = run_row("r1", source_path="/logs/train.log", run_dir="/logs")
    assert "NCCL output of 1 file" in page(tmp_path / "a", monkeypatch, runs=[alone], nccl_files=[nccl_file_row("a")])
    beside = run_row("r2", source_path="/logs/other.log", run_dir="/logs")
    several = page(tmp_path / "b", monkeypatch, runs=[alone, beside], nccl_files=[nccl_file_row("a")])
    assert "NCCL output of" not in several


def test_a_run_without_nccl_output_has_no_such_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = page(tmp_path, monkeypatch, runs=[run_row("r1")], nccl_files=[nccl_file_row("b")])
    assert "NCCL output of" not in text
