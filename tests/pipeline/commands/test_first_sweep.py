"""The page on a first sweep: its commands, in its order, in a new home."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import commands_of
from tests.paths import ROOT
from tests.pipeline.commands.calls import called


def test_the_first_sweep_goes_as_its_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    commands = commands_of(ROOT / "docs" / "first-sweep.md")
    assert {"simulate", "ingest", "query", "dashboard", "report", "plan"} <= {words[1] for words in commands}
    for words in commands:
        if words[1] in {"dashboard", "serve"}:
            continue
        done = called(*words[1:], home=tmp_path / "home")
        assert done.returncode == 0, (words, done.stderr)
        assert done.stdout, words
    assert "sweepscope" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert (tmp_path / "report.md").read_text(encoding="utf-8").startswith("#")
