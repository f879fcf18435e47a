"""`sweepscope note` and `tag`, as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sweepscope.pipeline.__main__ import main
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from sweepscope.pipeline.store.publish import publish
from tests.pipeline.store.lake_rows import unit

pytestmark = pytest.mark.usefixtures("few_views_in_module")


@pytest.fixture
def home(tmp_path: Path) -> str:
    home = Home.resolve(str(tmp_path / "home"))
    Lake(home).commit(unit("a"))
    publish(home)
    return str(home.path)


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_note_is_added_listed_and_removed(home: str, capsys: pytest.CaptureFixture[str]) -> None:
    where = ("--home", home)
    assert answer(capsys, "note", *where) == []
    added = answer(capsys, "note", "a", "restarted by hand", *where)
    answer(capsys, "note", "model=8B", "of the cell", *where)
    assert [row["text"] for row in answer(capsys, "note", *where)] == ["restarted by hand", "of the cell"]
    assert [row["text"] for row in answer(capsys, "note", "a", *where)] == ["restarted by hand"]
    assert answer(capsys, "note", "--remove", added["note_id"], *where) == {"removed": [added["note_id"]]}
    assert main(["note", "--remove", added["note_id"], *where]) == 2
    assert "There is no note" in capsys.readouterr().err


def test_tags_are_added_listed_and_taken_off(home: str, capsys: pytest.CaptureFixture[str]) -> None:
    where = ("--home", home)
    assert len(answer(capsys, "tag", "a", "Paper", "figure 3", *where)["added"]) == 2
    assert [row["text"] for row in answer(capsys, "tag", *where)] == ["paper", "figure-3"]
    assert answer(capsys, "note", *where) == []
    answer(capsys, "tag", "a", "paper", "--remove", *where)
    assert main(["tag", "a", "paper", "--remove", *where]) == 2
    assert "has no tag paper" in capsys.readouterr().err
    assert main(["tag", "--remove", *where]) == 2


def test_views_are_kept_listed_printed_and_removed(home: str, capsys: pytest.CaptureFixture[str]) -> None:
    where = ("--home", home)
    assert answer(capsys, "view", *where) == []
    answer(capsys, "view", "weekly", "http://127.0.0.1:8501/best?model=8B&nodes=2", *where)
    answer(capsys, "view", "weekly", "/best?model=8B&nodes=4", *where)
    assert [(row["text"], row["address"]) for row in answer(capsys, "view", *where)] == [
        ("weekly", "best?model=8B&nodes=4")
    ]
    assert answer(capsys, "view", "weekly", *where)["address"] == "best?model=8B&nodes=4"
    assert main(["view", "monthly", *where]) == 2
    assert "There is no view monthly. Known: weekly." in capsys.readouterr().err
    assert main(["view", "evil", "https://example.org/a b", *where]) == 2
    assert main(["view", "--remove", *where]) == 2
    answer(capsys, "view", "weekly", "--remove", *where)
    assert answer(capsys, "view", *where) == []


def test_there_has_to_be_a_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["note", "a", "text", "--home", str(tmp_path / "none")]) != 0
    assert "There is no store" in capsys.readouterr().err
