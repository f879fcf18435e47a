"""Tables of European spreadsheets."""

from __future__ import annotations

from sweepscope.pipeline.logs.result_tables.read import read_runs

HEADER = "Run;GPUs;GBS;Seq len;Tokens/s;MFU (%);Loss\n"


def test_commas_are_decimal_where_one_number_says_so() -> None:
    found = read_runs(HEADER + "a;8;64;4096;25.600,5;38,2;2,314\nb;16;128;4096;50.112;37,4;2,290\n")
    assert found is not None
    figures = found.runs.select("tokens_per_s", "mfu_logged", "last_loss").rows()
    assert [tuple(round(number, 6) for number in row) for row in figures] == [
        (25600.5, 0.382, 2.314),
        (50112.0, 0.374, 2.29),
    ]


def test_commas_of_thousands_stay() -> None:
    found = read_runs(HEADER + "a;8;64;4,096;25,600;38.2;2.314\nb;16;128;4,096;50,112;37.4;2.290\n")
    assert found is not None
    assert found.runs.select("seq_len", "tokens_per_s").rows() == [(4096, 25600.0), (4096, 50112.0)]


def test_numbers_that_contradict_each_other_are_left_as_they_are() -> None:
    found = read_runs(HEADER + "a;8;64;4096;25,600.5;38,2;2.31\nb;16;128;4096;50,112.0;37,4;2.29\n")
    assert found is not None
    assert found.runs["tokens_per_s"].to_list() == [25600.5, 50112.0]
