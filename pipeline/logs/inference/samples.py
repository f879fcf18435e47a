"""Counters of samples and tokens: what a rank has seen, as in `Train Epoch: 2 [6400/60000 (11%)]`, or the whole job."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sweepscope.pipeline.logs.declared.rules import BATCH_OF
from sweepscope.pipeline.logs.inference.counter import Counter
from sweepscope.pipeline.logs.inference.losses import losses_are_elsewhere
from sweepscope.pipeline.logs.inference.naming import named
from sweepscope.pipeline.logs.inference.series import Key, Line, Series, course

_LEAST = 3
"""Values that have to be whole batches."""
_ROUNDED = 2.0
"""Percentage points by which a printed share may differ from that of the counter."""
_RISING = 0.9
AMOUNT = re.compile(
    r"(?:(?:num|number of|total|global|consumed|processed|seen|train(?:ed|ing)?) )*"
    r"(?:samples?|examples?|sequences?|seqs?|tokens?)"
    r"(?: (?:count|seen|consumed|processed|so far|done|total))*"
)
"""Names of what a job has seen so far."""
_SHARE = re.compile(r"\s*\(\s*(\d+(?:\.\d+)?)\s*%\s*\)")


def in_samples(
    counter: Counter, found: Mapping[Key, Series], lines: Sequence[Line], settings: Mapping[str, str]
) -> Counter:
    """The counter, of samples where it is no named one, a share follows its total and it moves by whole batches.

    Args:
        counter: what numbers the lines.
        found: all series.
        lines: the sample.
        settings: believed values by column; without a batch, the counter stays what it is.
    """
    total = found.get((counter.key[0], "of", counter.key[2]))
    if total is None or named(counter.key[0], "step") is not None:
        return counter
    shares = dict(_shares(found[counter.key], total, lines))
    values = {one.number for row, one in found[counter.key].by_row.items() if row in shares and one.number}
    if len(values) < _LEAST:
        return counter
    for counts, batch in BATCH_OF.items():
        size = settings.get(batch, "")
        if size.isdigit() and int(size) > 1 and all(value % int(size) == 0 for value in values):
            is_of_all = all(abs(printed - own) <= _ROUNDED for printed, own in shares.values())
            return replace(counter, counts=counts, has_total=is_of_all)
    return counter


def of_amounts(found: Mapping[Key, Series], lines: Sequence[Line], settings: Mapping[str, str]) -> Counter | None:
    """The counter of a log that numbers its steps by what they have seen so far: it moves by whole batches of the job.

    Losses stand beside it, where the log prints any.

    Args:
        found: all series.
        lines: the sample.
        settings: believed values by column; without the batch of a step, nothing is such a counter.
    """
    sizes = _sizes(settings)
    best: tuple[int, Counter] | None = None
    for key, series in found.items():
        is_named = named(key[0], "step") is not None or AMOUNT.fullmatch(key[0])
        own = series.within(set(series.rows))
        went = course(own, lines)
        if key[1] or not is_named or went.moves < _LEAST or went.rising < _RISING:
            continue
        if losses_are_elsewhere(found, key, lines):
            continue
        values = {value for value in own.numbers if value}
        counts = next((name for name, size in sizes if all(value % size == 0 for value in values)), None)
        if counts and (best is None or len(own.rows) > best[0]):
            best = len(own.rows), Counter(key, sure=1, counts=counts)
    return best[1] if best else None


def of_a_step(counter: Counter, settings: Mapping[str, str]) -> float:
    """By how much the counter moves in one step: 1 where it counts steps.

    Args:
        counter: what numbers the lines.
        settings: believed values by column.
    """
    size = dict(_sizes(settings)).get(counter.counts) or settings.get(BATCH_OF.get(counter.counts, ""), "1")
    return float(size) if str(size).isdigit() and int(size) > 0 else 1.0


def _sizes(settings: Mapping[str, str]) -> list[tuple[str, int]]:
    """What a step of the job takes, the largest first: name of what is counted, and how many of them."""
    batch, length, tokens = (settings.get(name, "") for name in ("gbs", "seq_len", "gbs_tokens"))
    if not tokens.isdigit() and batch.isdigit() and length.isdigit():
        tokens = str(int(batch) * int(length))
    found = (("tokens", tokens), ("samples", batch))
    return [(name, int(size)) for name, size in found if size.isdigit() and int(size) > 1]


def _shares(counted: Series, total: Series, lines: Sequence[Line]) -> list[tuple[int, tuple[float, float]]]:
    """Row, and the share of the total as it is printed behind it and as it follows from the two numbers, in percent."""
    found = []
    for row, whole in total.by_row.items():
        one, hit = counted.by_row.get(row), _SHARE.match(lines[row].text, whole.stop)
        if one and one.number is not None and whole.number and hit:
            found.append((row, (float(hit[1]), 100 * one.number / whole.number)))
    return found
