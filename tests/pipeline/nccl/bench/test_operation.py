"""Which operation a table measured: told by the log, by the columns, or by the file's name."""

from __future__ import annotations

import pytest

from tests.pipeline.nccl.reading import tables_of

HEADER = "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong\n"
OLD_HEADER = (
    "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n"
)
DEVICES = "".join(
    f"#  Rank  {rank} Group  0 Pid   130{rank} on   node-a device  {rank} [0x1b] NVIDIA H100\n" for rank in range(8)
)


def operation(text: str, path: str = "/logs/out.log") -> tuple[str | None, str | None, int | None]:
    (row,) = tables_of({path: text})["nccl_bench"].to_dicts()
    return row["op"], row["op_source"], row["nranks"]


def figures(factor: float, *, wrong: str = "0", in_place: str = "0") -> str:
    return f"  1000.0  268.44  {268.44 * factor:.2f}  {wrong}  1001.0  268.17  {268.17 * factor:.2f}  {in_place}"


@pytest.mark.parametrize(
    ("row", "op"),
    [
        (f"268435456 67108864 float sum -1 {figures(1.75)}", "AllReduce"),
        (f"268435456 8388608 float sum -1 {figures(0.875)}", "ReduceScatter"),
        (f"268435456 67108864 float sum 0 {figures(1)}", "Reduce"),
        (f"268435456 67108864 float none 0 {figures(1)}", "Broadcast"),
        (f"268435456 67108864 float sum -1 {figures(1)}", "SendRecv"),
        (f"268435456 8388608 float none -1 {figures(0.875)}", "AllGather"),
        (f"268435456 8388608 float none -1 {figures(0.875, in_place='N/A')}", "AlltoAll"),
        (f"268435456 8388608 float none 0 {figures(0.875)}", None),  # gather or scatter
    ],
)
def test_the_columns_tell(row: str, op: str | None) -> None:
    assert operation(HEADER + DEVICES + row + "\n") == (op, None if op is None else "columns", 8)


def test_the_share_tells_the_ranks_where_no_device_is_listed() -> None:
    assert operation(HEADER + f"268435456 8388608 float sum -1 {figures(0.875)}\n") == ("ReduceScatter", "columns", 8)


def test_an_unchecked_table_without_reduction_is_told_by_the_files_name_only() -> None:
    row = "   268435456 8388608 float none -1 1000.0 268.44 234.88 N/A   1001.0 268.17 234.65 N/A\n"
    assert operation(HEADER + row) == (None, None, 8)
    assert operation(HEADER + row, "/sweep/n1_alltoall.log") == ("AlltoAll", "file_name", 8)
    assert operation(HEADER + row, "/sweep/all_gather/1.log") == ("AllGather", "file_name", 8)


def test_a_name_that_contradicts_the_columns_is_passed_over() -> None:
    row = f"268435456 67108864 float sum -1 {figures(1.75)}\n"
    assert operation(HEADER + row, "/sweep/reduce_scatter.log")[:2] == ("AllReduce", "columns")


def test_old_tables_without_a_root_are_told_by_the_factor() -> None:
    row = "268435456 67108864 float   sum   1000.0 268.44 469.77 2e-07 1001.0 268.17 469.30 2e-07\n"
    assert operation(OLD_HEADER + row)[:2] == ("AllReduce", "columns")


@pytest.mark.parametrize("name", ["reduce_perf", "reduce_perf_mpi", "./build/reduce_perf -b 8"])
def test_the_programs_name_comes_first(name: str) -> None:
    row = f"268435456 67108864 float sum -1 {figures(1)}\n"
    assert operation(f"# Collective test starting: {name}\n" + HEADER + row)[:2] == ("Reduce", "printed")


def test_of_two_ranks_the_factor_says_nothing() -> None:
    two = "".join(DEVICES.splitlines(keepends=True)[:2])
    row = f"268435456 67108864 float sum -1 {figures(1, wrong='N/A', in_place='N/A')}\n"
    assert operation(HEADER + two + row) == (None, None, 2)
    assert operation(HEADER + two + row, "/sweep/all_reduce.log") == ("AllReduce", "file_name", 2)


def test_of_two_ranks_the_check_in_place_tells_a_reduction_from_send_and_receive() -> None:
    two = "".join(DEVICES.splitlines(keepends=True)[:2])
    both = f"268435456 67108864 float sum -1 {figures(1)}\n"
    one = f"268435456 67108864 float sum -1 {figures(1, in_place='N/A')}\n"
    assert operation(HEADER + two + both) == ("AllReduce", "columns", 2)
    assert operation(HEADER + two + one) == ("SendRecv", "columns", 2)
