"""Numbers as frameworks print them, and the values that a reader gets from the print.

Each pair (`x_text`, `x_value`) is computed independently from the exact number, so that a test can hold one against
the other. Sources: nanotron src/nanotron/logging/base.py (human_format), picotron/utils.py (to_readable_format).
"""

from __future__ import annotations

import math

_MIB = 2**20


def significant(value: float, digits: int = 3) -> float:
    """`value` rounded to significant digits.

    >>> significant(13847.2)
    13800.0
    """
    return float(f"{value:.{digits}g}") if math.isfinite(value) else value


def human_text(value: float, suffixes: str = "KMBTPE") -> str:
    """Three significant digits and a metric suffix, as nanotron prints every number.

    >>> human_text(13847.2), human_text(500.0), human_text(1.87e-05), human_text(9.996e5)
    ('13.8K', '500', '1.87e-05', '1M')
    """
    if abs(value) < 1:
        return f"{value:.3g}"
    scaled, power = significant(value), 0
    while abs(scaled) >= 1000 and power < len(suffixes):
        scaled, power = scaled / 1000, power + 1
    digits = f"{scaled:f}".rstrip("0").rstrip(".")
    return digits + ("" if power == 0 else suffixes[power - 1])


_READABLE = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K"))


def readable_text(value: float) -> str:
    """Two decimals and K, M, B or T, as picotron prints.

    >>> readable_text(2048), readable_text(199.018)
    ('2.05K', '199.02')
    """
    for scale, suffix in _READABLE:
        if value >= scale:
            return f"{value / scale:.2f}{suffix}"
    return f"{value:.2f}"


def readable_value(value: float) -> float:
    """The value of a `readable_text`.

    >>> readable_value(2048)
    2050.0
    """
    scale = next((scale for scale, _ in _READABLE if value >= scale), 1.0)
    return round(round(value / scale, 2) * scale, 6)


def mib_value(count: float, decimals: int = 2) -> int:
    """Bytes of a size that is printed in MiB with so many decimals.

    >>> mib_value(520093700)
    520093696
    """
    return round(round(count / _MIB, decimals) * _MIB)
