"""Tables withheld from every fit stay as near as they were found."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from sweepscope.pipeline.estimate.calibration.transfer_tables import TABLES
from tests.validation.unseen import FILE, FIRST, unseen

TIME = {
    **{"qwen3_16_h100": 16, "llama_8_a800_deepspeed": 24, "gaudi2_fp8": 10},
    **{"megatron_gh200": 17, "megatron_h800_h200": 5, "lumen_mi325x_mi350x": 13},
    **{"maxtext_h100": 10, "dgxc_deepseek": 31, "amd_results": 9, "dlperf_megatron": 8, "dlperf_oneflow": 20},
    **{"aurora_70b": 11, "neuron_trn1": 30, "paddle_a100": 9, "xtuner_a100": 8, "moezoo_qwen3": 15, "llmq": 30},
    **{"scaletorch_910b": 27, "kempner_h200": 13, "lumi_mi250x": 24, "vectorlm_a100": 5, "frontier_torchtitan": 28},
}
"""Median error of step times, percent, a little above what they were off by when they were added."""
ORDER = {"moezoo_qwen3": 0.4, "scaletorch_910b": 0.5}
"""Order of layouts where it is worse: of ModelZoo's five, FSDP, as fast as the best, is put fourth, and PP 32 second;
of ScaleTorch's six of 32B two and four take as long within 3 %."""


@pytest.fixture(scope="module")
def found() -> pl.DataFrame:
    return unseen()


def test_step_times_are_no_further_off_than_they_were(found: pl.DataFrame) -> None:
    medians = dict(found.select("table", "median %").rows())
    assert medians.keys() == TIME.keys() == FIRST.keys()
    assert {table: off for table, off in medians.items() if off > TIME[table]} == {}
    assert found["refused"].sum() == 0


def test_layouts_of_a_cell_are_in_order(found: pl.DataFrame) -> None:
    ranked = found.drop_nulls("Spearman")
    assert ranked["cells"].sum() >= 5
    orders = dict(ranked.select("table", "Spearman").rows())
    assert {table: rank for table, rank in orders.items() if rank <= ORDER.get(table, 0.75)} == {}
    assert (ranked["regret %"] < 8).all()


def test_what_ran_out_of_memory_is_known(found: pl.DataFrame) -> None:
    assert found["out of memory"].sum() == found["of them known"].sum() == 7


def test_no_fit_reads_the_file() -> None:
    names = pl.read_csv(FILE, infer_schema_length=0)["source_id"].unique()
    assert not set(names) & set(TABLES)
    product = Path(__file__).parents[2] / "pipeline"
    assert not [path for path in product.rglob("*.py") if any(name in path.read_text("utf-8") for name in names)]
