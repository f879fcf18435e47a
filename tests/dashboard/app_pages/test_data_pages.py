"""Frontier, Runs, run, SQL and Data health, each run headless over small stores."""

from __future__ import annotations

import html
import json
import math
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from streamlit.testing.v1 import AppTest

from sweepscope.dashboard.queries.reader import Answers
from sweepscope.dashboard.sandbox import turns
from sweepscope.dashboard.sandbox.run_query import QueryResult
from sweepscope.pipeline.errors import QueryError
from sweepscope.pipeline.io.sandbox import Stop
from tests.dashboard.store_rows import (
    best_row,
    event_row,
    file_row,
    frontier_row,
    make_home,
    make_real_home,
    reject_row,
    run_row,
    setting_row,
    step_rows,
)
from tests.paths import ROOT

APP = ROOT / "dashboard" / "streamlit_app.py"
PAGES = ("frontier", "runs", "run", "sql", "health")
Opener = Callable[..., AppTest]


def open_page(home: Path, monkeypatch: pytest.MonkeyPatch, name: str, /, **query: str) -> AppTest:
    monkeypatch.setenv("SWEEPSCOPE_HOME", str(home))
    app = AppTest.from_file(str(APP), default_timeout=120)
    app.switch_page(f"app_pages/{name}.py")
    for parameter, value in query.items():
        app.query_params[parameter] = value
    app.run()
    assert not app.exception, [one.message for one in app.exception]
    return app


_SHOWN: dict[tuple[object, ...], AppTest] = {}


def look_at(home: Path, name: str, /, **query: str) -> AppTest:
    """A page of a home that no test changes, for tests that only read the page: it is run once for all of them."""
    key = (home, name, *sorted(query.items()))
    if key not in _SHOWN:
        with pytest.MonkeyPatch.context() as patch:
            _SHOWN[key] = open_page(home, patch, name, **query)
    return _SHOWN[key]


def text_of(app: AppTest) -> str:
    """All HTML blocks of the page, the style sheet left out."""
    return "\n".join(block.body for block in app.get("html") if not block.body.startswith("<style>"))


def badges(app: AppTest) -> list[str]:
    """Origins of the rows on screen."""
    return re.findall(r'class="ss-badge (\w+)"', text_of(app))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows: dict[str, list[dict[str, Any]]] = {
        "runs": [
            run_row("a1"),
            run_row(
                "o1",
                status="oom",
                model="Llama 70B",
                mfu=None,
                step_time_s=None,
                tokens_per_s_per_gpu=None,
                status_evidence="CUDA out of memory",
                last_step=None,
                steps_logged=0,
            ),
            run_row(
                "p1",
                origin="published",
                run_dir=None,
                line_no=7,
                source_path="data/published/frontier.csv",
                steps_logged=None,
                last_step=None,
                first_step=None,
                steps_planned=None,
                sweep="frontier",
            ),
            run_row("s1", origin="simulated"),
        ],
        "steps": step_rows("a1"),
        "events": [
            event_row("a1", line_no=90),
            event_row("o1", kind="oom", line_no=12, text="CUDA out of memory <script>alert(1)</script>"),
        ],
        "settings": [
            setting_row("a1", name="mbs", value="5"),
            setting_row("a1", name="mbs", value="4", setting_source="folder_name", is_used=False, line_no=None),
        ],
        "files": [file_row(), file_row("/logs/x.bin", status="rejected", error="/logs/x.bin is a binary file.")],
        "rejects": [reject_row()],
        "published_runs": [
            {
                "run_id": "p1",
                "source_title": "A paper",
                "source_url": "https://example.org/paper",
                "line_no": 7,
                "source_path": "data/published/frontier.csv",
                "mfu_pct": 21.6,
                "notes": "Read from a chart.",
            }
        ],
        "frontier": [
            frontier_row("f1"),
            frontier_row("f2", model="BLOOM 176B", mfu=None, mfu_logged=None, hfu=0.48, num_gpus=384),
        ],
        "best_configs": [best_row("a1"), best_row("a2", num_gpus=64, mfu=0.1)],
        "ranked_layouts": [best_row("a1", rank_in_cell=1, repeats=1)],
    }
    return make_home(tmp_path_factory.mktemp("pages") / "home", **rows)


@pytest.fixture
def look(home: Path) -> Opener:
    return lambda name, /, **query: look_at(home, name, **query)


@pytest.fixture
def visit(home: Path, monkeypatch: pytest.MonkeyPatch) -> Opener:
    return lambda name, /, **query: open_page(home, monkeypatch, name, **query)


@pytest.mark.parametrize("page", PAGES)
def test_every_page_says_what_to_do_when_the_store_is_empty(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_page(make_home(tmp_path / "home"), monkeypatch, page)
    assert app.title[0].value
    assert "ss-answer" in text_of(app)


@pytest.mark.parametrize("page", PAGES)
def test_every_page_says_what_to_do_without_a_store(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_page(tmp_path / "none", monkeypatch, page)
    assert "sweepscope ingest" in app.code[0].value


def test_frontier_ranks_the_best_run_and_says_which_origin_it_is(look: Opener) -> None:
    shown = text_of(look("frontier"))
    assert "would rank 2 of 2 among comparable published runs" in shown
    assert "at <b>64 GPUs the best here is 10.0\xa0%.</b>" in shown
    assert 'class="ss-badge measured"' in shown


def test_runs_list_ones_own_and_lead_to_the_published_ones_but_not_to_simulated(look: Opener) -> None:
    app = look("runs", q="llama", page="2")
    assert badges(app) == ["measured"]
    shown = html.unescape(text_of(app))
    assert 'href="?q=llama&origins=published"' in shown, "the search goes along, the page number does not"
    assert "simulated results" not in shown


def test_runs_of_several_origins_are_counted_together_by_choice(visit: Opener) -> None:
    app = visit("runs", origins="published")
    app.multiselect(key="url_origins").select("measured").run()
    assert set(app.dataframe[0].value["Origin"]) == {"measured", "published"}
    assert "<b>2 of 3 runs completed.</b>" in text_of(app)


def test_a_list_shows_each_layout_whole_however_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Left alone, a table measures its first rows and cuts the longer ones below."""
    long = "DP64 TP8 PP16 VPP4 CP2 EP8 · GAS128 MBS2 · Z1 in 8 copies"
    rows = [*(run_row(f"a{place}") for place in range(20)), run_row("last", layout=long, mfu=0.001)]
    home = make_home(tmp_path / "long", runs=rows)
    (shown,) = open_page(home, monkeypatch, "runs").dataframe
    assert json.loads(shown.proto.columns)["Layout"]["width"] >= 5.5 * len(long)


def test_a_list_of_one_origin_leaves_the_column_out_because_the_badge_says_it(look: Opener) -> None:
    app = look("runs")
    assert "Origin" not in app.dataframe[0].value.columns
    assert badges(app) == ["measured"]


def test_a_list_notes_what_keeps_an_mfu_from_being_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = run_row("b", mfu=None, mfu_basis="not computed: accelerator unknown")
    home = make_home(tmp_path / "noted", runs=[run_row("a"), missing])
    (shown,) = open_page(home, monkeypatch, "runs").dataframe
    assert shown.value["Note on MFU"].dropna().to_list() == ["accelerator unknown"]
    plain = make_home(tmp_path / "plain", runs=[run_row("a")])
    (shown,) = open_page(plain, monkeypatch, "runs").dataframe
    assert "Note on MFU" not in shown.value.columns


def test_only_a_list_with_published_rows_speaks_of_repeated_ones(look: Opener) -> None:
    assert "left out" not in text_of(look("runs"))


def test_run_page_shortens_lines_that_nobody_reads_to_their_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = f"launcher --config {'x' * 5000} --end"
    home = make_home(tmp_path / "home", runs=[run_row("r")], events=[event_row("r", kind="launch", text=line)])
    shown = text_of(open_page(home, monkeypatch, "run", run="r"))
    assert "launcher --config" in shown
    assert "--end" in shown
    assert "letters…" in shown
    assert "x" * 1000 not in shown


def test_runs_follow_the_origin_that_other_pages_show(look: Opener) -> None:
    assert badges(look("runs", origin="published")) == ["published"]


def test_runs_show_simulated_rows_to_whoever_asks_for_them(look: Opener) -> None:
    assert badges(look("runs", origins="simulated")) == ["simulated"]


def test_runs_are_searched_in_fields_and_in_evidence(look: Opener) -> None:
    app = look("runs", q="70b alert(1)")
    assert app.dataframe[0].value["Status"].to_list() == ["▲ OOM"]
    assert "<b>1 of 2 runs matches</b>; it did not complete." in text_of(app)


def test_runs_that_match_nothing_offer_to_clear_the_search(visit: Opener) -> None:
    app = visit("runs", q="nothing has this", statuses="oom")
    assert "<b>No run matches.</b>" in text_of(app)
    next(button for button in app.button if button.label == "Clear search and filters").click().run()
    assert "<b>1 of 2 runs completed.</b>" in text_of(app)
    assert "statuses" not in app.query_params


@pytest.mark.parametrize("query", [{"page": "99"}, {"page": "x"}, {"node_counts": "many"}, {"sort": "nope"}])
def test_runs_survive_an_address_that_means_nothing(look: Opener, query: dict[str, str]) -> None:
    assert len(look("runs", **query).dataframe[0].value) == 2


def test_a_status_facet_keeps_its_key_in_the_address(visit: Opener) -> None:
    app = visit("runs")
    app.multiselect(key="url_statuses").select("oom").run()
    assert app.query_params["statuses"] == "oom"
    assert len(app.dataframe[0].value) == 1


def test_runs_open_in_pages_whatever_their_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_home(tmp_path / "home", runs=[run_row(f"r{place:03d}", mfu=place / 1000) for place in range(230)])
    app = open_page(home, monkeypatch, "runs", page="3")
    assert len(app.dataframe[0].value) == 30
    assert "Rows 201 to 230 of 230." in text_of(app)


def test_run_page_shows_outcome_evidence_curve_and_contradictions(look: Opener) -> None:
    app = look("run", run="a1")
    shown = text_of(app)
    assert app.title[0].value == "Llama 8B · 16 × MI300X"
    assert "<b>Completed all 10 steps</b> at 2.93\xa0s a step and 21.6\xa0% MFU." in shown
    assert "✓ completed" in shown
    assert "folder name says 4" in shown
    assert len(app.get("plotly_chart")) == 1


def test_run_page_has_the_overlap_checklist(look: Opener) -> None:
    shown = text_of(look("run", run="a1"))
    assert "Overlap checklist" in shown
    for word in ("✓ holds", "? not stated"):
        assert word in shown
    assert "The ratios that decide" in shown


def test_run_page_never_reads_a_log_line_as_html(look: Opener) -> None:
    shown = text_of(look("run", run="o1"))
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "<script>" not in shown
    assert "<b>Ran out of GPU memory</b> before its first logged step." in shown


def test_run_page_of_a_published_row_links_its_source(look: Opener) -> None:
    shown = text_of(look("run", run="p1"))
    assert 'href="https://example.org/paper"' in shown
    assert "Read from a chart." in shown
    assert "data/published/frontier.csv, line 7" in shown


def test_run_page_of_an_unknown_run_says_so(look: Opener) -> None:
    assert "This store has no run &lt;b&gt;x." in text_of(look("run", run="<b>x"))


ODD = {"infinite": float("inf"), "undefined": float("nan"), "huge": 1e308, "negative": -1e308}


def test_a_run_whose_figures_no_axis_can_hold_has_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loss is infinite or NaN in every run that diverges in half precision."""
    steps = [
        row
        | {"loss": value if step > 1 else row["loss"]}
        | ({"step_time_s": abs(value)} if math.isfinite(value) else {})
        for name, value in ODD.items()
        for step, row in enumerate(step_rows(name))
    ]
    runs = [
        run_row(name, last_loss=value, step_time_s=1e308, tokens_per_s_per_gpu=1e308) for name, value in ODD.items()
    ]
    home = make_real_home(tmp_path / "home", runs=runs, steps=steps)
    for name in ODD:
        for measure in ("time", "loss"):
            app = open_page(home, monkeypatch, "run", run=name, measure=measure)
            assert not re.search(r"\d[\d,]{40}", text_of(app)), "hundreds of digits"
    for page in ("overview", "best", "runs"):
        open_page(home, monkeypatch, page)


def test_sql_answers_the_first_question_and_runs_what_is_typed(visit: Opener) -> None:
    app = visit("sql")
    assert "<b>2 rows</b>" in text_of(app)
    app.text_area(key="sql_text").set_value("SELECT count(*) AS n FROM runs")
    app.button[0].click().run()
    assert app.dataframe[0].value["n"].to_list() == [4]
    assert app.query_params["sql"] == "SELECT count(*) AS n FROM runs"


def test_sql_shows_an_error_in_words_and_keeps_the_text(visit: Opener) -> None:
    app = visit("sql")
    app.text_area(key="sql_text").set_value("DROP TABLE runs")
    app.button[0].click().run()
    assert "Only a query that reads can run here" in text_of(app)
    assert app.text_area(key="sql_text").value == "DROP TABLE runs"


def test_sql_shows_a_slow_query_and_the_place_in_the_queue_and_cancels_either(
    visit: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = visit("sql")
    monkeypatch.setattr(turns, "PATIENCE_S", 0.0)
    others = [turns.TURNS.take(f"other {n}", _wait_for) for n in range(turns.TURNS.slots + 1)]
    app.text_area(key="sql_text").set_value("SELECT count(*) FROM range(1000000000000)")
    app.button[0].click().run()
    assert "<b>Waiting, number 2 in the queue.</b>" in text_of(app)
    app.button(key="sql_cancel").click().run()
    assert "The query was cancelled" in text_of(app)
    turns.TURNS.cancel(others[-1])
    turns.TURNS.cancel(others[0])
    app.button[0].click().run()
    assert "<b>Running</b> for" in text_of(app)
    app.button(key="sql_cancel").click().run()
    monkeypatch.setattr(turns, "PATIENCE_S", 60.0)
    while "The query was cancelled" not in text_of(app):
        app.run()
    app.text_area(key="sql_text").set_value("SELECT 1 AS one")
    app.button[0].click().run()
    assert app.dataframe[0].value["one"].to_list() == [1]
    for other in others:
        turns.TURNS.cancel(other)


def _wait_for(stop: Stop) -> QueryResult:
    while not stop.is_asked:
        time.sleep(0.01)
    raise QueryError("ended")


def test_sql_from_a_link_waits_to_be_run(look: Opener) -> None:
    app = look("sql", sql="SELECT 42 AS n")
    assert app.text_area(key="sql_text").value == "SELECT 42 AS n"
    assert "This query came with the link." in text_of(app)
    assert not app.dataframe


def test_sql_picking_a_question_runs_it(visit: Opener) -> None:
    app = visit("sql")
    app.selectbox(key="url_question").select("rejects").run()
    assert app.dataframe[0].value["reason"].to_list() == ["looks like a metric line but did not parse"]
    assert app.query_params["question"] == "rejects"


def test_sql_dictionary_shows_the_comments_of_the_chosen_table(look: Opener) -> None:
    shown = text_of(look("sql", table="rejects"))
    assert "why it was rejected" in shown


def test_health_names_what_was_not_read_and_the_remedy(look: Opener) -> None:
    app = look("health")
    shown = text_of(app)
    assert "<b>1 of 2 files were read to their end.</b>" in shown
    assert "1 line or row went to rejects" in shown
    files = app.dataframe[0].value
    assert files["Status"].to_list() == ["✕ rejected", "✓ parsed"]
    assert files["Reason"].to_list()[0] == "… is a binary file."
    assert "<b>What to do.</b> The step is missing from the medians. A new framework version may print it" in shown
    assert "version 1" in shown


def test_health_shows_what_logs_of_no_known_format_were_taken_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = run_row("h1", source_path="/logs/hobby.log", parser="inferred", gbs=None, gbs_tokens=None, num_gpus=None)
    column = {"source_path": "/logs/hobby.log", "line_no": 3, "example": "it 5 ce=2.31 q=9", "grounds": "named 'ce'"}
    guesses = [
        column | {"column_name": "loss", "field": "ce={loss}", "confidence": "medium", "is_read": True},
        column | {"column_name": "step", "field": "it {step}", "confidence": "high", "is_read": True},
        column | {"column_name": "learning_rate", "field": "q={learning_rate}", "confidence": "low", "is_read": False},
    ]
    home = make_home(tmp_path / "home", runs=[unknown], inferred_columns=guesses, files=[file_row("/logs/hobby.log")])
    app = open_page(home, monkeypatch, "health")
    shown = text_of(app)
    assert "<b>1 log in no known format was read by inference.</b> Found: loss, step." in shown
    assert "Not found, so that these runs are compared less: global batch, number of GPUs." in shown
    assert "A dialect reads the steps of /logs/hobby.log and logs like it" in shown
    tables = [table.value for table in app.dataframe]
    place = next(at for at, table in enumerate(tables) if "In doubt" in table.columns)
    logs, columns = tables[place : place + 2]
    assert logs["In doubt"].to_list() == ["learning rate"]
    assert columns["Printed as"].to_list() == ["ce={loss}", "it {step}", "q={learning_rate}"]
    assert columns["Example"].to_list()[0] == "it 5 ce=2.31 q=9"


def test_a_second_visit_asks_the_store_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_real_home(tmp_path / "home", runs=[run_row("a"), run_row("b", status="oom")])
    asked: list[object] = []
    keep = Answers.keep

    def counted(answers: Answers, question: object, frame: pl.DataFrame, took_s: float) -> None:
        asked.append(question)
        keep(answers, question, frame, took_s)

    monkeypatch.setattr(Answers, "keep", counted)
    first = text_of(open_page(home, monkeypatch, "failures"))
    assert len(asked) > 5
    assert len(set(asked)) == len(asked)
    asked.clear()
    assert text_of(open_page(home, monkeypatch, "failures")) == first
    assert asked == []
