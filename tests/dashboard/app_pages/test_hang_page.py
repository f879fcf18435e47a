"""The page on one hang, headless over small stores with the real views."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dashboard.app_pages.test_data_pages import look_at, open_page, text_of
from tests.dashboard.store_rows import file_row, make_real_home, run_row
from tests.nccl_rows import flight_row, hang_line_row, hang_row, nccl_file_row

DUMP = "/logs/trace_rank_0.log"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    said = "[rank0]: Watchdog <b>caught</b> collective operation timeout"
    rows = {
        "nccl_files": [nccl_file_row("a")],
        "nccl_hangs": [
            hang_row("a", ranks_reporting="0,1,2,4,5,6,7"),
            hang_row(
                "trace_rank_0",
                op="all_reduce",
                process_group="0(default_pg)",
                num_ranks=3,
                line_no=4,
                ranks_reporting="0",
                ranks_silent="1,2",
                suspect="1",
                evidence_source="flight_recorder",
                suspect_reason="did not join all_reduce seq 118",
                run_dir="/dumps",
            ),
        ],
        "nccl_hang_lines": [
            hang_line_row(text=said),
            hang_line_row("status", last_enqueued_seq=118, last_completed_seq=117, line_no=951, text="status"),
        ],
        "flight_records": [
            flight_row(
                "trace_rank_0", seq=118, op_state="started", line_no=4, run_dir="/dumps", stack="train.py:88 step"
            ),
            flight_row("trace_rank_1", rank=1, seq=117, line_no=3, run_dir="/dumps", stack="data.py:5 next"),
        ],
        "files": [
            file_row("/logs/trace_rank_0.log", unit="/logs/trace_rank_*"),
            file_row("/logs/trace_rank_1.log", unit="/logs/trace_rank_*"),
        ],
        "runs": [run_row("ra", source_path="/logs/a.log", status="hang")],
    }
    return make_real_home(tmp_path_factory.mktemp("hang") / "home", **rows)


def test_an_incident_of_the_watchdog(home: Path) -> None:
    app = look_at(home, "hang", at="/logs/a.log:950")
    text = text_of(app).replace("\xa0", " ")
    assert "<b>Suspect: rank 3.</b> Silent while 7 of 8 timed out on ALLREDUCE seq 118." in text
    assert "run?run=ra" in text
    assert "[rank0]: Watchdog &lt;b&gt;caught&lt;/b&gt; collective" in text
    assert "a.log:950" in text
    assert "There is no dump beside this log." in text
    (states,) = [one.value for one in app.dataframe if "Ahead" in one.value.columns]
    assert states["State"].to_list()[3] == "suspect, no output"
    assert states["Ahead"].to_list()[0] == "in it"


def test_an_incident_of_the_flight_recorder(home: Path) -> None:
    app = look_at(home, "hang", at=f"{DUMP}:4")
    text = text_of(app)
    assert "<b>Suspect: rank 1.</b> Did not join all_reduce seq 118." in text
    assert "data.py:5 next" in text
    assert "No dump of rank 2." in text
    (brought,) = [one.value for one in app.dataframe if "Input sizes" in one.value.columns]
    assert brought["Ranks"].to_list() == ["0"]


@pytest.mark.parametrize(
    ("at", "answer"), [("", "No hang is chosen."), ("/logs/z.log:1", "This store has no such hang.")]
)
def test_without_an_address_the_hangs_are_offered(home: Path, at: str, answer: str) -> None:
    app = look_at(home, "hang", **({"at": at} if at else {}))
    text = text_of(app)
    assert answer in text
    assert text.count("hang?at=") == 2
    assert "Did not join all_reduce seq 118. Waited: 0. No output: 1, 2." in text
    assert "Silent while 7 of 8 timed out on ALLREDUCE seq 118. Waited: 0–2, 4–7." in text


def test_a_store_without_hangs_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_real_home(tmp_path / "empty", nccl_files=[nccl_file_row("a")])
    assert "No collective timed out in this store." in text_of(open_page(home, monkeypatch, "hang"))


def test_failures_lead_to_the_incident(home: Path) -> None:
    text = text_of(look_at(home, "failures"))
    assert "hang?at=%2Flogs%2Fa.log%3A950" in text
    assert "ALLREDUCE seq 118 of group 0: suspect: rank 3" in text
