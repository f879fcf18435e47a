"""What the driver of a sweep prints of each layout, line by line, without a header."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepscope.pipeline.logs.result_tables.read import read_runs, read_text
from tests.pipeline.ingest_in_memory import batch_of, tables_of

HEAD = "sweep of 4 configs: llama3-70b, 8 nodes x 8 H200, gbs 256, seq 8192\n"
LAYOUTS = [(4, 2, 8, 1), (8, 1, 8, 2), (8, 2, 4, 2), (4, 4, 4, 4)]
FORMS = [
    "[{n}/4] tp={tp} pp={pp} dp={dp} mbs={mbs} ... {s:.2f} s/step, {rate:,.0f} tok/s/gpu, {mfu:.1f}% MFU, peak {gb} GB",
    "RESULT tp={tp} pp={pp} mbs={mbs} step_time={s:.2f}s tokens_per_s_per_gpu={rate:.0f} mfu={mfu:.1f}% mem={gb}GB",
    "2026-11-20 10:00:0{n} INFO TP {tp} PP {pp} mbs {mbs} -> {rate:.0f} tok/s/gpu ({s:.2f} s per step)",
    "dp{dp}-tp{tp}-pp{pp}-mbs{mbs}: {s:.2f} s/step, {rate:.0f} tokens/s/gpu",
]


def printed(form: str) -> str:
    rows = []
    for number, (tp, pp, dp, mbs) in enumerate(LAYOUTS, 1):
        values = {"n": number, "tp": tp, "pp": pp, "dp": dp, "mbs": mbs, "s": 40 + number / 4, "gb": 80 + mbs}
        row = form.format(**values, rate=700.0 + number, mfu=30 + number / 10)
        if number == len(LAYOUTS):
            row = row[: row.index(str(mbs), row.index("mbs")) + 1] + ": CUDA out of memory"
        rows.append(row)
    return HEAD + "\n".join(rows) + "\nbest: tp=8 pp=1 mbs=2\n"


@pytest.mark.parametrize("form", FORMS)
def test_a_line_for_each_layout_is_a_run(form: str) -> None:
    found = read_text(printed(form))
    assert found is not None
    runs = found.runs.to_dicts()
    assert [(run["tp"], run["pp"], run["mbs"]) for run in runs] == [(tp, pp, mbs) for tp, pp, _, mbs in LAYOUTS]
    assert [run["status"] for run in runs] == ["completed"] * 3 + ["oom"]
    assert [run["step_time_s"] for run in runs] == [40.25, 40.5, 40.75, None]
    assert [run["tokens_per_s_per_gpu"] for run in runs] == [701, 702, 703, None]
    assert {(run["model"], run["num_nodes"], run["gbs"], run["seq_len"]) for run in runs} == {
        ("Llama 3 70B", 8, 256, 8192)
    }


@pytest.mark.parametrize(
    "line",
    [
        "running tp={tp} pp={pp} dp={dp} mbs={mbs}",  # what will be done
        "step={n} tp={tp} pp={pp} dp={dp} loss=2.31 {s:.2f} s/step",  # a step
        "tp={tp}: {s:.2f} s/step",  # a single setting may be anything
        "tp=8 pp=2 took {s:.2f} s/step",  # always the same
    ],
)
def test_other_lines_are_none(line: str) -> None:
    rows = (
        line.format(n=number, tp=tp, pp=pp, dp=dp, mbs=mbs, s=40 + number)
        for number, (tp, pp, dp, mbs) in enumerate(LAYOUTS)
    )
    assert read_text(HEAD + "\n".join(rows)) is None


def test_the_log_of_a_driver_is_a_table_of_runs_and_that_of_a_training_is_none() -> None:
    (cells,) = batch_of({"sweep.log": printed(FORMS[0])}).table_arguments
    assert cells["run_id"].n_unique() == len(LAYOUTS)
    steps = "".join(f"step {step} loss {8 / step:.3f} tp=2 pp=1 mbs=4 812 ms/step\n" for step in range(1, 41))
    assert tables_of({"train.log": steps})["runs"].height == 1


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    read_text(text)


TABLE = """\
"# Llama-3-8B, 4 nodes of 8x H100, seq 8192, gbs 512"
TP,PP,micro batch,act. recompute,step time,tokens/s/GPU,MFU,peak mem
,,,,[s],,[%],[GiB]
1,1,1,full,16.05,8164,39.8,56
2,1,2,selective,15.33,8551,41.7,62
1,2,1,none,-,-,-,OOM
"""


def test_titles_above_a_header_and_units_below_it_are_those_of_all_rows() -> None:
    found = read_runs(TABLE)
    assert found is not None
    first, second, third = found.runs.to_dicts()
    assert (first["model"], first["num_nodes"], first["seq_len"], first["gbs"]) == ("Llama 3 8B", 4, 8192, 512)
    assert (first["step_time_s"], first["mfu_logged"], first["mem_peak_allocated_bytes"]) == (16.05, 0.398, 56 << 30)
    assert (first["recompute"], second["recompute"], third["status"]) == ("full", "selective", "oom")
    assert first["line_no"] == 4
