"""Tables that no constant was or is fitted to: published sweeps on machines of others, estimated as they are.

`unseen.csv` holds facts, each row with its source; what a source leaves open is named in `notes`. First figures are
those of the estimator as it was before anybody had looked at the table (FIRST).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from sweepscope.pipeline.estimate.calibration.transfer_tables import of_generation, residuals_of
from sweepscope.pipeline.estimate.learned.transfer import Transfer
from sweepscope.pipeline.estimate.rows.asking import OK
from sweepscope.pipeline.estimate.rows.estimate_rows import estimate_frame
from tests.validation.cells import rank_cells

FILE: Final = Path(__file__).with_name("unseen.csv")
FIRST: Final = {
    "qwen3_16_h100": 14.8,
    "llama_8_a800_deepspeed": 22.6,
    "gaudi2_fp8": 94.1,
    "megatron_gh200": 14.9,
    "megatron_h800_h200": 3.1,
    "lumen_mi325x_mi350x": 11.7,
    "maxtext_h100": 17.6,
    "dgxc_deepseek": 29.5,
    "amd_results": 7.1,
    "dlperf_megatron": 10.3,
    "dlperf_oneflow": 18.6,
    "aurora_70b": 10.0,
    "neuron_trn1": 28.3,
    "paddle_a100": 7.2,
    "xtuner_a100": 6.2,
    "moezoo_qwen3": 12.9,
    "llmq": 24.9,
    "scaletorch_910b": 25.5,
    "kempner_h200": 14.4,
    "lumi_mi250x": 22.1,
    "vectorlm_a100": 3.8,
    "frontier_torchtitan": 25.9,
}
"""Median error of step times at first sight, percent, of the rows that were not refused.

Tables that were refused as a whole (Aurora, Trainium) are here with the first figures of their cards.
"""
SMALLEST: Final = 3
"""Cells of fewer layouts are not ranked."""
_CELL = ("model", "accelerator", "num_gpus", "seq_len", "global_batch_size_seqs")


@cache
def estimated() -> pl.DataFrame:
    """Every row of the file with its estimate."""
    return estimate_frame(pl.read_csv(FILE, infer_schema_length=0))


def as_unknown() -> list[Transfer]:
    """Residuals of each table by generation and precision, as those of a framework that nothing is known of are."""
    tables = pl.read_csv(FILE, infer_schema_length=0).group_by("source_id", maintain_order=True)
    return [one for (name,), rows in tables for one in residuals_of(str(name), rows, of_generation, tuned=False)]


def unseen() -> pl.DataFrame:
    """Per table: errors of step times and memory, percent; how layouts of a cell are ranked; verdicts on memory."""
    out = []
    for (name,), rows in estimated().group_by("source_id", maintain_order=True):
        known = rows.filter(pl.col("est_status") == OK)
        ran = known.filter(pl.col("status") == "success")
        measured, predicted = ran["step_time_s"].cast(pl.Float64).to_numpy(), ran["est_step_time_s"].to_numpy()
        error = 100 * np.abs(predicted / measured - 1)
        ends = ran["est_step_time_lo_s"].to_numpy(), ran["est_step_time_hi_s"].to_numpy()
        inside = 100 * float(np.mean((measured >= ends[0]) & (measured <= ends[1])))
        cells = ran.select(_CELL).rows()
        is_ranked = max(cells.count(cell) for cell in cells) >= SMALLEST
        ranking = rank_cells(cells, predicted, measured, smallest=SMALLEST) if is_ranked else None
        held = ran.filter(pl.col("peak_mem_gb").is_not_null())
        memory = held["est_mem_bytes"].to_numpy() / 1e9 / held["peak_mem_gb"].cast(pl.Float64).to_numpy() - 1
        full = known.filter(pl.col("status") == "oom")
        out.append(
            (
                *(name, rows.height, rows.height - known.height, FIRST.get(str(name))),
                *(float(np.median(error)), float(np.mean(error)), inside),
                *((ranking.cells, ranking.spearman, 100 * ranking.regret) if ranking else (0, None, None)),
                100 * float(np.median(np.abs(memory))) if memory.size else None,
                *(full.height, int((~full["est_fits"]).sum())),
            )
        )
    schema = [
        *("table", "rows", "refused", "first median %", "median %", "mean %", "inside, % (80)"),
        *("cells", "Spearman", "regret %", "memory median %", "out of memory", "of them known"),
    ]
    return pl.DataFrame(out, schema=schema, orient="row")
