"""How a value can be printed: the word that a dialect file uses for it, its pattern, and its value in base units.

A unit of ours is one entry here. `quantity` ties it to the columns that may be printed so (see `columns`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import polars as pl

from sweepscope.pipeline.text.quantities import divided, human, number, size
from sweepscope.pipeline.text.timestamps import timestamp

Read = Callable[[pl.Expr], pl.Expr]

NUMBER = (
    r"[-+]?(?:(?:[0-9]+(?:,[0-9]{3})*\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
    r"|(?i:nan|inf|infinity))"
)
_WHOLE = r"[-+]?[0-9]+(?:,[0-9]{3})*"
MISSING = r"N/A|n/a|None|null|-{1,3}"
"""What is printed where there is no value: the column is NULL."""


@dataclass(frozen=True)
class Printed:
    """One way to print a value.

    Attributes:
        word: how a dialect file names it.
        quantity: kind of quantity.
        pattern: expression of the value, without capturing groups.
        read: matched text to the value in base units.
        example: as a log prints it.
        unit: expression of what may stand behind the value and is not read.
        is_number: it ends where the digits or the unit end, so that "16" is not read from "16x8".
    """

    word: str
    quantity: str
    pattern: str
    read: Read
    example: str
    is_number: bool = True
    unit: str = ""


def _times(factor: float) -> Read:
    """`number * factor`, without the binary noise of the product."""
    return lambda text: (number(text) * factor).round(9)


def _over(divisor: float) -> Read:
    return lambda text: divided(number(text), divisor)


def _unit(word: str, quantity: str, spellings: str, read: Read, example: str) -> Printed:
    """A number in one unit; the unit itself may or may not be printed behind it."""
    return Printed(word, quantity, NUMBER, read, example, unit=rf"(?: ?(?:{spellings}))?")


_DURATION_S = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_DURATION_SPELLINGS = (
    ("ms", r"ms|msecs?|millis|milliseconds?"),
    ("us", r"us|µs|μs|usecs?|microseconds?"),
    ("ns", r"ns|nanoseconds?"),
    ("min", r"mins?|minutes?|m"),
    ("s", r"s|secs?|seconds?"),
    ("h", r"h|hrs?|hours?"),
)
_ANY_DURATION = "|".join(spelling for _, spelling in _DURATION_SPELLINGS)
_PART = rf"{NUMBER} ?(?:{_ANY_DURATION})"


def _duration(text: pl.Expr) -> pl.Expr:
    """Seconds of "412 ms", "1.5s" or "1h 02m 03s": the sum of its parts."""
    parts = []
    for unit, spelling in _DURATION_SPELLINGS:
        part = number(text.str.extract(rf"({NUMBER}) ?(?:{spelling})(?:[^a-zµμ]|$)"))
        factor = _DURATION_S[unit]
        parts.append(divided(part, 1 / factor) if factor < 1 else part * factor)
    return pl.when(pl.any_horizontal(part.is_not_null() for part in parts)).then(pl.sum_horizontal(parts))


def _clock(text: pl.Expr) -> pl.Expr:
    """Seconds of "1:02:03.5" or "02:03"."""
    hours = text.str.extract(r"^([0-9]+):[0-9]+:[0-9]").cast(pl.Float64, strict=False).fill_null(0)
    minutes = text.str.extract(r"([0-9]+):[0-9]+(?:\.[0-9]*)?$").cast(pl.Float64, strict=False)
    return hours * 3600 + minutes * 60 + text.str.extract(r":([0-9]+(?:\.[0-9]*)?)$").cast(pl.Float64, strict=False)


def _per_second(text: pl.Expr) -> pl.Expr:
    rate = number(text)
    return pl.when(rate != 0).then((1 / rate).round(9))


def _pace(text: pl.Expr) -> pl.Expr:
    """Seconds a step of "2.43it/s" or "1.23s/it", whichever tqdm prints."""
    value = number(text.str.extract(f"({NUMBER})"))
    return pl.when(text.str.ends_with("/it")).then(value).when(value != 0).then((1 / value).round(9))


def _epoch(text: pl.Expr) -> pl.Expr:
    """Seconds, or milliseconds, since 1970 in UTC."""
    value = number(text)
    seconds = pl.when(value >= 1e11).then(value / 1e3).otherwise(value)
    return (seconds * 1e6).round().cast(pl.Int64, strict=False).cast(pl.Datetime("us"))


def _bytes(word: str, factor: float) -> Printed:
    return _unit(
        word, "bytes", rf"(?i:{word}(?:ytes?)?)" if word == "B" else f"(?i:{word})", _times(factor), f"1.5{word}"
    )


_SECONDS = (
    _unit("s", "time", "s|secs?|seconds?", number, "0.412 s"),
    _unit("ms", "time", "ms|msecs?|milliseconds?", _over(1e3), "412.0 ms"),
    _unit("us", "time", "us|µs|μs|usecs?", _over(1e6), "412000 us"),
    _unit("ns", "time", "ns", _over(1e9), "412000000 ns"),
    _unit("min", "time", "m|mins?|minutes?", _times(60), "1.5 min"),
    _unit("h", "time", "h|hrs?|hours?", _times(3600), "0.5 h"),
    _unit("it/s", "time", r"(?:it|its|iter|iters|steps?)/s(?:ec)?", _per_second, "2.43it/s"),
    Printed("pace", "time", rf"{NUMBER} ?(?:it/s|s/it)", _pace, "2.43it/s or 1.23s/it"),
    Printed("duration", "time", rf"{_PART}(?:[ ,]*{_PART}){{0,3}}", _duration, "412ms or 1m 03s"),
    Printed("clock", "time", r"(?:[0-9]+:)?[0-9]{1,2}:[0-9]{2}(?:\.[0-9]+)?", _clock, "0:01:23.5"),
)
PER_LINE = "/line"
"""At the end of the word of a time that passed since the line of the step before: a step takes its part of it."""

_SINCE_LINE = tuple(replace(one, word=f"{one.word}{PER_LINE}") for one in _SECONDS if one.word in ("s", "ms", "min"))
_SIZES = (
    *(_bytes(word, factor) for word, factor in (("B", 1), ("KB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12))),
    *(_bytes(f"{letter}iB", 2.0 ** (10 * position)) for position, letter in enumerate("KMGT", start=1)),
    Printed("size", "bytes", rf"{NUMBER} ?[KMGT]?i?B", size, "41.2GiB or 800 MB"),
)
_NUMBERS = (
    Printed("int", "number", _WHOLE, number, "1,200"),
    Printed("float", "number", NUMBER, number, "2.31 or 1e-4"),
    Printed(
        "human",
        "number",
        rf"{NUMBER} ?[KkMBGTPQ]?",
        human,
        "13.8K",
    ),
    _unit("thousands", "number", "[Kk]", _times(1e3), "13.8 for 13,800"),
    _unit("millions", "number", "M", _times(1e6), "1.2 for 1,200,000"),
    _unit("billions", "number", "[BG]", _times(1e9), "7.0 for 7,000,000,000"),
)
_SHARES = (_unit("%", "share", "%", _over(100), "41.2%"), Printed("fraction", "share", NUMBER, number, "0.412"))
_TFLOPS = (
    _unit("FLOPs", "flops", r"(?i:flop/?s?(?:/s(?:/gpu)?)?)", _over(1e12), "4.12e14 FLOPs"),
    _unit("GFLOPs", "flops", r"(?i:gflop/?s?(?:/s(?:/gpu)?)?)", _over(1e3), "412000 GFLOPs"),
    _unit("TFLOPs", "flops", r"(?i:tflop/?s?(?:/s(?:/gpu)?)?)", number, "412.0 TFLOPs"),
    _unit("PFLOPs", "flops", r"(?i:pflop/?s?(?:/s(?:/gpu)?)?)", _times(1e3), "0.412 PFLOPs"),
)
_TEXTS = (
    Printed("word", "text", r"[^\s,;|]+", lambda text: text.str.strip_chars("'\""), "1f1b", is_number=False),
    Printed(
        "text",
        "text",
        r".+?",
        lambda text: text.str.strip_chars().str.strip_chars("'\""),
        "NVIDIA H100",
        is_number=False,
    ),
)
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T_][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?"
_TIMES = (
    Printed("iso", "instant", _DAY, timestamp, "2026-01-31 12:00:59", is_number=False),
    Printed("epoch", "instant", r"[0-9]{9,13}(?:\.[0-9]+)?", _epoch, "1767225600.5", is_number=False),
)

KINDS: dict[str, Printed] = {
    kind.word: kind for kind in (*_NUMBERS, *_SECONDS, *_SINCE_LINE, *_SIZES, *_SHARES, *_TFLOPS, *_TEXTS, *_TIMES)
}

_DIRECTIVES = (
    {"Y": "[0-9]{4}", "m": "[0-9]{2}", "d": "[0-9]{2}", "H": "[0-9]{2}", "I": "[0-9]{2}"}
    | {"M": "[0-9]{2}", "S": "[0-9]{2}", "y": "[0-9]{2}", "b": "[A-Za-z]{3}"}
    | {"B": "[A-Za-z]+", "p": "[AaPp][Mm]", "j": "[0-9]{3}", "f": "[0-9]{1,9}", "%": "%"}
)


def strftime(form: str) -> Printed:
    """A time in the directives of strftime, such as %d.%m.%Y %H:%M:%S.

    Raises ValueError for a directive that is not known, or when day or time are missing.
    """
    parts, position = [], 0
    for found in re.finditer(r"%(.?)", form):
        if found[1] not in _DIRECTIVES:
            raise ValueError(f"%{found[1]} is not known; there are {' '.join(f'%{d}' for d in _DIRECTIVES)}")
        parts += [re.escape(form[position : found.start()]), _DIRECTIVES[found[1]]]
        position = found.end()
    parts.append(re.escape(form[position:]))
    try:
        pl.Series(["x"]).str.to_datetime(form, strict=False)
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{form} is no time: {str(error).splitlines()[0]}") from error
    directives = {found[1] for found in re.finditer(r"%(.)", form)}
    if not all(directives & choices for choices in ({"Y", "y"}, {"m", "b", "B"}, {"d"}, {"H", "I"}, {"M"})):
        raise ValueError(f"{form} needs year, month, day, hour and minute")

    def read(text: pl.Expr) -> pl.Expr:
        return text.str.to_datetime(form, strict=False, time_unit="us")

    return Printed(form, "instant", "".join(parts), read, form, is_number=False)
