"""What a run was: sizes, speed, losses and how it ended, all consistent with each other."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Step:
    """One optimizer step."""

    number: int
    loss: float
    lr: float
    grad_norm: float
    seconds: float
    tokens_per_s: float
    elapsed: float
    tokens: int


@dataclass(frozen=True)
class Run:
    """One run of a made-up trainer. `steps` are those that are logged, of every attempt in a row."""

    cards: int
    tp: int
    pp: int
    dp: int
    mbs: int
    gas: int
    seq_len: int
    layers: int
    width: int
    heads: int
    vocab: int
    planned: int
    every: int
    first: int
    memory_gib: float
    params: int
    precision: str
    attempts: tuple[tuple[Step, ...], ...]
    ending: str

    @property
    def steps(self) -> list[Step]:
        """Logged steps of all attempts."""
        return [step for attempt in self.attempts for step in attempt]

    @property
    def tokens_per_step(self) -> int:
        """Of all cards."""
        return self.mbs * self.gas * self.dp * self.seq_len


def draw_run(random: Random) -> Run:
    """A run."""
    cards = random.choice([1, 1, 1, 1, 2, 4, 8, 8, 8, 16, 32, 64])
    tp = random.choice([one for one in (1, 1, 1, 2, 4) if cards % one == 0])
    pp = random.choice([one for one in (1, 1, 1, 2) if cards % (tp * one) == 0])
    dp = cards // (tp * pp)
    every = random.choice([1, 1, 1, 5, 10, 10, 20, 50, 100])
    count = random.choice([4, 8, 15, 30, 60, 120, 250])
    first = random.choice([0, 1, 1, every])
    planned = first + every * count if first in (0, every) else every * count
    layers, width, heads = random.choice([(6, 384, 6), (12, 768, 12), (24, 1024, 16), (32, 4096, 32), (28, 3072, 24)])
    vocab = random.choice([50257, 50304, 32000, 128256, 65, 151936])
    seq, mbs, gas = (
        random.choice([256, 512, 1024, 2048, 4096, 8192]),
        random.choice([1, 2, 4, 8, 12, 16, 32]),
        random.choice([1, 1, 2, 4, 8, 16]),
    )
    params = 12 * layers * width * width + vocab * width
    seconds = 10 ** random.uniform(-1.3, 0.9)
    ending = random.choices(["completed", "truncated", "crash", "oom", "cancelled"], [60, 15, 10, 10, 5])[0]
    numbers = [first + every * at for at in range(count)]
    if ending == "completed" and numbers[-1] < planned and random.random() < 0.7:
        numbers.append(planned)
    if ending == "completed":
        planned = max(numbers[-1] + (1 if first == 0 and random.random() < 0.3 else 0), 1)
    else:
        planned = max(planned, numbers[-1] + every) * random.choice([1, 2, 10])
    run = (mbs * gas * dp * seq, seconds, math.log(vocab), planned)
    attempts: list[tuple[Step, ...]] = []
    if ending != "oom" and count >= 30 and random.random() < 0.1:
        cut = random.randrange(10, count - 5)
        back = max(0, cut - random.randrange(1, 8))
        attempts.append(_steps(random, numbers[:cut], *run))
        attempts.append(_steps(random, numbers[back:], *run))
    else:
        attempts.append(_steps(random, numbers, *run))
    return Run(
        cards=cards,
        tp=tp,
        pp=pp,
        dp=dp,
        mbs=mbs,
        gas=gas,
        seq_len=seq,
        layers=layers,
        width=width,
        heads=heads,
        vocab=vocab,
        planned=planned,
        every=every,
        first=numbers[0],
        memory_gib=random.uniform(2, 78),
        params=params,
        precision=random.choice(["bf16", "bf16", "bf16", "fp16", "fp32"]),
        attempts=tuple(attempts),
        ending=ending,
    )


def _steps(
    random: Random, numbers: list[int], tokens: int, seconds: float, start: float, planned: int
) -> tuple[Step, ...]:
    steps, elapsed = [], random.uniform(3, 60)
    floor = random.uniform(1.2, 3.4)
    peak = random.choice([3e-4, 6e-4, 1e-3, 2e-5, 1e-4])
    last = numbers[0] - 1
    for number in numbers:
        share = number / max(planned, 1)
        loss = floor + (max(start, floor + 1) - floor) * math.exp(-6 * share - number / 300) + random.gauss(0, 0.03)
        took = seconds * random.uniform(0.97, 1.05) * (random.uniform(1.5, 4) if number == numbers[0] else 1)
        elapsed += took * max(number - last, 1)
        last = number
        lr = peak * min(1.0, (number + 1) / (0.05 * planned + 1)) * (0.55 + 0.45 * math.cos(math.pi * min(share, 1)))
        norm = random.uniform(0.3, 2.5)
        steps.append(Step(number, max(loss, 0.01), lr, norm, took, tokens / took, elapsed, tokens * (number + 1)))
    return tuple(steps)
