"""What was asked of a version of the store is kept, apart by parameters, and within bounds."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import duckdb
import polars as pl
import pytest

from sweepscope.dashboard.queries.query import Query
from sweepscope.dashboard.queries.reader import Answers, Reader


class Counting:
    """A connection that counts what it is asked."""

    def __init__(self) -> None:
        self.con = duckdb.connect()
        self.asked = 0

    def sql(self, text: str, params: dict[str, object]) -> duckdb.DuckDBPyRelation:
        self.asked += 1
        return self.con.sql(text, params=params)


@pytest.fixture
def con() -> Counting:
    return Counting()


def reader_of(con: Counting, answers: Answers) -> Reader:
    return Reader(con, answers)  # type: ignore[arg-type]  # it has the one method of a connection that is called


def test_a_question_is_asked_once_for_all_runs_on_a_version(con: Counting) -> None:
    answers = Answers()
    query = Query("SELECT $x AS x", {"x": 4})
    first = query.run(reader_of(con, answers))
    again = query.run(reader_of(con, answers))
    assert first.equals(again)
    assert con.asked == 1


def test_parameters_that_are_equal_and_not_the_same_are_asked_apart(con: Counting) -> None:
    reader = reader_of(con, Answers())
    values = [1, 2, 1.0, True, "1", None, ["a"], ["a", "b"]]
    found = [Query("SELECT $x AS x", {"x": value}).run(reader)["x"].to_list() for value in values]
    assert found == [[value] for value in values]
    assert [type(one[0]) for one in found[:5]] == [int, int, float, bool, str]
    assert con.asked == len(values)


def test_a_failed_question_is_asked_again(con: Counting) -> None:
    reader = reader_of(con, Answers())
    for _ in range(2):
        with pytest.raises(duckdb.CatalogException):
            Query("SELECT * FROM nowhere").run(reader)
    assert con.asked == 2


def test_the_least_recently_used_go_when_all_are_too_large() -> None:
    frames = {name: pl.DataFrame({"x": [number] * 100}) for number, name in enumerate("abc")}
    answers = Answers(most_bytes=2 * int(frames["a"].estimated_size()))
    for name in "ab":
        answers.keep(name, frames[name])
    assert answers.get("a") is frames["a"]
    answers.keep("c", frames["c"])
    assert [answers.get(name) is None for name in "abc"] == [False, True, False]
    answers.keep("large", pl.DataFrame({"x": [0] * 1000}))
    assert answers.get("large") is None
    assert answers.get("c") is frames["c"]


def test_what_took_long_is_asked_of_the_next_version_beforehand(con: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sweepscope.dashboard.queries.reader._SLOW_S", 0.0)
    before = Answers()
    for value in (1, 2):
        Query("SELECT $x AS x", {"x": value}).run(reader_of(con, before))
    con.con.execute("CREATE TABLE gone AS SELECT 3 AS x")
    Query("FROM gone").run(reader_of(con, before))
    con.con.execute("DROP TABLE gone")
    after = Answers()
    reader_of(con, after).ask_again(before)
    asked = con.asked
    assert Query("SELECT $x AS x", {"x": 2}).run(reader_of(con, after))["x"].to_list() == [2]
    assert con.asked == asked, "answered before it was asked"


def test_a_large_frame_is_kept_where_it_took_seconds() -> None:
    frame = pl.DataFrame({"x": pl.zeros(2 * 2**20, pl.Int64, eager=True)})  # 16 MB
    answers = Answers()
    answers.keep("quick", frame, took_s=0.1)
    answers.keep("slow", frame, took_s=2.0)
    assert answers.get("quick") is None
    assert answers.get("slow") is frame
    too_large = pl.concat([frame] * 3, rechunk=True)
    answers.keep("slow and too large", too_large, took_s=2.0)
    assert answers.get("slow and too large") is None


def test_two_threads_with_one_question_ask_it_once(con: Counting) -> None:
    begun, may_end = Event(), Event()

    class Slow:
        """A connection whose answer the test holds back."""

        def sql(self, text: str, params: dict[str, object]) -> duckdb.DuckDBPyRelation:
            begun.set()
            assert may_end.wait(60)
            return con.sql(text, params)

    answers = Answers()
    reader = Reader(Slow(), answers)  # type: ignore[arg-type]  # it has the one method of a connection that is called
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(reader.frame, "SELECT 1 AS x", {})
        assert begun.wait(60)
        second = threads.submit(reader.frame, "SELECT 1 AS x", {})
        while not any(waiting == 2 for _, waiting in answers._turns.values()):
            assert not second.done()
        may_end.set()
        assert first.result(60) is second.result(60)
    assert con.asked == 1
    assert answers._turns == {}
