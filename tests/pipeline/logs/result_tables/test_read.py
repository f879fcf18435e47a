"""Tables of one's own with a row per run: names, units and words as people use them, and what is none of them."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepscope.pipeline.logs.result_tables.read import RunTable, read_runs

SPELLINGS = {
    "dp": ("dp", "DP", "dp_size", "data_parallel_size"),
    "tp": ("tp", "TP size", "tensor_parallel", "tensor-model-parallel-size"),
    "pp": ("pp", "PP", "pipeline_parallel_size", "pipeline stages"),
    "mbs": ("mbs", "micro_batch_size", "micro-batch", "per_device_batch_size"),
    "gas": ("ga", "grad_accum", "gradient_accumulation_steps", "Grad Acc"),
    "seq_len": ("seq_len", "sequence length", "ctx_len", "SeqLen"),
    "num_gpus": ("gpus", "#GPUs", "world_size", "num_gpus"),
}
MEASURES = {
    "tokens_per_s_per_gpu": (
        ("tok/s/gpu", 1.0, "{:.1f}"),
        ("tokens_per_sec_per_gpu", 1.0, "{:.1f}"),
        ("ktok/s/GPU", 1e3, "{:.4f}"),
        ("TGS", 1.0, "{:,.1f}"),
    ),
    "step_time_s": (
        ("step_time_s", 1.0, "{:.4f}"),
        ("iter time (ms)", 1e-3, "{:.1f}"),
        ("s/it", 1.0, "{:.4f}"),
        ("elapsed time per iteration (ms)", 1e-3, "{:.1f} ms"),
        ("mean_step_s", 1.0, "{:.4f}"),
        ("p50 iter ms", 1e-3, "{:.1f}"),
    ),
    "mfu_logged": (("mfu", 1.0, "{:.4f}"), ("MFU (%)", 1e-2, "{:.2f}"), ("mfu_pct", 1e-2, "{:.2f}%")),
    "mem_peak_allocated_bytes": (
        ("peak_mem_gib", 2.0**30, "{:.3f}"),
        ("max memory (MB)", 1e6, "{:.0f}"),
        ("mem_allocated", 2.0**30, "{:.3f}GiB"),
    ),
}
STATUSES = {"completed": ("ok", "done", "SUCCESS", "finished"), "oom": ("OOM", "CUDA out of memory")}


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, list[dict[str, Any]]]:
    """A table in somebody's spelling, and what its rows say."""
    settings = ["num_gpus", "dp", *draw(st.permutations(["tp", "pp", "mbs", "gas", "seq_len"]))]
    measures = draw(st.lists(st.sampled_from(sorted(MEASURES)), min_size=1, unique=True))
    names = {column: draw(st.sampled_from(SPELLINGS[column])) for column in settings}
    forms = {column: draw(st.sampled_from(MEASURES[column])) for column in measures}
    has_status = draw(st.booleans())
    header = [*names.values(), *(form[0] for form in forms.values()), *(["status"] if has_status else [])]
    rows, truth = [], []
    for _ in range(draw(st.integers(1, 6))):
        degrees = {column: draw(st.sampled_from([1, 2, 4])) for column in ("dp", "tp", "pp")}
        known = degrees | {"num_gpus": degrees["dp"] * degrees["tp"] * degrees["pp"]}
        known |= {"mbs": draw(st.integers(1, 64)), "gas": draw(st.integers(1, 256))}
        known |= {"seq_len": draw(st.sampled_from([512, 2048, 131_072]))}
        status = draw(st.sampled_from(sorted(STATUSES))) if has_status or len(rows) > 0 else "completed"
        values = {
            "tokens_per_s_per_gpu": draw(st.floats(100, 90_000)),
            "step_time_s": draw(st.floats(0.2, 90)),
            "mfu_logged": draw(st.floats(0.05, 0.75)),
            "mem_peak_allocated_bytes": draw(st.floats(2e9, 1.9e11)),
        }
        cells = [str(known[column]) for column in settings]
        for column, (_, factor, form) in forms.items():
            cells.append(form.format(values[column] / factor) if status == "completed" else "OOM")
        words = STATUSES[status]
        rows.append([*cells, *([draw(st.sampled_from(words))] if has_status else [])])
        kept = {column: values[column] if status == "completed" else None for column in measures}
        truth.append({column: known[column] for column in settings} | kept | {"status": status})
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=draw(st.sampled_from(",;\t"))).writerows([header, *rows])
    return text.getvalue(), truth


def read(text: str) -> RunTable:
    found = read_runs(text)
    assert found is not None
    return found


@given(tables())
def test_a_table_in_anybodys_spelling_is_read_to_the_last_cell(table: tuple[str, list[dict[str, Any]]]) -> None:
    text, truth = table
    runs = read(text).runs.to_dicts()
    assert len(runs) == len(truth)
    for run, wanted in zip(runs, truth, strict=True):
        for column, value in wanted.items():
            expected = pytest.approx(value, rel=2e-2) if isinstance(value, float) else value
            assert run[column] == expected, (column, text)


def test_a_layout_in_one_cell_a_word_for_the_end_and_a_table_of_markdown() -> None:
    found = read(
        "| Strategy | nodes | #GPUs | micro-batch | ktok/s/GPU | MFU (%) |\n|---|---|---|---|---|---|\n"
        "| DP8 TP2 | 2 | 16 | 2 | 9.1 | 45.1 |\n| DP4 TP4 | 2 | 16 | 4 | OOM | - |\n"
    )
    columns = ("dp", "tp", "num_nodes", "mbs", "tokens_per_s_per_gpu", "mfu_logged", "status")
    assert found.runs.select(columns).rows() == [
        (8, 2, 2, 2, 9100.0, 0.451, "completed"),
        (4, 4, 2, 4, None, None, "oom"),
    ]
    assert found.runs["line_no"].to_list() == [3, 4]


def test_a_batch_of_unknown_kind_follows_from_what_stands_beside_it() -> None:
    by_tokens = read(
        "gpus,tp,batch_size,seq_len,tok/s,s/it,status\n8,2,16,2048,32768,1.0,ok\n8,2,4,2048,32768,1.0,ok\n"
    )
    assert by_tokens.runs.select("gbs", "mbs").rows() == [(16, None), (None, 4)]
    beside = read("gpus,dp,batch_size,grad_accum,mfu\n8,8,4,2,0.4\n")
    assert beside.runs.select("gbs", "mbs").rows() == [(None, 4)]
    alone = read("gpus,dp,batch_size,mfu\n8,8,4,0.4\n")
    assert alone.runs.select("gbs", "mbs").rows() == [(None, None)]


def test_headers_with_sections_units_and_shares_as_people_write_them() -> None:
    found = read(
        "trial,Model,mesh_dp,per_chip_batch,tps_per_chip,hbm_gb,peak mem GiB,MFU%,error\n"
        "1,GPT 7B,8,4,5123,70,71.5,45.2%,\n2,GPT 13B,8,4,\u2014,,,,RESOURCE_EXHAUSTED: Out of memory\n"
    )
    columns = ("model", "dp", "mbs", "tokens_per_s_per_gpu", "mfu_logged", "status")
    assert found.runs.select(columns).rows() == [
        ("GPT 7B", 8, 4, 5123.0, 0.452, "completed"),
        ("GPT 13B", 8, 4, None, None, "oom"),
    ]
    assert found.runs["mem_peak_allocated_bytes"].to_list() == [70_000_000_000, None]


def test_one_setting_is_enough_beside_three_results() -> None:
    found = read("path,batch,step time,tok/s,MFU\nfull,128,0.2653s,247.0k,53.8%\n")
    assert found.runs.select("step_time_s", "tokens_per_s", "mfu_logged").rows() == [(0.2653, 247_000.0, 0.538)]
    assert ("batch", "128") in found.cells.select("name", "value").rows(), "of one card or of all is unknown"
    assert read_runs("path,batch,tok/s\nfull,128,100\n") is None


def test_words_of_recomputation_stages_and_precision() -> None:
    found = read(
        "gpus,tp,act_ckpt,zero,dtype,model,samples/s,seq_len\n8,1,none,ZeRO-3,bfloat16,7b,16,1024\n8,2,True,1,fp16,7b,8,1024\n"
    )
    assert found.runs.select("recompute", "zero_stage", "precision", "model", "tokens_per_s").rows() == [
        ("none", 3, "bf16", "7B", 16_384.0),
        ("full", 1, "fp16", "7B", 8_192.0),
    ]


def test_what_each_column_was_taken_for_and_what_configures_a_run_are_kept() -> None:
    found = read("name,gpus,tp,compile,note,tok/s,loss_final\na,8,1,True,x/y,100,2.25\nb,8,2,False,,200,2.5\n")
    assert dict(found.columns.select("field", "column_name").rows()) == {
        "gpus": "num_gpus",
        "tp": "tp",
        "tok/s": "tokens_per_s",
    }
    assert found.cells.filter(line_no=2).select("name", "value").rows() == [
        ("name", "a"),
        ("gpus", "8"),
        ("tp", "1"),
        ("compile", "True"),
        ("note", "x/y"),
        ("result.loss_final", "2.25"),
    ]


def test_a_row_that_is_cut_is_rejected_with_its_line() -> None:
    found = read("gpus,tp,mbs,tok/s\n8,1,2,100\n8,2\n8,,,\n")
    assert found.runs["line_no"].to_list() == [2, 4]
    assert found.rejects.rows() == [(3, "2 fields where the header names 4", "8,2")]
    assert found.runs["status"].to_list() == ["completed", "unknown"]


@pytest.mark.parametrize(
    "text",
    [
        "step,loss,lr,tok/s\n1,2.5,1e-4,100\n",
        "step,tp,mbs,tok/s\n1,2,4,100\n2,2,4,101\n3,2,4,99\n",  # the steps of one run
        "tp,pp,mbs,gas\n1,2,4,8\n",  # a plan
        "gpus,tp,mbs,est_tokens_per_s,tok/s\n8,1,2,100,100\n",  # estimates
        "model,tp,gpus,batch_size,ttft_ms,output tok/s\n8B,2,2,16,40,900\n",  # serving
        "name,price,color,size\na,1,red,4\n",
        "a\n",
        "",
    ],
)
def test_other_tables_are_none_of_runs(text: str) -> None:
    assert read_runs(text) is None
