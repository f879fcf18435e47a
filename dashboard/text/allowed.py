"""Words for an estimate beside what runs reached: what the hardware allows, unless a run shows that it allows more."""

from __future__ import annotations

from sweepscope.dashboard.format.numbers import percent

ALLOWS = "The hardware allows"
LOW = "Estimated"
_LEVEL = 1e-3
"""Throughput is printed in three or four digits: a run so little faster than the estimate is level with it."""


def allowed(reached: float | None) -> tuple[str, str]:
    """(name of an estimate, the doubt about it), given the throughput that was reached over the estimated one.

    An estimate is no bound: where a run is faster, its constants are too slow for such runs, and it is called no more
    than an estimate.

    >>> allowed(None), allowed(0.93)
    (('The hardware allows', ''), ('The hardware allows', ''))
    >>> allowed(1.09)[1].replace("\\xa0", " ")
    'too low: the fastest run is 9 % faster'
    """
    if reached is None or reached <= 1.0 + _LEVEL:
        return ALLOWS, ""
    digits = 0 if reached >= 1.02 else 1
    return LOW, f"too low: the fastest run is {percent(reached - 1.0, digits)} faster"
