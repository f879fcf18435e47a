"""The pages on memory and on one snapshot, headless over small stores with the real views."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from sweepscope.pipeline.reference.accelerators import load_accelerators
from tests.dashboard.app_pages.test_data_pages import look_at, open_page, text_of
from tests.dashboard.store_rows import event_row, make_real_home, run_row
from tests.memory_rows import GIB, MIB, OOM_LINE, memory_estimate, memory_tables, merged, trained

ROOT = "/logs"


def bare_text(app: AppTest) -> str:
    return text_of(app).replace("\xa0", " ")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six runs of a sweep, five of them complete, one failed with its line; two with snapshots; another sweep."""
    runs = [
        run_row(
            f"c{at}",
            layout=f"DP16 TP{at}",
            mem_peak_allocated_bytes=(40 + at) * GIB,
            mem_peak_reserved_bytes=(44 + at) * GIB,
            accelerator="H100-SXM-80GB",
        )
        for at in range(1, 6)
    ]
    nothing = {"mem_peak_allocated_bytes": None, "mem_peak_reserved_bytes": None}
    runs.append(run_row("f1", status="oom", layout="DP16 <b>TP1</b>", accelerator="H100-SXM-80GB", **nothing))
    runs.append(run_row("other", sweep="second", accelerator="H100-SXM-80GB"))
    tables = merged(
        memory_tables(f"{ROOT}/c1", trained(layers=4)),
        memory_tables(f"{ROOT}/c2", trained(layers=6), name="rank3.pickle", rank=3),
        memory_tables("/elsewhere", trained(layers=4, capacity=24 * MIB), name="lost_oom.pickle"),
    )
    estimates = [memory_estimate(f"c{at}", activations=20 + 2 * at) for at in range(1, 6)]
    later = OOM_LINE.replace("2.50 GiB", "0.90 GiB").replace("70.00 GiB", "60.00 GiB")
    events = [event_row("f1", kind="oom", line_no=at, text=text) for at, text in ((10, OOM_LINE), (20, later))]
    return make_real_home(
        tmp_path_factory.mktemp("memory") / "home",
        runs=runs,
        events=events,
        estimates=estimates,
        accelerators=load_accelerators().to_dicts(),
        **tables,
    )


def test_the_answer_says_what_failed_runs_need_and_what_the_allocator_holds(home: Path) -> None:
    text = bare_text(look_at(home, "memory", sweep="rocm"))
    assert "<b>1 run ran out of GPU memory:</b> 1 would fit with expandable_segments." in text
    assert "The allocator held <b>9.3 %</b> more than was allocated (5 runs of megatron)." in text
    assert "6 runs with a known peak or verdict · 3 memory files" in text


def test_the_failed_run_is_shown_first_and_escaped(home: Path) -> None:
    app = look_at(home, "memory", sweep="rocm")
    (run,) = [box for box in app.selectbox if box.label == "Run"]
    assert run.value == "f1"
    text = bare_text(app)
    assert "Would fit with expandable_segments: enough was free, but in pieces." in text
    assert "Asked for 2.50 GiB, 1.50 GiB more than the GPU had free; 4.00 GiB were free inside" in text
    assert "The request is that of line 10, one of 2 out-of-memory lines." in text
    assert "Peaks from the out-of-memory line" in text
    assert "<b>TP1</b>" not in text


def test_another_run_is_chosen_by_the_address(home: Path) -> None:
    app = look_at(home, "memory", sweep="rocm", run="c2")
    text = bare_text(app)
    assert "of the card</b> at its peak" in text
    assert "Peaks from the training log" in text
    assert "unknown: Process, GPU in use" in text


def test_fragmentation_and_the_term_that_is_off_are_in_the_tables(home: Path) -> None:
    app = look_at(home, "memory", sweep="rocm")
    tables = {
        name: table.value
        for table in app.dataframe
        for name in ("Term factor", "Allowed in estimates, %")
        if name in table.value.columns
    }
    assert tables["Allowed in estimates, %"]["N"].to_list() == [5]
    assert set(tables["Term factor"]["Term"]) == {"states", "activations", "logits", "buffers", "constant"}


def test_snapshots_lead_to_their_pages(home: Path) -> None:
    text = bare_text(look_at(home, "memory"))
    assert 'href="snapshot?file=%2Flogs%2Fc2%2Frank3.pickle&amp;device=0"' in text
    assert "c2/rank3.pickle · rank 3" in text
    assert "▲ 1 failed allocation" in text


def test_an_empty_store_says_how_to_get_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = {"mem_peak_allocated_bytes": None, "mem_peak_reserved_bytes": None}
    app = open_page(make_real_home(tmp_path / "home", runs=[run_row(**nothing)]), monkeypatch, "memory")
    assert "No run of this store logged how much memory it used." in bare_text(app)
    assert "_record_memory_history" in bare_text(app)


def test_artefacts_without_runs_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_real_home(tmp_path / "home", **memory_tables("/x", trained(layers=2)))
    text = bare_text(open_page(home, monkeypatch, "memory"))
    assert "<b>1 memory file</b> without a run, listed" in text


SNAPSHOT = f"{ROOT}/c1/rank0.pickle"


def table_with(app: AppTest, column: str) -> Any:
    (found,) = [one.value for one in app.dataframe if column in one.value.columns]
    return found


def test_a_snapshot_tells_its_peak_and_what_it_was_for(home: Path) -> None:
    app = look_at(home, "snapshot", file=SNAPSHOT, device="0")
    text = bare_text(app)
    assert "at the peak</b>" in text
    assert "of it were optimizer states" in text
    assert 'href="run?run=c1"' in text
    for word in ("parameters", "gradients", "optimizer states", "activations"):
        assert f"</i>{word}</span>" in text
    shown = table_with(app, "Frame")
    assert shown["MiB"].to_list() == sorted(shown["MiB"], reverse=True)
    assert {"optimizer states", "parameters"} <= set(shown["Category"])
    assert app.slider[0].proto.format == "localized"  # 1,234,567 and not 1234567


def test_another_instant_is_chosen_by_the_address(home: Path) -> None:
    at_peak = look_at(home, "snapshot", file=SNAPSHOT)
    (slider,) = at_peak.select_slider
    first = slider.options[1]
    early = look_at(home, "snapshot", file=SNAPSHOT, at=first.split(" ")[0].replace(",", ""))
    assert "after" in bare_text(early).split("Alive")[1][:40]
    assert table_with(early, "Frame")["MiB"].sum() < table_with(at_peak, "Frame")["MiB"].sum()


def test_two_snapshots_are_compared_line_by_line(home: Path) -> None:
    app = look_at(home, "snapshot", file=SNAPSHOT, against=f"{ROOT}/c2/rank3.pickle\n0")
    differences = table_with(app, "Difference, MiB")
    assert (differences["Difference, MiB"] < 0).any()
    assert (differences["MiB"] - differences["Against, MiB"] - differences["Difference, MiB"]).abs().max() < 0.02
    assert "less at its peak.</b> Most by optimizer states" in bare_text(app)


def test_a_failed_allocation_is_told(home: Path) -> None:
    text = bare_text(look_at(home, "snapshot", file="/elsewhere/lost_oom.pickle"))
    assert "<b>1 allocation failed:</b> the last asked for" in text
    assert "were free inside the allocator's segments" in text


def test_without_a_file_the_page_says_where_to_find_one(home: Path) -> None:
    assert "No memory file is chosen." in bare_text(look_at(home, "snapshot"))
    text = bare_text(look_at(home, "snapshot", file="/no<b>where.pickle"))
    assert "This store has no memory file /no&lt;b&gt;where.pickle." in text
    assert 'href="memory"' in text


def test_a_state_without_history_is_shown_as_far_as_it_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stats = {
        "source_path": "/x/stats.json",
        "device": None,
        "run_dir": "/x",
        "mem_source": "memory_stats",
        "peak_allocated_bytes": GIB,
        "peak_reserved_bytes": 2 * GIB,
        "oom_events": 2,
    }
    home = make_real_home(tmp_path / "home", memory_snapshots=[stats])
    text = bare_text(open_page(home, monkeypatch, "snapshot", file="/x/stats.json"))
    assert "1.0 GiB at the peak" in text
    assert "2 allocations failed" in text
    assert "No events were recorded" in text
    assert "It names no blocks, so live blocks are unknown" in text
    assert "events and blocks agree" not in text
    assert "default settings" not in text


def test_the_page_of_a_run_has_its_verdict_and_snapshots(home: Path) -> None:
    text = bare_text(look_at(home, "run", run="f1"))
    assert "Would fit with expandable_segments: enough was free, but in pieces." in text
    text = bare_text(look_at(home, "run", run="c2"))
    assert 'href="snapshot?file=%2Flogs%2Fc2%2Frank3.pickle&amp;device=0"' in text
