"""What follows from the speed that transformers' Trainer states at the end of a training: planned steps and batch.

Format: transformers/trainer_utils.py speed_metrics, which rounds rates to three decimals and the run time to four;
version 5 prints all with four significant digits (trainer_callback.py ProgressCallback). trainer.py (train): the steps
are those planned, also where the training ended early or went on from a checkpoint; the samples are planned steps
times batch under `max_steps`, else examples times epochs, and then the last batch of an epoch is a smaller one.

A printed number stands for a range, and only what a single whole number explains is concluded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

_ALIKE = 0.05
"""Of a mean loss: the steps behind the last logged one count, too."""

_CLOCK = re.compile(r"(?:(?P<days>\d+) days?, )?(?P<hours>\d+):(?P<minutes>\d\d):(?P<seconds>\d\d(?:\.\d\d)?)")


@dataclass(frozen=True)
class Span:
    """A range of positive numbers."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """The number halfway, which is the printed one."""
        return round((self.low + self.high) / 2, 9)

    def __mul__(self, other: Span) -> Span:
        return Span(self.low * other.low, self.high * other.high)

    def __truediv__(self, other: Span) -> Span:
        return Span(self.low / other.high, self.high / other.low if other.low > 0 else math.inf)

    def within(self, other: Span) -> Span:
        """The part that lies in another range; all of it where there is none."""
        both = Span(max(self.low, other.low), min(self.high, other.high))
        return both if both.low <= both.high else self

    def only_multiple(self, unit: int = 1) -> int | None:
        """The one multiple of `unit` in the range.

        >>> Span(7.96, 8.04).only_multiple(), Span(7.1, 7.9).only_multiple(), Span(7, 9).only_multiple()
        (8, None, None)
        >>> Span(7, 9).only_multiple(8)
        8
        """
        if not 0 < self.high < math.inf:
            return None
        lowest, highest = math.ceil(self.low / unit), math.floor(self.high / unit)
        return lowest * unit if lowest == highest and lowest > 0 else None


def rounded(value: float, decimals: int, digits: int | None = None) -> Span | None:
    """The numbers that round to `value` with so many decimals, and then digits; None for what is no number above 0.

    >>> rounded(2.551, 3), rounded(22.86, 4, digits=4)
    (Span(low=2.5505, high=2.5515), Span(low=22.855, high=22.865))
    """
    if not 0 < value < math.inf:
        return None
    half = 0.5 * 10.0**-decimals
    if digits is not None:
        half = max(half, 0.5 * 10.0 ** (math.floor(math.log10(value)) + 1 - digits))
    return Span(max(round(value - half, 9), 0.0), round(value + half, 9))


def clock(text: str) -> Span | None:
    """Seconds of `0:01:23.45`, whose last digits are cut off (trainer_pt_utils.py _secs2timedelta).

    >>> clock("0:01:23.45")
    Span(low=83.45, high=83.46)
    """
    found = _CLOCK.fullmatch(text)
    if not found:
        return None
    whole = 3600 * (24 * int(found["days"] or 0) + int(found["hours"])) + 60 * int(found["minutes"])
    seconds = whole + float(found["seconds"])
    return Span(round(seconds, 2), round(seconds + (0.01 if "." in found["seconds"] else 1), 2))


def is_whole(steps: Sequence[int], losses: Sequence[float], mean_loss: float | None) -> bool:
    """Whether the stated mean loss is that of all logged steps, so that the stated run time covers all of them, too.

    After a checkpoint was taken up, the Trainer divides the losses since then by all steps.

    >>> is_whole([10, 20], [4.0, 2.0], 3.0), is_whole([10, 20], [4.0, 2.0], 1.0)
    (True, False)
    """
    if mean_loss is None or not steps or not all(map(math.isfinite, losses)):
        return False
    counts = [after - before for before, after in zip([0, *steps], steps, strict=False)]
    mean = sum(count * loss for count, loss in zip(counts, losses, strict=True)) / steps[-1]
    return min(counts) > 0 and math.isclose(mean, mean_loss, rel_tol=_ALIKE, abs_tol=1e-3)


def tokens_of_step(steps: Sequence[int], tokens: Sequence[int]) -> int | None:
    """Tokens of every step, from those seen so far; None unless all steps have as many.

    >>> tokens_of_step([4, 8], [4096, 8192]), tokens_of_step([2, 4], [206, 435])
    (1024, None)
    """
    pairs = list(zip(steps, tokens, strict=True))
    stretches = zip([(0, 0), *pairs], pairs, strict=False)
    each = {divmod(seen - before, step - last) for (last, before), (step, seen) in stretches if step > last}
    (size, rest), *others = each or {(0, 0)}
    return size if len(pairs) > 1 and not others and not rest and size > 0 else None


@dataclass(frozen=True)
class Speed:
    """What one training stated; None is unknown.

    Attributes:
        runtime_s: seconds of the training.
        samples_per_s, steps_per_s: samples and planned steps over it.
        epoch: epochs at its end.
        steps: planned steps, where they are printed.
        unit: samples that every batch is a multiple of: micro-batch times accumulation steps, as far as known.
    """

    runtime_s: Span | None = None
    samples_per_s: Span | None = None
    steps_per_s: Span | None = None
    epoch: Span | None = None
    steps: int | None = None
    unit: int = 1

    def steps_planned(self) -> int | None:
        """Optimizer steps that the training was to take."""
        if self.steps is not None or self.runtime_s is None or self.steps_per_s is None:
            return self.steps
        return (self.runtime_s * self.steps_per_s).only_multiple()

    def steps_allowed(self) -> tuple[int, int] | None:
        """The fewest and the most optimizer steps that the training may have taken; None where that is open."""
        done = self._steps_span()
        if done.high == math.inf or done.low < 1:
            return None
        return max(math.ceil(done.low), 1), math.floor(done.high)

    def last_logged(self, count: int) -> int | None:
        """The last of so many logged steps, at equal distances up to the end of the training; None where several fit.

        >>> whole = Speed(runtime_s=Span(15475.8, 15475.9), steps_per_s=Span(0.8215, 0.8225))
        >>> whole.last_logged(1272), whole.last_logged(3), whole.last_logged(900)
        (12720, None, None)
        """
        done = self._steps_span()
        if count < 1 or done.high == math.inf:
            return None
        most = math.floor(done.high / count)
        fits = [every for every in (most, most - 1) if every > 0 and (count + 1) * every > done.low]
        return most * count if fits == [most] else None

    def total_batch(self) -> int | None:
        """Samples of an optimizer step."""
        steps = self.steps_planned()
        if self.samples_per_s is None or self.steps_per_s is None or self.epoch is None or self.epoch.low <= 0:
            return None
        each = self.samples_per_s / self.steps_per_s
        if steps is not None and self.runtime_s is not None:
            each = each.within(Span(self.samples_per_s.low / steps, self.samples_per_s.high / steps) * self.runtime_s)
        done = Span(steps, steps) if steps is not None else self._steps_span()
        per_epoch = (done / self.epoch).low
        if per_epoch <= 2:
            return None
        # Dropped or smaller last batches: see the laws in the tests.
        few, many = per_epoch / (per_epoch + 1), per_epoch / (per_epoch - 2)
        return Span(each.low * few, each.high * many).only_multiple(self.unit)

    def _steps_span(self) -> Span:
        if self.runtime_s is None or self.steps_per_s is None:
            return Span(0, math.inf)
        return self.runtime_s * self.steps_per_s
