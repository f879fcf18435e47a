"""Which of several runs is fastest, by what measure, by how much, and whether that is more than noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.view_models.compare import Subject

Measure = Literal["throughput", "utilisation"]


@dataclass(frozen=True)
class Standing:
    """A column with its figure: tokens/s/GPU, or utilisation as a fraction."""

    subject: Subject
    value: float


@dataclass(frozen=True)
class Race:
    """The columns with a figure, best first, and those without one.

    `measure` is throughput where all do the same work per token on the same chips, else utilisation of each one's own
    peak. `noise` is what the lead of the first over the second has to exceed, as a share; None where nothing is known
    of it. `chance` is that of the first to be the faster. `is_same`: the two ran one configuration. `medians` are the
    throughputs of the first two's layouts over all their repeats, in tokens/s/GPU; None where either is not ranked.
    """

    measure: Measure
    standings: tuple[Standing, ...]
    without: tuple[Subject, ...]
    noise: float | None = None
    chance: float | None = None
    is_same: bool = False
    repeats: tuple[int, int] = (1, 1)
    medians: tuple[float, float] | None = None

    @property
    def lead(self) -> float:
        """How far the first is ahead of the second: a share of the second's throughput, or a difference of shares."""
        first, second = self.standings[0].value, self.standings[1].value
        return first / second - 1 if self.measure == "throughput" else first - second

    @property
    def is_turned_by_repeats(self) -> bool:
        """Whether the second's layout leads over all repeats, as rankings count, though this run of it does not."""
        return self.medians is not None and not self.is_same and self.medians[1] > self.medians[0]

    @property
    def is_within_noise(self) -> bool:
        """Whether the lead proves nothing."""
        return self.noise is not None and self.lead <= self.noise + 1e-12


def utilisation(run: Row) -> float | None:
    """MFU as the store computes it, or as its publication prints it where it cannot be computed.

    None for what a log prints, which divides by a peak that only its trainer knows, and for more than a peak, which no
    accelerator reaches.
    """
    found: float | None = run["mfu"]
    if found is None and run["origin"] == "published":
        found = run["mfu_logged"]
    return found if found is None or found <= 1 else None


def race(columns: Sequence[Subject]) -> Race:
    """The columns in order of speed. Of a group the median counts."""
    measure: Measure = "throughput" if _does_same_work(columns) else "utilisation"
    found = []
    for one in columns:
        if measure == "throughput":
            value = one.middle("tokens_per_s_per_gpu")
        else:
            known = sorted(share for run in one.runs if (share := utilisation(run)) is not None)
            value = known[len(known) // 2] if known else None
        if value:
            found.append(Standing(one, value))
    found.sort(key=lambda standing: -standing.value)
    named = {standing.subject.letter for standing in found}
    without = tuple(one for one in columns if one.letter not in named)
    return Race(measure, tuple(found), without)


def _does_same_work(columns: Sequence[Subject]) -> bool:
    """Whether tokens/s/GPU can be compared: one model, by name or by size, on one kind of accelerator.

    Runs without any figure do not count: they are not compared. One whose source prints an MFU alone does.
    """
    known = [run for one in columns for run in one.runs if run["tokens_per_s_per_gpu"] or utilisation(run)]
    models, sizes = {run["model"] for run in known}, {run["params"] for run in known}
    is_one_model = (len(models) == 1 and None not in models) or (len(sizes) == 1 and None not in sizes)
    is_timed = all(run["tokens_per_s_per_gpu"] for run in known)
    return bool(known) and is_timed and is_one_model and len({run["accelerator"] for run in known}) == 1


def judged(found: Race, certainty: Row | None) -> Race:
    """The race with the noise of its first two: the spread of groups, of runs a row of `queries.compare.certainty`."""
    if len(found.standings) < 2 or found.measure != "throughput":
        return found
    first, second = (standing.subject for standing in found.standings[:2])
    if first.is_group or second.is_group:
        spreads = [one.spread("tokens_per_s_per_gpu") for one in (first, second)]
        noise = max((spread for spread in spreads if spread is not None), default=None)
        return replace(found, noise=noise, repeats=(len(first.runs), len(second.runs)))
    if certainty is None:
        return found
    counts = (int(certainty["repeats"]), int(certainty["other_repeats"]))
    known = {name: certainty[name] for name in ("noise", "chance", "is_same")}
    medians = certainty.get("median"), certainty.get("other_median")
    both = (float(medians[0]), float(medians[1])) if medians[0] and medians[1] else None
    return replace(found, repeats=counts, medians=both, **known)
