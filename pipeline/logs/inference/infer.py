"""A dialect file for a log that no dialect knows, with what speaks for each of its columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from sweepscope.pipeline.logs.declared.compile import settings as read_settings
from sweepscope.pipeline.logs.declared.document import read_document
from sweepscope.pipeline.logs.declared.rules import Document
from sweepscope.pipeline.logs.inference.checks import checked, evidence
from sweepscope.pipeline.logs.inference.columns import LOW, Guess, guesses
from sweepscope.pipeline.logs.inference.counter import Counter, find_counter
from sweepscope.pipeline.logs.inference.milestones import training_end
from sweepscope.pipeline.logs.inference.series import Key, Line, Series, all_series, line
from sweepscope.pipeline.logs.inference.setting_rules import SettingRules, setting_rules, stated_by
from sweepscope.pipeline.logs.inference.settings import Chosen, choose
from sweepscope.pipeline.logs.inference.stated import stated
from sweepscope.pipeline.logs.inference.step_rules import StepRule, rows_of_steps, step_rule
from sweepscope.pipeline.logs.inference.toml_text import Draft, toml_text

NAME = "my-trainer"
"""Of a generated file, until its user finds a better one."""
_TELLING = ("loss", "tokens_per_s", "tokens_per_s_per_gpu", "step_time", "grad_norm")
"""Columns of which a line of a step has one; the first that a log prints is meant."""
_LEAST_SIGNATURE = 5


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
    """What a log was taken for.

    Attributes:
        toml: text of the dialect file; "" where nothing was found.
        document: its rules.
        has_steps: whether steps were found; otherwise the rules are of settings only.
        columns: what was found.
    """

    toml: str
    document: Document | None
    has_steps: bool
    columns: tuple[Inferred, ...]


@dataclass(frozen=True)
class _Steps:
    """Rules of the lines of steps, each with an example, and what they fill; `line_nos` are those lines."""

    rules: tuple[tuple[StepRule, Line], ...] = ()
    listed: tuple[Inferred, ...] = ()
    line_nos: frozenset[int] = frozenset()


def infer(sample: pl.DataFrame) -> Inference:
    """What the log of a sample prints.

    Args:
        sample: `line_no`, `text`, `rank`, `ts` of cleaned lines, in order; `block` numbers stretches without gaps.
    """
    rows = list(sample.select("line_no", "text", "block", "rank", "ts").iter_rows())
    lines = [one for one in (line(*row) for row in rows) if one.fields]
    found = all_series(lines)
    counter = find_counter(found, lines)
    counted = {lines[row].number for row in found[counter.key].rows} if counter else set()
    others = [(line_no, text) for line_no, text, *_ in rows if line_no not in counted]
    statements = list(stated(dict.fromkeys(others)))
    chosen = choose(statements)
    rules = _tried(chosen, setting_rules(chosen, statements), others)
    settings = {one.column: one.value for one in chosen if one.is_used}
    steps = _steps(found, lines, counter, settings) if counter else _Steps()
    last = max(steps.line_nos, default=0)
    end = training_end(others, last) if steps.rules else None
    events = (
        [("training_end", end)] if end and not any(end in text for line_no, text in others if line_no < last) else []
    )
    if not steps.rules and not rules.by_column:
        return Inference("", None, has_steps=False, columns=())
    draft = Draft(
        NAME,
        _signature(steps, others),
        tuple((rule, one.text) for rule, one in steps.rules),
        (),
        rules,
        tuple(events),
    )
    text = toml_text(draft)
    document = read_document(text, "the inferred dialect", is_trusted=True, needs_steps=False)
    return Inference(text, document, bool(steps.rules), (*steps.listed, *_listed(chosen, rules)))


def _steps(found: Mapping[Key, Series], lines: Sequence[Line], counter: Counter, settings: Mapping[str, str]) -> _Steps:
    ranked = checked(guesses(found, counter, lines), found, evidence(found[counter.key], lines, settings))
    chosen: list[Guess] = []
    for guess in ranked:
        is_better = guess.confidence != LOW and guess.word is not None
        same = next((one for one in chosen if one.column == guess.column), None)
        if same is None or (is_better and (same.confidence == LOW or same.word is None)):
            chosen = [*(one for one in chosen if one is not same), guess]
    telling = next((column for column in _TELLING if any(one.column == column for one in chosen)), None)
    if telling is None:
        return _Steps()
    beside = [guess.key for guess in ranked if guess.column == telling]
    rows = rows_of_steps(found, counter, beside[:3])
    rule = step_rule(found, lines, counter, chosen, rows) if rows else None
    if rule is None:
        return _Steps()
    example = lines[min(rows)]
    used = [
        Inferred(one.column, part, one.word or "", one.confidence, one.reason, True, example.number, example.text)
        for part, one in zip(rule.parts, rule.guesses, strict=False)
    ]
    unused = [
        Inferred(one.column, one.key[0], one.word or "", LOW, one.reason, False, example.number, example.text)
        for one in chosen
        if one not in rule.guesses
    ]
    return _Steps(((rule, example),), (*used, *unused), frozenset(lines[row].number for row in rows))


def _tried(chosen: Sequence[Chosen], rules: SettingRules, others: Sequence[tuple[int, str]]) -> SettingRules:
    """The rules without those that would read another value than was meant."""
    frame = pl.DataFrame(others, schema={"line_no": pl.Int64, "text": pl.String}, orient="row")
    frame = frame.with_columns(source=pl.lit(0, pl.Int64), prefix=pl.lit(None, pl.String))
    wanted = {one.column: one.value for one in chosen if one.is_used and one.column in rules.by_column}
    for _ in range(2):
        if not rules.by_column:
            break
        text = toml_text(Draft(NAME, ("signature",), settings=rules))
        document = read_document(text, "the inferred dialect", is_trusted=True, needs_steps=False)
        read = stated_by(read_settings(frame, document.settings, document.arguments))
        bad = {
            column
            for column, value in wanted.items()
            if column in rules.by_column and not _same(read.get(column), value)
        }
        if not bad:
            break
        rules = _without(rules, bad)
    return rules


def _same(read: str | None, wanted: str) -> bool:
    if read is None:
        return False
    try:
        return float(read.replace("_", "")) == float(wanted)
    except ValueError:
        return (
            read.strip("'\"").lower().removeprefix("torch.").replace("bfloat", "bf").replace("float", "fp")
            == wanted.lower()
            or read == wanted
        )


def _without(rules: SettingRules, bad: set[str]) -> SettingRules:
    kept = {
        line: {name: column for name, column in names.items() if column not in bad}
        for line, names in rules.arguments.items()
    }
    arguments = {line: names for line, names in kept.items() if names}
    named = {name for names in arguments.values() for name in names}
    lines = {piece for column, (piece, _) in rules.by_column.items() if column in bad}
    return replace(
        rules,
        arguments=arguments,
        words={name: words for name, words in rules.words.items() if name in named},
        settings={line: text for line, text in rules.settings.items() if line not in lines},
        by_column={column: found for column, found in rules.by_column.items() if column not in bad},
    )


def _listed(chosen: Sequence[Chosen], rules: SettingRules) -> list[Inferred]:
    found = []
    for one in chosen:
        piece, source = rules.by_column.get(one.column, ("", one.sources[0]))
        is_used = bool(piece)
        field = piece or source.name or source.printed
        confidence = one.confidence if is_used else LOW
        found.append(Inferred(one.column, field, "", confidence, one.reason, is_used, source.line_no, source.text))
    return found


def _signature(steps: _Steps, others: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    """The longest fixed text of a step's line; of a log without steps, its first line with words."""
    texts = [text for rule, _ in steps.rules for part in rule.parts for text in re.split(r"\{[^{}]*\}", part)]
    texts = [text.replace("{{", "{").replace("}}", "}") for text in texts] or [text for _, text in others[:20]]
    good = [text for text in texts if len(text.strip()) >= _LEAST_SIGNATURE and re.search(r"[^\W\d_]{2}", text)]
    return (max(good, key=len)[:60],) if good else ("text that only this trainer prints",)
