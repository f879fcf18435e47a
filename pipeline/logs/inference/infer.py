"""A dialect file for a log that no dialect knows, with what speaks for each of its columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import polars as pl

from sweepscope.pipeline.logs.declared.document import read_document
from sweepscope.pipeline.logs.declared.rules import Document
from sweepscope.pipeline.logs.inference.below import find_below
from sweepscope.pipeline.logs.inference.checks import checked, evidence
from sweepscope.pipeline.logs.inference.columns import HIGH, LOW, Guess, guesses
from sweepscope.pipeline.logs.inference.counter import (
    Counter,
    find_counter,
    has_losses,
    losses_are_elsewhere,
    named,
    prints_losses,
)
from sweepscope.pipeline.logs.inference.ends import ending, whole_share
from sweepscope.pipeline.logs.inference.epoch_lines import with_epoch_line, without_total_of_epoch
from sweepscope.pipeline.logs.inference.evaluations import with_evaluations
from sweepscope.pipeline.logs.inference.fields import is_unnamed
from sweepscope.pipeline.logs.inference.headings import heading
from sweepscope.pipeline.logs.inference.samples import in_samples, of_a_step, of_amounts
from sweepscope.pipeline.logs.inference.series import Key, Line, Series, all_series, line
from sweepscope.pipeline.logs.inference.setting_rules import SettingRules, setting_rules
from sweepscope.pipeline.logs.inference.settings import Chosen, choose
from sweepscope.pipeline.logs.inference.source_code import without_source_code
from sweepscope.pipeline.logs.inference.stated import stated
from sweepscope.pipeline.logs.inference.step_rules import StepRule, rows_of_steps, step_rule
from sweepscope.pipeline.logs.inference.tables import Table, find_table
from sweepscope.pipeline.logs.inference.toml_text import NAME, Draft, toml_text
from sweepscope.pipeline.logs.inference.tried_settings import tried_settings
from sweepscope.pipeline.logs.synonyms import SETTING_WORDS

_TELLING = ("loss", "tokens_per_s", "tokens_per_s_per_gpu", "step_time", "grad_norm", "learning_rate")
"""Columns of which a line of a step has one; the first that a log prints is meant."""
_SELDOM = 0.1
"""Of the lines that have the commonest of these columns: fewer are not the steps."""
_ENOUGH = 900
"""Lines with numbers that are looked at."""
_STRETCH = 20
_PLANNED = "steps_planned"
_TABLE_ROWS = 1_500
_MOST_STATED = 1_500
_MOST_OTHERS = 6_000
_NUMBER = r"[-+]?[0-9][0-9.,]*(?:[eE][-+]?[0-9]+)?|\s+"
_DIGIT = re.compile("[0-9]")
_LEAST_SIGNATURE = 5
_LONG_SIGNATURE = 60


_Row = tuple[int, str, int, int | None, datetime | None]


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
        step_lines: numbers of lines that are steps, of `seen_lines`, all that were looked at.
    """

    toml: str
    document: Document | None
    has_steps: bool
    columns: tuple[Inferred, ...]
    step_lines: frozenset[int] = frozenset()
    seen_lines: frozenset[int] = frozenset()


@dataclass(frozen=True)
class _Steps:
    """Rules of the lines of steps, each with an example, and what they fill; `line_nos` are those lines."""

    rules: tuple[tuple[StepRule, Line], ...] = ()
    listed: tuple[Inferred, ...] = ()
    line_nos: frozenset[int] = frozenset()
    repeated: str = ""


NOTHING = Inference("", None, has_steps=False, columns=())


def infer(sample: pl.DataFrame, *, is_wanted: Callable[[Collection[int], bool], bool] | None = None) -> Inference:
    """What the log of a sample prints.

    Args:
        sample: `line_no`, `text`, `rank`, `ts` of cleaned lines, in order; `block` numbers stretches without gaps.
        is_wanted: of the lines that may be steps, and whether they print losses: whether to go on. Otherwise, and where
            no steps are found, the result is NOTHING. None: settings are wanted, too, whatever the steps are.
    """
    sample = without_source_code(sample)
    rows = list(sample.select("line_no", "text", "block", "rank", "ts").iter_rows())
    near = _sampled(rows)
    lines = [one for one in (line(*row) for row in near) if one.fields]
    lines = with_evaluations(lines, [row[:3] for row in rows])
    found = all_series(lines)
    table = find_table([(line_no, text) for line_no, text, *_ in rows[:_TABLE_ROWS]])
    counter = find_counter(found, lines) if table is None else None
    counted = set(table.line_nos) if table else set()
    counted |= {lines[row].number for row in found[counter.key].rows} if counter else set()
    if is_wanted and not is_wanted(counted, table is not None or prints_losses(found)):
        return NOTHING
    others = _others(sample, counted)
    if table is None and (amount := _amount(found, lines, counter, others)):
        more = {lines[row].number for row in found[amount.key].rows}
        if not is_wanted or is_wanted(more, prints_losses(found)):
            counter, counted, others = amount, more, _others(sample, more)
    chosen, rules = _settings(others, counted, in_epochs=counter is not None and counter.is_epoch)
    settings = {one.column: one.value for one in chosen if one.is_used}
    if counter:
        counter = with_epoch_line(in_samples(counter, found, lines, settings), found, lines, others.iter_rows())
        counter = without_total_of_epoch(counter, found, settings)
    steps = _steps(found, lines, counter, settings) if counter else _of_table(table) if table else _Steps()
    # A line with the counter may be none of a step: `"key": "run_stop", .. "samples_count": 3072, "status": "success"`.
    others = _others(sample, set(steps.line_nos)) if steps.line_nos else others
    begin = heading([row[:2] for row in rows], steps.rules[0][0]) if steps.rules else None
    begin = table.header if table and table.is_launch else begin
    # Each launch may say that it is done: the last one tells how.
    since = max((line_no for line_no, text, *_ in rows if begin in text), default=0) if begin else 0
    is_late = pl.col("line_no") >= since
    events = ending(
        sample.filter(is_late), others.filter(is_late), steps.line_nos, has_steps=bool(steps.listed)
    ) or whole_share(found, lines, steps.line_nos)
    if begin:
        events = (("launch", begin), *events)
    if not steps.listed and not rules.by_column and not events:
        return NOTHING
    draft = Draft(
        NAME,
        _signature(steps, table, others),
        steps=tuple((rule, one.text) for rule, one in steps.rules),
        table=table,
        settings=rules,
        events=events,
        repeated=steps.repeated,
    )
    seen = frozenset(line_no for line_no, *_ in (rows[:_TABLE_ROWS] if table else near))
    columns = (*steps.listed, *_listed(chosen, rules))
    return replace(
        _written(draft), has_steps=bool(steps.listed), columns=columns, step_lines=steps.line_nos, seen_lines=seen
    )


def infer_settings(sample: pl.DataFrame, step_lines: Collection[int]) -> Inference:
    """What the log of a sample states, whose steps are known: NOTHING where it states no setting.

    Args:
        sample: as of `infer`.
        step_lines: numbers of those of its lines that are steps.
    """
    sample = without_source_code(sample)
    counted = set(step_lines).intersection(sample["line_no"])
    others = _others(sample, counted)
    chosen, rules = _settings(others, counted)
    if not rules.by_column:
        return NOTHING
    draft = Draft(NAME, _signature(_Steps(), None, others), settings=rules)
    return replace(_written(draft), columns=tuple(_listed(chosen, rules)))


def _settings(
    others: pl.DataFrame, counted: Collection[int], *, in_epochs: bool = False
) -> tuple[list[Chosen], SettingRules]:
    """The settings that lines beside the `counted` ones of steps state, and the rules that read them.

    Epochs are planned steps only where they are the steps that the log counts (`in_epochs`), and steps are not.
    """
    # Behind the last step, lines speak of what became of the model, as of the layers that were quantized.
    before = others.filter(pl.col("line_no") <= max(counted)) if counted else others
    statements = [
        replace(one, column=_PLANNED) if one.column == "epochs" else one
        for one in stated(_telling(before))
        if one.column != ("epochs", _PLANNED)[in_epochs]
    ]
    chosen = choose(statements)
    return chosen, tried_settings(chosen, setting_rules(chosen, statements), others)


def _written(draft: Draft) -> Inference:
    """The dialect file of a draft, without what speaks for it."""
    text = toml_text(draft)
    document = read_document(text, "the inferred dialect", is_trusted=True, needs_steps=False)
    return replace(NOTHING, toml=text, document=document)


def _amount(
    found: Mapping[Key, Series], lines: Sequence[Line], counter: Counter | None, others: pl.DataFrame
) -> Counter | None:
    """The counter of samples or tokens of a log that numbers no steps, or none beside its losses."""
    if counter and not losses_are_elsewhere(found, counter.key, lines):
        return None
    believed = {one.column: one.value for one in choose(stated(_telling(others))) if one.is_used}
    return of_amounts(found, lines, believed)


def _sampled(rows: Sequence[_Row]) -> list[_Row]:
    """Lines with numbers: those at the begin and the end, and stretches from between; each stretch is a block."""
    numbered = [row for row in rows if _DIGIT.search(row[1])]
    if len(numbered) <= _ENOUGH:
        return numbered
    head, tail = numbered[: _ENOUGH // 3], numbered[-_ENOUGH // 6 :]
    middle = numbered[len(head) : -len(tail)]
    count = _ENOUGH // 2 // _STRETCH
    kept = list(head)
    for at in range(count):
        begin = at * len(middle) // count
        kept += [(number, text, -at - 1, rank, ts) for number, text, _, rank, ts in middle[begin : begin + _STRETCH]]
    return kept + tail


def _others(sample: pl.DataFrame, counted: set[int]) -> pl.DataFrame:
    """Lines of the begin and the end that are no steps, nor look like one of `counted`: `line_no`, `text`."""
    near = sample.select("line_no", "text", shape=pl.col("text").str.replace_all(_NUMBER, "0"))
    if near.height > _MOST_OTHERS:
        near = pl.concat([near.head(_MOST_OTHERS - _ENOUGH), near.tail(_ENOUGH)])
    shapes = near.filter(pl.col("line_no").is_in(list(counted)))["shape"].unique()
    return near.filter(~pl.col("shape").is_in(shapes.implode())).select("line_no", "text")


def _telling(others: pl.DataFrame) -> list[tuple[int, str]]:
    """Lines that may state a setting, each text once."""
    found = others.filter(pl.col("text").str.contains(SETTING_WORDS)).unique("text", keep="first", maintain_order=True)
    return list(found.head(_MOST_STATED).iter_rows())


def _steps(found: Mapping[Key, Series], lines: Sequence[Line], counter: Counter, settings: Mapping[str, str]) -> _Steps:
    ranked = checked(
        guesses(found, counter, lines),
        found,
        evidence(found[counter.key], lines, settings, of_a_step(counter, settings)),
    )
    chosen: list[Guess] = []
    for guess in ranked:
        is_better = guess.is_read
        same = next((one for one in chosen if one.column == guess.column), None)
        if same is None or (is_better and not same.is_read):
            chosen = [*(one for one in chosen if one is not same), guess]
    columns = [one.column for one in chosen]
    below = {} if "loss" in columns else find_below(found, counter, lines)
    telling = _telling_column(found, chosen)
    has_loss = "loss" in columns or any(one.column == "loss" for one in below.values())
    is_counter = named(counter.key[0], "step") == 0 or (counter.epoch is not None and is_unnamed(counter.key[0]))
    if not has_loss and (telling is None or not is_counter or has_losses(found)):
        return _Steps()  # its losses stand beside another counter
    keys = [one.key for one in chosen if one.column == telling] if telling else [counter.key]
    rows = rows_of_steps(found, lines, counter, keys)
    rule = step_rule(found, lines, counter, chosen, rows) if rows else None
    if rule is None:
        return _Steps()
    rule = replace(rule, below={key: one for key, one in below.items() if one.column not in columns})
    example = lines[min(rows)]
    used = [
        Inferred(one.column, part, one.word or "", one.confidence, one.reason, True, example.number, example.text)
        for part, one in zip(rule.parts, rule.guesses, strict=False)
    ]
    used += [
        Inferred(one.column, key, one.word or "", one.confidence, one.reason, True, example.number, example.text)
        for key, one in rule.below.items()
    ]
    unused = [
        Inferred(
            one.column,
            rule.doubted.get(one.key, one.key[0]).replace("{_}", f"{{{one.column}}}"),
            one.word or "",
            LOW,
            one.reason,
            False,
            example.number,
            example.text,
        )
        for one in chosen
        if one not in rule.guesses
    ]
    # A line of an epoch is one of many batches; the last of them tells where the epoch came to.
    repeated = "last" if counter.is_epoch else ""
    return _Steps(((rule, example),), (*used, *unused), frozenset(lines[row].number for row in rows), repeated)


def _telling_column(found: Mapping[Key, Series], chosen: Sequence[Guess]) -> str | None:
    """The first of _TELLING that is printed about as often as any other; a line at the end may have one of its own."""
    often = {
        column: max(len(found[one.key].by_row) for one in chosen if one.column == column)
        for column in _TELLING
        if any(one.column == column for one in chosen)
    }
    most = max(often.values(), default=0)
    return next((column for column, count in often.items() if count >= _SELDOM * most), None)


def _of_table(table: Table) -> _Steps:
    line_no, text = table.example
    listed = tuple(
        Inferred(column, name, unit, HIGH, f"the cell is called {name!r}", True, line_no, text)
        for column, name, unit in table.columns
    )
    return _Steps(listed=listed, line_nos=table.line_nos)


def _listed(chosen: Sequence[Chosen], rules: SettingRules) -> list[Inferred]:
    found = []
    for one in chosen:
        piece, source = rules.by_column.get(one.column, ("", one.sources[0]))
        is_used = bool(piece)
        field = piece or source.name or source.printed
        confidence = one.confidence if is_used else LOW
        found.append(Inferred(one.column, field, "", confidence, one.reason, is_used, source.line_no, source.text))
    return found


def _signature(steps: _Steps, table: Table | None, others: pl.DataFrame) -> tuple[str, ...]:
    """The header of a table, whose rows have no words; none where steps tell; else the first line with words."""
    if table:
        return (table.header[:_LONG_SIGNATURE],)
    if steps.rules:
        return ()
    texts = others["text"].head(20).to_list()
    good = [text.strip() for text in texts if len(text.strip()) >= _LEAST_SIGNATURE and re.search(r"[^\W\d_]{2}", text)]
    return (max(good, key=len)[:_LONG_SIGNATURE],) if good else ("text that only this trainer prints",)
