"""Scripts after the lectures on GPT, which print nothing but evaluations; a part of the `nanogpt` dialect.

Formats: karpathy/ng-video-lecture gpt.py and v2.py (`step 500: train loss 2.1034, val loss 2.1811`), and the many that
came of it (ShakespeareGPT). nanoGPT's train.py prints the same between its steps, where it is no step: a file that has
others, or one such line only, as of a run that stopped before its first step, is left alone.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from sweepscope.pipeline.logs.extractors import extract_numbers
from sweepscope.pipeline.logs.facts import STEP_FACTS, Facts, conform
from sweepscope.pipeline.text.line_templates import matching
from sweepscope.pipeline.text.quantities import NUMBER
from sweepscope.pipeline.text.timestamps import timestamp

BEGINNING = r"step [0-9]+: train loss "
_LINE = rf"^step (\d+): train loss {NUMBER}, val loss {NUMBER}\s*$"
_MARK = -1
"""Tokens of an evaluation, until `finalize`."""


def steps(bare: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of evaluations (see `without_logger`), marked as such."""
    found = extract_numbers(matching(bare, _LINE), {"loss": rf": train loss ({NUMBER}),"}, {"step": _LINE})
    ts = timestamp(pl.concat_str("prefix", "logged", ignore_nulls=True))
    return conform(found.with_columns(ts=ts, text="logged", consumed_tokens=_MARK), STEP_FACTS)


def finalize(facts: Facts) -> Facts:
    """Evaluations as steps, in files that have several of them and nothing else."""
    is_evaluation = pl.col("consumed_tokens") == _MARK
    is_evaluation = is_evaluation.fill_null(value=False)
    if not facts.steps.select(is_evaluation.any()).item():
        return facts
    is_alone = is_evaluation.all().over("source") & (pl.len().over("source") > 1)
    kept = facts.steps.filter(~is_evaluation | is_alone)
    unmarked = pl.when(~is_evaluation).then("consumed_tokens").cast(STEP_FACTS["consumed_tokens"])
    return replace(facts, steps=kept.with_columns(consumed_tokens=unmarked))
