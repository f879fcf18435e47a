"""A scaffolded dialect passes the generic tests of dialects, with nothing else touched."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.properties import THOROUGH
from tests.scaffold import add_dialect

GENERIC = (
    "tests/pipeline/logs/test_golden.py",
    "tests/pipeline/logs/engine/test_extract.py::TestDialects",
    "tests/pipeline/ingest/test_parser_versions.py::test_every_dialect_names_the_module_that_states_it",
)
CHECKOUT = ("pipeline", "schemas", "data", "dashboard", "sweepscope", "tests", "pyproject.toml")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what the tests of dialects need."""
    for name in CHECKOUT:
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "published")
            shutil.copytree(source, tmp_path / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(source, tmp_path / name)
    return tmp_path


def run(checkout: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=checkout, env=environment, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_scaffolded_dialect_passes_the_generic_tests(checkout: Path) -> None:
    written = run(checkout, "-m", "tests.scaffold", "dialect", "new-trainer").split()
    assert "pipeline/logs/dialects/new_trainer.py" in written
    expected = json.loads((checkout / "tests/golden/new-trainer/first_run/expected.json").read_text())
    assert [(run["framework"], run["num_gpus"], run["status"]) for run in expected["runs"]] == [
        ("new-trainer", 8, "completed")
    ]
    assert [step["step_time_s"] for step in expected["steps"]] == [1.0, 0.5]
    assert [reject["line_no"] for reject in expected["rejects"]] == [4]
    own = () if THOROUGH else ("-k", "not test_case or new-trainer")  # the cases of other dialects are as they were
    assert "new-trainer" in run(checkout, "-m", "pytest", "-v", "-p", "no:cacheprovider", *own, *GENERIC)
    run(checkout, "-m", "ruff", "check", "pipeline/logs", "schemas/vocab")
    run(checkout, "-m", "ruff", "format", "--check", "pipeline/logs", "schemas/vocab")


@pytest.mark.parametrize(("name", "message"), [("picotron", "there is a dialect"), ("New", "cannot be used")])
def test_a_name_that_is_taken_or_none_is_refused(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=message):
        add_dialect(name, tmp_path)
