"""Visits take turns: one query each, nobody waits for one visit's queries, and whoever waits knows and can cancel."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import polars as pl
import pytest

from sweepscope.dashboard.sandbox.run_query import Limits, QueryResult, run_query
from sweepscope.dashboard.sandbox.turns import Turn, Turns
from sweepscope.pipeline.errors import QueryError
from sweepscope.pipeline.io.sandbox import Stop

ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r"
CANCELLED = "The query was cancelled"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "results-1.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE runs AS SELECT range AS step FROM range(1000)")
    return path


@pytest.fixture
def turns() -> Iterator[Turns]:
    """Two slots, whose queries are ended with the test."""
    turns = Turns(2)
    yield turns
    with turns._lock:
        for turn in [*turns._waiting, *turns._running]:
            turns.cancel(turn)


def asks(store: Path, sql: str, wall_s: float = 120.0) -> Callable[[Stop], QueryResult]:
    return lambda stop: run_query(store, sql, limits=Limits(wall_s=wall_s, threads=1), stop=stop)


def until(is_so: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def is_at_work(turn: Turn) -> bool:
    return turn.running_s is not None and not turn.is_over


def children() -> list[str]:
    """Process ids of this process's sandboxes."""
    listed = (path.read_text().split() for path in Path("/proc/self/task").glob("*/children"))
    return [pid for pids in listed for pid in pids if b"sandbox_child" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def test_one_visits_slow_queries_leave_a_slot_to_the_others(store: Path, turns: Turns) -> None:
    slow = [turns.take("a", asks(store, ENDLESS)) for _ in range(4)]
    quick = turns.take("b", asks(store, "SELECT count(*) AS n FROM runs"))
    assert quick.result().frame.equals(pl.DataFrame({"n": [1000]}))
    assert is_at_work(slow[-1])
    for earlier in slow[:-1]:
        with pytest.raises(QueryError, match=CANCELLED):
            earlier.result()


def test_a_new_query_of_a_visit_ends_the_process_of_its_old_one(store: Path, turns: Turns) -> None:
    old = turns.take("a", asks(store, ENDLESS))
    until(children)
    assert turns.take("a", asks(store, "SELECT 1 AS one")).result().frame.height == 1
    with pytest.raises(QueryError, match=CANCELLED):
        old.result()
    until(lambda: not children())  # long before the limit that it would end by


def test_whoever_waits_knows_the_place_and_can_leave(store: Path, turns: Turns) -> None:
    first, second, third, fourth = (turns.take(visit, asks(store, ENDLESS)) for visit in "abcd")
    assert [turns.place(turn) for turn in (first, second, third, fourth)] == [0, 0, 1, 2]
    turns.cancel(third)
    with pytest.raises(QueryError, match=CANCELLED):
        third.result()
    assert (turns.place(fourth), fourth.running_s) == (1, None)
    turns.cancel(first)
    until(lambda: turns.place(fourth) == 0)
    assert is_at_work(second)


def test_a_visit_that_asks_again_and_again_stands_behind_those_who_wait(store: Path, turns: Turns) -> None:
    slow = [turns.take(visit, asks(store, ENDLESS)) for visit in "ab"]
    waiting = turns.take("c", asks(store, "SELECT 1"))
    again = turns.take("a", asks(store, ENDLESS))  # ends the first of a, whose slot is now free
    assert waiting.result().frame.height == 1
    until(lambda: is_at_work(again))
    assert is_at_work(slow[1])


def test_slots_are_shared_in_the_order_of_asking() -> None:
    turns, order, gate = Turns(2), [], threading.Semaphore(0)

    def work(name: str) -> Callable[[Stop], QueryResult]:
        def run(_stop: Stop) -> QueryResult:
            order.append(name)
            gate.acquire()
            return QueryResult(pl.DataFrame(), False, 0.0)

        return run

    taken = [turns.take(name, work(name)) for name in "abcde"]
    for begun in range(2, 6):
        until(lambda begun=begun: len(order) == begun)
        gate.release()
    gate.release()
    for turn in taken:
        turn.result()
    assert sorted(order[:2]) + order[2:] == list("abcde")


def test_what_goes_wrong_in_a_query_frees_its_slot(store: Path, turns: Turns) -> None:
    for _ in range(5):
        with pytest.raises(QueryError, match="syntax error"):
            turns.take("a", asks(store, "SELCT 1")).result()
    late = turns.take("a", asks(store, ENDLESS, wall_s=0.5))
    with pytest.raises(QueryError, match=r"Stopped after 0\.5 s"):
        late.result()
    assert turns.take("b", asks(store, "SELECT 1")).result().frame.height == 1
    assert turns._running == []
