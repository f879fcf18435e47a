"""Which value of a step's line is which column: by its words, its unit and how it behaves."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from sweepscope.pipeline.logs.inference.counter import Counter
from sweepscope.pipeline.logs.inference.labels import is_unnamed
from sweepscope.pipeline.logs.inference.naming import columns_of
from sweepscope.pipeline.logs.inference.series import Course, Key, Line, Series, course
from sweepscope.pipeline.logs.inference.units import FACTORS, SINCE_1970, in_label, is_instant
from sweepscope.pipeline.logs.synonyms import EVALUATION, step_columns

HIGH, MEDIUM, LOW = "high", "medium", "low"
"""Words of vocab.CONFIDENCE."""
_WORSE = {HIGH: MEDIUM, MEDIUM: LOW, LOW: LOW}

_QUANTITY = {
    "step_time": ("time", "step time"),
    "tokens_per_s": ("rate",),
    "tokens_per_s_per_gpu": ("rate",),
    "mfu": ("share",),
    "tflops_per_gpu": ("flops",),
    "mem_allocated": ("bytes",),
    "mem_reserved": ("bytes",),
    "consumed_tokens": ("tokens",),
    "ts": ("time",),
}
"""Quantities that a column's unit may have; a column that is not here has no unit."""
_NEEDS_UNIT = ("step_time", "mem_allocated", "mem_reserved")
_ALWAYS = {"ts": "epoch"}
_MANY = 5
_MOST_LOSS = 20.0
_VAGUE = 3
_UNNAMED = 2
_OF_MEAN = 3
_OF_FEW = 3
_OF_MANY = 3
"""Doubts about a mean in parentheses, about what few lines print, and about what many lines of an epoch print."""
_NOT_ONE_STEP = re.compile(
    r"\b(?:eta|remaining|left|total|elapsed|wall|since|save|saving|ckpt|checkpoint|max(?:imum)?|epoch|expected|est(?:imated)?)\b"
)
"""In names of durations that may be longer than a step."""
_SEVERAL = 2
_MOST = 0.95
_OF_SUM = 0.02
"""By which a printed sum may differ from that of the printed values."""
_ONCE = 1.2
"""Values of an epoch at most, of one that stands once in each: the last epoch may have been done twice."""
_MEMORY = re.compile(r"\b(?:mem(?:ory)?|vram|cuda|gpu|peak|max)\b")
_NOT_THE_STEP = re.compile(
    r"\b(?:data|load(?:ing|er)?|eta|remaining|left|total|elapsed|wall|since|fwd|forward|bwd|backward|opt(?:imizer|im)?|compile|"
    r"eval|val|valid|save|saving|ckpt|checkpoint|comm|gen|rollout|sync|expected|est(?:imated)?)\b"
)


@dataclass(frozen=True)
class Guess:
    """A series taken for a column.

    Attributes:
        column: as a dialect file names it.
        key: of the series.
        word: how the value is printed, as a dialect file spells it; "" for the usual way, None where it is unknown.
        confidence: word of vocab.CONFIDENCE.
        reason: what speaks for it, or against it.
        sure: how well the name fits, 0 best.
        is_kept: it is read although confidence is low: it is this quantity, but of what unit or share is not stated.
    """

    column: str
    key: Key
    word: str | None
    confidence: str
    reason: str
    sure: int = 0
    is_kept: bool = False

    @property
    def is_read(self) -> bool:
        """Whether its values are taken."""
        return self.word is not None and (self.confidence != LOW or self.is_kept)

    def worse(self, reason: str) -> Guess:
        """The same with less confidence."""
        return replace(self, confidence=_WORSE[self.confidence], reason=f"{self.reason}; {reason}")


def guesses(found: Mapping[Key, Series], counter: Counter, lines: Sequence[Line]) -> list[Guess]:
    """Every column that a value of a step's line may be, the likeliest of each column first."""
    rows = set(found[counter.key].rows)
    epochs = len(set(found[counter.key].numbers)) if counter.is_epoch else 0
    listed: list[tuple[str, int, float, int, Guess]] = []
    for order, (key, series) in enumerate(found.items()):
        if key in counter.taken or key[1] == "of":
            continue
        own = series.within(rows)
        if not own.rows or EVALUATION.search(key[0]):
            continue
        for guess in of_series(own, course(own, lines)):
            share = len(set(own.rows)) / len(rows)
            doubt = guess.sure + _OF_MEAN * (key[1] == "mean")
            # A name as a whole is meant rather than the last words of a longer one, which may be a part of a loss.
            doubt += guess.column == "loss" and not step_columns(key[0].removeprefix("> "))
            # Of what an epoch's lines print, the value that stands once in each is the epoch's.
            is_once = len(own.by_row) <= _ONCE * epochs
            doubt += _OF_MANY * (not is_once) if epochs else _OF_FEW * (share < 0.5)
            listed.append((guess.column, doubt, -share, order, guess))
    listed.sort(key=lambda one: one[:4])
    ranked = _without_parts_of_a_step([guess for *_, guess in listed], found, rows)
    return _without_parts(ranked, found)


def _without_parts_of_a_step(ranked: Sequence[Guess], found: Mapping[Key, Series], rows: set[int]) -> list[Guess]:
    """The guesses without times that are known by a unit or a counter's name only, and that others exceed.

    A line may print what a step consists of: `dl=2.9ms h2d=1.7ms fwd=40.9ms step=108.1ms iter=187.3ms`.
    """
    times = [
        (own.median * FACTORS[unit.word], key)
        for key, series in found.items()
        if (own := series.within(rows)).rows and key[2] == "time"
        # What stands in parentheses behind the number of a step is no mean of it: `step = 100 (144.2 sec)`.
        if (key[1] == "" or (key[1] == "mean" and ("step", 0) in columns_of(key[0])))
        if not _NOT_ONE_STEP.search(key[0]) and not EVALUATION.search(key[0])
        if (unit := series.fields[0].unit) and unit.word in FACTORS
    ]
    longest = max(times, default=(0.0, None), key=lambda one: one[0] if math.isfinite(one[0]) else 0.0)[1]
    return [guess for guess in ranked if guess.column != "step_time" or guess.sure < _UNNAMED or guess.key == longest]


def _without_parts(ranked: Sequence[Guess], found: Mapping[Key, Series]) -> list[Guess]:
    """The guesses; where several losses have a name of their own and none is called the whole, none is taken for it.

    One that is the sum of the others is: `cls loss 0.4, box loss 0.1, joint loss 0.5`.
    """
    losses = [guess for guess in ranked if guess.column == "loss" and guess.confidence != LOW]
    if are_in_turn([found[guess.key] for guess in losses]):
        return list(ranked)
    keys = {guess.key for guess in losses}
    if len(keys) < _SEVERAL or any(step_columns(guess.key[0].removeprefix("> ")) for guess in losses):
        return list(ranked)
    whole = next((key for key in keys if _is_sum(found[key], [found[one] for one in keys if one != key])), None)
    return [
        replace(guess, confidence=LOW, reason=f"{guess.reason}; it is one of several losses")
        if guess.column == "loss" and guess.key != whole
        else guess
        for guess in ranked
    ]


def are_in_turn(series: Sequence[Series]) -> bool:
    """Whether each of several series has lines of its own, all of them behind those of the one before.

    The loss of each training in a log may have another name: `recon_loss` first, then `ce_loss`.
    """
    parts = sorted((min(one.rows), max(one.rows)) for one in series if one.rows)
    return len(parts) > 1 and all(last < first for (_, last), (first, _) in pairwise(parts))


def _is_sum(series: Series, others: Sequence[Series]) -> bool:
    """Whether a value is, in each line, the sum of the others."""
    rows = [row for row in series.by_row if all(row in one.by_row for one in others)]
    pairs = [(series.by_row[row].number or 0, sum(one.by_row[row].number or 0 for one in others)) for row in rows]
    return len(pairs) >= _MANY and all(math.isclose(one, total, rel_tol=_OF_SUM) for one, total in pairs)


def of_series(series: Series, went: Course) -> list[Guess]:
    """The columns that a series may be."""
    unit = next((one.unit for one in series.fields if one.unit), None)
    by_name = dict(columns_of(series.label))
    by_unit = dict.fromkeys(unit.columns if unit else (), 0)
    if unit and unit.quantity == "rate" and "tokens_per_s_per_gpu" in by_name:
        by_unit = {"tokens_per_s_per_gpu": 0}
    if unit and unit.quantity == "bytes" and not {"mem_allocated", "mem_reserved"} & by_name.keys():
        by_name |= (
            {"mem_allocated": 2} if re.search(r"\b(?:mem(?:ory)?|vram|cuda|gpu|peak|max)\b", series.label) else {}
        )
    # A label that is a unit is no name: `"sec": 0.41`. A step that has a duration is no counter: `iter=187.3ms`.
    is_nameless = not by_name and (is_unnamed(series.label) or in_label(series.label)[1] is not None)
    if unit and unit.quantity == "time" and (is_nameless or by_name.get("step") == 0):
        by_name = {"step_time": _UNNAMED}
    found = []
    for column in dict.fromkeys((*by_unit, *by_name)):
        if column in ("step", "epoch"):
            continue
        allowed = _QUANTITY.get(column, ())
        if unit and unit.quantity not in allowed:
            continue
        sure = min(by_unit.get(column, 9), by_name.get(column, 9))
        guess = Guess(column, series.key, _word(column, series), _first(sure), _named(series), sure)
        if checked := _behaves(guess, series, went):
            found.append(checked)
    return found


def _first(sure: int) -> str:
    return HIGH if sure == 0 else MEDIUM if sure <= 2 else LOW


def _named(series: Series) -> str:
    unit = next((one.unit for one in series.fields if one.unit), None)
    name = "no name" if is_unnamed(series.label) else f"named {series.label!r}"
    return f"{name}, unit {unit.word or unit.quantity}" if unit else name


def _word(column: str, series: Series) -> str | None:
    units = {one.unit.word for one in series.fields if one.unit}
    has_suffix = any(re.search("[kKMBGT]$", one.text) for one in series.fields)
    if column in ("tokens_per_s", "tokens_per_s_per_gpu", "consumed_tokens"):
        return "human" if has_suffix else ""
    if column == "mfu":
        return "%" if units or max(series.numbers, default=0) > 1.5 else "fraction"
    if column == "tflops_per_gpu":
        return units.pop() if len(units) == 1 else ""
    if column in _NEEDS_UNIT:
        if not units or "" in units:
            return None
        return units.pop() if len(units) == 1 else "duration" if column == "step_time" else "size"
    return _ALWAYS.get(column, "")


def _behaves(guess: Guess, series: Series, went: Course) -> Guess | None:
    """The guess as far as the values agree with it; None where they contradict it."""
    if not series.numbers:
        return guess.worse("it has no value")
    for contradicts in _CONTRADICTIONS.get(guess.column, ()):
        if contradicts(guess, series, went):
            return None
    if guess.column == "loss" and guess.sure >= _VAGUE:
        if not _falls(series, went, most=_MOST_LOSS if guess.sure > _VAGUE else math.inf):
            return guess.worse("it does not fall")
        return replace(guess, confidence=MEDIUM, reason=f"{guess.reason}, falls with the steps")
    return guess


def _is_cumulative(_guess: Guess, series: Series, went: Course) -> bool:
    """Whether it only grows, as time since the start does."""
    low, high = min(series.numbers), max(series.numbers)
    return went.moves >= _MANY and went.rising >= 0.95 and high > 1.5 * max(abs(low), 1e-9)


def _falls(series: Series, went: Course, *, most: float) -> bool:
    """Whether it comes down from a first value below `most`: its last quarter lies below its first."""
    numbers = series.numbers
    quarter = max(len(numbers) // 4, 1)
    is_lower = median(numbers[-quarter:]) < median(numbers[:quarter])
    return went.moves >= _MANY and numbers[0] < most and numbers[-1] < numbers[0] and is_lower


_Contradiction = Callable[[Guess, Series, Course], bool]


def _outside(low: float, high: float) -> _Contradiction:
    return lambda _guess, series, _went: min(series.numbers) < low or max(series.numbers) > high


def _mostly_outside(low: float, high: float) -> _Contradiction:
    """But for a few: the first step of a training that goes on is timed without its begin, as 114 % of the peak."""
    return lambda _guess, series, _went: sum(low <= one <= high for one in series.numbers) < _MOST * len(series.numbers)


def _never_positive(_guess: Guess, series: Series, _went: Course) -> bool:
    return max(series.numbers) <= 0


_CONTRADICTIONS: Mapping[str, tuple[_Contradiction, ...]] = {
    "loss": (
        _outside(-1e6, 1e6),
        lambda _guess, series, went: series.is_whole and went.moves >= _MANY,
        lambda guess, series, went: guess.sure > 0 and _is_cumulative(guess, series, went),
    ),
    "learning_rate": (_outside(0, 100),),
    "grad_norm": (_outside(0, math.inf),),
    "step_time": (
        _never_positive,
        lambda _guess, series, _went: series.median >= SINCE_1970,
        _is_cumulative,
        lambda guess, series, _went: guess.sure > 0 and _NOT_THE_STEP.search(series.label) is not None,
    ),
    "tokens_per_s": (_never_positive,),
    "tokens_per_s_per_gpu": (_never_positive,),
    "mfu": (_mostly_outside(-100, 100),),
    "tflops_per_gpu": (_outside(0, 10_000),),
    "consumed_tokens": (
        lambda guess, series, _went: not series.is_whole and guess.word != "human",
        lambda _guess, _series, went: went.distinct < 2 or went.rising < 0.9,
    ),
    "ts": (
        lambda _guess, series, _went: not all(is_instant(one) for one in series.numbers),
        lambda _guess, _series, went: went.moves >= _MANY and went.rising < 0.9,
    ),
    "rank": (_outside(0, 100_000), lambda _guess, series, _went: not series.is_whole),
}
"""What no series of a column does."""
