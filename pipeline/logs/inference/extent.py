"""How far the steps of a log went, by which the steps that it plans are judged."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sweepscope.pipeline.logs.inference.counter import Counter
from sweepscope.pipeline.logs.inference.series import Key, Series
from sweepscope.pipeline.logs.inference.stated import Stated

_PLANNED = "steps_planned"


@dataclass(frozen=True)
class Extent:
    """How far the steps of a log went.

    Attributes:
        epoch_steps: how many steps an epoch may have, where the steps of each are counted anew.
        reached: the largest step, where they are not.
    """

    epoch_steps: range = range(0)
    reached: int = 0

    def planned(self, statements: Sequence[Stated], *, is_one_launch: bool) -> list[Stated]:
        """`statements` without those of planned steps that are other steps.

        Steps of an epoch are none where more are stated, too: `Num iters: 4425`, `Optim steps: 132750`. Nor are fewer
        than the training has done, unless an earlier launch planned them: `49,400 images, iters: 6,175`.
        """
        planned = [int(one.value) for one in statements if one.column == _PLANNED]
        others: Collection[int] = self.epoch_steps if any(one >= self.epoch_steps.stop for one in planned) else ()
        if is_one_launch and not others:
            others = range(self.reached)
        return [one for one in statements if one.column != _PLANNED or int(one.value) not in others]


def extent_of(counter: Counter | None, found: Mapping[Key, Series]) -> Extent:
    """How far the steps that a counter numbers went: those of an epoch from the last that is logged to the next."""
    if counter is None or counter.is_epoch or counter.counts != "steps":
        return Extent()
    numbers = sorted({int(number) for number in found[counter.key].numbers})
    if not numbers or not counter.epoch:
        return Extent(reached=max(numbers, default=0))
    apart = min((after - before for before, after in pairwise(numbers)), default=1)
    return Extent(range(numbers[-1], numbers[-1] + apart))
