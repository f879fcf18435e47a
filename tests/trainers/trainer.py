"""A whole log of a made-up trainer, and what is true of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from statistics import median

from tests.trainers import surroundings
from tests.trainers.facts import Run, draw_run
from tests.trainers.lines import Style, draw_style


@dataclass(frozen=True)
class Trainer:
    """A log and its truth: numbers by fact, and the statuses that are right."""

    text: str
    truth: dict[str, float]
    statuses: frozenset[str]
    name: str = ""
    notes: list[str] = field(default_factory=list)


def draw_trainer(seed: int) -> Trainer:
    """The trainer of a seed."""
    random = Random(seed)  # noqa: S311 - no secret
    run = draw_run(random)
    style = draw_style(run, random)
    lines, stated = _lines(run, style, random)
    truth = _truth(run, style, stated)
    shown = style.total and run.steps[-1].number in (run.planned, run.planned - 1)
    says = any(
        "complete" in line.lower() or "finished" in line.lower() or line.startswith("done") for line in lines[-3:]
    )
    no_end = {"truncated", "unknown", "running"}
    completed = {"completed"} if shown or says or "steps_planned" in stated else {"completed"} | no_end
    statuses = {"completed": completed, "crash": {"crash"}, "oom": {"oom"}, "cancelled": {"cancelled"}}.get(
        run.ending, no_end
    )
    end = "\n" if not style.is_bar or random.random() < 0.9 else ""
    return Trainer("\n".join(lines) + end, truth, frozenset(statuses), style.line.__qualname__.split(".")[0])


def _lines(run: Run, style: Style, random: Random) -> tuple[list[str], dict[str, int]]:
    prefix = surroundings.prefix(random)
    speaks = min(run.cards, 4) if run.cards > 1 and random.random() < 0.12 else 1
    tagged = speaks > 1
    rank_tag = random.choice(["[rank {}] ", "rank {}: ", "[GPU{}] ", "(rank {}) "]) if tagged else ""
    noisy, evaluates = random.choice([0.0, 0.0, 0.03, 0.1]), random.random() < 0.35
    evaluation = random.choice(surroundings.EVALUATIONS)
    noise = random.sample(surroundings.NOISE, 3)
    lines: list[str] = []
    stated: dict[str, int] = {}

    def put(text: str, seconds: float, rank: int = 0) -> None:
        lines.append(prefix(seconds, rank) + text)

    for number, attempt in enumerate(run.attempts):
        for text in random.sample(surroundings.HEADS, random.randrange(0, 4)):
            put(text, 0)
        if random.random() < 0.75:
            dump, values = surroundings.settings(run, random) if number == 0 else ([], {})
            for text in dump:
                put(text, 0.5)
            stated |= values
        if style.header:
            lines.append(style.header)
        drawn: list[str] = []
        for at, step in enumerate(attempt):
            for rank in range(speaks):
                text = rank_tag.format(rank) + style.line(step) if tagged else style.line(step)
                if style.is_bar:
                    drawn.append(text)
                elif style.header:
                    lines.append(text)
                else:
                    put(text, step.elapsed, rank)
            if not style.is_bar and random.random() < noisy:
                put(random.choice(noise)(step, random), step.elapsed)
            if evaluates and not style.is_bar and (at + 1) % 20 == 0:
                put(evaluation(step), step.elapsed)
        if drawn:
            lines.append("\r".join(drawn))
        if number + 1 < len(run.attempts):
            lines += [
                "Traceback (most recent call last):",
                '  File "train.py", line 9, in <module>',
                "RuntimeError: NaN",
                f"resuming from checkpoint at step {run.attempts[number + 1][0].number}",
            ]
    lines += surroundings.ending(run, random)
    return lines, stated


def _truth(run: Run, style: Style, stated: dict[str, int]) -> dict[str, float]:
    truth: dict[str, float] = {
        "steps": float(len(run.steps)),
        "first_step": float(run.attempts[0][0].number),
        "last_step": float(run.attempts[-1][-1].number),
        "last_loss": run.attempts[-1][-1].loss,
    }
    if "step_time_s" in style.states:
        truth["step_time_s"] = median(step.seconds for step in run.steps)
    if "tokens_per_s" in style.states:
        truth["tokens_per_s"] = median(step.tokens_per_s for step in run.steps)
    if style.total:
        truth["steps_planned"] = float(run.planned)
    return truth | {name: float(value) for name, value in stated.items()}
