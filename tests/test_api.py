"""The interface for notebooks: answers of a small store and of the estimator, errors, the documented notebook."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import polars as pl
import pytest

import sweepscope as ss
from sweepscope.pipeline.errors import NoStoreError, QueryError, UsageError
from tests.dashboard.app_pages.grid_home import make_home, small_sweep
from tests.paths import ROOT

pytestmark = pytest.mark.slow

ASKED: dict[str, Any] = {
    "model": "Llama 3 8B",
    "accelerator": "H100-SXM-80GB",
    "nodes": 1,
    "seq_len": 4096,
    "gbs_tokens": 262_144,
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> ss.Store:
    return ss.open(make_home(tmp_path_factory.mktemp("api") / "home", small_sweep()))


def test_best_configurations_are_the_winners_of_the_view(store: ss.Store) -> None:
    best = store.best_configs()
    assert best.select("num_nodes", "tp", "runner_up_layout").rows()[0][:2] == (1, 1)
    assert best.equals(store.sql("SELECT * FROM best_configs ORDER BY num_nodes"))
    assert store.best_configs(model=best["model"][0], nodes=2)["tokens_per_s_per_gpu"].to_list() == [36_000.0]


def test_runs_are_chosen_by_value(store: ss.Store) -> None:
    assert set(store.runs()["run_id"]) == {"a", "b", "c", "d", "e"}
    assert store.runs(status="oom")["run_id"].to_list() == ["e"]


def test_values_that_no_row_has_together_give_no_rows(store: ss.Store) -> None:
    assert store.runs(status="oom", nodes=1).is_empty()


def test_a_value_that_no_row_has_is_an_error_with_near_ones(store: ss.Store) -> None:
    model = store.runs()["model"][0]
    with pytest.raises(UsageError, match=re.escape(model)):
        store.best_configs(model=model[:-1])
    with pytest.raises(UsageError, match=r"no row of nodes 3.*1"):
        store.runs(nodes=3)


def test_sql_binds_values_and_only_reads(store: ss.Store) -> None:
    evil = "x' OR true --"
    assert store.sql("SELECT * FROM runs WHERE model = $model", {"model": evil}).is_empty()
    with pytest.raises(QueryError):
        store.sql("DELETE FROM runs")
    with pytest.raises(QueryError):
        store.sql("SELECT * FROM read_csv('/etc/passwd')")
    with pytest.raises(QueryError):
        store.sql("SELECT $missing FROM runs", {"other": 1})


def test_a_home_without_a_store_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoStoreError, match="sweepscope ingest"):
        ss.open(tmp_path)


def test_estimates_take_one_configuration_several_or_a_frame() -> None:
    row = {"model": "Llama 3 8B", "accelerator": "H100-SXM-80GB", "num_nodes": 1, "num_gpus": 8, "seq_len": 4096}
    row |= {"dp": 8, "mbs": 1, "gas": 8, "zero_stage": 3}
    one = ss.estimate(row)
    assert one["est_status"].to_list() == ["ok"]
    assert one.equals(ss.estimate([row]))
    assert one.equals(ss.estimate(pl.DataFrame([row])))
    unknown = ss.estimate([row, {**row, "accelerator": "no such card"}])
    assert unknown["est_status"][0] == "ok"
    assert unknown["est_step_time_s"][1] is None
    assert unknown["est_status"][1]


def test_a_search_is_that_of_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    from sweepscope.pipeline.__main__ import main

    found = ss.search(**ASKED, top=3)
    options = [part for name, value in ASKED.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    assert main(["search", *options, "--top", "3", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert found.fitting == printed["fitting"]
    keys = ["dp", "tp", "pp", "mbs", "gas", "zero_stage", "recompute"]
    assert found.layouts.select(keys).rows() == [tuple(row[key] for key in keys) for row in printed["layouts"]]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"model": "no such model"}, "Unknown model"),
        ({"gbs_tokens": 5}, "gbs_tokens 5 is no multiple of seq_len"),
        ({"bogus": 1}, "no option bogus"),
        ({"rank": "best"}, "rank is auto"),
        ({"nodes": 0}, "nodes must be at least 1"),
    ],
)
def test_wrong_arguments_of_a_search_are_named_as_in_python(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ss.search(**{**ASKED, **wrong})


def test_figures_show_the_grid_with_a_title(store: ss.Store) -> None:
    figure = ss.plot.heatmap(store)
    assert isinstance(figure, go.Figure)
    assert figure.layout.title.text.startswith("MFU: ")
    texts = [note.text for note in figure.layout.annotations]
    assert any("OOM" in text for text in texts)
    assert ss.plot.scaling(store).data
    assert ss.plot.heatmap(store, metric="throughput").layout.title.text.startswith("Tokens/s/GPU")


def test_a_chart_of_what_is_not_there_is_refused(store: ss.Store) -> None:
    with pytest.raises(UsageError, match="seq_len 77"):
        ss.plot.heatmap(store, seq_len=77)
    with pytest.raises(UsageError, match="no metric"):
        ss.plot.heatmap(store, metric="speed")


def test_importing_the_package_imports_nothing_else() -> None:
    program = "import sys, sweepscope; print(sorted(m for m in ('polars', 'duckdb', 'plotly') if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    with pytest.raises(AttributeError, match="it has Store, estimate, open, plot, search"):
        _ = ss.nothing


def test_the_notebook_runs_on_the_demo(demo_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells run in order in one namespace, as a kernel runs them; the value of the last line is what a cell shows."""
    monkeypatch.setenv("SWEEPSCOPE_HOME", str(demo_home))
    notebook = json.loads((ROOT / "docs" / "notebook.ipynb").read_text(encoding="utf-8"))
    names: dict[str, Any] = {}
    shown = []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == [], "results are not kept in the file"
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop()
        assert isinstance(last, ast.Expr), "every cell shows something"
        exec(compile(tree, "notebook", "exec"), names)  # noqa: S102 -- a file of this repository
        shown.append(eval(compile(ast.Expression(last.value), "notebook", "eval"), names))  # noqa: S307 -- the same
    frames = [value for value in shown if isinstance(value, pl.DataFrame)]
    assert len(frames) == 5
    assert not any(frame.is_empty() for frame in frames)
    assert sum(isinstance(value, go.Figure) for value in shown) == 2


def test_the_example_of_the_document_runs(demo_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWEEPSCOPE_HOME", str(demo_home))
    text = (ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8")
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, "notebooks.md", "exec"), {})  # noqa: S102 -- a file of this repository
    documented = set(re.findall(r"^\| `(?:ss|store)\.([a-z_.]+)\(", text, re.MULTILINE))
    public = {name for name in vars(ss.Store) if not name.startswith("_") and callable(getattr(ss.Store, name))}
    assert documented == {"open", "estimate", "search", "plot.heatmap", "plot.scaling", *public}
