"""A dialect file for a log that no dialect knows, with what speaks for each of its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from sweepscope.pipeline.logs.declared.document import read_document
from sweepscope.pipeline.logs.declared.rules import Document
from sweepscope.pipeline.logs.inference.columns import Guess, guesses
from sweepscope.pipeline.logs.inference.counter import Counter, find_counter
from sweepscope.pipeline.logs.inference.series import Key, Line, Series, all_series, line
from sweepscope.pipeline.logs.inference.step_rules import StepRule, rows_of_steps, step_rule
from sweepscope.pipeline.logs.inference.toml_text import Draft, toml_text

NAME = "my-trainer"
"""Of a generated file, until its user finds a better one."""
_TELLING = ("loss", "tokens_per_s", "tokens_per_s_per_gpu", "step_time", "grad_norm")
"""Columns of which a line of a step has one; the first that a log prints is meant."""


@dataclass(frozen=True)
class Inferred:
    """One column that was found, or nearly.

    Attributes:
        column: as a dialect file names it.
        field: the piece by which it is found, or the words that name it.
        unit: word of a dialect file.
        confidence: word of vocab.CONFIDENCE.
        reason: what speaks for it.
        is_used: it is read; otherwise it is not sure enough.
        line_no, text: an example.
    """

    column: str
    field: str
    unit: str
    confidence: str
    reason: str
    is_used: bool
    line_no: int
    text: str


@dataclass(frozen=True)
class Inference:
    """What a log was taken for. `document` is None where no step was found."""

    toml: str
    document: Document | None
    columns: tuple[Inferred, ...]


def infer(sample: pl.DataFrame) -> Inference:
    """What the log of a sample prints.

    Args:
        sample: `line_no`, `text`, `rank`, `ts` of cleaned lines, in order; `block` numbers stretches without gaps.
    """
    lines = [
        line(number, text, block, rank, ts)
        for number, text, block, rank, ts in sample.select("line_no", "text", "block", "rank", "ts").iter_rows()
    ]
    lines = [one for one in lines if one.fields]
    found = all_series(lines)
    counter = find_counter(found, lines)
    rules: list[tuple[StepRule, Line]] = []
    listed: list[Inferred] = []
    if counter:
        rules, listed = _steps(found, lines, counter)
    if not rules:
        return Inference("", None, ())
    signature = _signature(rules)
    draft = Draft(NAME, signature, tuple((rule, one.text) for rule, one in rules))
    text = toml_text(draft)
    return Inference(text, read_document(text, "inferred dialect"), tuple(listed))


def _steps(
    found: Mapping[Key, Series], lines: Sequence[Line], counter: Counter
) -> tuple[list[tuple[StepRule, Line]], list[Inferred]]:
    ranked = guesses(found, counter, lines)
    chosen: list[Guess] = []
    for guess in ranked:
        if guess.column not in {one.column for one in chosen}:
            chosen.append(guess)
    telling = next((column for column in _TELLING if any(one.column == column for one in chosen)), None)
    if telling is None:
        return [], []
    beside = [guess.key for guess in ranked if guess.column == telling]
    rows = rows_of_steps(found, counter, beside[:3])
    rule = step_rule(found, lines, counter, chosen, rows)
    if rule is None:
        return [], []
    example = lines[min(rows)]
    listed = [
        Inferred(
            guess.column, part, guess.word or "", guess.confidence, guess.reason, True, example.number, example.text
        )
        for part, guess in zip(rule.parts, rule.guesses, strict=False)
    ]
    return [(rule, example)], listed


def _signature(rules: Sequence[tuple[StepRule, Line]]) -> tuple[str, ...]:
    """The longest fixed text of a step's line."""
    import re

    texts = [text for rule, _ in rules for part in rule.parts for text in re.split(r"\{[^{}]*\}", part)]
    texts = [text.replace("{{", "{").replace("}}", "}") for text in texts]
    good = [text for text in texts if len(text.strip()) >= 5 and re.search(r"[^\W\d_]{2}", text)]
    return (max(good, key=len),) if good else (rules[0][0].parts[0],)
