"""Units as they stand behind a value or in its label, and the word of a dialect file for each."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache

from sweepscope.pipeline.logs.synonyms import DEVICE

_PER = r"\s?(?:/|\bper\b|p(?=s\b))\s?"
_SECOND = r"(?:s(?:ec(?:ond)?s?)?)"
_STEP = r"(?:it(?:er(?:ation)?)?s?|steps?|batch(?:es)?|updates?)"
_TOKENS = r"(?:tok(?:en)?s?|toks)"
_CARD = DEVICE


@dataclass(frozen=True)
class Unit:
    """One unit.

    Attributes:
        word: of a dialect file; "" for one that no column has.
        quantity: what it measures.
        columns: columns that are printed in it, the likeliest first.
    """

    word: str
    quantity: str
    columns: tuple[str, ...] = ()


_UNITS: tuple[tuple[str, Unit], ...] = (
    (
        rf"{_TOKENS}{_PER}{_SECOND}{_PER}{_CARD}|{_TOKENS}{_PER}{_CARD}{_PER}{_SECOND}|tgs",
        Unit("human", "rate", ("tokens_per_s_per_gpu",)),
    ),
    (rf"{_TOKENS}{_PER}{_SECOND}|tps", Unit("human", "rate", ("tokens_per_s",))),
    (
        rf"(?:samples?|seq(?:uence)?s?|ex(?:amples?)?|imgs?|images?|sents?|sentences?|docs?|rows?|envs?|"
        rf"frames?){_PER}{_SECOND}",
        Unit("", "other rate"),
    ),
    (rf"{_STEP}{_PER}{_SECOND}", Unit("it/s", "time", ("step_time",))),
    (rf"ms{_PER}{_STEP}", Unit("ms", "step time", ("step_time",))),
    (rf"{_SECOND}{_PER}{_STEP}", Unit("s", "step time", ("step_time",))),
    (
        rf"(?:(?:t|tera)flop/?s?|(?-i:TF)(?:/s)?)(?:\s?/?\s?(?:s(?:ec)?))?(?:\s?/\s?{_CARD})?",
        Unit("TFLOPs", "flops", ("tflops_per_gpu",)),
    ),
    (
        rf"(?:p|peta)flop/?s?(?:\s?/?\s?(?:s(?:ec)?))?(?:\s?/\s?{_CARD})?",
        Unit("PFLOPs", "flops", ("tflops_per_gpu",)),
    ),
    (
        rf"(?:g|giga)flop/?s?(?:\s?/?\s?(?:s(?:ec)?))?(?:\s?/\s?{_CARD})?",
        Unit("GFLOPs", "flops", ("tflops_per_gpu",)),
    ),
    (r"(?-i:[KMGT]i?B)|(?-i:[kmgt]i?b)(?:ytes)?", Unit("size", "bytes")),
    (r"ms(?:ecs?)?|millis(?:econds?)?|milliseconds?", Unit("ms", "time")),
    (r"us(?:ecs?)?|µs|microseconds?", Unit("us", "time")),
    (r"mins?|minutes?", Unit("min", "time")),
    (r"hours?|hrs?|h", Unit("h", "time")),
    (r"seconds?|secs?|s", Unit("s", "time")),
    (r"%", Unit("%", "share")),
    (rf"{_TOKENS}", Unit("human", "tokens", ("consumed_tokens",))),
    # Of whatever else is counted: `records/second`. Letters alone, and no unit above, are no tokens.
    (rf"[a-z]{{4,}}{_PER}{_SECOND}", Unit("", "other rate")),
)
_SUFFIX = re.compile(r"[kKMGBT](?=\s|[,;:|)\]}/]|$)|[kKMGBT](?=\s?tok)")

_ONE = re.compile(
    r"[ \t]?(?:" + "|".join(f"(?P<u{n}>{form})" for n, (form, _) in enumerate(_UNITS)) + r")(?!_?[A-Za-z])",
    re.IGNORECASE,
)


def behind(text: str, position: int) -> tuple[int, str, Unit | None]:
    """Where the unit behind a number ends, its metric suffix, and the unit; the position itself where there is none.

    >>> behind("13.8K tok/s |", 4)[:2], behind("0.41s/it,", 4)[2].word, behind("2.3 lr", 3)
    ((11, 'K'), 's', (3, '', None))
    """
    suffix = _SUFFIX.match(text, position)
    start = suffix.end() if suffix else position
    letters = suffix[0] if suffix else ""
    found = _ONE.match(text, start)
    if not found or not found.lastgroup:
        return start, letters, None
    return found.end(), letters, _UNITS[int(found.lastgroup[1:])][1]


# Units at the end of a label (`time_ms`, `step time (ms)`, `mem_gb`), and labels that are a unit (`ms/batch`, `it/s`).
_LAST: tuple[tuple[str, Unit], ...] = (
    (r"ms|msec|millis|milliseconds", Unit("ms", "time")),
    (r"us|usec", Unit("us", "time")),
    (r"s|sec|secs|seconds", Unit("s", "time")),
    (r"min|mins|minutes", Unit("min", "time")),
    (r"gib", Unit("GiB", "bytes")),
    (r"mib", Unit("MiB", "bytes")),
    (r"gb", Unit("GB", "bytes")),
    (r"mb", Unit("MB", "bytes")),
    (r"bytes|b", Unit("B", "bytes")),
    (r"pct|percent|%", Unit("%", "share")),
)
_IN_SECOND = r"(?:s|sec|second)"
_OF_CARD = rf"(?:{_IN_SECOND} (?:per )?{DEVICE}|{DEVICE} (?:per )?{_IN_SECOND})"
_MANY_TOKENS = ((r"k ?", "thousands"), (r"m ?", "millions"), ("", "human"))
_WHOLE: tuple[tuple[str, Unit], ...] = (
    *(
        (rf"(?:.* )?{many}(?:tokens?|toks?) (?:per )?{_OF_CARD}", Unit(word, "rate", ("tokens_per_s_per_gpu",)))
        for many, word in _MANY_TOKENS
    ),
    ("tgs", Unit("human", "rate", ("tokens_per_s_per_gpu",))),
    *(
        (rf"(?:.* )?{many}(?:tokens?|toks?) (?:per )?{_IN_SECOND}", Unit(word, "rate", ("tokens_per_s",)))
        for many, word in _MANY_TOKENS
    ),
    ("tps", Unit("human", "rate", ("tokens_per_s",))),
    (r"ms (?:per )?(?:it|iter|iteration|step|batch)", Unit("ms", "step time", ("step_time",))),
    (
        r"(?:s|sec|secs|seconds?) (?:per )?(?:it|iter|iteration|step|batch)|(?:step|iter|iteration|batch) (?:s|secs?)",
        Unit("s", "step time", ("step_time",)),
    ),
    (
        r"(?:(?:train(?:ing)?|avg|average|mean) )?"
        r"(?:(?:its|iters|iterations|steps|batches|updates) (?:per )?|(?:it|iter|iteration|step|batch|update) per )"
        r"(?:s|sec|second)|ups",
        Unit("it/s", "time", ("step_time",)),
    ),
    (
        r"(?:.* )?(?:samples?|seqs?|sequences?|examples?|images?|imgs?|sentences?|records?|items?|utterances?) "
        r"(?:per )?(?:s|sec|second)|sps",
        Unit("", "other rate"),
    ),
)
_LABEL = re.compile(r"(?:(.*) )?(?:" + "|".join(f"(?P<l{n}>{form})" for n, (form, _) in enumerate(_LAST)) + ")")

_SHORT = re.compile(r"\b(?:step|iter(?:ation)?|batch|micro ?batch|fwd|forward|bwd|backward)\b")
"""In names of what takes no minutes, beside which `min` is the minimum."""


@lru_cache(maxsize=4_096)
def in_label(label: str) -> tuple[str, Unit | None]:
    """The words of a label without the unit at their end, and that unit.

    >>> in_label("step time ms")[0], in_label("mem gb")[1].word, in_label("loss")
    ('step time', 'GB', ('loss', None))
    >>> in_label("step time min"), in_label("elapsed min")[1].word  # the least of several, and minutes
    (('step time min', None), 'min')
    """
    for form, unit in _WHOLE:
        if re.fullmatch(form, label):
            return label, unit
    found = _LABEL.fullmatch(label)
    if not found or not found.lastgroup:
        return label, None
    name = (found[1] or "").removesuffix(" in") or label
    unit = _LAST[int(found.lastgroup[1:])][1]
    return (label, None) if unit.word == "min" and _SHORT.search(name) else (name, unit)


FACTORS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0}
"""Seconds of each word of a time."""

AMOUNTS = {"thousands": 1e3, "millions": 1e6}
"""Numbers of each word of a rate that is printed in so many."""

SINCE_1970 = 1e9
"""Times from which on a number is one of the calendar, in seconds or less, and none that anything takes."""


def is_instant(number: float) -> bool:
    """Whether a number may be seconds, or milliseconds, since 1970: of the years 2001 to 2128."""
    return any(SINCE_1970 * factor <= number < 5 * SINCE_1970 * factor for factor in (1, 1e3))


_FACTORS = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}
_AMOUNT = re.compile(r"([-+]?(?:\d[\d,_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s?([kKMBGT]?)")


def number_of(text: str) -> float | None:
    """A printed number with a metric suffix, without the binary noise of their product.

    None for other text, and for a number that no float holds.

    >>> number_of("2,048"), number_of("124.44M"), number_of("1e6"), number_of("x8"), number_of("1e309")
    (2048.0, 124440000.0, 1000000.0, None, None)
    """
    found = _AMOUNT.fullmatch(text)
    if not found:
        return None
    value = float(found[1].replace(",", "").replace("_", "")) * _FACTORS[found[2].upper()]
    if not math.isfinite(value):
        return None
    return float(round(value)) if abs(value) >= 1 and found[2] else value
