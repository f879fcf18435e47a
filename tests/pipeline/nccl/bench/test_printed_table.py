"""Tables of nccl-tests and rccl-tests, old and new, whole and torn."""

from __future__ import annotations

import pytest

from sweepscope.pipeline.ingest.validate import validate
from sweepscope.pipeline.nccl.bench.bench_rows import read_figures
from sweepscope.schemas.registry import TABLES
from tests.pipeline.nccl.reading import row_of, tables_of

HEADER = """\
# nccl-tests version 2.17.8 nccl-headers=22902 nccl-library=22902
# Collective test starting: all_gather_perf
# nThread 1 nGpus 1 minBytes 8 maxBytes 128 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   1302 on   node-a device  0 [0000:1b:00] NVIDIA H100
#  Rank  1 Group  0 Pid   1303 on   node-b device  0 [0000:1b:00] NVIDIA H100
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
"""
ROW = "   268435456      33554432     float    none      -1  1181.52  227.19  113.60       0  1188.52  225.86  112.93       2\n"
TAIL = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 113.265\n#\n"


def test_a_table_is_read_with_its_header() -> None:
    tables = tables_of(HEADER + ROW + TAIL)
    row = row_of(tables["nccl_bench"])
    assert (row["op"], row["nranks"], row["num_nodes"], row["table_no"]) == ("AllGather", 2, 2, 1)
    assert (row["message_bytes"], row["element_count"], row["datatype"]) == (268435456, 33554432, "float")
    assert (row["root"], row.get("reduction"), row["wrong_elements"]) == (-1, None, 0)
    assert row["time_s"] == pytest.approx(1.18152e-3)
    assert row["busbw_bytes_per_s"] == pytest.approx(113.60e9)
    assert row["in_place_algbw_bytes_per_s"] == pytest.approx(225.86e9)
    assert row["in_place_wrong_elements"] == 2
    summary = row_of(tables["nccl_files"])
    assert summary["nranks_max"] == 2
    assert (summary["nccl_version"], summary["bench_rows"], summary["bench_avg_busbw"]) == ("2.29.2", 1, 113.265)


@pytest.mark.parametrize("label", ["   0: ", "[1,0]<stdout>:", "(pid=7, ip=10.0.0.1) ", "\t"])
def test_a_launchers_prefix_does_not_matter(label: str) -> None:
    text = "".join(label + line for line in (HEADER + ROW + TAIL).splitlines(keepends=True))
    tables = tables_of(text)
    assert row_of(tables["nccl_bench"])["busbw_bytes_per_s"] == pytest.approx(113.60e9)
    assert row_of(tables["nccl_files"])["bench_avg_busbw"] == 113.265


def test_old_tables_have_no_root_and_print_errors() -> None:
    text = """\
#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error
   134217728       4194304   float     sum    633.6  211.83  185.35  2e-07    620.9  216.17  189.15    N/A
  4294967296     134217728   float              16860  254.74  222.90    N/A    16678  257.53  225.34    N/A
"""
    rows = tables_of(text)["nccl_bench"]
    assert rows["root"].to_list() == [None, None]
    assert rows["reduction"].to_list() == ["sum", None]
    assert rows["wrong_elements"].to_list() == [2e-7, None]
    assert rows["time_s"].to_list() == pytest.approx([633.6e-6, 16860e-6])
    assert rows["in_place_busbw_bytes_per_s"].to_list() == pytest.approx([189.15e9, 225.34e9])


def test_nccls_own_lines_may_stand_in_the_middle_of_a_row() -> None:
    prefix = "38dcf168:1343:1343 [0] NCCL INFO AllReduce: 268435456 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..23}\n"
    text = (
        HEADER
        + "38dcf168:1343:1343 [0] NCCL INFO Bootstrap: Using eth0\n" * 3
        + "   268435456      67108864     float     sum      -1"
        + prefix
        + prefix
        + "  1278.83  209.91  314.86       0"
        + prefix
        + "   896.61  299.39  299.39       0\n"
        + TAIL
    )
    tables = tables_of(text)
    row = row_of(tables["nccl_bench"])
    assert row["time_s"] == pytest.approx(1278.83e-6)
    assert row["busbw_bytes_per_s"] == pytest.approx(314.86e9)
    assert row["in_place_busbw_bytes_per_s"] == pytest.approx(299.39e9)
    assert "wrong_elements" not in row  # its digit is glued to NCCL's prefix
    choice = row_of(tables["nccl_tuning"])
    assert (choice["algorithm"], choice["protocol"], choice["tuning_channels"], choice["calls"]) == (
        "RING",
        "SIMPLE",
        "0..23",
        3,
    )


def test_several_tables_are_kept_apart_and_have_no_common_average() -> None:
    other = HEADER.replace("all_gather_perf", "all_reduce_perf") + ROW + TAIL
    tables = tables_of(HEADER + ROW + TAIL + other)
    assert tables["nccl_bench"].select("table_no", "op").rows() == [(1, "AllGather"), (2, "AllReduce")]
    summary = row_of(tables["nccl_files"])
    assert summary["bench_tables"] == 2
    assert "bench_avg_busbw" not in summary


def test_a_row_without_a_header_is_read() -> None:
    row = row_of(tables_of("### PROTO=LL\n" + ROW)["nccl_bench"])
    assert (row["root"], row["table_no"], row["op"], row["op_source"]) == (-1, 1, "AllGather", "columns")


def test_masked_figures_are_unknown() -> None:
    text = "   268435456       4194304     float    none      -1    XXXXX  XXX.XX  XXX.XX    N/A   XXXXXX  XXX.XX  XXX.XX    N/A\n"
    row = row_of(tables_of(text)["nccl_bench"])
    assert row["message_bytes"] == 268435456
    assert "time_s" not in row


def test_per_iteration_columns_and_timestamps_are_no_second_half() -> None:
    header = (
        "#  size count type redop root time algbw busbw #wrong min max p99 cv time algbw busbw #wrong min max p99 cv"
    )
    halves = "10.0 1.0 2.0 0 9.0 11.0 10.9 3.1 20.0 3.0 4.0 0 19.0 21.0 20.9 3.2"
    found = read_figures(f"-1 {halves} 2026-01-02 03:04:05", None, header)
    assert found == (-1, 10.0, 1.0, 2.0, 0.0, 20.0, 3.0, 4.0, 0.0)


def test_out_of_place_only() -> None:
    assert read_figures("-1 1275.7 105.21 197.26 0", None, None) == (
        -1,
        1275.7,
        105.21,
        197.26,
        0.0,
        None,
        None,
        None,
        None,
    )


def test_a_table_whose_blanks_were_lost_where_it_was_pasted() -> None:
    text = "\n".join(" ".join(line.split()) for line in (HEADER + ROW + TAIL).splitlines())
    row = row_of(tables_of(text)["nccl_bench"])
    assert (row["message_bytes"], row["root"], row["op"], row["wrong_elements"]) == (268435456, -1, "AllGather", 0)
    assert row["in_place_busbw_bytes_per_s"] == pytest.approx(112.93e9)
    assert tables_of("run 7 of 8\n3 4 float 5\n")["nccl_files"].is_empty()


@pytest.mark.parametrize("text", ["1 2 3\n", "step 4 10 float things\n", "[2026-01-01 10:00:00] 7 7 tokens\n"])
def test_other_lines_are_no_rows(text: str) -> None:
    assert tables_of(text)["nccl_files"].is_empty()


def test_tables_of_before_2019_are_in_milliseconds() -> None:
    text = """\
# NCCL Tests compiled with NCCL 2.4
#   Rank  0 on     node-a device  0 [0x05] Quadro
#   Rank  1 on     node-a device  1 [0x06] Quadro
#                                                 out-of-place                    in-place
#      bytes             N    type      op     time  algbw  busbw      res     time  algbw  busbw      res
    16777216       4194304   float     sum    2.000   8.39   8.39    0e+00    4.000   4.19   4.19    0e+00
"""
    row = row_of(tables_of(text)["nccl_bench"])
    assert (row["message_bytes"], row["nranks"], row["reduction"]) == (16777216, 2, "sum")
    assert (row["time_s"], row["in_place_time_s"]) == (pytest.approx(2e-3), pytest.approx(4e-3))
    assert row["busbw_bytes_per_s"] == pytest.approx(8.39e9)


def test_pasted_as_markdown_a_table_has_no_comment_signs() -> None:
    text = (HEADER + ROW + TAIL).replace("#wrong", "wrong").replace("# ", " ").replace("#", "")
    tables = tables_of(text)
    row = row_of(tables["nccl_bench"])
    assert (row["nranks"], row["num_nodes"], row["root"], row["busbw_bytes_per_s"]) == (
        2,
        2,
        -1,
        pytest.approx(113.6e9),
    )
    assert row_of(tables["nccl_files"])["bench_avg_busbw"] == 113.265


def test_rccl_tests_print_the_function_of_a_device() -> None:
    text = "#   Rank  0 Pid  77 on node-a device  0 [0000:2f:00.0] AMD Instinct MI100\n"
    row = row_of(
        tables_of(text + "  1048576  262144  float  sum  -1  65.88  15.92  15.92  0  66.30  15.82  15.82  0\n")[
            "nccl_bench"
        ]
    )
    assert (row["nranks"], row["accelerator"]) == (1, "AMD Instinct MI100")


def test_a_row_may_have_its_half_in_place_only() -> None:
    row = ROW[: ROW.index("1181.52")] + " " * 32 + "1188.52  225.86  112.93       0\n"
    found = row_of(tables_of(HEADER + row)["nccl_bench"])
    assert found["root"] == -1
    assert not {"time_s", "algbw_bytes_per_s", "busbw_bytes_per_s"} & set(found)
    assert found["in_place_time_s"] == pytest.approx(1188.52e-6)
    assert found["in_place_busbw_bytes_per_s"] == pytest.approx(112.93e9)


def test_a_table_of_layers_is_none() -> None:
    text = "  name     size  count  type\n  embed    1024    256  float\n  1024  256  float  12 0.5\n 0: 7 3 half 4\n"
    assert tables_of(HEADER + text)["nccl_bench"].is_empty()


def test_a_row_at_which_the_job_ended_is_one() -> None:
    row = row_of(tables_of(HEADER + ROW[: ROW.index("1181.52")].rstrip() + "\n")["nccl_bench"])
    assert (row["message_bytes"], row["root"]) == (268435456, -1)
    assert "time_s" not in row


def test_an_impossible_figure_is_a_reject_and_not_unknown() -> None:
    rows = tables_of(HEADER + ROW.replace("113.60", "-113.6") + ROW + TAIL)["nccl_bench"]
    judged = validate(TABLES["nccl_bench"], rows)
    assert judged.valid["busbw_bytes_per_s"].is_null().to_list() == [True, False]
    assert judged.rejects.select("line_no", "column", "reason").rows() == [
        (12, "busbw_bytes_per_s", "the value was left out: must be at least 0, got -113600000000.0")
    ]


def test_a_list_that_lacks_devices_has_as_many_ranks_as_its_last_says() -> None:
    lines = [line for line in HEADER.splitlines(keepends=True) if "Rank  0" not in line]
    tables = tables_of("".join(lines).replace("Rank  1", "Rank  7") + ROW + TAIL)
    row = row_of(tables["nccl_bench"])
    assert (row["nranks"], row.get("num_nodes")) == (8, None)
    assert row_of(tables["nccl_files"])["nranks_max"] == 8
