from __future__ import annotations

from sweepscope.dashboard.selection.comparison import MOST_RUNS, parse_runs


def test_nothing_in_the_address_is_no_column() -> None:
    assert parse_runs({}).columns == ()
    assert parse_runs({"runs": [" , ,"]}).columns == ()


def test_each_run_is_one_column_and_is_named_once() -> None:
    asked = parse_runs({"runs": ["a, b,a", "c"]})
    assert asked.columns == (("a",), ("b",), ("c",))
    assert asked.run_ids == ["a", "b", "c"]


def test_two_groups_are_two_columns_and_go_before_single_runs() -> None:
    assert parse_runs({"group": ["a,b", "c,b"], "runs": ["x"]}).columns == (("a", "b"), ("c",))


def test_one_group_alone_is_its_runs() -> None:
    assert parse_runs({"group": ["a,b"]}).columns == (("a",), ("b",))


def test_what_exceeds_the_limit_is_counted_in_runs_and_groups() -> None:
    many = ",".join(f"r{number}" for number in range(MOST_RUNS + 3))
    assert len(parse_runs({"runs": [many]}).columns) == MOST_RUNS
    assert parse_runs({"runs": [many]}).left_out == 3
    groups = parse_runs({"group": ["a,b", many]})
    assert len(groups.run_ids) == MOST_RUNS
    assert groups.left_out == 5
