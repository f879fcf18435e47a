"""Documentation that cannot rot: generated parts are fresh, links lead somewhere, examples run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sweepscope.schemas.core.dictionary import dictionary
from tests.docs import DICTIONARY, README, ROOT, with_command_line
from tests.run_rows import completed_frame, open_store, run_row

TEXT = README.read_text(encoding="utf-8")


def test_the_dictionary_is_fresh() -> None:
    assert DICTIONARY.read_text(encoding="utf-8") == dictionary(), "run `make docs`"


def test_the_readmes_command_line_is_fresh() -> None:
    assert with_command_line(TEXT) == TEXT, "run `make docs`"


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#:]+)\)", TEXT))))
def test_links_of_the_readme_lead_somewhere(target: str) -> None:
    assert (ROOT / target).exists()


@pytest.mark.parametrize("sql", re.findall(r"```sql\n(.*?)```", TEXT, re.DOTALL)[0].split(";\n\n"))
def test_sql_examples_of_the_readme_run(sql: str) -> None:
    connection = open_store(completed_frame(run_row()))
    assert connection.sql(sql.strip().rstrip(";")).columns


@pytest.mark.parametrize("target", sorted(set(re.findall(r"(?:^|`)make (\w+)", TEXT, re.MULTILINE))))
def test_make_targets_of_the_readme_exist(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("verb", sorted(set(re.findall(r"sweepscope (\w+)", TEXT))))
def test_commands_of_the_readme_exist(verb: str) -> None:
    from sweepscope.pipeline.__main__ import VERBS

    prose = {"turns", "needs"}
    assert verb in prose | {*VERBS}


def test_the_module_runs_as_a_command() -> None:
    done = subprocess.run([sys.executable, "-m", "sweepscope", "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "ingest" in done.stdout


def test_no_document_names_a_path_of_one_machine() -> None:
    for path in (README, DICTIONARY, ROOT / "CHANGELOG.md", ROOT / "data" / "README.md"):
        assert not re.search(r"/(?:home|root|Users)/\w", Path(path).read_text(encoding="utf-8"))
