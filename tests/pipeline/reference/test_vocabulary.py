from __future__ import annotations

import polars as pl
import pytest

from sweepscope.pipeline.reference import vocabulary
from sweepscope.schemas import vocab


@pytest.mark.parametrize(
    ("text", "stage"),
    [
        ("zero1", 1),
        ("ZeRO-3", 3),
        ("zero_2", 2),
        ("zero1 within groups of 8", 1),
        ("none", 0),
        ("DP", 0),
        ("FSDP", 3),
        ("FSDP2", 3),
        ("FSDP FULL_SHARD", 3),
        ("FSDP SHARD_GRAD_OP", 2),
        ("HSDP", 3),
        ("2D FSDP", 3),
        ("FSDP (shards optimizer and gradients, params kept after forward)", 2),
        ("ZeRO (stage not stated)", None),
        ("zero7", None),
        ("", None),
    ],
)
def test_reads_the_zero_stage_from_text(text: str, stage: int | None) -> None:
    assert vocabulary.canonical_zero_stage(text) == stage


def test_every_precision_and_recompute_word_is_in_the_vocabulary() -> None:
    assert set(vocabulary._PRECISIONS.values()) <= set(vocab.PRECISION)
    assert set(vocabulary._RECOMPUTE.values()) <= set(vocab.RECOMPUTE)
    assert all(vocabulary.canonical_precision(word) == word for word in vocab.PRECISION)
    assert all(vocabulary.canonical_recompute(word) == word for word in vocab.RECOMPUTE)


def test_text_becomes_its_word_and_missing_text_stays_missing() -> None:
    column = pl.Series("precision", ["amp_bf16", "posit8", None])
    assert vocabulary.map_words(column, vocabulary.canonical_precision, pl.String).to_list() == [
        "bf16",
        "unclear",
        None,
    ]


def test_a_column_without_text_stays_null() -> None:
    column = pl.Series("x", [None, None], dtype=pl.String)
    mapped = vocabulary.map_words(column, vocabulary.canonical_bool, pl.Boolean)
    assert mapped.dtype == pl.Boolean
    assert mapped.null_count() == 2
