"""The offline report: what it holds on stores large, small and empty, and that it loads nothing."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sweepscope.dashboard.report import write as report
from sweepscope.dashboard.report.build import Asked
from sweepscope.pipeline.errors import UsageError
from tests.dashboard.app_pages.grid_home import make_home as make_grid_home
from tests.dashboard.app_pages.grid_home import small_sweep
from tests.dashboard.store_rows import estimate_row, make_home, make_real_home, run_row

pytestmark = pytest.mark.slow


def written(home: Path, monkeypatch: pytest.MonkeyPatch, **asked: str) -> tuple[dict[str, Any], str]:
    monkeypatch.setenv("SWEEPSCOPE_HOME", str(home))
    out = home / "report.html"
    return report.write(out, Asked(**asked)), out.read_text(encoding="utf-8")


def keys(summary: dict[str, Any]) -> list[str]:
    return [part["section"] for part in summary["sections"]]


def test_the_demo_has_every_section_with_charts_and_queries(demo_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWEEPSCOPE_HOME", str(demo_home))
    out = demo_home.parent / "report.html"
    summary = report.write(out, Asked())
    assert keys(summary)[:2] == ["headline", "best_1"]
    assert keys(summary)[-4:] == ["scaling", "failures", "theory", "frontier"]
    for part in summary["sections"]:
        assert part["answer"]
        assert part["sql"]
        assert part["charts"] or part["section"] == "headline"
    text = out.read_text(encoding="utf-8")
    assert text.count("Plotly.newPlot") >= 1
    figures = json.loads(re.search(r'id="figures">(.*?)</script>', text)[1])  # type: ignore[index]  # it is there
    assert set(figures) == set(re.findall(r'<div id="(sweepscope-[^"]+)" role="img"', text))
    assert len(text) < 12 * 2**20


def test_nothing_is_loaded_from_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, text = written(make_grid_home(tmp_path / "home", small_sweep()), monkeypatch)
    own = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)  # plotly names addresses that it does not open
    assert not re.search(r"""(?:src|href)=["'](?!#|https?://arxiv)""", own)
    assert "default-src 'none'" in own


def test_a_small_sweep_has_its_grid_failures_and_queries_that_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary, text = written(make_grid_home(tmp_path / "home", small_sweep()), monkeypatch)
    assert keys(summary) == ["headline", "best_1", "scaling", "failures", "frontier"]
    assert "1 of 5 runs failed" in text.replace("\xa0", " ")
    import duckdb

    with duckdb.connect(str(tmp_path / "home/store/results.duckdb"), read_only=True) as con:
        for part in summary["sections"]:
            for sql in part["sql"].values():
                con.sql(sql).fetchall()


def test_names_from_logs_are_text_whatever_they_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evil = "</script><script>alert(1)</script>"
    home = make_real_home(
        tmp_path / "home", runs=[run_row("a1", model=evil), run_row("o1", status="oom", status_evidence=evil)]
    )
    _, text = written(home, monkeypatch)
    assert evil not in text
    assert html.escape(evil, quote=False) in text


def test_runs_without_a_cell_and_estimates_alone_make_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_real_home(
        tmp_path / "home", runs=[run_row("a1", model=None, num_nodes=None)], estimates=[estimate_row("a1")]
    )
    summary, _ = written(home, monkeypatch)
    assert {"headline", "failures", "theory"} <= set(keys(summary))


def test_an_empty_store_has_a_headline_and_no_charts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary, text = written(make_home(tmp_path / "home"), monkeypatch)
    assert keys(summary) == ["headline"]
    assert "Plotly" not in text


def test_a_sweep_or_origin_that_is_not_there_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_grid_home(tmp_path / "home", small_sweep())
    with pytest.raises(UsageError, match="no run of sweep nope"):
        written(home, monkeypatch, sweep="nope")
    with pytest.raises(UsageError, match="no run of origin published"):
        written(home, monkeypatch, origin="published")


def run(*args: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sweepscope", "report", *map(str, args)], capture_output=True, text=True, check=False
    )


def test_the_command_writes_the_file_and_says_what_is_in_it(tmp_path: Path) -> None:
    home, out = make_grid_home(tmp_path / "home", small_sweep()), tmp_path / "mine.html"
    done = run("--home", home, "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["report"] == str(out)
    assert json.loads(done.stdout)["bytes"] == out.stat().st_size


def test_the_command_names_what_is_wrong_in_one_line(tmp_path: Path) -> None:
    home = make_grid_home(tmp_path / "home", small_sweep())
    for args, code, words in (
        (("--home", tmp_path / "none", "--out", tmp_path / "a.html"), 1, "There is no store"),
        (("--home", home, "--out", tmp_path), 2, "is a directory"),
        (("--home", home, "--out", tmp_path / "none" / "a.html"), 1, "--out"),
        (("--home", home, "--out", tmp_path / "a.html", "--sweep", "nope"), 2, "no run of sweep nope"),
    ):
        done = run(*args)
        assert (done.returncode, done.stdout) == (code, "")
        assert words in done.stderr
        assert done.stderr.count("\n") == 1
