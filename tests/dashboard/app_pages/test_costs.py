"""Dollars per million tokens wherever throughput stands, and the energy of a run, on the pages."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from sweepscope.dashboard.app import editing
from sweepscope.dashboard.report import write as report
from sweepscope.dashboard.report.build import Asked
from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.inspection import keep_prices
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from sweepscope.pipeline.store.publish import publish
from tests.dashboard.app_pages.test_data_pages import look_at, open_page, text_of
from tests.dashboard.store_rows import make_real_home, run_row
from tests.pipeline.store.lake_rows import accelerators, together, unit

START = datetime(2026, 11, 20, 22, 41)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    larger = {"num_nodes": 4, "num_gpus": 32, "dp": 32, "gas": 1, "layout": "DP32 TP1 PP1 · GAS1 MBS5 · Z1"}
    rows = {
        "prices": [{"accelerator": "MI300X", "usd_per_gpu_hour": 2.0}],
        "runs": [
            run_row("a1", tokens_per_s_per_gpu=5000.0, gpu_hours=8.0),
            run_row("b1", tokens_per_s_per_gpu=4000.0, gpu_hours=16.0, **larger),
            run_row("dead", status="crash", tokens_per_s_per_gpu=None, mfu=None, gpu_hours=4.0),
        ],
        "gpu_samples": [
            {
                "source_path": "/logs/a1/smi.csv",
                "run_dir": "/logs/a1",
                "line_no": 2 + minute,
                "gpu_index": 0,
                "ts": START + timedelta(minutes=minute),
                "power_w": 500.0,
                "gpu_utilisation": 0.9,
            }
            for minute in range(5)
        ],
    }
    return make_real_home(tmp_path_factory.mktemp("costs") / "home", **rows)


def plain(home: Path, page: str, **query: str) -> str:
    return text_of(look_at(home, page, **query)).replace("\xa0", " ")


def test_best_configurations_has_it_as_a_metric_and_a_fact(home: Path) -> None:
    app = look_at(home, "best", metric="cost")
    assert "$0.111 per million tokens at $2.00 per GPU-hour" in text_of(app).replace("\xa0", " ")
    (metric,) = [box for box in app.selectbox if box.label == "Metric"]
    assert metric.value == "cost"
    assert not app.exception


def test_scaling_tells_what_tokens_cost_as_nodes_are_added(home: Path) -> None:
    sentence = "From 2 to 4 nodes a million tokens of Llama 8B go from $0.111 to $0.139, an hour from $32.00 to $64.00."
    assert sentence in plain(home, "scaling")
    assert sentence in plain(home, "scaling", baseline="2")
    by_strategy = plain(home, "scaling", lines="Llama 8B")
    assert re.search(r"a million tokens of Llama 8B with [A-Z+]+ go from \$0\.111 to \$0\.139", by_strategy)


def test_the_chosen_metric_is_that_of_headline_panel_and_ranking(home: Path) -> None:
    text = plain(home, "best", metric="cost", model="Llama 8B", nodes="2")
    assert "A million tokens cost <b>$0.111</b>." in text
    assert '<p class="ss-big">$0.111 <small>per million tokens</small></p>' in text
    assert "$ per million tokens; grey: how much faster the winner is; line: 95 % interval" in text
    by_speed = plain(home, "best", metric="throughput", model="Llama 8B", nodes="2")
    assert "A million tokens cost" not in by_speed
    assert "$ per million tokens; grey" not in by_speed


def test_scaling_draws_what_tokens_cost_where_it_is_chosen(home: Path) -> None:
    text = plain(home, "scaling", show="cost")
    assert text.index("From 2 to 4 nodes a million tokens of Llama 8B go from $0.111 to $0.139,") < text.index("keeps")
    assert "$ per million tokens of the best layout" in text
    chart = json.loads(look_at(home, "scaling", show="cost").get("plotly_chart")[0].proto.spec)
    (line,) = [trace for trace in chart["data"] if trace.get("name") == "Llama 8B"]
    assert line["y"] == pytest.approx([2.0 / 3600 / 5000 * 1e6, 2.0 / 3600 / 4000 * 1e6])
    assert any("$0.139" in note["text"] for note in chart["layout"]["annotations"])


def test_without_a_price_dollars_are_not_offered(tmp_path: Path) -> None:
    home = make_real_home(tmp_path / "home", runs=[run_row("a1"), run_row("a2", num_nodes=4, num_gpus=32, dp=32)])
    for page, label in (("best", "Metric"), ("scaling", "Show")):
        (box,) = [box for box in look_at(home, page).selectbox if box.label == label]
        assert "$ per million tokens" not in box.options


def test_a_run_has_its_dollars_and_its_energy(home: Path) -> None:
    text = plain(home, "run", run="a1")
    assert "<b>$16.00, $0.111 per million tokens</b> at $2.00 per GPU-hour" in text
    assert "scaled from 1 GPU" in text
    assert "<b>10.0</b>, 0.0278 kWh per million; 500 W per GPU while it computed" in text


def test_runs_are_sorted_by_price(home: Path) -> None:
    app = look_at(home, "runs", sort="cost")
    (table,) = [frame.value for frame in app.dataframe]
    assert table["$ per million tokens"].round(3).to_list()[:2] == [0.111, 0.139]


def test_compare_has_a_row(home: Path) -> None:
    assert "$ per million tokens" in plain(home, "compare", runs="a1,b1")


def test_failures_cost_dollars(home: Path) -> None:
    text = plain(home, "failures")
    assert "$56.00" in text
    assert "$8.00" in text


def test_overview_and_the_report_have_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = look_at(home, "overview").dataframe[0].value
    assert own["$ per million tokens"].round(3).to_list() == [0.111, 0.139]
    monkeypatch.setenv("SWEEPSCOPE_HOME", str(home))
    out = home.parent / "report.html"
    report.write(out, Asked())
    assert "$ per million tokens" in out.read_text(encoding="utf-8")


def test_prices_are_changed_where_they_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home.resolve(str(tmp_path / "home"))
    Lake(home).commit(together([unit("a", accelerator="H100-SXM-80GB"), accelerators("H100-SXM-80GB")]))
    publish(home)
    monkeypatch.setenv(editing.VARIABLE, "1")
    app = look_at(home.path, "failures")
    assert not app.exception
    assert "set for none of 1 accelerator" in next(box.label for box in app.expander if box.label.startswith("Prices"))
    assert keep_prices.keep(home.path, {"H100-SXM-80GB": 4.0}) == 1
    assert "at $4.00 per GPU-hour" in plain(home.path, "best", metric="cost")
    assert keep_prices.keep(home.path, {"H100-SXM-80GB": 4.0}) == 0
    assert keep_prices.keep(home.path, {"H100-SXM-80GB": None}) == 1
    assert "per GPU-hour" not in plain(home.path, "best")
    with pytest.raises(UsageError, match="above 0"):
        keep_prices.keep(home.path, {"H100-SXM-80GB": -1.0})


@pytest.mark.parametrize("page", ["scaling", "best"])
def test_a_price_is_set_on_the_page_that_misses_it(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store without prices is no dead end for a question about dollars: the page itself takes the price."""
    home = Home.resolve(str(tmp_path / "home"))
    larger = {"num_nodes": 4, "num_gpus": 32, "dp": 32, "tokens_per_s_per_gpu": 6_000.0}
    h100 = "H100-SXM-80GB"
    runs = [unit("a", accelerator=h100), unit("b", accelerator=h100, **larger), accelerators(h100)]
    Lake(home).commit(together(runs))
    publish(home)
    monkeypatch.setenv("SWEEPSCOPE_HOME", str(home.path))
    assert f"sweepscope price set {h100} 2.50" in " ".join(code.value for code in look_at(home.path, page).code)
    monkeypatch.setenv(editing.VARIABLE, "1")
    app = open_page(home.path, monkeypatch, page)
    (field,) = app.number_input
    assert (field.label, field.value) == ("$ per GPU-hour", None)
    app = field.set_value(2.5).run()
    assert not app.exception
    assert "1 price kept." in text_of(app)
    if page == "scaling":
        assert "an hour from $20.00 to $80.00" in text_of(app).replace("\xa0", " ")
    (field,) = app.number_input
    assert field.value == 2.5


def test_runs_of_an_unnamed_accelerator_lead_to_where_it_is_stated(tmp_path: Path) -> None:
    home = make_real_home(tmp_path / "home", runs=[run_row("a1", accelerator=None)])
    assert "do not name their accelerator" in plain(home, "scaling")
    assert 'href="health"' in plain(home, "scaling")
