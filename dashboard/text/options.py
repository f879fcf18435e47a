"""What a selector says that does not list all of its options."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sweepscope.dashboard.format.numbers import number


def left_out(offered: Sequence[str], names: Collection[str], *, noun: str, most: str, parameter: str) -> str | None:
    """How to reach the options that a selector does not list; None where it lists all.

    Args:
        offered: its options, of which some may be no names ("all sweeps").
        names: all that could be chosen.
        noun: one of them ("sweep").
        most: of what the first ones have the most ("runs").
        parameter: of the address, which opens any.
    """
    few = len(set(offered).intersection(names))
    if few == len(names):
        return None
    return (
        f"Listed are {number(few)} of {number(len(names))} {noun}s, those with the most {most} first. "
        f"An address with {parameter}=NAME opens any of them."
    )
