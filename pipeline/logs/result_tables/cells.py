"""Cells of a table of runs as values: numbers with their units, layouts in one text, words of our vocabulary."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from sweepscope.pipeline.logs.inference.setting_values import value_of
from sweepscope.pipeline.logs.inference.units import in_label, number_of
from sweepscope.pipeline.logs.sidecars.folder_name import read_folder_name
from sweepscope.pipeline.logs.synonyms import FLAGS, words
from sweepscope.pipeline.reference.vocabulary import canonical_recompute, canonical_zero_stage
from sweepscope.schemas.vocab import FRAMEWORK

_NOTHING = {"", "-", "--", "\u2013", "\u2014", "n/a", "na", "nan", "none", "null", "?"}
_AMOUNT = re.compile(r"([-+]?[\d.,]+(?:[eE][-+]?\d+)?)\s?([A-Za-z%/]+)")
_BETWEEN = re.compile(r"[\s,;/x×·+|]+")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s?([BbMm])")
_MODEL = re.compile(r"(?=.*[A-Za-z]{2})[\w.+/ ()-]{2,60}")
_SWITCHED = {"1": "full", "yes": "full", "on": "full", "0": "none", "no": "none", "off": "none"}
_FACTORS = {
    **{"ms": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0, "GFLOPs": 1e-3, "PFLOPs": 1e3},
    **{"KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30},
}
_MOST_GB, _LEAST_BYTES = 2_000, 1e8
_MOST_SHARE = 1.5
"""Of the peak: what is above is a percentage."""


def is_empty(cell: str) -> bool:
    """Whether a cell holds nothing, in one of the words for it."""
    return cell.lower() in _NOTHING


def amount_of(cell: str) -> tuple[float, str] | None:
    """A number and the word of the unit behind it; None for other text.

    >>> amount_of("9,100"), amount_of("812 ms"), amount_of("45.1%"), amount_of("61.2GiB"), amount_of("OOM")
    ((9100.0, ''), (812.0, 'ms'), (45.1, '%'), (61.2, 'GiB'), None)
    """
    if (plain := number_of(cell)) is not None:
        return plain, ""
    found = _AMOUNT.fullmatch(cell)
    number = number_of(found[1]) if found else None
    unit = in_label(f"x {found[2].lower()}")[1] if found else None
    return (number, unit.word) if number is not None and unit else None


def composed(text: str) -> dict[str, int]:
    """The layout in one text.

    >>> composed("DP8 TP2 PP1"), composed("tp=4, mbs=2"), composed("baseline")
    ({'dp': 8, 'tp': 2, 'pp': 1}, {'tp': 4, 'mbs': 2}, {})
    """
    plain = _BETWEEN.sub("_", text.strip().lower())
    return {name: int(value) for name, value in read_folder_name(plain).items() if value.isdigit()}


def in_base_units(column: str, number: float, unit: str) -> float | int:
    """A number of a column of `runs` in its unit. Memory without a unit is guessed by its size: GiB, MiB or bytes.

    >>> in_base_units("mfu_logged", 45.0, ""), in_base_units("step_time_s", 812.0, "ms")
    (0.45, 0.812)
    >>> in_base_units("mem_peak_allocated_bytes", 2.0, ""), in_base_units("step_time_s", 4.0, "it/s")
    (2147483648, 0.25)
    """
    if column == "mfu_logged":
        return round(number / 100, 9) if unit == "%" or number > _MOST_SHARE else number
    if column.endswith("_bytes"):
        guessed = 2.0**30 if number <= _MOST_GB else 1.0 if number >= _LEAST_BYTES else 2.0**20
        return round(number * (_FACTORS.get(unit, 1.0) if unit else guessed))
    return 1 / number if unit == "it/s" else number * _FACTORS.get(unit, 1.0)


def word_of(column: str, header: str, cell: str) -> Any:
    """A cell that is no amount in the terms of its column; None for what is none of it.

    >>> word_of("recompute", "act_ckpt", "True"), word_of("zero_stage", "zero", "1"), word_of("tp", "tp", "0")
    ('full', 1, None)
    >>> word_of("zero_stage", "strategy", "full_shard"), word_of("model", "model", "7b"), word_of("tp", "tp", "4")
    (3, '7B', 4)
    """
    return _WORDS[column](header, cell) if column in _WORDS else _setting(column, cell)


def _setting(column: str, cell: str) -> Any:
    text = value_of(column, cell)
    if text is None or text == "0":
        return None
    return int(text) if text.isdigit() else text


def _recompute(_header: str, cell: str) -> str | None:
    small = cell.lower()
    return _SWITCHED.get(small) or value_of("recompute", small) or canonical_recompute(cell)


def _zero_stage(header: str, cell: str) -> int | None:
    flag = FLAGS.get(words(header))
    word = flag[1].get(cell.lower()) if flag and flag[0] == "zero_stage" else None
    return int(word) if word else canonical_zero_stage(f"zero{cell}" if cell.isdigit() else cell)


def _precision(header: str, cell: str) -> str | None:
    flag = FLAGS.get(words(header))
    return flag[1].get(cell.lower()) if flag else value_of("precision", cell)


def _framework(_header: str, cell: str) -> str:
    """A word of vocab.FRAMEWORK: the longest that the cell begins with."""
    plain = re.sub(r"[\s_]+", "-", cell.strip().lower())
    return max((name for name in FRAMEWORK if plain.startswith(name)), key=len, default="other")


def _model(_header: str, cell: str) -> str | None:
    size = _SIZE.fullmatch(cell)
    return f"{size[1]}{size[2].upper()}" if size else cell if _MODEL.fullmatch(cell) else None


def _as_printed(_header: str, cell: str) -> str:
    return cell


_WORDS: Mapping[str, Callable[[str, str], Any]] = {
    "recompute": _recompute,
    "zero_stage": _zero_stage,
    "precision": _precision,
    "framework": _framework,
    "model": _model,
    "job_id": _as_printed,
    "cluster": _as_printed,
}
