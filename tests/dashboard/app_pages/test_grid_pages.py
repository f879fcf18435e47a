"""Overview, Best configurations and Scaling, run headless over real stores."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path

import duckdb
import pytest
from streamlit.testing.v1 import AppTest

from sweepscope import dashboard
from sweepscope.dashboard.navigation import PAGES
from tests.dashboard.app_pages.grid_home import make_home, run, small_sweep

APP = Path(dashboard.__file__).parent / "streamlit_app.py"
_GRID_PAGES = ("overview", "best", "scaling")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SWEEPSCOPE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def sweep_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_home(tmp_path_factory.mktemp("sweep"), small_sweep())


@pytest.fixture
def sweep(sweep_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of `small_sweep`, for tests that only read it."""
    monkeypatch.setenv("SWEEPSCOPE_HOME", str(sweep_home))
    return sweep_home


def opened(page: str, **query: str) -> AppTest:
    app = AppTest.from_file(str(APP), default_timeout=120)
    if page != "overview":
        app.switch_page(f"app_pages/{page}.py")
    for name, value in query.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception, app.exception
    return app


def words(app: AppTest) -> str:
    """The HTML of a page without style sheets."""
    bodies = [element.proto.body for element in app.get("html")]
    text = " ".join(body for body in bodies if not body.startswith("<style>")).replace("\xa0", " ")
    return re.sub(r'<span class="ss-name">(.*?)</span>', r"\1", text)


@pytest.mark.parametrize("entry", PAGES, ids=lambda entry: entry.file)
def test_every_page_says_what_to_do_before_the_first_ingest(home: Path, entry: object) -> None:
    app = opened(entry.file)  # type: ignore[attr-defined]
    assert app.title[0].value == "No results yet"
    assert app.code[0].value == f"sweepscope demo --home {home}\nsweepscope ingest PATH --home {home}"


def test_a_store_that_cannot_be_read_is_not_called_empty(home: Path) -> None:
    make_home(home, small_sweep())
    store = next((home / "store").glob("results-*.duckdb"))
    store.chmod(0o644)
    store.write_bytes(b"no database" * 1000)
    app = opened("overview")
    assert app.title[0].value == "The store cannot be read"
    assert f"Cannot open the store {store}" in words(app)
    assert "publishes from the lake" in words(app)


def test_a_page_says_so_when_another_version_published_the_store(home: Path) -> None:
    make_home(home, small_sweep())
    store = next((home / "store").glob("results-*.duckdb"))
    store.chmod(0o644)
    with duckdb.connect(str(store)) as con:
        con.execute("DROP VIEW sweep_cost")
    text = words(opened("failures"))
    assert "Another version of sweepscope may have published it" in text
    assert "sweep_cost" in text


def test_the_first_screen_leads_to_the_other_grids(home: Path) -> None:
    make_home(home, [*small_sweep(), run("long", seq_len=32_768, gbs_tokens=2**20, speed=900.0)])
    text = words(opened("overview"))
    assert "Other grids" in text
    assert "./?origin=measured" in text
    assert "seq_len=32768" in text
    assert "sequence 32,768" in words(opened("overview", seq_len="32768"))


def test_the_first_screen_shows_every_completed_run_of_ones_own(home: Path) -> None:
    """Runs of many batches, sequences and cards, as a small sweep of one's own has them: one grid holds few of them."""
    rows = [
        *small_sweep(),
        *(run(f"b{size}", gbs_tokens=size * 4096, gbs=size, speed=30_000.0 + size) for size in (8, 16, 32)),
        run("long", seq_len=32_768, gbs_tokens=2**20, speed=45_000.0),
        run("unknown", seq_len=None, gbs_tokens=None, speed=100.0),
        run("silent", gbs_tokens=None, gbs=None, speed=None) | {"num_nodes": None, "status": "completed"},
    ]
    make_home(home, rows)
    app = opened("overview")
    text = words(app)
    assert "One result so far" not in text
    assert "10 completed runs" in text
    assert "all 10, the fastest per model and GPU count; the grid below holds 5 of them" in text
    shown = app.dataframe[0].value
    assert shown["Completed"].sum() == 10
    best = shown[shown["GPUs"] == 8].iloc[0]
    assert (best["Tokens/s/GPU"], best["Sequence, tokens"]) == (45_000, 32_768)
    assert "3 sequences, " in best["Runs differ in"]
    assert "5 batches" in best["Runs differ in"]


def test_runs_of_ones_own_that_have_no_grid_are_shown_before_those_of_others(home: Path) -> None:
    make_home(home, [run("mine", seq_len=None, gbs_tokens=None, speed=100.0), run("theirs", origin="published")])
    app = opened("overview")
    assert "Your <b>1 run is in no grid" in words(app)
    assert "shown instead: published results" in words(app)
    assert app.dataframe[0].value["Completed"].sum() == 1


@pytest.mark.parametrize(
    ("page", "query", "missing"),
    [
        ("best", {"model": "Gone 9B", "nodes": "99"}, "model=Gone 9B, nodes=99"),
        ("scaling", {"baseline": "<b>"}, "baseline=&lt;b&gt;"),
        ("failures", {"sweep": "gone"}, "sweep=gone"),
    ],
)
def test_a_link_to_what_is_gone_says_that_something_else_is_shown(
    sweep: Path, page: str, query: dict[str, str], missing: str
) -> None:
    assert f"This page has no {missing}, which its address asks for" in words(opened(page, **query))
    assert "which its address asks for" not in words(opened(page))


@pytest.mark.parametrize("page", _GRID_PAGES)
def test_runs_without_a_cell_are_explained(home: Path, page: str) -> None:
    make_home(home, [run("a", seq_len=None, gbs_tokens=None)])
    text = words(opened(page))
    assert "To be ranked it lacks <b>" in text
    assert 'href="health"' in text
    assert ("No run has a cell yet" in text) == (page != "overview"), "there the runs themselves are shown"


def test_a_picture_of_a_chart_has_page_and_filters_printed_in(sweep: Path) -> None:
    charts = opened("best", tp="1").get("plotly_chart")
    captions = [json.loads(chart.proto.spec)["layout"]["title"]["text"] for chart in charts]
    assert captions
    assert all(caption.startswith("Best configurations · TP 1 · ") for caption in captions)


def test_the_answer_is_about_the_best_cell(sweep: Path) -> None:
    text = words(opened("best"))
    assert "On 1 node, Llama 1.34B trains fastest with <b>DP8 TP1 PP1 · GAS32 MBS1 · Z0: 39.1 % MFU</b>" in text
    assert 'class="ss-badge measured"' in text


def test_the_selectors_are_the_keyboards_way_to_a_cell(sweep: Path) -> None:
    app = opened("best")
    app.selectbox(key="url_nodes").set_value("2").run()
    assert not app.exception
    assert "ahead of the runner-up, within the noise" in words(app)
    assert app.query_params["nodes"] in ("2", ["2"])


def test_a_link_restores_the_selection(sweep: Path) -> None:
    app = opened("best", nodes="4", metric="failures")
    assert app.selectbox(key="url_nodes").value == "4"
    assert app.selectbox(key="url_metric").value == "failures"
    assert "Llama 1.34B on 4 nodes has no working layout yet</b>: 1 OOM." in words(app)


def test_a_cell_that_is_gone_falls_back_to_the_default(sweep: Path) -> None:
    assert opened("best", nodes="512", model="GPT-9").selectbox(key="url_nodes").value == "1"


def test_filters_in_the_url_narrow_every_page_and_can_be_removed(sweep: Path) -> None:
    app = opened("best", tp="2")
    assert "With TP 2" in words(app)
    assert [button.label for button in app.button if button.key and button.key.startswith("chip_")] == ["TP 2"]
    app.button(key="chip_tp").click().run()
    assert "With TP 2" not in words(app)
    assert "tp" not in app.query_params


def test_filters_that_match_nothing_leave_a_way_back(sweep: Path) -> None:
    app = opened("best", pp="64-")
    assert "No completed run matches PP ≥ 64" in words(app)
    assert app.button(key="chip_pp")
    assert "Nothing to compare yet" in words(opened("scaling", pp="64-"))


def test_what_a_link_asks_for_in_vain_is_named(sweep: Path) -> None:
    text = words(opened("best", accelerator="TPU", pp="many"))
    assert "no such value: pp=many, accelerator=TPU" in text


def test_origins_never_mix_and_stay_one_click_away(home: Path) -> None:
    rows = [*small_sweep(), run("p", origin="published", speed=90_000.0), run("s", origin="simulated", speed=99_000.0)]
    make_home(home, rows)
    measured = words(opened("best"))
    assert "published results</a>" in measured
    assert "simulated" not in measured
    assert "90,000" not in measured
    published = words(opened("best", origin="published"))
    assert 'class="ss-badge published"' in published
    assert "measured results</a>" in published


def test_simulated_rows_are_shown_while_there_is_nothing_better(home: Path) -> None:
    make_home(home, small_sweep(origin="simulated"))
    assert 'class="ss-badge simulated"' in words(opened("overview"))


def test_the_overview_has_four_figures_and_its_lists(sweep: Path) -> None:
    text = words(opened("overview"))
    for piece in (
        "Model × nodes with a result",
        "2 of 3",
        "Worth running next",
        "Repeat Llama 1.34B on 2 nodes",
        "store version 1",
    ):
        assert piece in text
    assert "Quiet problems" not in text


def test_scaling_says_what_is_left(sweep: Path) -> None:
    assert "at 2 nodes Llama 1.34B keeps 90 % of its best throughput per GPU" in words(opened("scaling"))
    assert "of its 2-node throughput per GPU" in words(opened("scaling", baseline="2"))


def test_scaling_without_a_curve_names_grids_that_have_one(home: Path) -> None:
    longer = [
        run(name, nodes, seq_len=8192, speed=speed) for name, nodes, speed in (("x", 1, 30_000.0), ("y", 4, 27_000.0))
    ]
    make_home(home, [run("a"), run("b", tp=2, speed=39_000.0), run("c", tp=4, speed=38_000.0), *longer])
    page = opened("scaling")
    assert "Nothing to compare yet" in words(page)
    assert "Grids with a curve" in words(page)
    assert "Llama 1.34B, H100-SXM-80GB, sequence 8,192" in words(page)
    assert "seq_len=8192" in words(page)
    assert "Nothing to compare yet" not in words(opened("scaling", seq_len="8192"))


def test_scaling_compares_strategies_of_one_model(sweep: Path) -> None:
    text = words(opened("scaling", lines="Llama 1.34B"))
    assert (
        "Llama 1.34B: with a fixed 1M-token batch, <b>at 2 nodes DP+TP keeps 92 % of its best throughput per GPU "
        "and DP 90 %" in text
    )


@pytest.mark.parametrize("page", _GRID_PAGES)
def test_every_chart_can_be_heard_and_every_page_has_its_table(sweep: Path, page: str) -> None:
    app = opened(page)
    charts = app.get("plotly_chart")
    assert charts
    assert all(len(chart.proto.alt) > 20 for chart in charts)
    assert app.dataframe
    assert app.get("download_button")


def test_a_visit_keeps_its_version_until_the_reader_asks_for_the_next(home: Path) -> None:
    make_home(home, small_sweep())
    app = opened("overview")
    make_home(home, [*small_sweep(), run("z", 8, speed=30_000.0)], version=2)
    app.run()
    assert "Version 2 is ready" in words(app)
    assert "2 of 3" in words(app)
    app.button(key="adopt_latest").click().run()
    assert "is ready" not in words(app)
    assert "3 of 4" in words(app)


def test_names_from_logs_cannot_bring_markup_into_a_page(home: Path) -> None:
    make_home(home, small_sweep(model="<img src=x onerror=alert(1)>"))
    for page in _GRID_PAGES:
        assert "<img" not in words(opened(page))


def test_versions_of_one_layout_are_told_apart(home: Path) -> None:
    make_home(
        home,
        [
            run("old", speed=16_388.0, framework_version="1.0"),
            run("new", speed=27_313.0, framework_version="2.0"),
            run("south", speed=20_000.0, framework_version="2.0", cluster="South"),
        ],
    )
    shown = words(opened("best"))
    assert "in nanotron 2.0, " in shown
    assert "the same layout on cluster South" in shown
    for label in ("version 2.0 · cluster unknown", "version 2.0 · cluster South", "version 1.0 · cluster unknown"):
        assert f"<p>{label}</p>" in shown


def test_the_panel_shows_the_estimators_pick_beside_the_measured_best(sweep: Path) -> None:
    text = words(opened("best"))
    assert "The estimator's pick" in text
    assert 'href="explorer?model=Llama+1.34B&amp;card=H100-SXM-80GB&amp;nodes=1' in text


def test_a_cell_without_a_result_says_what_is_expected_of_it(sweep: Path) -> None:
    app = opened("best")
    assert "estimated for the layout that should be fastest" in words(app)
    chart = next(chart for chart in app.get("plotly_chart") if "heat" in chart.proto.id)
    assert re.search(r"OOM.*~[0-9.]+", chart.proto.spec)
    assert "Estimated: ~" in chart.proto.spec
    narrowed = opened("best", tp="2")
    assert "estimated for the layout" not in words(narrowed)


def test_best_configurations_tells_who_led_when_and_what_a_version_changed(home: Path) -> None:
    days = [datetime(2026, 11, day, 8, 0) for day in (2, 3, 4)]
    make_home(
        home,
        [
            run("a", framework_version="1.0", started_at=days[0]),
            run("b", tp=2, speed=44_000.0, framework_version="1.0", started_at=days[1]),
            run("c", framework_version="2.0", speed=36_000.0, started_at=days[2]),
        ],
    )
    text = words(opened("best")).replace("\xa0", " ")
    assert "the lead changed 1 time" in text
    assert "10.0 % ahead, from 3 Nov 2026 08:00" in text
    assert "version 1.0 → version 2.0" in text
    assert "−10.0 %, regression" in text
    assert "1 layout slower in a newer version, beyond the noise" in words(opened("overview"))


def test_a_grid_of_many_models_draws_some_and_leads_to_the_others(home: Path) -> None:
    names = [f"m{at:02}" for at in range(26)]
    make_home(home, [run(name, model=name) for name in names])
    overview, best = opened("overview"), opened("best", model="m25", nodes="1")
    for app in (overview, best):
        assert "24 of 26 models are drawn, those with the most completed runs." in words(app)
    (model,) = [box for box in best.selectbox if box.label == "Model"]
    assert sorted(model.options) == names
    assert model.value == "m25"
    assert "m25" in str(best.get("plotly_chart")[0].proto)
