"""No page shows the runs of others without saying what one's own lack for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.dashboard.app_pages.test_data_pages import open_page, text_of
from tests.dashboard.store_rows import file_row, make_home, make_real_home, run_row

OTHERS = {"origin": "published", "sweep": "study", "source_path": "data/published/study.csv", "run_dir": None}
BARE = {
    **dict.fromkeys(
        ("model", "params", "seq_len", "gbs_tokens", "mem_peak_allocated_bytes", "mem_peak_reserved_bytes")
    ),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two own runs that log neither memory nor a model, beside published ones that do."""
    runs = [run_row("mine1", **BARE), run_row("mine2", **BARE), run_row("theirs", **OTHERS)]
    return make_home(tmp_path_factory.mktemp("own") / "home", runs=runs, files=[file_row()])


@pytest.mark.parametrize(
    ("page", "lack"),
    [
        ("overview", "are in no grid"),
        ("best", "are in no grid"),
        ("scaling", "are in no grid"),
        ("explorer", "are in no grid"),
        ("memory", "log no GPU memory"),
    ],
)
def test_a_page_says_what_own_runs_lack(home: Path, page: str, lack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = text_of(open_page(home, monkeypatch, page))
    assert f"Your <b>2 runs {lack}" in text
    assert "shown instead: published results" in text
    assert "shown instead" not in text_of(open_page(home, monkeypatch, page, origin="published"))


def test_own_failures_come_before_those_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [run_row("mine", **BARE, status="oom"), run_row("theirs", **OTHERS)]
    home = make_real_home(tmp_path / "home", runs=runs, files=[file_row()])
    text = text_of(open_page(home, monkeypatch, "failures"))
    assert '<span class="ss-badge measured">' in text
    assert "shown instead" not in text
    assert "Your <b>1 run is in no grid" in text_of(open_page(home, monkeypatch, "overview"))


def test_own_runs_come_first_although_none_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [run_row("a", status="oom"), run_row("b", status="crash"), run_row("theirs", **OTHERS)]
    home = make_real_home(tmp_path / "home", runs=runs, files=[file_row()])
    text = text_of(open_page(home, monkeypatch, "overview")).replace("\xa0", " ")
    assert "<b>None of your runs completed.</b> <b>2 of 2 runs failed (100 %)</b>" in text
    assert text.index("None of your runs") < text.index("Published results, to compare with")
    assert "None of your runs" not in text_of(open_page(home, monkeypatch, "overview", origin="published"))


@pytest.mark.parametrize(
    ("known", "first"),
    [
        ({}, "Highest MFU"),
        ({"mfu": None}, "Most tokens/s/GPU"),
        ({"mfu": None, "tokens_per_s_per_gpu": None}, "Fastest steps"),
        ({"mfu": None, "tokens_per_s_per_gpu": None, "step_time_s": None}, "Most GPUs"),
    ],
)
def test_runs_are_sorted_by_what_some_of_them_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: dict[str, None], first: str
) -> None:
    bare = {"mem_peak_allocated_bytes": None, "mem_peak_reserved_bytes": None}
    home = make_home(tmp_path / "home", runs=[run_row("mine", **bare, **known)], files=[file_row()])
    (sort,) = [box for box in open_page(home, monkeypatch, "runs").selectbox if box.label == "Sort"]
    assert sort.options[0] == first
    assert "Most memory" not in sort.options
    assert ("Highest MFU" in sort.options) == (not known)


def test_ranks_of_a_cpu_are_not_called_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_cpu = {"accelerator": "CPU", "mfu": None, "num_nodes": 1}
    runs = [
        run_row("a", **on_cpu, num_gpus=1),
        run_row("b", **on_cpu, num_gpus=2),
        run_row("c", **on_cpu, num_gpus=4, seq_len=None, gbs_tokens=None),
    ]
    home = make_real_home(tmp_path / "home", runs=runs, files=[file_row()])
    app = open_page(home, monkeypatch, "overview")
    text = text_of(app)
    assert "on up to 4 CPU ranks" in text
    assert not re.search(r"\d\sGPUs?\b", text)
    assert "CPU ranks" in app.dataframe[0].value.columns
    best = open_page(home, monkeypatch, "best")
    assert "1 node with 1 CPU rank" in text_of(best)
    assert not re.search(r"\d\sGPUs?\b", text_of(best))
    assert [box.options for box in best.selectbox if box.label == "Nodes"] == [["1 (1 CPU rank)", "1 (2 CPU ranks)"]]
    assert "at 2 CPU ranks" in text_of(open_page(home, monkeypatch, "scaling"))


NO_GPUS = dict.fromkeys(("num_nodes", "num_gpus", "tokens_per_s_per_gpu", "tokens_per_s", "mfu"))


def test_own_runs_that_are_not_ranked_come_first_with_what_they_lack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [
        run_row("z_fast", **NO_GPUS, step_time_s=7.9, layout="TP1 PP1"),
        run_row("a_slow", **NO_GPUS, step_time_s=8.1, layout="TP2 PP1"),
        run_row("dead", **NO_GPUS, status="oom", step_time_s=2.0),
        run_row("theirs", **OTHERS),
    ]
    home = make_real_home(tmp_path / "home", runs=runs, files=[file_row()])
    app = open_page(home, monkeypatch, "overview")
    text = text_of(app)
    assert "<b>2 completed runs</b> of 1 model. The shortest step is 7.90 s: TP1 PP1." in text.replace("\xa0", " ")
    assert "To be ranked they lack <b>the number of nodes and the number of GPUs</b>" in text
    assert text.index("2 completed runs") < text.index("Published results, to compare with")
    (table,) = [frame.value for frame in open_page(home, monkeypatch, "runs", origins="measured").dataframe]
    assert table["Step time, s"].to_list() == [7.9, 8.1, 2.0]
