"""Numbers, times and texts as readers see them; nothing here knows a page or a column (see `columns`).

Base units (bytes, fractions, seconds) live in the store and in every CSV; GiB and percent exist only here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

NBSP = "\u00a0"  # between number and unit, so that a line never breaks there
MINUS = "\u2212"
MISSING = "\u2013"
ABOUT = "~"  # before every estimated figure
GIB = 2**30
_MANY_DIGITS = 1e16  # beyond, not every whole number is a float


def number(value: float | None, decimals: int = 0) -> str:
    """Thousands separated by commas, with a real minus; a figure of very many digits with its exponent.

    >>> number(6028.4), number(-2.04, 1), number(None), number(-1.2e308), number(float("inf")), number(float("nan"))
    ('6,028', '−2.0', '–', '−1.2e308', '∞', 'NaN')
    """
    if value is None:
        return MISSING
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else f"{MINUS}∞"
    if abs(value) >= _MANY_DIGITS:
        return f"{value:.3g}".replace("e+", "e").replace("-", MINUS)
    text = f"{value:,.{decimals}f}"
    return text.replace("-", MINUS) if float(text.replace(",", "")) != 0 else text.lstrip("-")


def percent(fraction: float | None, decimals: int = 1) -> str:
    """A fraction in percent.

    >>> percent(0.363).replace(NBSP, " ")
    '36.3 %'
    """
    return MISSING if fraction is None else f"{number(fraction * 100, decimals)}{NBSP}%"


def part_of(fraction: float, decimals: int = 0) -> str:
    """A part of a whole in percent; a small one does not read as none.

    >>> [part_of(part).replace(NBSP, " ") for part in (0.42, 0.003, 0.0)], part_of(0.0002, 1).replace(NBSP, " ")
    (['42 %', 'under 1 %', '0 %'], 'under 0.1 %')
    """
    least = 10.0**-decimals
    if 0 < fraction * 100 < least / 2:
        return f"under {number(least, decimals)}{NBSP}%"
    return percent(fraction, decimals)


def faster_than(lead: float, other: str) -> str:
    """How much faster something is than `other`: its speed over the other's, minus 1. Twice as fast or more is a ratio.

    >>> faster_than(0.051, "B").replace(NBSP, " "), faster_than(2.81, "B").replace(NBSP, " ")
    ('5.1 % faster than B', '3.8 × as fast as B')
    """
    return f"{ratio(1 + lead)} as fast as {other}" if lead >= 1 else f"{part_of(lead, 1)} faster than {other}"


def between(ends: Sequence[float]) -> str:
    """Two shares as an interval in percent, which no line break tears apart.

    >>> between((0.316, 0.386)).replace(NBSP, " ")
    '31.6 to 38.6 %'
    """
    return unbroken(f"{number(100 * ends[0], 1)} to {percent(ends[1])}")


def points(difference: float | None) -> str:
    """A difference of two fractions in percentage points, always signed unless zero.

    >>> points(-0.0204), points(0.147), points(0.0)
    ('−2.0', '+14.7', '0.0')
    """
    if difference is None:
        return MISSING
    text = number(difference * 100, 1)
    return f"+{text}" if difference > 0 and text != "0.0" else text


def gib(size_bytes: float | None, decimals: int = 1) -> str:
    """Bytes in GiB.

    >>> gib(2**30).replace(NBSP, " "), gib(2**34, 0).replace(NBSP, " ")
    ('1.0 GiB', '16 GiB')
    """
    return MISSING if size_bytes is None else f"{number(size_bytes / GIB, decimals)}{NBSP}GiB"


def memory(size_bytes: float | None) -> str:
    """Bytes in GiB, or in MiB where GiB would read as nearly nothing, with a real minus.

    >>> [memory(size).replace(NBSP, " ") for size in (2**37, -(2**29), 26_000_000, 0)]
    ['128.0 GiB', '−0.5 GiB', '24.8 MiB', '0 GiB']
    """
    if not size_bytes:
        return gib(size_bytes, 0)
    return gib(size_bytes) if abs(size_bytes) >= GIB / 10 else f"{number(size_bytes / 2**20, 1)}{NBSP}MiB"


def bandwidth(bytes_per_s: float | None, *, unit: str = " GB/s") -> str:
    """Bytes per second in GB/s (10^9), as networks are rated.

    >>> bandwidth(4.5e10), bandwidth(4.5e10, unit=""), bandwidth(None)
    ('45.0 GB/s', '45.0', '–')
    """
    return MISSING if bytes_per_s is None else f"{number(bytes_per_s / 1e9, 1)}{unit}"


def significant(value: float | None, digits: int = 3) -> str:
    """Three significant digits, without exponent up to where `number` writes one.

    >>> significant(1.3579), significant(58.61), significant(1234.5)
    ('1.36', '58.6', '1,234')
    """
    if value is None:
        return MISSING
    if value == 0:
        return "0"
    if not math.isfinite(value) or abs(value) >= _MANY_DIGITS:
        return number(value)
    if abs(value) >= 1:
        return number(value, max(digits - len(str(int(abs(value)))), 0))
    decimals = f"{abs(value):.12f}".split(".")[1]
    leading_zeros = len(decimals) - len(decimals.lstrip("0"))
    return number(value, digits + leading_zeros)


def seconds(value: float | None) -> str:
    """Seconds with three significant digits.

    >>> seconds(1.3579).replace(NBSP, " ")
    '1.36 s'
    """
    return MISSING if value is None else f"{significant(value)}{NBSP}s"


def ratio(value: float | None) -> str:
    """A ratio.

    >>> ratio(3.81).replace(NBSP, " ")
    '3.8 ×'
    """
    return MISSING if value is None else f"{number(value, 1)}{NBSP}×"


def token_count(tokens: int | None) -> str:
    """A batch in tokens; powers of two are named as practitioners do (1M = 1,048,576).

    >>> token_count(1048576), token_count(4194304), token_count(16384), token_count(5000000)
    ('1M', '4M', '16k', '5,000,000')
    """
    if tokens is None:
        return "unknown"
    for size, unit in ((2**20, "M"), (2**10, "k")):
        if tokens >= size and tokens % size == 0:
            return f"{tokens // size:,}{unit}"
    return number(tokens)


def dollars(value: float | None) -> str:
    """A sum of money: whole dollars from a thousand on, cents from a dollar on, three digits below.

    >>> dollars(12345.6), dollars(2.5), dollars(0.023456), dollars(None)
    ('$12,346', '$2.50', '$0.0235', '–')
    """
    if value is None:
        return MISSING
    if abs(value) >= 1000:
        return f"${number(value)}"
    return f"${number(value, 2)}" if abs(value) >= 1 or value == 0 else f"${significant(value)}"


def moment(value: datetime | None) -> str:
    """A time to the minute.

    >>> moment(datetime(2026, 11, 20, 22, 41))
    '20 Nov 2026 22:41'
    """
    return MISSING if value is None else f"{value.day} {value:%b %Y %H:%M}"


def count(amount: int, singular: str, plural: str | None = None) -> str:
    """A number with its noun.

    >>> count(1, "run"), count(3280, "run"), count(2, "try", "tries")
    ('1 run', '3,280 runs', '2 tries')
    """
    return f"{number(amount)} {singular if amount == 1 else plural or singular + 's'}"


def unbroken(text: str) -> str:
    """`text` that no line break tears apart."""
    return text.replace(" ", NBSP)


def in_sentence(label: str) -> str:
    """A label inside a sentence: abbreviations keep their capitals.

    >>> in_sentence("MFU"), in_sentence("Tokens/s/GPU")
    ('MFU', 'tokens/s/GPU')
    """
    return label if label[:2].isupper() else label[:1].lower() + label[1:]


def capital(text: str) -> str:
    """`text` with a capital letter at its beginning.

    >>> capital("fits, near the limit"), capital("")
    ('Fits, near the limit', '')
    """
    return text[:1].upper() + text[1:]


def shortened(text: str, most: int, *, keeps_end: bool = False) -> str:
    """`text` in at most `most` letters, without its end, or without its beginning where the end tells more.

    >>> shortened("abcdef", 4), shortened("abcdef", 4, keeps_end=True), shortened("abcd", 4)
    ('abc…', '…def', 'abcd')
    """
    if len(text) <= most:
        return text
    return f"…{text[1 - most :]}" if keeps_end else f"{text[: most - 1]}…"


def plain(text: str) -> str:
    """`text` for plotly, which reads tags.

    >>> plain("a<b>")
    'a&lt;b&gt;'
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
