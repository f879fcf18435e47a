"""The line with which each launch of a trainer begins its output: the first of the log, where it stands there again."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sweepscope.pipeline.logs.declared.rules import LINES
from sweepscope.pipeline.logs.extractors import LEADING
from sweepscope.pipeline.logs.inference.milestones import form
from sweepscope.pipeline.logs.inference.pieces import compiled
from sweepscope.pipeline.logs.inference.stated import stated
from sweepscope.pipeline.logs.inference.step_rules import StepRule

_LOGGED = re.compile(f"^{LEADING}(?:\\d+:\\d\\d:\\d\\d - )?")
"""And the time since the begin, as of facebookresearch's trainers."""
_BRACKETS = re.compile(r"(?:\[[^\][]{1,60}\][\]: -]*)+")
"""Names, ranks and processes behind the time: `[oumi][rank0][pid:4711][MainThread][INFO]][train.py:188] `."""
_WORD = re.compile(r"[^\W\d_]{2,}")
_LEAST_WORDS = 2
_ENDS = " .!:"
_CHARS = range(8, 161)
_FIRST_LINES = 4
"""Within which the heading stands: above it there may be a blank line, a rule, or what a shell prints."""
_SEVERAL = 3
"""Stretches of steps, all as long, that are rather epochs of one training than trainings one after the other."""
NO_HEADING = re.compile(r"(?i)warn|error|exception|traceback|\bnohup\b|^\s*File \"|[{}]|^\s*<[^<>]*>$")
"""Words of what may come up anywhere, and the representation of an object."""


def heading(rows: Sequence[tuple[int, str]], rule: StepRule | None) -> str | None:
    """Text of the heading; None where the first line is none.

    An epoch may have a heading, too. That of a launch is known by the steps below it, which begin with the very first
    one again, or else by a setting that is stated each time between it and the steps.

    Args:
        rows: `line_no` and `text` of the sample, from the begin of the log.
        rule: of the lines of steps; None where there are none.
    """
    printed = [(line_no, text) for line_no, text in rows if text.strip()]
    near = (bare(text) for line_no, text in _messages(printed[:_FIRST_LINES]) if line_no <= _FIRST_LINES)
    return next((first for first in near if _begins_launches(first, printed, rule)), None)


def _messages(lines: Sequence[tuple[int, str]]) -> Sequence[tuple[int, str]]:
    """Lines without those that go on with the text of a logger, as a prompt that it prints: the first has a time."""
    is_logged = bool(lines) and bool(_LOGGED.match(lines[0][1]))
    return [one for one in lines if not is_logged or _LOGGED.match(one[1])]


def _begins_launches(first: str, printed: Sequence[tuple[int, str]], rule: StepRule | None) -> bool:
    """Whether a line near the begin stands there again, each time with a launch below it."""
    if len(first) not in _CHARS or len(_WORD.findall(first)) < _LEAST_WORDS or NO_HEADING.search(first):
        return False
    at = [index for index, (_, text) in enumerate(printed) if first in text]
    if len(at) < 2 or any(bare(printed[index][1]) != first or number_of_step(printed[index][1], rule) for index in at):
        return False
    parts = [printed[begin:end] for begin, end in zip(at, [*at[1:], len(printed)], strict=True)]
    numbers = [[number_of_step(text, rule) for _, text in part] for part in parts]
    is_numbered = rule is not None and rule.counts != LINES
    return (is_numbered and _begin_anew(numbers)) or _are_set_up(parts, numbers)


def bare(text: str) -> str:
    """A line without what a logger puts in front of it, and without dots and the like behind its words."""
    bare = _LOGGED.sub("", text, count=1).strip()
    return _BRACKETS.sub("", bare, count=1).strip().rstrip(_ENDS) if bare.startswith("[") else bare.rstrip(_ENDS)


def number_of_step(text: str, rule: StepRule | None) -> tuple[str, ...] | None:
    """What a line prints as the number of its step, with that of its epoch where it is counted within one."""
    if rule is None or not all(word in text for word in rule.contains) or any(word in text for word in rule.without):
        return None
    counters = sum(guess.column in ("step", "epoch") for guess in rule.guesses)
    found = [pattern.search(text) if (pattern := compiled(part)) else None for part in rule.parts[:counters]]
    hits = [hit for hit in found if hit]
    return tuple(hit[1] for hit in hits) if len(hits) == counters else None


def _begin_anew(numbers: Sequence[Sequence[tuple[str, ...] | None]]) -> bool:
    """Whether the steps of each part begin with the same, and the parts are not the even epochs of one training."""
    own = [[one for one in part if one is not None] for part in numbers]
    own = [part for part in own if part]
    if len(own) < 2 or any(part[0] != own[0][0] for part in own):
        return False
    return len(own) < _SEVERAL or len({part[-1] for part in own[:-1]}) > 1


def _are_set_up(
    parts: Sequence[Sequence[tuple[int, str]]], numbers: Sequence[Sequence[tuple[str, ...] | None]]
) -> bool:
    """Whether each part begins with the same two lines, and a setting is stated before its steps."""
    for part, own in zip(parts, numbers, strict=True):
        if len(part) < 2 or form(bare(part[1][1])) != form(bare(parts[0][1][1])):
            return False
        before = next((at for at, number in enumerate(own) if number is not None), len(part))
        if next(stated(part[1:before]), None) is None:
            return False
    return True
