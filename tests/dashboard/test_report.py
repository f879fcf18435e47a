"""The offline report: what it holds on stores large, small and empty, and that it loads nothing."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from sweepscope.dashboard.report import write as report
from sweepscope.dashboard.report.build import Asked
from sweepscope.pipeline.errors import UsageError
from tests.dashboard.app_pages.grid_home import make_home as make_grid_home
from tests.dashboard.app_pages.grid_home import run as grid_run
from tests.dashboard.app_pages.grid_home import small_sweep
from tests.dashboard.store_rows import Row, estimate_row, make_home, make_real_home, run_row

pytestmark = pytest.mark.slow


def written(
    home: Path, monkeypatch: pytest.MonkeyPatch, form: str = "html", **asked: Any
) -> tuple[dict[str, Any], str]:
    monkeypatch.setenv("SWEEPSCOPE_HOME", str(home))
    out = home / f"report.{form}"
    return report.write(out, Asked(**asked), form=form), out.read_text(encoding="utf-8")


def keys(summary: dict[str, Any]) -> list[str]:
    return [part["section"] for part in summary["sections"]]


def test_the_demo_has_every_section_with_charts_and_queries(demo_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWEEPSCOPE_HOME", str(demo_home))
    out = demo_home.parent / "report.html"
    summary = report.write(out, Asked())
    assert keys(summary)[:3] == ["question", "headline", "best_1"]
    assert keys(summary)[-5:] == ["scaling", "failures", "theory", "frontier", "next"]
    for part in summary["sections"]:
        assert part["answer"]
        assert part["sql"]
        assert part["charts"] or part["section"] in ("question", "headline", "next")
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
    assert keys(summary) == ["question", "headline", "best_1", "scaling", "failures", "frontier"]
    assert "1 of 5 runs failed" in text.replace("\xa0", " ")
    import duckdb

    with duckdb.connect(str(tmp_path / "home/store/results.duckdb"), read_only=True) as con:
        for part in summary["sections"]:
            for sql in part["sql"].values():
                con.sql(sql).fetchall()


def test_the_question_is_what_the_runs_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary, _ = written(make_grid_home(tmp_path / "home", small_sweep()), monkeypatch)
    asked = summary["sections"][0]["answer"]
    assert asked.startswith("Which layout trains ")
    assert "on 1 to 4 nodes of H100" in asked
    assert asked.endswith("tried in 5 runs, of which 4 completed.")


def test_runs_outside_of_the_chosen_grid_are_in_the_headline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two_batches = [grid_run("a"), grid_run("b", 2), grid_run("c", gbs_tokens=8_388_608)]
    summary, _ = written(make_grid_home(tmp_path / "home", two_batches), monkeypatch)
    assert summary["sections"][1]["answer"].startswith("3 completed runs of 1 model")


def test_runs_of_ones_own_come_before_a_grid_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {**grid_run("a"), "seq_len": None, "gbs_tokens": None}
    others = [grid_run(f"p{nodes}", nodes, origin="published", sweep="a study") for nodes in (1, 2, 4)]
    home = make_grid_home(tmp_path / "home", [own, *others])
    summary, text = written(home, monkeypatch)
    question, headline = summary["sections"][:2]
    assert "1 layout was tried in 1 run" in question["answer"]
    assert headline["answer"].startswith("1 completed run of 1 model on up to 8 GPUs")
    assert "To be ranked it lacks" in text
    (frontier,) = [part for part in summary["sections"] if part["section"] == "frontier"]
    assert "no completed run of its own" not in frontier["answer"]
    asked, _ = written(home, monkeypatch, origin="published")
    assert "best_1" in keys(asked)


def dated_sweep() -> list[Row]:
    """A cell whose lead changed in the second week, a first result, a failure, and a run without a time."""
    week = {"started_at": datetime(2026, 11, 10), "ended_at": datetime(2026, 11, 10, 1), "gpu_hours": 8.0}
    later = {"started_at": datetime(2026, 11, 18), "ended_at": datetime(2026, 11, 18, 1), "gpu_hours": 8.0}
    return [
        grid_run("a", speed=30_000.0, **week),
        grid_run("b", tp=2, speed=40_000.0, **later),
        grid_run("c", 2, speed=36_000.0, **later),
        grid_run("d", 4, speed=None, **later),
        grid_run("e", 4, tp=2, speed=None, **week),
        grid_run("f", 4, tp=4, speed=None, started_at=None, ended_at=None),
    ]


def test_a_report_since_a_day_begins_with_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_grid_home(tmp_path / "home", dated_sweep())
    summary, text = written(home, monkeypatch, "md", since=date(2026, 11, 17))
    assert keys(summary)[:3] == ["question", "recent", "headline"]
    recent = summary["sections"][1]["answer"]
    assert "3 runs, of which 2 completed and 1 failed" in recent
    assert "which took 8.0 GPU-hours" in recent
    assert "1 cell has a new fastest layout and 1 cell has a first result" in recent
    assert "1 run without a time in the log was not counted" in text
    quiet, _ = written(home, monkeypatch, since=date(2026, 11, 20))
    assert "No run that logs a time has ended since 20 Nov 2026" in quiet["sections"][1]["answer"]


def test_markdown_has_the_same_answers_and_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_grid_home(tmp_path / "home", small_sweep())
    summary, text = written(home, monkeypatch, "md")
    pages, _ = written(home, monkeypatch)
    assert summary["sections"] == pages["sections"]
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == [part["title"] for part in summary["sections"]]
    blocks = re.findall(r"^```sql\n(.*?)\n```$", text, re.MULTILINE | re.DOTALL)
    assert blocks == [sql for part in summary["sections"] for sql in part["sql"].values()]
    for table in re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE):
        cells = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(cells) == 1, table


def test_names_from_logs_are_no_markdown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evil = "a | b](javascript:x) **<img>**\n# c `d`"
    home = make_real_home(
        tmp_path / "home", runs=[run_row("a1", model=evil), run_row("o1", status="oom", status_evidence=evil)]
    )
    _, text = written(home, monkeypatch, "md")
    prose = re.sub(r"^```sql\n.*?\n```$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert "\\](javascript:x)" in prose
    assert not re.search(r"(?<!\\)\]\(", prose)
    assert not re.search(r"(?<!\\)<img", prose)
    assert "\n# c" not in prose


def test_untried_layouts_with_a_gain_are_proposed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of measured runs that are slow for what physics allows, in a cell with enough of them."""
    rows = [grid_run(name, tp=tp, speed=20_000.0 / tp) for name, tp in (("a", 2), ("b", 4), ("c", 8))]
    summary, text = written(make_grid_home(tmp_path / "home", rows), monkeypatch, "md")
    last = summary["sections"][-1]
    assert last["section"] == "next"
    assert "promises most per GPU-hour" in last["answer"]
    assert "Untried layouts" in text


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
    mail = tmp_path / "weekly.md"
    done = run("--home", home, "--out", mail, "--since", "7d")
    assert done.returncode == 0, done.stderr
    assert mail.read_text(encoding="utf-8").startswith("# sweepscope report\n")
    assert "Since " in done.stdout


def test_the_command_names_what_is_wrong_in_one_line(tmp_path: Path) -> None:
    home = make_grid_home(tmp_path / "home", small_sweep())
    for args, code, words in (
        (("--home", tmp_path / "none", "--out", tmp_path / "a.html"), 1, "There is no store"),
        (("--home", home, "--out", tmp_path), 2, "is a directory"),
        (("--home", home, "--out", tmp_path / "none" / "a.html"), 1, "--out"),
        (("--home", home, "--out", tmp_path / "a.pdf"), 2, "--format html or md"),
        (("--home", home, "--out", tmp_path / "a.md", "--since", "yesterday"), 2, "--since takes a day"),
        (("--home", home, "--out", tmp_path / "a.md", "--since", "2999-01-01"), 2, "a day to come"),
        (("--home", home, "--out", tmp_path / "a.html", "--sweep", "nope"), 2, "no run of sweep nope"),
    ):
        done = run(*args)
        assert (done.returncode, done.stdout) == (code, "")
        assert words in done.stderr
        assert done.stderr.count("\n") == 1
