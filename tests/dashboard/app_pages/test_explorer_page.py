"""Explorer & advisor, headless over small stores with the real views."""

from __future__ import annotations

import html
import re
from pathlib import Path
from urllib.parse import parse_qsl

import duckdb
import pytest

from tests.dashboard.app_pages.test_data_pages import look_at, open_page, text_of
from tests.dashboard.store_rows import estimate_row, make_real_home, run_row

SHAPE = {
    "num_layers": 32,
    "hidden_size": 4096,
    "num_heads": 32,
    "num_kv_heads": 8,
    "ffn_hidden_size": 14_336,
    "gated_mlp": True,
    "vocab_size": 128_256,
    "tie_word_embeddings": False,
    "accelerator": "H100-SXM-80GB",
    "model": "Llama 3 8B",
    "seq_len": 4096,
    "gbs": 64,
    "gbs_tokens": 262_144,
}
RUNS = [
    run_row("near", **SHAPE, dp=16, mbs=1, gas=4, zero_stage=1, mfu=0.35),
    run_row(
        "far", **SHAPE, dp=2, tp=8, mbs=1, gas=32, layout="DP2 TP8 PP1 <b>", mfu=0.25, tokens_per_s_per_gpu=5_000.0
    ),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_real_home(tmp_path_factory.mktemp("explorer") / "home", runs=RUNS, estimates=[estimate_row("near")])


def test_the_first_screen_asks_what_the_store_has_most_runs_of(home: Path) -> None:
    app = look_at(home, "explorer")
    text = text_of(app).replace("\xa0", " ")
    assert "On 2 nodes, Llama 3 8B should train fastest with <b>DP" in text
    assert "The best of 2 measured runs reached 35.0 %" in text
    assert {box.label: box.value for box in app.selectbox if not box.label.startswith(("Const", "The"))} == {
        "Model": "Llama 3 8B",
        "Accelerator": "H100-SXM-80GB",
        "Nodes": "2",
        "Sequence": "4096",
        "Batch, tokens": "262144",
        "Matrix products in": "bf16",
    }


def test_own_runs_of_an_unknown_model_are_not_passed_over_in_silence(tmp_path: Path) -> None:
    unknown = {"num_layers": None, "hidden_size": None, "params": 6_740_000_000, "model": "6.74B"}
    run = run_row("a1", **{**SHAPE, **unknown})
    text = text_of(look_at(make_real_home(tmp_path / "home", runs=[run]), "explorer"))
    assert "Your own runs cannot be estimated" in text
    assert "On 2 nodes, Llama 3 8B should train fastest" in text.replace("\xa0", " ")


def test_own_runs_on_a_cpu_are_not_passed_over_in_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = {"origin": "published", "sweep": "study", "source_path": "data/published/study.csv", "run_dir": None}
    runs = [run_row("mine", **{**SHAPE, "accelerator": "CPU"}, mfu=None), run_row("theirs", **SHAPE, **others)]
    text = text_of(open_page(make_real_home(tmp_path / "home", runs=runs), monkeypatch, "explorer"))
    assert "Your <b>1 run is of no model and accelerator that can be estimated</b>; shown instead: published" in text
    assert "No run of this question was measured yet" not in text, "the published ones answer it"


def test_more_nodes_are_estimated_by_the_same_constants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("a", 2, "nanotron"), ("b", 2, "nanotron"), ("c", 4, "picotron")]
    runs = [
        run_row(name, **SHAPE, num_nodes=nodes, num_gpus=8 * nodes, framework=framework)
        for name, nodes, framework in rows
    ]
    home = make_real_home(tmp_path / "home", runs=runs)
    chosen = {
        nodes: next(
            box.value
            for box in open_page(home, monkeypatch, "explorer", nodes=nodes).selectbox
            if box.label == "Constants for"
        )
        for nodes in ("2", "4", "32")
    }
    assert chosen == dict.fromkeys(chosen, "nanotron")


def test_the_first_question_is_of_the_grid_that_overview_begins_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        *(run_row(f"more{mbs}", **SHAPE, num_nodes=1, num_gpus=8, dp=8, mbs=mbs, mfu=None) for mbs in (1, 2, 4)),
        *(
            run_row(f"known{mbs}", **{**SHAPE, "accelerator": "A100-SXM-80GB"}, num_nodes=4, mbs=mbs, mfu=0.3)
            for mbs in (1, 2)
        ),
    ]
    app = open_page(make_real_home(tmp_path / "home", runs=rows), monkeypatch, "explorer")
    boxes = {box.label: box.value for box in app.selectbox}
    assert (boxes["Accelerator"], boxes["Nodes"]) == ("A100-SXM-80GB", "4")


def test_the_table_says_the_same_memory_as_the_bars(home: Path) -> None:
    app = look_at(home, "explorer")
    fastest = app.dataframe[0].value.iloc[0]
    fits = re.search(r"~([0-9.,]+) GiB to spare", text_of(app).replace("\xa0", " "))
    assert fits
    assert fastest["Memory needed, GiB"] + float(fits[1]) == pytest.approx(79.65, abs=0.1)


def test_the_page_says_where_the_layout_has_to_change_and_by_which_ratios(home: Path) -> None:
    app = look_at(home, "explorer", part="switches")
    text = text_of(app).replace("\xa0", " ")
    assert any(box.label.startswith("The ratios that decide") for box in app.expander)
    assert re.search(r"Communication per step.*of which ~[0-9.]+ s exposed", text)
    assert "Where the layout has to change" in text
    assert re.search(r"keeps 90 % of its efficiency up to (all sizes tried, )?[0-9,]+ GPUs", text)
    points = [frame.value for frame in app.dataframe if "FLOPs per byte sent" in "".join(frame.value.columns)]
    assert points[0].shape[0] > 10  # the twin of both charts


def test_sliders_offer_what_can_be_launched_and_turn_the_answer(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_page(home, monkeypatch, "explorer", tp="8", pp="1", cp="1", zero_stage="1", mbs="1")
    sliders = {slider.label: slider for slider in app.select_slider}
    assert sliders["Tensor parallel (TP)"].options == ["1", "2", "4", "8", "16"]
    assert sliders["Pipeline (PP)"].options == ["1", "2"]
    assert "DP2 TP8 PP1 · GAS32 MBS1 · Z1" in text_of(app)
    assert "DP2 TP8 PP1 &lt;b&gt;: the same" in text_of(app)
    sliders["Tensor parallel (TP)"].set_value(4).run()
    assert not app.exception
    assert "DP4 TP4 PP1 · GAS16 MBS1 · Z1" in text_of(app)
    assert app.query_params["tp"] == "4"


def test_the_layout_nearest_by_comes_with_measured_and_estimated_mfu(home: Path) -> None:
    app = look_at(home, "explorer", tp="1", pp="1", cp="1", zero_stage="1", mbs="1", recompute="none")
    text = text_of(app).replace("\xa0", " ")
    assert "1 of the 2 runs of this model on this accelerator had exactly this layout." in text
    assert "35.0 % · ~51.3 %" in text  # 2.93 s measured over 2 s estimated, by the same FLOPs
    assert "run?run=near" in text


def test_knobs_that_cannot_be_launched_are_named(home: Path) -> None:
    text = text_of(look_at(home, "explorer", tp="5", mbs="x"))
    assert "taken from the fastest layout: Tensor parallel (TP)." in text


def test_a_question_of_the_address_is_asked(home: Path) -> None:
    app = look_at(home, "explorer", model="GPT-3 175B", card="A100-SXM-40GB", nodes="3", seq="2048")
    text = text_of(app).replace("\xa0", " ")
    assert "175B on 3 nodes fits</b>: the leanest of" in text
    assert "Does not fit" in text
    assert "24 A100-SXM-40GB, 8 per node · sequence 2,048" in text


def test_a_precision_is_asked_among_those_of_the_card(home: Path) -> None:
    four = look_at(home, "explorer", card="GB300", precision="fp4")
    (box,) = (box for box in four.selectbox if box.label == "Matrix products in")
    assert list(box.options) == ["16 bit", "FP8", "FP4"]
    assert "per node, FP4 · sequence" in text_of(four).replace("\xa0", " ")
    none = look_at(home, "explorer", card="A100-SXM-80GB", precision="fp4")
    (box,) = (box for box in none.selectbox if box.label == "Matrix products in")
    assert (list(box.options), box.value) == (["16 bit"], "bf16")


def test_a_shape_of_ones_own_is_estimated_or_refused(home: Path) -> None:
    own = text_of(look_at(home, "explorer", model="Custom shape", num_layers="16"))
    assert "a model of this shape should train fastest" in own
    refused = text_of(look_at(home, "explorer", model="Custom shape", num_heads="30"))
    assert "This shape cannot be estimated.</b> A width of 4096 cannot be shared by 30 heads." in refused


def test_without_runs_the_question_is_a_known_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = text_of(open_page(make_real_home(tmp_path / "home"), monkeypatch, "explorer")).replace("\xa0", " ")
    assert "On 8 nodes, Llama 3 8B should train fastest" in text
    assert "No run of it on this accelerator is in the store." in text


def test_published_runs_are_shown_of_a_model_that_was_not_run_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = run_row("own", **{**SHAPE, "model": "tiny-4M", "num_layers": 2, "accelerator": "CPU"})
    theirs = [{**row, "origin": "published", "sweep": "study"} for row in RUNS]
    home = make_real_home(tmp_path / "home", runs=[own, *theirs])
    text = text_of(open_page(home, monkeypatch, "explorer")).replace("\xa0", " ")
    assert "The best of 2 published runs reached 35.0 %" in text
    assert "Published runs like this" in text


def test_a_store_from_before_estimates_existed_still_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_real_home(tmp_path / "home", runs=RUNS, estimates=[estimate_row("near")])
    with duckdb.connect(str(home / "store" / "results-1.duckdb")) as con:
        con.sql("DROP VIEW estimator_residuals")
        con.sql("DROP TABLE estimates")
    text = text_of(open_page(home, monkeypatch, "explorer")).replace("\xa0", " ")
    assert "The best of 2 measured runs reached 35.0 %" in text


def test_what_to_run_next_is_proposed_over_the_measured_best(home: Path) -> None:
    app = look_at(home, "explorer")
    text = text_of(app).replace("\xa0", " ")
    assert "Run next" in text
    # two runs of one cell are too few for a spread, so the gain is that of the expected step time
    (proposals,) = [frame.value for frame in app.dataframe if "Why" in frame.value.columns]
    assert proposals["Expected gain, %"].iloc[0] > 0
    assert (proposals["Gain per GPU-hour, %"].diff().dropna() <= 1e-9).all()
    assert "A test is 20 steps" in text


def test_the_recipe_is_walked_with_the_stores_own_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layouts = [(16, 1, 4, 7000.0), (8, 2, 8, 6900.0), (4, 4, 16, 5000.0), (2, 8, 32, 4000.0), (1, 16, 64, 1000.0)]
    runs = [
        run_row(f"tp{tp}", **SHAPE, dp=dp, tp=tp, gas=gas, mbs=1, layout=f"DP{dp} TP{tp}", tokens_per_s_per_gpu=speed)
        for dp, tp, gas, speed in layouts
    ]
    home = make_real_home(tmp_path / "home", runs=runs)
    text = text_of(open_page(home, monkeypatch, "explorer", way_bottleneck="tp")).replace("\xa0", " ")
    assert "1 Fit in memory</h3>" in text
    assert "GPU-rich: 8.03B parameters are" in text
    rule = next(line for line in text.split("<li>") if line.startswith("<div>Keep TP inside a node"))
    # the fastest run keeps TP inside a node, and one of five layouts does not: chance hits four in five
    assert "held in 1 of 1 cell (chance: 80 %); held in this cell" in rule
    assert "run?run=tp1" in rule


def test_the_overview_names_what_to_run_next_and_leads_to_it(home: Path) -> None:
    text = text_of(look_at(home, "overview")).replace("\xa0", " ")
    found = re.search(r'href="(explorer\?model=Llama\+3\+8B[^"]*)"[^>]*>Llama 3 8B on 2 nodes: (DP[^<]*)</a>', text)
    assert found is not None
    address, layout = html.unescape(found[1]), found[2]
    query = dict(parse_qsl(address.partition("?")[2]))
    assert layout in text_of(look_at(home, "explorer", **query))


def test_another_branch_of_the_flowchart_has_its_own_rules(home: Path) -> None:
    own = text_of(look_at(home, "explorer", part="rules"))
    other = look_at(home, "explorer", way_memory="poor")
    assert "Short of memory: recompute all activations" not in own
    assert "Another branch than this question takes" not in own
    assert "Short of memory: recompute all activations" in text_of(other)
    assert "Another branch than this question takes" in text_of(other)
    assert not other.exception


def test_the_chart_of_scale_and_size_says_what_runs_answer(home: Path) -> None:
    text = text_of(look_at(home, "explorer", part="rules"))
    assert "Above 100B on fewer than 512 GPUs the slides have a question mark. No run of this store is there." in text
