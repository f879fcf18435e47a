"""The records of rccl-tests' `-x FILE -Z csv|json`: keys as src/common.cu writes them, numbers made up."""

from __future__ import annotations

from typing import Any

import pytest

from sweepscope.pipeline.ingest.validate import validate
from sweepscope.pipeline.nccl.bench.json_report import is_bench as is_document
from sweepscope.pipeline.nccl.bench.rccl_records import is_bench, read_bench
from sweepscope.schemas.registry import TABLES
from tests.pipeline.ingest_in_memory import batch_of
from tests.pipeline.nccl.reading import tables_from

MPI_HEADER = "collective, ranks, rankspernode, gpusperrank, size, type, redop, inplace, time, algbw, busbw, #wrong\n"
ALONE_HEADER = "collective, gpus, size, type, redop, inplace, time, algbw, busbw, #wrong\n"


def record(size: int, in_place: int, time: float, *, cycle: str = '"numCycle":0, ', name: str = "AllReduce") -> str:
    return (
        f'{{{cycle}"name":"{name}", "nodes":2, "ranks":16, "ranksPerNode":8, "gpusPerRank":1, "size":{size}, '
        f'"type":"float", "redop":"sum", "inPlace":{in_place}, "time":{time:f}, "algBw":20.500000, '
        '"busBw":38.437500, "wrong":"0"}'
    )


RECORDS = [record(1 << 20, 0, 50.5), record(1 << 20, 1, 51.5), record(1 << 21, 0, 80.25), record(1 << 21, 1, 81.25)]
LIST = "[\n" + ",\n".join(RECORDS) + "\n]\n"
LINES = "".join(
    record(1 << size, in_place, size + 0.5 * in_place, cycle="") + "\n" for size in (20, 21) for in_place in (0, 1)
)
CSV = MPI_HEADER + "".join(
    f'"AllReduce", 2, 16, 8, 1, {size}, "float", "sum", {in_place}, {time:f}, 20.500000, 38.437500, "N/A"\n'
    for size, in_place, time in ((1 << 20, 0, 50.5), (1 << 20, 1, 51.5), (1 << 21, 0, 80.25), (1 << 21, 1, 81.25))
)


def rows_of(text: str) -> list[dict[str, Any]]:
    assert is_bench(text)
    assert not is_document(text)
    return list(tables_from(read_bench(text, 0), ["x.json"])["nccl_bench"].iter_rows(named=True))


@pytest.mark.parametrize("text", [LIST, CSV])
def test_a_size_is_one_row_with_both_placements(text: str) -> None:
    first, second = rows_of(text)
    assert (first["line_no"], first["op"], first["op_source"], first["table_no"]) == (1, "AllReduce", "printed", 1)
    assert (first["nranks"], first["num_nodes"]) == (16, 2)
    assert (first["message_bytes"], first["datatype"], first["reduction"]) == (1 << 20, "float", "sum")
    assert (first["element_count"], first["root"]) == (None, None)
    assert (first["time_s"], first["in_place_time_s"]) == pytest.approx((50.5e-6, 51.5e-6))
    assert first["busbw_bytes_per_s"] == pytest.approx(38.4375e9)
    assert first["wrong_elements"] == (None if text is CSV else 0)
    assert (second["line_no"], second["message_bytes"], second["in_place_time_s"]) == (
        2,
        1 << 21,
        pytest.approx(81.25e-6),
    )


def test_records_of_older_versions_stand_one_per_line() -> None:
    assert [row["message_bytes"] for row in rows_of(LINES)] == [1 << 20, 1 << 21]


def test_a_record_that_was_cut_is_left_out() -> None:
    rows = rows_of(LIST[: LIST.rindex('"algBw"')])
    assert [(row["time_s"] is None, row["in_place_time_s"] is None) for row in rows] == [(False, False), (False, True)]


def test_without_mpi_the_gpus_are_the_ranks() -> None:
    text = ALONE_HEADER + '"AllGather", 8, 1024, "half", "none", 1, 12.5, 1.5, 1.25, "0"\n"AllGather", 8, 10'
    (row,) = rows_of(text)
    assert (row["op"], row["nranks"], row["num_nodes"], row["time_s"]) == ("AllGather", 8, 1, None)
    assert row["in_place_time_s"] == pytest.approx(12.5e-6)


def test_each_operation_is_a_table_and_a_cycle_repeats_the_rows() -> None:
    again = [record(1 << 20, 0, 9.5, cycle='"numCycle":1, '), record(1 << 20, 0, 7.5, name="Broadcast")]
    rows = rows_of("[\n" + ",\n".join([*RECORDS[:2], *again]) + "\n]\n")
    assert [(row["op"], row["table_no"], row["in_place_time_s"] is None) for row in rows] == [
        ("AllReduce", 1, False),
        ("AllReduce", 1, True),
        ("Broadcast", 2, True),
    ]


@pytest.mark.parametrize("name", ["rccl_all_reduce.json", "bench.log", "bench.csv"])
def test_a_file_is_known_by_its_content(name: str) -> None:
    batch = batch_of({name: CSV if name.endswith("csv") else LIST})
    assert batch.files.select("kind", "parser", "status").rows() == [("nccl", "nccl", "parsed")]
    assert batch.other["nccl_bench"].height == 2


@pytest.mark.parametrize("text", ['[{"name": "AllReduce", "loss": 1}]', "name,size,loss\n", "step: 1\n", "[]"])
def test_other_texts_are_none(text: str) -> None:
    assert not is_bench(text)


def test_impossible_values_are_rejects_and_not_unknown() -> None:
    text = "".join(record(size, 0, time, cycle="") + "\n" for size, time in ((64, 5.0), (-128, 5.0), (256, -5.0)))
    judged = validate(TABLES["nccl_bench"], tables_from(read_bench(text, 0), ["x.json"])["nccl_bench"])
    assert judged.valid["message_bytes"].to_list() == [64, None, 256]
    assert judged.valid["time_s"].is_null().to_list() == [False, False, True]
    assert judged.rejects.select("line_no", "column").rows() == [(2, "message_bytes"), (3, "time_s")]
