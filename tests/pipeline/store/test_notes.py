"""Notes, tags and named views: what they may be, and that they outlive what is read again."""

from __future__ import annotations

import duckdb
import pytest

from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.store import notes
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from sweepscope.pipeline.store.published import current
from tests.pipeline.store.lake_rows import unit
from tests.secret_samples import samples

RUN = {"run_id": "a"}
CELL = {"model": "8B", "num_nodes": 1}


def texts(home: Home) -> list[str]:
    return [row["text"] for row in notes.stored(home).to_dicts()]


def about_runs(home: Home) -> list[tuple[str, str, str]]:
    with duckdb.connect(str(current(home.path)), read_only=True) as connection:
        found: list[tuple[str, str, str]] = connection.sql(
            "SELECT run_id, note_about, text FROM run_notes ORDER BY ALL"
        ).fetchall()
    return found


def test_a_text_is_kept_once_published_and_removed(published: Home) -> None:
    row = notes.row("note", RUN, "  restarted  ", author="me")
    assert notes.add(published, [row]) == [row["note_id"]]
    assert notes.add(published, [notes.row("note", RUN, "restarted")]) == []
    assert about_runs(published) == [("a", "run", "restarted")]
    assert notes.remove(published, [row["note_id"], "note-unknown"]) == [row["note_id"]]
    assert about_runs(published) == []


def test_notes_on_cells_and_days_are_about_their_runs(published: Home) -> None:
    rows = [
        notes.row("tag", {"model": "8B"}, "small"),
        notes.row("note", {**CELL, "accelerator": "H100"}, "on H100"),
        notes.row("note", {**CELL, "accelerator": "A100"}, "of no run here"),
        notes.row("note", {"day": "2026-11-20"}, "of no day here"),
        notes.row("view", {}, "mine", address="best?model=8B"),
    ]
    notes.add(published, rows)
    assert about_runs(published) == [(run, "cell", text) for run in "ab" for text in ("on H100", "small")]


def test_notes_stay_when_a_run_is_read_again_and_go_when_it_is_forgotten(published: Home) -> None:
    notes.add(published, [notes.row("note", RUN, "on a"), notes.row("note", {"run_id": "b"}, "on b")])
    notes.add(published, [notes.row("note", CELL, "on the cell")])
    lake = Lake(published)
    lake.commit(unit("a", steps=5, batch_id="b2"))
    assert sorted(texts(published)) == ["on a", "on b", "on the cell"]
    lake.commit({}, forget=["/sweep/a/log.out", "/sweep/a/config.json"])
    assert sorted(texts(published)) == ["on b", "on the cell"]


def test_of_two_views_with_one_name_the_later_counts(published: Home) -> None:
    for address in ("best?model=8B", "scaling"):
        notes.add(published, [notes.row("view", {}, "mine", address=address)])
    assert [(row["text"], row["address"]) for row in notes.stored(published).to_dicts()] == [("mine", "scaling")]


def test_credentials_are_hidden() -> None:
    (sample,) = samples(1, seed=0)
    assert sample.secret not in notes.row("note", RUN, sample.line)["text"]


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("a", {"run_id": "a"}),
        (" 2026-11-20 ", {"day": "2026-11-20"}),
        ("model=Llama 8B, nodes=16", {"model": "Llama 8B", "num_nodes": 16}),
        ("model=8B,batch=1048576,origin=measured", {"model": "8B", "gbs_tokens": 1048576, "origin": "measured"}),
    ],
)
def test_what_a_text_names(shown: Home, text: str, target: dict[str, object]) -> None:
    assert notes.target_of(shown, text) == target


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("c", "no run, day or cell"),
        ("../etc", "no run, day or cell"),
        ("2026-02-30", "no day of the calendar"),
        ("nodes=16", "which model"),
        ("model=8B,nodes=many", "a whole number above 0"),
        ("model=8B,colour=red", "a cell is named by"),
        ("model=8B,origin=mars", "an origin is one of"),
        ("model=", "a cell is named by"),
    ],
)
def test_what_names_nothing(shown: Home, text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        notes.target_of(shown, text)


@pytest.mark.parametrize(
    ("kind", "text"), [("note", "  "), ("note", "x" * 2001), ("note", "a\x00b"), ("tag", "???"), ("tag", "x" * 41)]
)
def test_texts_that_are_none(kind: str, text: str) -> None:
    with pytest.raises(UsageError):
        notes.row(kind, RUN, text)


@pytest.mark.parametrize(
    "address", ["https://example.org", "javascript:alert(1)", "//x", "best?a=<b>", "a#b", "x" * 5000]
)
def test_a_view_leads_nowhere_else(address: str) -> None:
    with pytest.raises(UsageError):
        notes.row("view", {}, "mine", address=address)


def test_a_beginning_that_several_runs_have(published: Home) -> None:
    Lake(published).commit(unit("ab1", batch_id="b3"))
    Lake(published).commit(unit("ab2", batch_id="b4"))
    assert notes.target_of(published, "ab1") == {"run_id": "ab1"}
    assert notes.target_of(published, "a") == {"run_id": "a"}  # whole ids first
    with pytest.raises(UsageError, match="2 runs begin so"):
        notes.target_of(published, "ab")
