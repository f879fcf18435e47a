"""Facts that a row states decide what a framework's profile would have assumed."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from sweepscope.pipeline.estimate.rows.estimate_rows import estimate_frame

ROW = {
    **{"model": "Llama 2 7B", "accelerator": "H100", "precision": "bf16", "recompute": "none"},
    **{"seq_len": "4096", "num_gpus": "64", "dp": "16", "tp": "2", "pp": "2", "micro_batch_size": "1"},
    **{"grad_accum": "8", "vpp": "4", "zero_stage_or_fsdp": "zero1", "sequence_parallel": "true"},
}


def estimated(**facts: str | None) -> dict[str, Any]:
    return estimate_frame(pl.DataFrame([{**ROW, **facts}])).row(0, named=True)


@pytest.mark.parametrize("which", ["tp", "dp", "pp"])
def test_an_exchange_that_does_not_overlap_is_exposed(which: str) -> None:
    usual, alone, beside = (estimated(**{f"overlap_{which}": said}) for said in (None, "false", "true"))
    part = f"est_time_{which}_s"
    assert alone[part] > 1.1 * usual[part]
    assert beside[part] == usual[part]


def test_gradients_in_16_bit_are_half_the_bytes() -> None:
    usual, long, short = (estimated(grad_precision=said) for said in (None, "fp32", "bfloat16"))
    assert long == {**usual, **{name: long[name] for name in long if name not in usual}, "grad_precision": "fp32"}
    assert short["est_mem_gradients_bytes"] == pytest.approx(usual["est_mem_gradients_bytes"] / 2)
    assert short["est_time_dp_s"] < usual["est_time_dp_s"]
    assert estimated(grad_precision="soft")["est_status"] == "not understood: grad_precision = soft"


def test_small_buckets_pay_for_each_call() -> None:
    usual, small = (estimated(bucket_mb=said, overlap_dp="false") for said in ("1000", "1"))
    assert small["est_time_dp_s"] > 1.2 * usual["est_time_dp_s"]
