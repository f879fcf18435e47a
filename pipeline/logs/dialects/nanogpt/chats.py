"""nanochat's fine-tuning on conversations; a part of the `nanogpt` dialect.

Formats: nanochat scripts/chat_sft.py of 2025 (`Step 00648/00651 | Training loss: 1.333182| lrm: 0.004608| num_tokens:
7,389`). The last step of the plan is an evaluation, and not trained on. Tokens are those of one process's micro batch.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.extractors import extract_numbers
from sweepscope.pipeline.logs.facts import STEP_FACTS, conform
from sweepscope.pipeline.text.line_templates import matching
from sweepscope.pipeline.text.quantities import NUMBER
from sweepscope.pipeline.text.timestamps import timestamp

BEGINNING = r"Step [0-9]+/[0-9]+ \| Training loss: "
LITERAL = " | Training loss: "
SIGNATURE = "| lrm: "
END_LITERAL = "Saved model checkpoint to "
ENDED = r"^✅ Saved model checkpoint to \S"
"""Behind the last step; what comes then evaluates the model."""
_LINE = rf"^Step (\d+)/\d+ \| Training loss: {NUMBER}\| lrm: "
_COUNTERS = {"step": _LINE, "steps_planned": r"^Step \d+/(\d+) \|"}


def steps(bare: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of fine-tuning (see `without_logger`)."""
    mine = matching(bare, _LINE)
    found = extract_numbers(mine, {"loss": rf" \| Training loss: ({NUMBER})\|"}, _COUNTERS)
    ts = timestamp(pl.concat_str("prefix", "logged", ignore_nulls=True))
    return conform(found.with_columns(ts=ts, text="logged"), STEP_FACTS)
