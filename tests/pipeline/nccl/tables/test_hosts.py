"""Names of hosts that have swallowed the end of another text."""

from __future__ import annotations

import time

import polars as pl

from sweepscope.pipeline.nccl.tables.hosts import true_hosts


def processes(*rows: tuple[str, int, int]) -> pl.DataFrame:
    """Rows of `true_hosts` of one file: host, pid and times at the beginning of a line."""
    frame = pl.DataFrame(rows, schema=["host", "pid", "clean"], orient="row")
    return frame.with_columns(source=pl.lit(0), lines=pl.lit(1))


def test_the_longest_known_name_that_it_ends_with_is_the_true_one() -> None:
    found = true_hosts(
        processes(("node1", 7, 9), ("1", 7, 3), ("abcnode1", 7, 0), ("abcnode1", 8, 0), ("xnode2", 7, 0))
    )
    assert found == {(0, "abcnode1", 7): "node1"}


def test_names_that_lines_begin_with_more_often_are_true() -> None:
    assert true_hosts(processes(("node1", 7, 1), ("anode1", 7, 2))) == {}


def test_many_hosts_take_no_square_of_their_number() -> None:
    begin = time.process_time()
    assert true_hosts(processes(*((f"node{number}", 1, 1) for number in range(20_000)))) == {}
    assert time.process_time() - begin < 5
