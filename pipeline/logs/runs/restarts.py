"""Where a training begins again in one log, and where lines are only out of order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

Array = np.ndarray

_VALUES = ("loss", "grad_norm", "step_time_s", "tokens_per_s", "tokens_per_s_per_gpu")
"""Measured values: a training that is done again has others."""

_UNIFORM = 0.95
"""Of the steps, printed equally often by the processes of a run: the last lines of some may be missing."""

_PAUSES = 3.0
"""Step times that pass at least before a training that begins again logs a step."""

_NEAR = 2
"""Steps that processes of a run are apart at most, since they wait for each other; and falls that show it at least."""

_CLEAR = 4.0
"""How many times the usual change of the loss a rise back to its first value is, unless the loss goes on."""

_LEAST_PARTS = 4
"""In the first and in the last third of the parts of a log, whose losses are compared."""

_SIGMAS = 4.0
"""By which the losses of the two have to differ."""


@dataclass(frozen=True)
class Restarts:
    """What the order of the steps shows, for each row.

    Attributes:
        begins: a training begins again with it.
        offset: to be added to a step that is counted from the beginning of its epoch.
        is_other: it is of another counter than the training's.
    """

    begins: Array
    offset: Array
    is_other: Array


def restarts(steps: pl.DataFrame) -> Restarts:
    """What the order of the steps shows.

    A log is written by one process, or by several that log the same steps. Its steps rise, and where they fall back:

    - One process: a fall is a restart, from the beginning or from a checkpoint. It is none if the steps behind it
      leap back to where they were before, over steps that were logged there: those have a counter of their own, as an
      evaluation, or came late.
    - Several processes, k of them: lines arrive in any order, so a fall shows nothing. Each step is logged k times,
      and a step that is logged twice as often belongs to two trainings: the second begins with its line k + 1.
    - There are several processes if the typical step is logged k > 1 times, and either some steps leap back, or no
      sequence of restarts explains why all steps are logged equally often. Trainings one after the other, each with
      all of the steps, do explain it.
    - Processes that redraw bars log some steps more often than others. Where the typical step is logged more than once
      and steps fall back time and again, by a step or two, these falls are theirs and only deeper ones are restarts.
    - Times go on at a restart. Where they go back, the lines are another process's. Where there are none, and all
      steps that are logged again have all values that they had, the lines are copies.
    - Trainings one after the other that all count from the same to the same step, and whose loss goes on, are the
      epochs of one.

    So the processes of a run may print in any order: it stays one run with the same steps. Falls back to the beginning
    or to a checkpoint part it, with or without a launch line, however often.

    Args:
        steps: STEP_FACTS rows of files in the order of their lines, with `launch`, a number that grows wherever there
            is evidence of a launch; rows without a fall between two launches are left alone.
    """
    found = Restarts(np.zeros(steps.height, bool), np.zeros(steps.height, np.int64), np.zeros(steps.height, bool))
    falls = steps.select(((pl.col("step").diff() < 0) & (pl.col("launch").diff() == 0)).fill_null(value=False))
    if not falls.to_series().any():
        return found
    stretches = steps["launch"].rle().struct.unnest()
    stops = np.cumsum(stretches["len"].to_numpy().astype(np.int64))
    starts = np.concatenate([[0], stops[:-1]])
    for number in np.unique(np.searchsorted(stops, np.flatnonzero(falls.to_series()), side="right")):
        rows = slice(int(starts[number]), int(stops[number]))
        log = _Log.of(steps[rows])
        is_other = log.other_counter()
        if is_other.any():
            found.is_other[rows] = is_other
            log = _Log.of(steps[rows].filter(~is_other))
        found.begins[rows][~is_other], found.offset[rows][~is_other] = log.judged()
    return found


@dataclass(frozen=True)
class _Log:
    """Steps of one launch in the order of their lines, at least one of them smaller than the one before it.

    Attributes:
        step: as logged.
        time: in microseconds, NaN where unknown.
        loss: of each row, NaN where unknown.
        values: those of `_VALUES`, a column each.
        known: the distinct steps.
        index: of each row, that of its step in `known`.
        prints: how often each of `known` was logged.
        falls: rows with a smaller step than the row before.
        ends: of the rows that rise from each fall, the one behind the last.
        rises: of each row, the number of falls up to it.
        order: the rows by step, then by line.
    """

    step: Array
    time: Array
    loss: Array
    values: Array
    known: Array
    index: Array
    prints: Array
    falls: Array
    ends: Array
    rises: Array
    order: Array

    @classmethod
    def of(cls, steps: pl.DataFrame) -> _Log:
        step = steps["step"].to_numpy()
        known, index, prints = np.unique(step, return_inverse=True, return_counts=True)
        is_fall = np.append(False, np.diff(step) < 0)
        falls = np.flatnonzero(is_fall)
        return cls(
            step=step,
            time=steps["ts"].to_physical().cast(pl.Float64).fill_null(float("nan")).to_numpy(),
            loss=steps["loss"].fill_null(float("nan")).to_numpy(),
            values=steps.select(pl.col(_VALUES).fill_null(float("nan"))).to_numpy(),
            known=known,
            index=index,
            prints=prints,
            falls=falls,
            ends=np.append(falls[1:], step.size),
            rises=np.cumsum(is_fall),
            order=np.argsort(index, kind="stable"),
        )

    def judged(self) -> tuple[Array, Array]:
        """`Restarts.begins` and `offset` of these rows."""
        leaps = self._leaps()
        usual = max(int(np.median(self.prints)), 1)
        begins, offset = np.zeros(self.step.size, bool), np.zeros(self.step.size, np.int64)
        if not self.falls.size:
            return begins, offset
        if usual > 1 and (leaps.any() or self._is_of_several(usual)):
            begins[self._surplus(usual)] = True
            return begins, offset
        rows = self.falls[~leaps & ~self._is_same() & ~(self._near() & (usual > 1))]
        if length := self._epoch(rows):
            offset = np.searchsorted(rows, np.arange(offset.size), side="right") * length
        else:
            begins[rows] = True
        return begins, offset

    def _leaps(self) -> Array:
        """Of each fall, whether the steps that rise from it leap over the highest one before it."""
        peak, row = np.maximum.accumulate(self.step), np.arange(self.step.size)
        is_new = np.append([True], self.step[1:] > peak[:-1])
        following = np.minimum.accumulate(np.where(is_new, row, row.size)[::-1])[::-1]
        over = following[self.falls]
        leaps = over < self.ends
        over = np.where(leaps, over, self.falls)
        rise = np.diff(self.step, prepend=self.step[:1])
        stride = np.median(rise[rise > 0]) if (rise > 0).any() else 1
        own = np.where(over - 1 > self.falls, rise[over - 1], 0)
        is_below = self.step[over - 1] < peak[self.falls - 1]
        return np.asarray(leaps & is_below & (rise[over] > np.maximum(stride, own)))

    def _near(self) -> Array:
        """Of each fall, whether it is one of many by a step or two, none of them back to the first step."""
        depth = self.step[self.falls - 1] - self.step[self.falls]
        stride = np.median(np.diff(self.known)) if self.known.size > 1 else 1
        is_near = (depth <= _NEAR * stride) & (self.step[self.falls] > self.known[0]) & ~self._has_pause()
        return np.asarray(is_near & (is_near.sum() > _NEAR))

    def _is_of_several(self, usual: int) -> bool:
        """Whether processes that log the same steps explain how often each was logged, and restarts do not."""
        size = int(np.flatnonzero(self.prints >= usual)[-1]) + 1
        if self.prints[0] < usual or (self.prints[:size] % usual == 0).mean() < _UNIFORM:
            return False
        if self._has_pause().all():
            return False
        is_within = self.index < size
        _, often = np.unique(self.rises[is_within] * size + self.index[is_within], return_counts=True)
        from_start = (self.step[self.falls] == self.known[0]).all()
        return not ((from_start or often[0] == usual) and (often == often[0]).all())

    def _has_pause(self) -> Array:
        """Of each fall, whether as much time as a start takes went by before it; False where times are unknown."""
        return np.asarray(self.time[self.falls] - self._latest(self.falls) > _PAUSES * self._step_time())

    def _surplus(self, usual: int) -> list[int]:
        """Rows that log a step once more than usual, of steps that are logged twice as often since the row before."""
        size = self.step.size
        same = self.index[self.order]
        before, after = self.order[: size - usual], self.order[usual:]
        twice = np.append(same[2 * usual - 1 :], np.full(2 * usual - 1, -1))[: before.size]
        is_surplus = (same[: before.size] == same[usual:]) & (same[: before.size] == twice)
        is_surplus &= ~(self.time[after] < self._latest(after))
        following = np.full(size + 1, size)
        following[before[is_surplus]] = after[is_surplus]
        following = np.minimum.accumulate(following[::-1])[::-1]
        rows, row = [], int(following[0])
        while row < size:
            rows.append(row)
            row = int(following[row])
        return rows

    def _step_time(self) -> float:
        """The usual time from one highest step to the next, 0 where times are unknown.

        Where most of them have no fall between, only these: in short trainings the pauses are as many as the steps.
        """
        is_highest = np.append(True, np.diff(np.maximum.accumulate(self.step)) > 0)
        steps, is_even = np.diff(np.fmax.accumulate(self.time[is_highest])), np.diff(self.rises[is_highest]) == 0
        is_known = np.isfinite(steps)
        if 2 * (is_even & is_known).sum() >= is_known.sum():
            is_known &= is_even
        return float(np.median(steps[is_known])) if is_known.any() else 0.0

    def _latest(self, rows: Array) -> Array:
        """The latest time before each of some rows behind the first."""
        return np.asarray(np.fmax.accumulate(self.time)[rows - 1])

    def _is_same(self) -> Array:
        """Of each fall, whether the lines from there on are those of the same training once more."""
        time, latest = self.time[self.falls], self._latest(self.falls)
        earlier = np.full(self.step.size, -1)
        is_again = self.index[self.order][1:] == self.index[self.order][:-1]
        earlier[self.order[1:][is_again]] = self.order[:-1][is_again]
        fall = np.append(0, self.falls)[self.rises]
        values, former = self.values, self.values[earlier]
        is_known = ((earlier >= 0) & (earlier < fall))[:, None] & ~np.isnan(values) & ~np.isnan(former)
        is_compared = is_known.any(axis=1)
        differs = np.logical_or.reduceat((is_known & (values != former)).any(axis=1), self.falls)
        is_whole = np.maximum.reduceat(self.step, self.falls) >= np.maximum.accumulate(self.step)[self.falls - 1]
        is_copy = np.logical_or.reduceat(is_compared, self.falls) & ~differs & is_whole
        return np.asarray((time < latest) | (~(time > latest) & is_copy))

    def other_counter(self) -> Array:
        """Rows of falls that leap back, with steps that the others do not log: neither late lines nor ranks'."""
        leaps = self._leaps()
        if not leaps.any():
            return np.zeros(self.step.size, bool)
        peak = np.maximum.accumulate(self.step)
        is_left = np.append(False, leaps)[self.rises] & (self.step <= np.append(0, peak[self.falls - 1])[self.rises])
        others = np.sort(self.step[~is_left])
        below = np.searchsorted(others, self.step, side="left")
        is_known = others[np.minimum(below, others.size - 1)] == self.step
        # A late line lies between the last two steps before it.
        is_late = (below > 0) & (np.searchsorted(others, peak, side="left") == below)
        return np.asarray(is_left & ~is_known & ~is_late)

    def _epoch(self, begins: Array) -> int:
        """Steps of an epoch, where each of several counts its steps anew; 0 for trainings one after the other."""
        starts = np.append(0, begins)
        first, last = self.step[starts], np.maximum.reduceat(self.step, starts)
        is_even = begins.size and (first == first[0]).all() and (last[:-1] == last[0]).all() and last[-1] <= last[0]
        if not is_even or last[0] == first[0]:
            return 0
        change, reset = np.abs(self.loss[begins] - self.loss[begins - 1]), np.abs(np.diff(self.loss[starts]))
        usual = np.abs(np.diff(self.loss))
        if not np.isfinite(usual).any():
            return 0
        goes_on = bool(reset.mean() > _CLEAR * max(change.mean(), np.median(usual[np.isfinite(usual)])))
        goes_on = goes_on or self._comes_down(starts)
        return int(last[0] - first[0] + np.diff(self.known)[0]) if goes_on else 0

    def _comes_down(self, starts: Array) -> bool:
        """Whether the loss of many parts, each by itself too noisy to tell, comes down from part to part.

        Those of trainings one after the other begin with the same loss, and come down within each of them.
        """
        third = starts.size // 3
        if third < _LEAST_PARTS or not np.isfinite(self.loss).all():
            return False
        length = np.diff(np.append(starts, self.step.size))
        means = np.add.reduceat(self.loss, starts) / length
        early, late = means[:third], means[-third:]
        fall = early.mean() - late.mean()
        doubt = np.sqrt((early.var() + late.var()) / third)
        within = self.loss[starts] - self.loss[np.append(starts[1:], self.step.size) - 1]
        return bool(fall > _SIGMAS * doubt and fall > within[1:].mean())
