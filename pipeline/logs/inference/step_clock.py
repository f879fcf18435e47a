"""How long a step takes by what lines print beside that time: their clock, means, rates and the time that is left."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from sweepscope.pipeline.logs.inference.series import Line, Series
from sweepscope.pipeline.logs.inference.units import FACTORS

_LEAST_SECONDS = 8.0
"""Time between two lines that the clock, which shows seconds, measures well enough."""
_LEAP_YEAR = 2000
"""Stands for the year that a line does not print; only differences count, and this year has all days."""
_HEAD = 40
"""Characters at the beginning of a line in which its clock stands."""
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_WITHOUT_YEAR = re.compile(
    r"^\W{0,3}(?:[IWEF](?P<glog>\d{4}) |(?P<day>\d{1,2}[/-]\d{1,2})[ T]|"
    rf"(?P<month>{'|'.join(_MONTHS)}) +(?P<day_of_month>\d{{1,2}}) |)"
    r"(?P<hours>\d{1,2}):(?P<minutes>[0-5]\d):(?P<seconds>[0-5]\d(?:[.,]\d{1,6})?)(?![\d:])"
)
"""Clocks without a year: glog's `I1122 09:00:00.1`, `10/01 00:01:31`, syslog's `Nov 22 09:00:00`, `[09:00:00]`."""
_STEPS_PER_SECOND = re.compile(
    r"(?i)\b(?:global[ _]?)?(?:steps?|iter(?:ation)?s?)(?:/| per |_per_)s(?:ec(?:ond)?)?\s*[:=]\s*"
    r"(\d+(?:\.\d+)?(?:e-?\d+)?)\b"
)
_MEAN_TIME = re.compile(
    r"(?i)\b(?:average|avg|mean|median)[ _](?:(?:time|duration)[ _](?:per|of a)[ _](?:step|iter(?:ation)?)|"
    r"(?:step|iter(?:ation)?)[ _](?:time|duration))\s*[:=]\s*(\d+(?:\.\d+)?(?:e-?\d+)?)\s*(s|ms)(?:ec(?:ond)?s?)?\b"
)
"""What scripts print at their end: `Average step time: 0.160s`."""
_LEFT = re.compile(
    r"(?i)\b(?:eta|remaining|time[ _]left)\b[\s:=(]{0,3}(?:(?P<days>\d+) ?d(?:ays?)?,? ?)?"
    r"(?:(?P<hours>\d{1,3}):(?P<minutes>[0-5]?\d):(?P<seconds>[0-5]\d)(?![\d:])|"
    r"(?:(?P<h>\d{1,3}) ?h(?:ours?|rs?)?)? ?(?:(?P<m>\d{1,3}) ?m(?:in(?:ute)?s?)?)? ?(?:(?P<s>\d{1,3}) ?s(?:ec)?)?\b)"
)
"""`eta 10:03:04`, `ETA: 1 day, 2:03:04`, `remaining 5h 12m`."""


@dataclass(frozen=True)
class StepClock:
    """What the lines tell about the time of a step.

    Attributes:
        seconds: of a step; None where nothing shows them.
        interval: steps from one line to the next.
        source: what `seconds` come from, in words.
    """

    seconds: float | None
    interval: float
    source: str = "the clock"


def step_clock(counter: Series, lines: Sequence[Line], of_a_step: float = 1.0) -> StepClock:
    """The time of a step by the clock of the lines, else as a summary or a rate states it.

    Args:
        counter: what numbers the lines.
        lines: the sample.
        of_a_step: by how much the counter moves in one step: the batch of one that counts samples.
    """
    rates, gaps = _by_clock(counter, lines)
    interval = median(gaps) / of_a_step if gaps else 1.0
    if rates:
        return StepClock(median(rates) * of_a_step, interval)
    if mean := _mean_time(lines):
        return StepClock(mean, interval, "the mean at the end")
    return StepClock(_by_rate(lines), interval, "the printed rate of steps")


def seconds_by_time_left(counter: Series, total: Series | None, lines: Sequence[Line]) -> float | None:
    """Seconds per step by the time that is left, as lines print it beside the step and the number of all steps.

    Args:
        counter: what numbers the lines.
        total: what stands behind the counter's slash.
        lines: the sample.
    """
    whole = total.by_row if total else {}
    left = []
    for row, one in counter.by_row.items():
        last = whole[row].number if row in whole else None
        if last and one.number is not None and last > one.number and (seconds := _time_left(lines[row].text)):
            left.append(seconds / (last - one.number))
    return median(left) if left else None


def _time_left(text: str) -> float | None:
    """Seconds that a line says are left; None where it says nothing of it, or "0"."""
    hit = _LEFT.search(text)
    if hit is None:
        return None
    days, hours, minutes, seconds = (
        float(hit[long] or hit[short] or 0) if short else float(hit[long] or 0)
        for long, short in (("days", ""), ("hours", "h"), ("minutes", "m"), ("seconds", "s"))
    )
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds or None


def _mean_time(lines: Sequence[Line]) -> float | None:
    """Seconds per step by the last summary that states them with a unit."""
    stated = (_MEAN_TIME.search(line.text) for line in reversed(lines))
    return next((float(one[1]) * FACTORS[one[2].lower()] for one in stated if one), None)


def _by_rate(lines: Sequence[Line]) -> float | None:
    """Seconds per step by the rate that lines print, as of TensorFlow's StepCounterHook: `global_step/sec: 0.694`."""
    rates = [float(hit[1]) for line in lines if (hit := _STEPS_PER_SECOND.search(line.text))]
    return 1 / median(rates) if rates and median(rates) > 0 else None


def _by_clock(counter: Series, lines: Sequence[Line]) -> tuple[list[float], list[float]]:
    """Seconds per step of stretches that the clock can tell, and steps from line to line."""
    rates: list[float] = []
    gaps: list[float] = []
    begun: dict[tuple[int, int | None], tuple[datetime, float]] = {}
    last: dict[tuple[int, int | None], float] = {}
    moments = _moments(counter, lines)
    for row, one in counter.by_row.items():
        line, number, moment = lines[row], one.number, moments.get(row)
        if number is None:
            continue
        stream = (line.block, line.rank)
        before = last.get(stream)
        if before is not None and number > before:
            gaps.append(number - before)
        elif before is not None:
            begun.pop(stream, None)
        last[stream] = number
        if moment is None:
            continue
        if stream not in begun:
            begun[stream] = (moment, number)
            continue
        since, at = begun[stream]
        seconds = (moment - since).total_seconds()
        if seconds < 0:
            begun[stream] = (moment, number)
        elif seconds >= _LEAST_SECONDS and number > at:
            rates.append(seconds / (number - at))
            begun[stream] = (moment, number)
    return rates, gaps


def _moments(counter: Series, lines: Sequence[Line]) -> dict[int, datetime]:
    """When lines were printed, by row: by their stamps, or else by clocks without a year."""
    rows = list(counter.by_row)
    stamped = {row: moment for row in rows if (moment := lines[row].ts) is not None}
    return stamped or {row: moment for row in rows for moment in _without_year(lines[row])}


def _without_year(line: Line) -> Iterator[datetime]:
    """The moment of a clock without a year, or without a day, at the beginning of a line, if it has one."""
    hit = _WITHOUT_YEAR.match(line.prefix[:_HEAD]) or _WITHOUT_YEAR.match(line.text[:_HEAD])
    if hit is None:
        return
    month, day = 1, 1
    if hit["glog"]:
        month, day = int(hit["glog"][:2]), int(hit["glog"][2:])
    elif hit["day"]:
        month, day = (int(part) for part in re.split("[/-]", hit["day"]))
    elif hit["month"]:
        month, day = _MONTHS.index(hit["month"]) + 1, int(hit["day_of_month"])
    seconds = float(hit["seconds"].replace(",", "."))
    for first, second in ((month, day), (day, month)):
        try:
            midnight = datetime(_LEAP_YEAR, first, second)  # logs print no zone, and differences count
        except ValueError:
            continue
        yield midnight + timedelta(hours=int(hit["hours"]), minutes=int(hit["minutes"]), seconds=seconds)
        return
