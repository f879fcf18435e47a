from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from sweepscope.dashboard.queries import compare as queries
from tests.dashboard.store_rows import estimate_row, run_row, step_rows, write_real_store


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    rows = [
        run_row("a1"),
        run_row("a2", tokens_per_s_per_gpu=7_060.0),
        run_row("b1", tokens_per_s_per_gpu=6_500.0, tp=2, dp=8, layout="DP8 TP2 PP1 · GAS2 MBS5 · Z1"),
        run_row("c1", tokens_per_s_per_gpu=7_400.0, framework="nanotron"),
        run_row("c2", tokens_per_s_per_gpu=7_300.0, framework="nanotron"),
        run_row("o1", status="oom", tokens_per_s_per_gpu=None),
        run_row("d1", duplicate_of="a1"),
        run_row("p1", tokens_per_s_per_gpu=None, step_time_s=None, model=None, num_nodes=None, layout=None),
    ]
    path = write_real_store(
        tmp_path_factory.mktemp("compare") / "results.duckdb",
        runs=rows,
        steps=[*step_rows("a1"), *step_rows("b1", [2.0] * 1000)],
        estimates=[estimate_row("a1"), estimate_row("b1", est_status="shape unknown")],
    )
    with duckdb.connect(str(path), read_only=True) as connection:
        yield connection


def certainty(con: duckdb.DuckDBPyConnection, first: str, second: str) -> dict[str, object] | None:
    return next(iter(queries.certainty(first, second).run(con).to_dicts()), None)


def test_rows_come_in_the_order_of_the_address_and_without_unknown_ids(con: duckdb.DuckDBPyConnection) -> None:
    assert queries.runs(["b1", "zz", "a1"]).run(con)["run_id"].to_list() == ["b1", "a1"]
    assert queries.runs([]).run(con).is_empty()


def test_repeats_of_one_layout_are_the_same_and_others_are_not(con: duckdb.DuckDBPyConnection) -> None:
    same, other = certainty(con, "a2", "a1"), certainty(con, "a1", "b1")
    assert same is not None
    assert other is not None
    assert same["is_same"] is True
    assert other["is_same"] is False
    assert (other["repeats"], other["other_repeats"]) == (2, 1)


def test_a_larger_lead_is_surer(con: duckdb.DuckDBPyConnection) -> None:
    small, large = certainty(con, "a1", "b1"), certainty(con, "c1", "b1")
    assert small is not None
    assert large is not None
    assert 0.5 < small["chance"] < large["chance"] <= 1  # type: ignore[operator]  # numbers
    assert 0 < small["noise"] < 0.2  # type: ignore[operator]  # a number


def test_of_a_run_without_a_speed_nothing_is_judged(con: duckdb.DuckDBPyConnection) -> None:
    assert certainty(con, "a1", "o1") is None


def test_elsewhere_is_the_fastest_of_each_other_software_and_never_a_duplicate(con: duckdb.DuckDBPyConnection) -> None:
    assert queries.elsewhere("a1").run(con)["run_id"].to_list() == ["c1"]
    assert queries.elsewhere("p1").run(con).is_empty(), "of an unknown layout nothing is the same"


def test_long_runs_are_drawn_by_buckets_of_their_own(con: duckdb.DuckDBPyConnection) -> None:
    found = queries.steps(["a1", "b1", "p1"]).run(con)
    counts = dict(found.group_by("run_id").len().iter_rows())
    assert counts["a1"] == 6
    assert counts["b1"] <= queries.MAX_POINTS + 1
    assert found.group_by("run_id").agg(found["steps_in_row"].sum()).height == 2


def test_a_run_without_an_estimate_has_its_reason(con: duckdb.DuckDBPyConnection) -> None:
    assert queries.estimates(["a1", "b1"]).run(con)["run_id"].to_list() == ["a1"]
    assert queries.not_estimated(["a1", "b1"]).run(con).rows() == [("b1", "shape unknown")]


def test_runs_on_offer_are_counted_once(con: duckdb.DuckDBPyConnection) -> None:
    offered = queries.offered(100).run(con)["run_id"].to_list()
    assert "d1" not in offered
    assert len(offered) == len(set(offered)) == 7
    assert queries.offered(2).run(con).height == 2
