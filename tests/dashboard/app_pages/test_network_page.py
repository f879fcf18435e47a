"""The page on the network, headless over small stores with the real views."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.dashboard.app_pages.test_data_pages import look_at, open_page, text_of
from tests.dashboard.store_rows import make_real_home, run_row
from tests.nccl_rows import bench_row, communicator_row, hang_row, link_row, nccl_file_row


def bare_text(app: AppTest) -> str:
    return text_of(app).replace("\xa0", " ")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows: dict[str, list[dict[str, Any]]] = {
        "nccl_files": [
            nccl_file_row("a"),
            nccl_file_row("b", nccl_version="2.27.5", nccl_env="NCCL_IB_DISABLE=1", networks="Socket"),
            nccl_file_row("c", sweep="other", nccl_version=None, num_communicators=None, bench_rows=2),
        ],
        "nccl_links": [link_row("a"), link_row("b", transport="NET/Socket", line_no=77)],
        "nccl_communicators": [
            communicator_row("a", init_time_s=2.5, init_slowest_rank=3, init_bootstrap_s=1.0),
            communicator_row("b", init_time_s=3.5),
        ],
        "nccl_bench": [
            bench_row("c"),
            bench_row("c", message_bytes=2**20, busbw_bytes_per_s=20e9, in_place_busbw_bytes_per_s=21e9, line_no=50),
            bench_row("c", nranks=8, num_nodes=1, busbw_bytes_per_s=450e9, line_no=51),
        ],
        "nccl_hangs": [
            hang_row("b", op="BROAD<b>x</b>"),
            hang_row(
                "b",
                seq=7,
                suspect=None,
                suspect_reason="not determinable: all 8 ranks entered",
                line_no=960,
                ranks_reporting="0,1,2,3,4,5,6,7",
                ranks_silent=None,
                is_first=False,
            ),
        ],
        "runs": [run_row("rb", source_path="/logs/b.log")],
    }
    return make_real_home(tmp_path_factory.mktemp("network") / "home", **rows)


def table(app: AppTest, column: str) -> Any:
    (found,) = [one.value for one in app.dataframe if column in one.value.columns]
    return found


def test_the_answer_names_what_was_found_and_what_hung(home: Path) -> None:
    text = bare_text(look_at(home, "network"))
    assert "<b>2 findings:</b> TCP sockets in use although RDMA is there (1 file); NCCL versions are mixed." in text
    assert "<b>2 collectives hung</b> in 1 file; a suspect is named for 1." in text
    assert "NCCL 2.21.5 to 2.27.5 · 2 sweeps together" in text
    assert "450.0 GB/s" in text


def test_a_finding_has_its_line_its_run_its_remedy_and_its_source(home: Path) -> None:
    text = bare_text(look_at(home, "network"))
    assert "1 of 1 network links use NET/Socket; NCCL_IB_DISABLE=1 is set" in text
    assert "b.log:77" in text
    assert "run?run=rb" in text
    assert "Unset NCCL_IB_DISABLE" in text
    assert "src/transport/net_ib.cc" in text


def test_only_the_costliest_finding_is_unfolded(home: Path) -> None:
    text = bare_text(look_at(home, "network"))
    first, second = re.findall(r'<details class="ss-fold"( open|)><summary>.*?</summary>(?:.*?)</details>', text)
    assert (first, second) == (" open", "")


def test_a_hang_shows_suspect_reason_and_ranks_and_is_escaped(home: Path) -> None:
    app = look_at(home, "network")
    text = bare_text(app)
    assert "<b>Suspect: rank 3.</b> Silent while 7 of 8 timed out on ALLREDUCE seq 118." in text
    assert "waited 600 s" in text
    assert "BROAD&lt;b&gt;x&lt;/b&gt;" in text
    assert "BROAD<b>" not in text
    assert "▲ suspect: 1 · ■ waited in this one: 7" in text
    hangs = table(app, "Suspect")
    assert hangs["Suspect"].to_list() == ["3", "not determinable"]
    ranks = table(app, "State")
    assert ranks["State"].to_list()[2:5] == ["waited in this one", "suspect, no output", "waited in this one"]


def test_a_sweep_narrows_everything(home: Path) -> None:
    text = bare_text(look_at(home, "network", sweep="other"))
    assert "<b>No rule found a problem in the network of 1 file</b>" in text
    assert "hung" not in text.split("How to read it")[0]
    assert "No collective timed out" in text
    assert "No file times its initialisation" in text
    text = bare_text(look_at(home, "network", sweep="sweep"))
    assert "No nccl-tests table with several ranks" in text


def test_hangs_told_by_dumps_alone_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hang = hang_row(
        "fr",
        process_group="0(default_pg)",
        num_ranks=3,
        ranks_reporting="0,2",
        ranks_silent="1",
        suspect="1",
        evidence_source="flight_recorder",
    )
    records = [
        {
            "source_path": f"/logs/trace_{rank}",
            "run_dir": "/logs",
            "rank": rank,
            "record_id": 0,
            "pg_name": "0",
            "pg_desc": "default_pg",
            "op": "all_reduce",
            "last_enqueued_seq": seq,
            "last_completed_seq": 60,
            "line_no": 1,
        }
        for rank, seq in ((0, 62), (1, 60))
    ]
    app = open_page(
        make_real_home(tmp_path / "home", nccl_hangs=[hang], flight_records=records), monkeypatch, "network"
    )
    assert "<b>1 collective hung</b> in 1 file; a suspect is named for it." in bare_text(app)
    assert table(app, "State")["Last enqueued"].to_list()[:2] == [62, 60]


def test_without_nccl_output_the_page_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = text_of(open_page(make_real_home(tmp_path / "home", runs=[run_row("a")]), monkeypatch, "network"))
    assert "NCCL_DEBUG=INFO" in text
    assert "NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH,TUNING,COLL" in text
    assert "sweepscope ingest PATH" in text


def test_bandwidths_stand_beside_the_published_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published = {
        "source_id": "book",
        "source_title": "A book",
        "source_url": "https://example.org",
        "op": "AllReduce",
        "message_bytes": 2**28,
        "num_nodes": 2,
        "nranks": 16,
        "bandwidth_bytes_per_s": 362e9,
        "bandwidth_p5_bytes_per_s": 302e9,
        "bandwidth_p95_bytes_per_s": 436e9,
        "line_no": 2,
    }
    card = {"accelerator": "H100-SXM-80GB", "link_bytes_per_s": 450e9, "network_bytes_per_s": 50e9}
    home = make_real_home(
        tmp_path / "home",
        nccl_files=[nccl_file_row("c", bench_rows=2)],
        nccl_bench=[
            bench_row("c", message_bytes=2**28, accelerator="H100-SXM-80GB"),
            bench_row("c", message_bytes=2**20, line_no=50),
        ],
        published_bandwidths=[published],
        accelerator_links=[card],
    )
    app = open_page(home, monkeypatch, "network")
    text = bare_text(app)
    assert "by nodes, at 256 MiB" in text
    assert "Hollow: published" in text
    assert "Dotted: what the links of the accelerator carry" in text
