"""The words that name a value: those in front of it, or behind, without what means nothing."""

from __future__ import annotations

import re
from functools import lru_cache

from sweepscope.pipeline.logs.inference.units import Unit
from sweepscope.pipeline.logs.synonyms import EVALUATION, TRAINING, step_columns, words

_BARS = "|│┃ \t"
_METER = re.compile(r"[|│][^\w|│]*(?=[|│]\s*$)")
"""How far a bar came, as it is drawn: no two of its lines have the same."""
_ENDS_LABEL = " \t\"'=:：~*#@>→([{<≈"
_BREAK = re.compile(r"[|│┃,，;；\t{}\[\]()<>]|\s[-–—·•/]{1,2}\s|\s{3,}|[:：=]\s|\.\s|\s(?:and|at|with)\s")
_QUALIFIER = re.compile(r"[(\[]([^()\[\]|]{0,24})[)\]]$")
_REMARK = re.compile(r"\s?\([^()]*\d[^()]*\)$")
"""At the end of a name, with a number that is no part of it."""
_FILLERS = re.compile(
    r"^(?:the|a|of|is|was|at|in|with|and|for|done|after|on|my|our|info|debug|notice|warning)(?: |$)|"
    r"(?: (?:is|was|of|at|in|so far))+$"
)
_MAX_WORDS = 5
_NEXT = re.compile(r"\s*[:=]?\s*[-+]?\d")
_RECORD = re.compile(r"""["'](?:key|name|metric|tag)["']\s*:\s*["']([\w ./-]{1,60})["'].{0,40}?["']value["']\s*:\s*$""")
"""A value whose name is a value itself: `"key": "train_loss", "value": 2.31`."""
_RATES = ("rate", "other rate")
_OF_ANY = {"step", "epoch", "learning_rate", "step_time"}
"""Columns that an evaluation has no other value of than the training: `val_loss: 2.1, epoch: 3, step_time: 0.4`."""
_QUANTITIES = {"step_time": ("time", "step time"), "mem_allocated": ("bytes",), "mem_reserved": ("bytes",)}


@lru_cache(maxsize=16_384)
def split_of(gap: str) -> str:
    """Whose values follow: those of the last word in the gap that tells; "" of none."""
    small = words(gap)
    evaluation = [hit.start() for hit in EVALUATION.finditer(small)]
    training = [hit.start() for hit in TRAINING.finditer(small)]
    if evaluation or training:
        return "eval" if max(evaluation, default=-1) > max(training, default=-1) else "train"
    return ""


@lru_cache(maxsize=16_384)
def is_of_any(label: str) -> bool:
    """Whether a label names what an evaluation has no other value of than the training."""
    return any(column in _OF_ANY and sure == 0 for column, sure in step_columns(label))


@lru_cache(maxsize=16_384)
def offset(gap: str) -> int:
    """Where in a gap the text begins that belongs to the value behind it."""
    if meter := _METER.search(gap):
        return meter.end()
    end = len(gap.rstrip(_ENDS_LABEL).rstrip(_BARS))  # the name may be the cell before: `| iterations | 12 |`
    qualified = _QUALIFIER.search(gap[:end])
    stop = qualified.start() if qualified else end
    cuts = [hit.end() for hit in _BREAK.finditer(gap, 0, stop) if hit.end() < stop]
    return max(cuts, default=0)


@lru_cache(maxsize=16_384)
def label_of(gap: str) -> str:
    """The words that name the value behind a gap."""
    record = _RECORD.search(gap) if "value" in gap else None
    label = record[1] if record else _REMARK.sub("", gap[offset(gap) :].rstrip(_ENDS_LABEL))
    return " ".join(bare(words(label)).split()[-_MAX_WORDS:])


def bare(name: str) -> str:
    """The words of a name without those around them that mean nothing."""
    while (shorter := _FILLERS.sub("", name)) != name:
        name = shorter
    return name


def names_the_next(text: str, stop: int, label: str, unit: Unit) -> bool:
    """Whether a unit belongs to the value behind it: `loss 2.3 tokens/s 13800`."""
    if not label or is_unnamed(label) or not (unit.columns or unit.quantity in _RATES) or not _NEXT.match(text, stop):
        return False
    columns = [column for column, _ in step_columns(label)]
    return not any(column in unit.columns or unit.quantity in _QUANTITIES.get(column, ()) for column in columns)


def is_unnamed(label: str) -> bool:
    """Whether a label is no name, but the place of a value among the signs of its line."""
    return label.startswith("@")


def following(text: str, position: int) -> str:
    """The words behind a value without a label in front of it."""
    rest = re.match(r"[ \t]?((?:[A-Za-z]+[ \t/]?){1,3})", text[position : position + 40])
    return "> " + words(rest[1]) if rest else ""
