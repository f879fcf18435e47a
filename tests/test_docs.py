"""Documentation that cannot rot: generated parts are fresh, links lead somewhere, examples run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from tests.docs import DICTIONARY, README, commands_of, generated
from tests.paths import ROOT
from tests.run_rows import completed_frame, open_store, run_row

TEXT = README.read_text(encoding="utf-8")


DOCUMENTS = (README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))


def test_generated_documents_are_fresh() -> None:
    stale = [path.name for path, text in generated().items() if path.read_text(encoding="utf-8") != text]
    assert not stale, "run `make docs`"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_and_named_files_are_there(path: Path) -> None:
    """Links relative to the document, and `paths/in.backticks` from the top; capitals stand for a name to choose."""
    text = path.read_text(encoding="utf-8")
    links = [path.parent / link for link in re.findall(r"\]\(([^)#:]+)\)", text)]
    named = re.findall(r"`((?:pipeline|schemas|dashboard|data|tests|docs|sweepscope)/[\w./-]*)`", text)
    named = [name for name in named if not re.search(r"[A-Z]{4}", name) or name.endswith(".md")]
    assert not [str(file) for file in (*links, *(ROOT / name for name in named)) if not file.exists()]


@pytest.fixture(scope="module")
def store() -> duckdb.DuckDBPyConnection:
    """A store with one completed run."""
    return open_store(completed_frame(run_row()))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_sql_examples_run(path: Path, store: duckdb.DuckDBPyConnection) -> None:
    blocks = re.findall(r"```sql\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)
    for sql in (statement for block in blocks for statement in block.split(";\n") if statement.strip()):
        assert store.sql(sql.strip().rstrip(";")).columns, sql


@pytest.mark.parametrize("target", sorted(set(re.findall(r"(?:^|`)make (\w+)", TEXT, re.MULTILINE))))
def test_make_targets_of_the_readme_exist(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("verb", sorted(set(re.findall(r"sweepscope (\w+)", TEXT))))
def test_commands_of_the_readme_exist(verb: str) -> None:
    from sweepscope.pipeline.__main__ import VERBS

    prose = {"turns", "needs"}
    assert verb in prose | {*VERBS}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_commands_of_documents_are_understood(path: Path) -> None:
    from sweepscope.pipeline.__main__ import build_parser

    for words in commands_of(path):
        build_parser((words[1],)).parse_args(words[1:])


@pytest.mark.slow
def test_the_site_builds_and_its_links_lead_somewhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "-b", "html"]
    done = subprocess.run([*command, ROOT / "docs", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "llms.txt").exists()
    assert "best_configs" in (tmp_path / "dictionary.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_module_runs_as_a_command() -> None:
    done = subprocess.run([sys.executable, "-m", "sweepscope", "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "ingest" in done.stdout


def test_no_document_names_a_path_of_one_machine() -> None:
    for path in (README, DICTIONARY, ROOT / "CHANGELOG.md", ROOT / "data" / "README.md"):
        assert not re.search(r"/(?:home|root|Users)/\w", Path(path).read_text(encoding="utf-8"))


def test_the_comparison_has_every_row_and_a_test_for_each_yes() -> None:
    text = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
    rows = [
        line.strip("| ").split(" | ") for line in text.partition("## What the marks")[0].splitlines() if "|" in line
    ]
    answers = [row for row in rows if len(row) == 9]
    numbers = [int(row[0].split(".")[0]) for row in answers if row[0][0].isdigit()]
    assert numbers == list(range(1, 82))
    marks = {mark for row in answers for mark in row[1:8]}
    assert marks == {"yes", "no", "partly"}
    ours = [row[8] for row in answers]
    assert all(own == "no" or (ROOT / own.removeprefix("yes: ").strip("`")).is_file() for own in ours)
