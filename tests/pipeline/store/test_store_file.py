"""A renewed store is the one that a build from nothing would give, whatever has come, gone or changed since."""

from __future__ import annotations

import duckdb
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from sweepscope.pipeline.store import maintenance, publish, store_file
from sweepscope.pipeline.store.checksum import digests
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from sweepscope.pipeline.store.published import connect, current, store_info
from sweepscope.schemas.registry import VIEWS
from tests.pipeline.store.lake_rows import Tables, accelerators, frame, together, unit
from tests.properties import stated_examples

pytestmark = pytest.mark.usefixtures("few_views_in_module")


@pytest.fixture
def renewed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each store that is published was renewed."""
    outcomes: list[bool] = []
    renewed = publish._renewed

    def noted(*args: object, **more: object) -> dict[str, int] | None:
        rows = renewed(*args, **more)  # type: ignore[arg-type]  # handed on as they came
        outcomes.append(rows is not None)
        return rows

    monkeypatch.setattr(publish, "_renewed", noted)
    return outcomes


def job(name: str, state: str) -> Tables:
    """A scheduler's row of the run `name`, whose own log has not its end."""
    rows = [
        {
            "scheduler": "slurm",
            "run_dir": "/sweep",
            "job_id": name,
            "job_state": state,
            "source_path": "/sweep/sacct.txt",
            "line_no": 2,
        }
    ]
    files = [{"path": "/sweep/sacct.txt", "unit": "/sweep", "kind": "scheduler", "status": "parsed", "bytes": 9}]
    return {"scheduler_jobs": frame("scheduler_jobs", rows), "files": frame("files", files)}


def assert_as_built(home: Home) -> None:
    """The store has what the lake has, and what a build from nothing has; its stored views are those of its tables."""
    report = maintenance.verify(home)
    assert report.problems == ()
    with connect(current(home.path)) as connection:
        info, rows = store_info(connection), store_file.counts(connection)
        for name, text in publish.load_views(publish.VIEW_FOLDER).items():
            if name in VIEWS and VIEWS[name].is_stored:
                _, _, select = text.partition(f"CREATE VIEW {name} AS")
                computed = connection.sql(f"FROM ({select.strip().removesuffix(';')}\n) ORDER BY ALL").pl()
                assert_frame_equal(connection.sql(f"FROM {name} ORDER BY ALL").pl(), computed)
    assert (info.release, info.row_count) == (Lake(home).release().number, sum(rows.values()))  # type: ignore[union-attr]  # it has one


def test_new_runs_are_added_to_a_copy(home: Home, lake: Lake, renewed: list[bool]) -> None:
    lake.commit(together([unit("a"), unit("b"), accelerators("H100")]))
    publish.publish(home)
    lake.commit(unit("c", steps=7))
    publish.publish(home)
    assert renewed == [False, True]
    assert_as_built(home)


def test_rows_that_do_not_fit_in_little_memory_are_sorted_with_more(
    home: Home, lake: Lake, renewed: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A number of rows that no block of a kilobyte holds, in the wrong order: all of them are there, none twice.
    monkeypatch.setattr(store_file, "_SORTING", (("1kB", 1), ("2kB", 1), (None, None)))
    monkeypatch.setattr(store_file, "_FEW_VALUES", 0)
    lake.commit(together([unit("b", steps=5_000), unit("a", steps=5_000)]))
    publish.publish(home)
    assert_as_built(home)
    lake.commit(unit("c", steps=5_000))
    publish.publish(home)
    assert renewed == [False, True]
    assert_as_built(home)


def test_nothing_is_renewed_across_views_or_releases_that_are_gone(
    home: Home, lake: Lake, renewed: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.commit(unit("a"))
    publish.publish(home)
    lake.commit(unit("b"))
    with monkeypatch.context() as patch:
        patch.setattr(publish, "VIEWS", {})
        publish.publish(home)
    for name in "cdef":
        lake.commit(unit(name))
    publish.publish(home)
    assert renewed == [False, False, False]
    assert_as_built(home)


def test_a_store_that_lost_rows_is_built_anew(home: Home, lake: Lake, renewed: list[bool]) -> None:
    lake.commit(together([unit("a"), unit("b")]))
    with duckdb.connect(str(publish.publish(home).path)) as connection:
        connection.execute("DELETE FROM steps WHERE run_id = 'a'")
    lake.commit(unit("c"))
    publish.publish(home)
    assert renewed == [False, False]
    assert_as_built(home)


def test_what_a_scheduler_says_changes_earlier_runs(home: Home, lake: Lake, renewed: list[bool]) -> None:
    lake.commit(together([unit("a", job_id="1", status="truncated"), unit("b")]))
    publish.publish(home)
    for state in ("timeout", "failed"):
        lake.commit(job("1", state))
        publish.publish(home)
        assert_as_built(home)
    assert renewed == [False, True, True]
    with connect(current(home.path)) as connection:
        shown = connection.sql("SELECT scheduler_state, status FROM runs WHERE run_id = 'a'").fetchall()
    assert shown == [("failed", "crash")]


_NAMES = st.sampled_from("abcd")
_ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), _NAMES, st.integers(0, 4)),
        st.tuples(st.just("forget"), _NAMES, st.just(0)),
        st.tuples(st.just("compact"), st.just(""), st.just(0)),
        st.tuples(st.just("history"), _NAMES, st.integers(1, 4)),
        st.tuples(st.just("publish"), st.just(""), st.just(0)),
    ),
    min_size=2,
    max_size=9,
)


@stated_examples(more=12)
@given(_ACTIONS)
@example([("commit", "a", 2), ("publish", "", 0), ("commit", "a", 4), ("publish", "", 0), ("forget", "a", 0)])
@example([("commit", "a", 2), ("commit", "b", 2), ("publish", "", 0), ("compact", "", 0), ("history", "a", 2)])
def test_any_history_gives_what_a_build_gives(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[str, str, int]]
) -> None:
    home = Home.resolve(str(tmp_path_factory.mktemp("renewal") / "home"))
    lake = Lake(home)
    lake.commit(unit("first"))
    for what, name, steps in (*actions, ("publish", "", 0)):
        if what == "commit":
            lake.commit(unit(name, steps=steps))
        elif what == "history":
            tables = unit(name, steps=steps, steps_logged=steps, run_dir=f"/sweep/{name}/out")
            lake.commit({**tables, "files": tables["files"].with_columns(kind=pl.lit("history"))})
        elif what == "forget":
            lake.commit({}, forget=[f"/sweep/{name}/log.out"])
        elif what == "compact":
            lake.compact()
        else:
            publish.publish(home)
            assert_as_built(home)
    with connect(current(home.path)) as connection:
        renewed = digests(connection)
    for path in home.store.glob("results-*"):
        path.unlink()
    publish.publish(home)
    with connect(current(home.path)) as connection:
        assert digests(connection) == renewed
