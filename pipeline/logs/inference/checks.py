"""Guesses compared with each other, with the clock and with settings: what cannot all be true is not believed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from sweepscope.pipeline.logs.declared.units import KINDS, PER_LINE
from sweepscope.pipeline.logs.inference.columns import HIGH, LOW, MEDIUM, Guess
from sweepscope.pipeline.logs.inference.series import Key, Line, Series
from sweepscope.pipeline.logs.inference.step_clock import seconds_by_time_left, step_clock
from sweepscope.pipeline.logs.inference.units import AMOUNTS, FACTORS

_LONG_STEP = 60.0
_RAW_DIGITS = 10
"""Behind the point, of a number that was printed as it is."""
_ALIKE = 1.6
"""Two figures agree within this factor; between lines there is more than the steps."""
_SAME = 1.15
"""Of one time by two figures of the same lines."""
_FLOPS = {"TFLOPs": 1e12, "PFLOPs": 1e15, "GFLOPs": 1e9}
_OF_ALL = re.compile(r"\b(?:total|global|overall|aggregate|all|cluster|job)\b")


@dataclass(frozen=True)
class Evidence:
    """What guesses are compared with.

    Attributes:
        seconds: time of a step by the clock of the lines, else as a summary states it.
        interval: steps from one line to the next.
        settings: believed values by column.
        clock: what `seconds` come from, in words.
        ranks: how many print the counter.
        witnesses: seconds of a step by other figures, and what they are, for times that no clock shows.
    """

    seconds: float | None
    interval: float
    settings: Mapping[str, float]
    clock: str = "the clock"
    ranks: int = 1
    witnesses: Sequence[tuple[float, str]] = ()

    @property
    def card_tokens(self) -> float | None:
        """Tokens of a step of one card of those that share the data; all of them, as long as no degree is stated."""
        stated = self.settings
        is_split = any(stated.get(degree, 1.0) > 1 for degree in ("tp", "pp", "cp"))
        if is_split or not {"mbs", "seq_len"} <= stated.keys():
            return None
        return stated["mbs"] * stated.get("gas", 1.0) * stated["seq_len"]

    @property
    def batch_tokens(self) -> float | None:
        """Tokens of a step of the whole job."""
        stated = self.settings
        if "gbs_tokens" in stated:
            return stated["gbs_tokens"]
        if {"gbs", "seq_len"} <= stated.keys():
            return stated["gbs"] * stated["seq_len"]
        if {"mbs", "seq_len"} <= stated.keys():
            replicas = stated.get("dp") or (1.0 if stated.get("num_gpus") == 1 else None)
            if replicas:
                return stated["mbs"] * stated.get("gas", 1.0) * replicas * stated["seq_len"]
        return None


def evidence(
    counter: Series,
    total: Series | None,
    lines: Sequence[Line],
    settings: Mapping[str, str],
    of_a_step: float = 1.0,
) -> Evidence:
    """What the lines and the settings tell about a step.

    Args:
        counter: what numbers the lines.
        total: what stands behind the counter's slash.
        lines: the sample.
        settings: believed values by column.
        of_a_step: by how much the counter moves in one step: the batch of one that counts samples.
    """
    numbers = {}
    for column, value in settings.items():
        try:
            numbers[column] = float(value)
        except ValueError:
            continue
    clock = step_clock(counter, lines, of_a_step)
    left = seconds_by_time_left(counter, total, lines)
    witnesses = ((left * of_a_step, "the time that is left"),) if left else ()
    ranks = len({lines[row].rank for row in counter.by_row})
    return Evidence(clock.seconds, clock.interval, numbers, clock.source, ranks, witnesses)


def checked(guesses: Sequence[Guess], found: Mapping[Key, Series], known: Evidence) -> list[Guess]:
    """The guesses with the units and confidences that what is known leaves them."""
    known = replace(known, witnesses=(*known.witnesses, *_by_figures(guesses, found, known)))
    times = [
        _time(guess, found[guess.key], known, has_mean=_has_mean(guess.key, found))
        if guess.column == "step_time"
        else guess
        for guess in guesses
    ]
    tflops = next((found[guess.key].median for guess in times if guess.column == "tflops_per_gpu"), None)
    seconds = known.seconds
    for guess in times:
        if guess.column == "step_time" and guess.is_read and guess.word in FACTORS:
            seconds = found[guess.key].median * FACTORS[guess.word]
    return [
        _rate(guess, found[guess.key], known, seconds, tflops) if guess.column == "tokens_per_s" else guess
        for guess in times
    ]


def _by_figures(guesses: Sequence[Guess], found: Mapping[Key, Series], known: Evidence) -> Iterator[tuple[float, str]]:
    """Seconds of a step by the batch and a rate of the same lines: of the whole job, or of one card."""
    tokens, cards = known.batch_tokens, known.settings.get("num_gpus")
    params = known.settings.get("active_params") or known.settings.get("params")
    for guess in guesses:
        value = found[guess.key].median * AMOUNTS.get(guess.word or "", 1.0)
        if not tokens or not value > 0:
            continue
        if guess.column == "tokens_per_s":
            yield tokens / value, "batch and tokens/s of all cards"
        if guess.column in ("tokens_per_s", "tokens_per_s_per_gpu") and cards and cards > 1:
            yield tokens / (value * cards), "batch and tokens/s of one card"
        if guess.column == "tflops_per_gpu" and cards and params and (scale := _FLOPS.get(guess.word or "TFLOPs")):
            yield 6 * params * tokens / (value * scale * cards), "batch and FLOPs"


def _has_mean(key: Key, found: Mapping[Key, Series]) -> bool:
    """Whether most values have their mean in parentheses: `Time 0.895 (1.014)`, torch's AverageMeter."""
    mean = found.get((key[0], "mean", key[2]))
    return mean is not None and 2 * len(mean.rows) > len(found[key].rows)


def _time(guess: Guess, series: Series, known: Evidence, *, has_mean: bool) -> Guess:
    """A time of a step with its unit; without confidence where the clock contradicts it."""
    if guess.word is None:
        return _with_unit(guess, series, known, has_mean=has_mean)
    factor = FACTORS.get(guess.word)
    if factor is None:
        return guess
    many = f"the time of {known.interval:g} steps"
    if not known.seconds:
        is_doubtful = factor == 1.0 and guess.sure and known.interval > 1
        return _by_witness(guess, series.median * factor, known) if is_doubtful else guess
    share = series.median * factor / known.seconds
    if known.interval > 1 and _alike(share, known.interval) and not _alike(share, 1.0):
        return _since_line(guess, guess.word, f"by {known.clock} it is {many}")
    return _doubted(guess, f"longer than by {known.clock}") if share > 2 * _ALIKE else guess


def _by_witness(guess: Guess, seconds: float, known: Evidence) -> Guess:
    """A time that no clock shows and that may be of several steps: read where all other figures that fit it agree."""
    many = f"the time of {known.interval:g} steps"
    of_one = [how for other, how in known.witnesses if _is_same(seconds, other)]
    of_many = [how for other, how in known.witnesses if _is_same(seconds, other * known.interval)]
    if of_one and not of_many:
        return replace(guess, confidence=MEDIUM, reason=f"{guess.reason}; of one step by {of_one[0]}")
    if of_many and not of_one:
        return _since_line(guess, guess.word or "s", f"by {of_many[0]} it is {many}")
    return _doubted(guess, f"it may be {many}")


def _with_unit(guess: Guess, series: Series, known: Evidence, *, has_mean: bool) -> Guess:
    """A time without a unit: in the one that the clock or its size tells.

    Python's clocks count seconds: a difference between two of them that was not rounded is one, and so is what torch's
    examples keep in an AverageMeter.
    """
    value = series.median
    if known.seconds:
        fits = [word for word, factor in FACTORS.items() if _alike(value * factor, known.seconds)]
        since = [word for word, factor in FACTORS.items() if _alike(value * factor, known.seconds * known.interval)]
        if not fits and since and known.interval > 1:
            return _since_line(guess, since[0], f"by {known.clock} it is of {known.interval:g} steps, in {since[0]}")
        if not fits:
            return _doubted(guess, f"no unit, and {known.clock} fits none")
        reason = f"{guess.reason}; by {known.clock} it is in {fits[0]}"
        return replace(guess, word=fits[0], confidence=MEDIUM, reason=reason)
    if guess.sure == 0 and value < _LONG_STEP and not series.is_whole:
        reason = f"{guess.reason}; no unit, small enough for seconds"
        return replace(guess, word="s", confidence=LOW, reason=reason, is_kept=True)
    is_raw = known.interval == 1 and median(len(one.text.partition(".")[2]) for one in series.fields) >= _RAW_DIGITS
    if guess.sure <= 1 and value < _LONG_STEP and (has_mean or is_raw) and not series.is_whole:
        how = "its mean is printed behind it, as torch's examples do" if has_mean else "not rounded"
        return replace(guess, word="s", confidence=LOW, reason=f"{guess.reason}; no unit, {how}", is_kept=True)
    return _doubted(guess, "its unit is unknown")


def _since_line(guess: Guess, word: str, reason: str) -> Guess:
    """A time that passed since the line of the step before, where a dialect file can say so."""
    since = f"{word}{PER_LINE}"
    if since not in KINDS:
        return _doubted(guess, reason)
    return replace(guess, word=since, confidence=MEDIUM, reason=f"{guess.reason}; {reason}")


def _doubted(guess: Guess, reason: str) -> Guess:
    return replace(guess, confidence=LOW, reason=f"{guess.reason}; {reason}")


def _rate(guess: Guess, series: Series, known: Evidence, seconds: float | None, tflops: float | None) -> Guess:
    """Tokens per second of the whole job or of one card."""
    cards = known.settings.get("num_gpus")
    if cards == 1:
        return guess
    value = series.median * AMOUNTS.get(guess.word or "", 1.0)
    params = known.settings.get("active_params") or known.settings.get("params")
    # What the rate would be of one card, and of the whole job, by two figures of the same line.
    flops = tflops * 1e12 / (6 * params) if tflops and params else None
    batch = known.batch_tokens / seconds if known.batch_tokens and seconds else None
    own = known.card_tokens / seconds if known.card_tokens and seconds and cards else None
    for one, all_, how in (
        (flops, flops * cards if flops and cards else None, "by its FLOPs"),
        (batch / cards if batch and cards else None, batch, "by batch and time of a step"),
        (own, own * cards if own and cards else None, "by the batch of each card and time of a step"),
    ):
        if all_ and _alike(value, all_):
            return replace(guess, confidence=HIGH, reason=f"{guess.reason}; {how} of all cards")
        if one and _alike(value, one):
            reason = f"{guess.reason}; {how} of one card"
            return replace(guess, column="tokens_per_s_per_gpu", confidence=HIGH, reason=reason)
    if guess.confidence == LOW or _OF_ALL.search(series.label):
        return guess
    doubted = _doubted(guess, "of all cards or of one is not stated")
    # What each rank prints is more likely its own.
    return replace(doubted, is_kept=series.label != "tps" and known.ranks == 1)


def tokens_of_a_step(
    guesses: Sequence[Guess], found: Mapping[Key, Series], settings: Mapping[str, str]
) -> float | None:
    """Tokens that the whole job takes in a step, by the rate and the time that its lines print; None without either."""
    printed = {guess.column: (found[guess.key].median, guess.word or "s") for guess in guesses if guess.is_read}
    value, word = printed.get("step_time", (0.0, ""))
    seconds = 1 / value if word == "it/s" and value else value * FACTORS.get(word, 0.0)
    rates = {name: value * AMOUNTS.get(word, 1.0) for name, (value, word) in printed.items()}
    rate = rates.get("tokens_per_s", 0.0)
    if not rate and "num_gpus" in settings:
        rate = rates.get("tokens_per_s_per_gpu", 0.0) * int(settings["num_gpus"])
    return rate * seconds or None


def _alike(one: float, other: float, within: float = _ALIKE) -> bool:
    if one <= 0 or other <= 0:
        return False
    return abs(math.log(one / other)) < math.log(within)


def _is_same(one: float, other: float) -> bool:
    return _alike(one, other, _SAME)
