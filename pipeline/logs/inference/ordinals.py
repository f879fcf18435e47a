"""Losses that nothing numbers: `Epoch 3 - batch loss: 2.31`, line after line. Each of them is one more step."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sweepscope.pipeline.logs.declared.rules import LINES
from sweepscope.pipeline.logs.inference.counter import Counter
from sweepscope.pipeline.logs.inference.naming import named
from sweepscope.pipeline.logs.inference.samples import AMOUNT
from sweepscope.pipeline.logs.inference.series import Key, Line, Series, course

_LEAST = 10
"""Lines that make a training."""
_SOME, _RISING = 3, 0.9
_SEVERAL = 5
"""Lines of an epoch from which on they are those of its batches: fewer may be its training and its evaluations."""
_MOST_SURE = 2
"""Names of a loss that are no guess."""


def find_ordinals(
    found: Mapping[Key, Series], counter: Counter | None, lines: Sequence[Line], settings: Mapping[str, str]
) -> Counter | None:
    """The losses by whose lines steps are counted, where nothing numbers them, or their epoch only; None without any.

    Args:
        found: all series.
        counter: what numbers the lines.
        lines: the sample.
        settings: believed values by column.
    """
    if (counter and not counter.is_epoch) or _is_counted(found, lines):
        return None
    best: tuple[int, int, Key] | None = None
    for key, series in found.items():
        sure = named(key[0], "loss")
        if key[1] or sure is None or sure > _MOST_SURE:
            continue
        own = series.within(set(series.rows))
        went = course(own, lines)
        if len(own.by_row) < _LEAST or went.moves < _LEAST // 2 or _is_in_parts(found, own):
            continue
        if counter and not _are_batches(own, found[counter.key], lines, settings):
            continue
        if best is None or len(own.by_row) > best[0]:
            best = len(own.by_row), sure, key
    return Counter(best[2], sure=1, counts=LINES) if best else None


def in_order(series: Series, lines: Sequence[Line]) -> Series:
    """The series with the numbers of its lines, within each stretch of the sample, in place of its values."""
    last: Tally[tuple[int, int | None]] = Tally()
    numbered = Series(series.key)
    for row, one in series.by_row.items():
        stream = (lines[row].block, lines[row].rank)
        last[stream] += 1
        numbered.rows.append(row)
        numbered.fields.append(replace(one, number=float(last[stream])))
    return numbered


def _is_counted(found: Mapping[Key, Series], lines: Sequence[Line]) -> bool:
    """Whether the log counts its training all the same: samples of an unknown batch, or steps in other lines."""
    for key, series in found.items():
        if key[1] or not (named(key[0], "step") == 0 or AMOUNT.fullmatch(key[0])):
            continue
        went = course(series.within(set(series.rows)), lines)
        if went.moves >= _SOME and went.rising >= _RISING:
            return True
    return False


def _is_in_parts(found: Mapping[Key, Series], losses: Series) -> bool:
    """Whether lines of losses tell a part of an epoch, of which the steps between two of them follow: `epoch 0.25`."""
    rows = set(losses.rows)
    return any(
        named(key[0], "epoch") is not None and not series.is_whole and not rows.isdisjoint(series.rows)
        for key, series in found.items()
    )


def _are_batches(losses: Series, epoch: Series, lines: Sequence[Line], settings: Mapping[str, str]) -> bool:
    """Whether the lines with losses of one epoch are those of its batches, rather than of an epoch's many processes."""
    counts: Tally[tuple[int, int | None, float]] = Tally()
    for row in losses.by_row:
        beside = epoch.by_row.get(row)
        if beside is None or beside.number is None:
            return False
        counts[lines[row].block, lines[row].rank, beside.number] += 1
    # The first and the last stretch of an epoch may be cut by the sample.
    usual = Tally(counts.values()).most_common(1)[0][0]
    if usual < _SEVERAL or len(losses.by_row) < _SEVERAL * len(set(epoch.numbers)):
        return False
    is_even = sum(count == usual for count in counts.values()) * 2 > len(counts)
    could_be_ranks = settings.get("num_gpus") == str(usual) or usual & (usual - 1) == 0
    return not (is_even and could_be_ranks)
