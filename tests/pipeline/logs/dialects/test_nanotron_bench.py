"""nanotron's benchmark table, current and older columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sweepscope.pipeline.logs.dialects.nanotron_bench import matches, read
from tests.pipeline.logs.logs import tables_of

HEADER = (
    "job_id,name,nodes,seq_len,mbs,batch_accum,gbs,mTFLOPs,hTFLOPs,tok/s/gpu,Mem Alloc (GB),Mem Res (GB),dp,pp,tp,cp,ep,"
    "pp_engine,tp_mode,tp_async_comm,recompute_layer,hidden_size,hidden_act,num_layers,num_heads,num_kv_heads,max_pos,"
    "vocab_size,tie_word_embeddings,dtype,zero_stage,ddp_bucket_cap_mb,accumulate_grad_in_fp32,Total Params,Local Params"
)
ROW = (
    "123,a run,2,4096,2,8,64,350.50,360.00,40000.25,10.50,20.00,4,2,2,1,1,1f1b,TensorParallelLinearMode.REDUCE_SCATTER,"
    "True,True,2048,silu,16,32,8,4096,131072,True,torch.bfloat16,1,25,True,1.34G,335M"
)
OLD_HEADER = (
    "name,nodes,seq_len,mbs,batch_accum,gbs,mTFLOPs,hTFLOPs,tok/s/gpu,Bandwidth (GB/s),Mem Alloc (GB),Mem Res (GB)"
)
OLD_ROW = "2_dp4_tp2_pp2_acc8_mbs2_seq4096_zero1_tpmodeRED,2,4096,2,8,64,350.50,360.00,40000.25,1.00,10.50,20.00"


def one(text: str) -> dict[str, Any]:
    rows, rejects = read(text)
    assert rejects.is_empty()
    assert rows.height == 1
    return rows.row(0, named=True)


def test_current_columns() -> None:
    run = one(f"{HEADER}\n{ROW}\n")
    wanted = {
        "line_no": 2,
        "job_id": "123",
        "num_nodes": 2,
        "num_gpus": 16,
        "dp": 4,
        "pp": 2,
        "tp": 2,
        "cp": 1,
        "ep": 1,
        "mbs": 2,
        "gas": 8,
        "seq_len": 4096,
        "zero_stage": 1,
        "recompute": "full",
        "sequence_parallel": True,
        "precision": "bf16",
        "pipeline_schedule": "1f1b",
        "gated_mlp": True,
        "tie_word_embeddings": True,
        "tokens_per_s_per_gpu": 40000.25,
        "tflops_per_gpu_logged": 350.5,
        "params": 1_340_000_000,
        "mem_peak_allocated_bytes": round(10.5 * 2**30),
        "mem_peak_reserved_bytes": 20 * 2**30,
        "status": "completed",
    }
    assert {name: run[name] for name in wanted} == wanted


def test_older_columns_fall_back_on_the_name() -> None:
    run = one(f"{OLD_HEADER}\n{OLD_ROW}\n")
    assert {name: run[name] for name in ("dp", "tp", "pp", "zero_stage", "gas")} == {
        "dp": 4,
        "tp": 2,
        "pp": 2,
        "zero_stage": 1,
        "gas": 8,
    }
    assert (run["num_gpus"], run["hidden_size"], run["job_id"]) == (16, None, None)


def test_column_order_does_not_matter() -> None:
    names, cells = HEADER.split(","), ROW.split(",")
    turned = ",".join(reversed(names)) + "\n" + ",".join(reversed(cells)) + "\n"
    assert {**one(turned)} == {**one(f"{HEADER}\n{ROW}\n")}


def test_expert_ranks_count_as_data_parallel_ones() -> None:
    run = one(f"{HEADER}\n{ROW.replace('4,2,2,1,1,1f1b', '4,2,2,1,2,1f1b')}\n")
    assert (run["dp"], run["ep"], run["num_gpus"]) == (8, 2, 32)


def test_a_row_without_throughput_never_reported_back() -> None:
    run = one(f"{HEADER}\n{ROW.replace('350.50,360.00,40000.25,10.50,20.00', '-1.00,-1.00,-1.00,0.00,0.00')}\n")
    assert (run["status"], run["tokens_per_s_per_gpu"], run["tflops_per_gpu_logged"]) == ("unknown", None, None)
    assert run["mem_peak_allocated_bytes"] is None


def test_ragged_and_unreadable_rows_are_rejected_with_their_line() -> None:
    text = f"{HEADER}\n{ROW}\n1,2,3\n{HEADER}\n{ROW.replace('4096,2,8', 'x,2,8')}\n{ROW}\n"
    rows, rejects = read(text)
    assert rows["line_no"].to_list() == [2, 6]
    assert rejects["line_no"].to_list() == [3, 5]


def test_an_empty_table_has_no_rows() -> None:
    rows, rejects = read(HEADER + "\n")
    assert rows.is_empty()
    assert rejects.is_empty()


def test_only_this_table_is_recognised() -> None:
    assert matches(HEADER + "\n" + ROW)
    assert matches("\ufeff" + OLD_HEADER + "\r\n")
    assert not matches("step,loss,mbs\n1,2,3\n")
    assert not matches("")


def test_rows_become_runs(tmp_path: Path) -> None:
    (tmp_path / "bench.csv").write_text(f"{HEADER}\r\n{ROW}\r\n{ROW.replace('123', '124')}\r\n")
    runs = tables_of(tmp_path)["runs"]
    assert runs["num_gpus"].to_list() == [16, 16]
    assert runs["gbs_tokens"].to_list() == [64 * 4096] * 2
    assert runs["framework"].to_list() == ["nanotron"] * 2
    assert runs["run_id"].n_unique() == 2


def test_a_carriage_return_within_a_line_is_a_blank(tmp_path: Path) -> None:
    assert one(HEADER + "\r\n" + ROW.replace("a run", "a\rrun") + "\r\n")["line_no"] == 2
    assert matches("a\rb," + HEADER)
    (tmp_path / "beside.log").write_text("[rank0]:torchtitan version: 0.2.1\n", encoding="utf-8")
    tables = tables_of(tmp_path, f'{HEADER}\n{ROW}\n"{"x" * 200_000}', "bench.csv")  # beyond csv's longest field
    assert sorted(tables["files"]["status"]) == ["parsed", "rejected"]
    assert tables["runs"]["framework"].to_list() == ["torchtitan"]
