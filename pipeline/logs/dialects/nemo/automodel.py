"""Step lines of NVIDIA's NeMo Automodel.

Format: nemo_automodel/recipes/llm/train_ft.py log_train_metrics (`.. | INFO | root | step 9 | epoch 0 | loss 0.6974 |
grad_norm 1.5436 | lr 1.00e-05 | mem 24.90 GiB | tps 11278.56(1409.82/gpu) | num_label_tokens 21541`). Steps count from
0; `tps` is of all GPUs, and of one in parentheses; `mem` is the peak of what was allocated since the line before.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.extractors import extract_numbers
from sweepscope.pipeline.logs.facts import STEP_FACTS, conform
from sweepscope.pipeline.text.quantities import NUMBER, size
from sweepscope.pipeline.text.timestamps import timestamp

LITERAL = "| root | step "
_LOOKS_LIKE = r"\| root \| step \d+ \| epoch \d+ \| loss "


def _field(label: str) -> str:
    return rf"\| {label} ({NUMBER}) \|"


_NUMBERS = {
    "loss": _field("loss"),
    "grad_norm": _field("grad_norm"),
    "learning_rate": _field("lr"),
    "tokens_per_s": rf"\| tps ({NUMBER})[( ]",
    "tokens_per_s_per_gpu": rf"\| tps {NUMBER}\(({NUMBER})/gpu\)",
}
_OTHERS = {"number": r"\| step (\d+) \|", "memory": r"\| mem ([\d.]+ [KMGT]i?B) \|", "complete": r"\| (tps) [\d.]+"}


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of step lines; one that does not reach its throughput is cut and stays unparsed."""
    mine = lines.filter(pl.col("text").str.contains(_LOOKS_LIKE))
    rows = extract_numbers(mine, _NUMBERS, _OTHERS)
    return conform(
        rows.with_columns(
            ts=timestamp(pl.concat_str("prefix", "text", ignore_nulls=True)),
            step=pl.when(pl.col("complete").is_not_null()).then("number"),
            mem_allocated_bytes=size(pl.col("memory")),
        ),
        STEP_FACTS,
    )
