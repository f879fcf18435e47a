"""Values that somebody states of runs whose logs do not say them: checked like those that are read."""

from __future__ import annotations

from difflib import get_close_matches

import polars as pl

from sweepscope.pipeline.logs.declared.columns import PEAKS, RUN_COLUMNS, SHARDS, suggestion, target
from sweepscope.pipeline.reference.accelerators import canonical_accelerator, load_accelerators
from sweepscope.pipeline.reference.vocabulary import canonical_bool, canonical_precision, canonical_recompute
from sweepscope.schemas.registry import COLUMNS

STATABLE = tuple(name for name in RUN_COLUMNS if name not in (*PEAKS, SHARDS, "job_id"))
"""Columns of `runs` that may be stated: what was started, where and with what; nothing that is measured."""

_HIGHEST = 2.0**63
"""More than this no column holds."""


def fitting(name: str, value: object) -> tuple[str, str]:
    """Column that `name` means, and the value as text.

    Raises ValueError for a column that is not known, and for a value that it cannot hold.

    >>> fitting("num_gpus", 64)
    ('num_gpus', '64')
    """
    column = target(name, None, RUN_COLUMNS)
    known = COLUMNS[column.column]
    if not column.dtype.is_numeric():
        if isinstance(value, str | bool):
            return column.column, str(value)
        raise ValueError(f"{name} is {value!r}. Write a text between quotes")
    lowest, is_number = known.minimum or 0, isinstance(value, int | float) and not isinstance(value, bool)
    number = float(value) if isinstance(value, int | float) and abs(value) < _HIGHEST else -1.0
    is_whole = column.dtype != pl.Int64 or number.is_integer()
    if is_number and number >= lowest and is_whole and (number > 0 or not known.positive):
        return column.column, str(value)
    raise ValueError(f"{name} is {value!r}. Write {'a number above 0' if lowest or known.positive else 'a number'}")


def known_value(name: str, value: object) -> tuple[str, str]:
    """`fitting`, for a column that may be stated and a value that is a known one where the column has a vocabulary.

    Raises ValueError as `fitting` does, with the words that are near.

    >>> known_value("accelerator", "NVIDIA H100 80GB HBM3")
    ('accelerator', 'H100-SXM-80GB')
    """
    try:
        column, text = fitting(name, value)
    except ValueError as error:
        if " is no column here" in str(error) or " here it is not a column" in str(error):
            raise ValueError(f"{name} is no column that may be stated. {suggestion(name, STATABLE)}") from error
        raise
    if column not in STATABLE:
        raise ValueError(f"{name} is measured, and may not be stated. {suggestion(name, STATABLE)}")
    if not text.strip():
        raise ValueError(f"{name} is empty. Write a value, or leave it out")
    if column == "accelerator":
        if (card := canonical_accelerator(text)) is None:
            raise ValueError(_unknown(name, text, load_accelerators()["accelerator"].to_list()))
        return column, card
    if COLUMNS[column].dtype == pl.Boolean:
        if canonical_bool(text) is None:
            raise ValueError(f"{name} is {text!r}. Write true or false")
        return column, str(canonical_bool(text)).lower()
    words = COLUMNS[column].words
    if words:
        word = {"precision": canonical_precision, "recompute": canonical_recompute}.get(column, str)(text)
        if word not in words or word == "unclear":
            raise ValueError(_unknown(name, text, [word for word in words if word != "unclear"]))
        return column, word
    return column, text.strip()


def from_text(name: str, text: str) -> tuple[str, str]:
    """`known_value` of a value given as text, as on a command line.

    >>> from_text("seq_len", "4_096"), from_text("cluster", "64")
    (('seq_len', '4096'), ('cluster', '64'))
    """
    try:
        is_number = target(name, None, RUN_COLUMNS).dtype.is_numeric()
    except ValueError:
        is_number = False
    value: object = text
    if is_number:
        try:
            number = float(text.replace("_", ""))
            value = int(number) if number.is_integer() else number
        except ValueError:
            value = text
    return known_value(name, value)


def _unknown(name: str, text: str, words: list[str]) -> str:
    by_lower = {word.lower(): word for word in words}
    near = get_close_matches(text.lower(), by_lower, n=3, cutoff=0.6)
    choices = " or ".join(by_lower[word] for word in near)
    remedy = f"Did you mean {choices}?" if near else f"There are: {', '.join(sorted(words))}."
    return f"{name} {text!r} is not known. {remedy}"
