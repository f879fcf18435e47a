"""A dialect file for a log that no dialect knows, with what speaks for each of its columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from sweepscope.pipeline.logs.declared.document import read_document
from sweepscope.pipeline.logs.declared.rules import RANKS, STEPS
from sweepscope.pipeline.logs.inference.below import find_below
from sweepscope.pipeline.logs.inference.columns import LOW
from sweepscope.pipeline.logs.inference.counter import Counter, find_counter
from sweepscope.pipeline.logs.inference.ends import done_flag, ending, whole_share
from sweepscope.pipeline.logs.inference.epoch_lines import (
    is_once_an_epoch,
    with_epoch_line,
    with_epoch_summary,
    without_total_of_epoch,
)
from sweepscope.pipeline.logs.inference.evaluations import with_evaluations
from sweepscope.pipeline.logs.inference.extent import Extent, extent_of
from sweepscope.pipeline.logs.inference.found_steps import Steps, steps_of, steps_of_table
from sweepscope.pipeline.logs.inference.headings import heading
from sweepscope.pipeline.logs.inference.losses import loss_rows, losses_are_elsewhere, prints_losses
from sweepscope.pipeline.logs.inference.nameless_losses import with_nameless_loss
from sweepscope.pipeline.logs.inference.nesting import outermost
from sweepscope.pipeline.logs.inference.numbered_lines import numbered_lines
from sweepscope.pipeline.logs.inference.ordinals import find_ordinals
from sweepscope.pipeline.logs.inference.restart_lines import restart_line
from sweepscope.pipeline.logs.inference.result import NOTHING, Inference, Inferred
from sweepscope.pipeline.logs.inference.samples import in_samples, of_amounts
from sweepscope.pipeline.logs.inference.sampling import ENOUGH, sampled
from sweepscope.pipeline.logs.inference.sections import outside_sections
from sweepscope.pipeline.logs.inference.series import Key, Line, Series, all_series, line
from sweepscope.pipeline.logs.inference.setting_rules import SettingRules
from sweepscope.pipeline.logs.inference.settings import Chosen, choose
from sweepscope.pipeline.logs.inference.settings_by_launch import choose_by_launch
from sweepscope.pipeline.logs.inference.source_code import without_source_code
from sweepscope.pipeline.logs.inference.stated import stated, without_measures, without_trained_part
from sweepscope.pipeline.logs.inference.tables import Table, find_table
from sweepscope.pipeline.logs.inference.toml_text import NAME, Draft, toml_text
from sweepscope.pipeline.logs.inference.tried_settings import tried_settings
from sweepscope.pipeline.logs.synonyms import SETTING_WORDS

_PLANNED = "steps_planned"
_TABLE_ROWS = 1_500
_MOST_STATED = 1_500
_MOST_OTHERS = 6_000
_NUMBER = r"[-+]?[0-9][0-9.,]*(?:[eE][-+]?[0-9]+)?|\s+"
_SEVERAL = 2
_WORD = r"[[:alpha:]]{3}"
_LEAST_SIGNATURE = 5
_LONG_SIGNATURE = 60
IsWanted = Callable[[Collection[int], bool], bool]


@dataclass(frozen=True)
class _Counted:
    """What numbers the lines, the other lines, and the settings that these state, with the rules that read them.

    `is_one_epoch`: the log states that it plans one epoch.
    """

    counter: Counter | None
    others: pl.DataFrame
    chosen: list[Chosen]
    rules: SettingRules
    is_one_epoch: bool = False
    extent: Extent = field(default_factory=Extent)

    @property
    def settings(self) -> dict[str, str]:
        """Believed values by column."""
        return {one.column: one.value for one in self.chosen if one.is_used}


def infer(sample: pl.DataFrame, *, is_wanted: IsWanted | None = None) -> Inference:
    """What the log of a sample prints.

    Args:
        sample: `line_no`, `text`, `rank`, `prefix`, `ts` of cleaned lines, in order; `block` numbers stretches without
            gaps.
        is_wanted: of the lines that may be steps, and whether they print losses: whether to go on. Otherwise, and where
            no steps are found, the result is NOTHING. None: settings are wanted, too, whatever the steps are.
    """
    if (numbered := numbered_lines(sample)) is not None:
        found = _inferred(numbered, is_wanted, labels=STEPS)
        if found.has_steps:
            return found
    return _inferred(sample, is_wanted)


def _inferred(sample: pl.DataFrame, is_wanted: IsWanted | None, *, labels: str = RANKS) -> Inference:
    """`infer` of lines whose labels, if any, are what is stated."""
    sample = without_source_code(sample)
    rows = list(sample.select("line_no", "text", "block", "rank", "ts").iter_rows())
    near = sampled(sample)
    near_lines = (replace(line(*row[:5]), prefix=row[5] or "") for row in near)
    lines = with_evaluations([one for one in near_lines if one.fields], [row[:3] for row in rows])
    lines = with_nameless_loss(lines, all_series(lines))
    found = all_series(lines)
    table = find_table([(line_no, text) for line_no, text, *_ in rows[:_TABLE_ROWS]])
    counted = _counting(sample, found, lines, table, is_wanted)
    if counted is None:
        return NOTHING
    counter, others, settings = counted.counter, counted.others, counted.settings
    if counter and not counter.is_lines:
        counter = with_epoch_line(in_samples(counter, found, lines, settings), found, lines, others.iter_rows())
        counter = with_epoch_summary(counter, found, lines, others.iter_rows())
        counter = without_total_of_epoch(counter, found, settings, is_one_epoch=counted.is_one_epoch)
    steps = steps_of(found, lines, counter, settings) if counter else steps_of_table(table) if table else Steps()
    table = steps.table or table
    # A line with the counter may be none of a step: `"key": "run_stop", .. "samples_count": 3072, "status": "success"`.
    others = _others(sample, set(steps.line_nos)) if steps.line_nos else others
    if steps.tokens and "gbs" not in settings:  # they tell what a batch of unknown kind is
        is_of_epochs = counter is not None and counter.is_epoch
        chosen, rules = _settings(
            others,
            steps.line_nos,
            in_epochs=is_of_epochs,
            step_tokens=steps.tokens,
            extent=counted.extent,
        )
        counted = replace(counted, chosen=chosen, rules=rules)
    rule = steps.rules[0][0] if steps.rules else None
    begin = heading([row[:2] for row in rows], rule) or restart_line(rows, rule)
    begin = table.header if table and table.is_launch else begin
    if begin and len(launches := _launches(sample, begin)) > 1:
        counted = _set_anew(counted, others, steps, launches)
    events = _ending(sample, others, steps, begin) or whole_share(found, lines, steps.line_nos)
    events = events or done_flag(sample, steps.line_nos)
    if begin:
        events = (("launch", begin), *events)
    if not steps.listed and not counted.rules.by_column and not events:
        return NOTHING
    draft = Draft(
        NAME,
        _signature(steps, table, others),
        steps=tuple((rule, one.text) for rule, one in steps.rules),
        table=table,
        settings=counted.rules,
        events=events,
        repeated=steps.repeated,
        labels=labels,
    )
    return replace(
        _written(draft),
        has_steps=bool(steps.listed),
        columns=(*steps.listed, *_listed(counted.chosen, counted.rules)),
        step_lines=steps.line_nos,
        is_bare=bool(steps.table) and not sample["text"].str.contains(_WORD).any(),
        seen_lines=frozenset(line_no for line_no, *_ in (rows[:_TABLE_ROWS] if table else near)),
    )


def _counting(
    sample: pl.DataFrame,
    found: Mapping[Key, Series],
    lines: Sequence[Line],
    table: Table | None,
    is_wanted: IsWanted | None,
) -> _Counted | None:
    """What numbers the lines, the surest way first; None where their steps are not wanted."""

    def is_good(line_nos: set[int]) -> bool:
        return is_wanted is None or is_wanted(line_nos, table is not None or prints_losses(found))

    def with_settings(counter: Counter | None, line_nos: set[int]) -> _Counted:
        others = _others(sample, line_nos)
        in_epochs = counter is not None and (
            counter.is_epoch or (counter.is_lines and is_once_an_epoch(len(line_nos), others.iter_rows()))
        )
        extent = extent_of(counter, found)
        found_settings = _settings(others, line_nos, in_epochs=in_epochs, extent=extent)
        is_one_epoch = _plans_one_epoch(others, line_nos)
        return _Counted(counter, others, *found_settings, is_one_epoch=is_one_epoch, extent=extent)

    if table:
        return with_settings(None, set(table.line_nos)) if is_good(set(table.line_nos)) else None
    counter = find_counter(found, lines)
    counted = _lines_of(counter, found, lines)
    if not is_good(counted):
        return None
    amount = _amount(found, lines, counter, lambda: _others(sample, counted))
    if amount and is_good(more := _lines_of(amount, found, lines)):
        counter, counted = amount, more
    best = with_settings(counter, counted)
    # Below an epoch's number, a loss is found by a sign behind its name; without one, its lines are counted.
    is_apart = counter is not None and counter.is_epoch and _is_apart(counter, found, lines)
    ordinals = find_ordinals(found, None if is_apart else counter, lines, best.settings)
    if ordinals and is_good(more := _lines_of(ordinals, found, lines)):
        return with_settings(ordinals, more)
    return best


def _is_apart(counter: Counter, found: Mapping[Key, Series], lines: Sequence[Line]) -> bool:
    """Whether no loss stands in the lines of a counter, nor can be read below them."""
    is_beside = not loss_rows(found).isdisjoint(found[counter.key].rows)
    return not is_beside and all(one.column != "loss" for one in find_below(found, counter, lines).values())


def _lines_of(counter: Counter | None, found: Mapping[Key, Series], lines: Sequence[Line]) -> set[int]:
    return {lines[row].number for row in found[counter.key].rows} if counter else set()


def _launches(sample: pl.DataFrame, begin: str) -> list[int]:
    """Numbers of the lines with which launches begin."""
    return sample.filter(pl.col("text").str.contains(begin, literal=True))["line_no"].to_list()


def _set_anew(counted: _Counted, others: pl.DataFrame, steps: Steps, launches: Sequence[int]) -> _Counted:
    """`counted` with the settings that each launch states for itself."""
    in_epochs = counted.counter is not None and counted.counter.is_epoch
    tokens = steps.tokens if "gbs" not in counted.settings else None
    chosen, rules = _settings(
        others,
        steps.line_nos,
        in_epochs=in_epochs,
        step_tokens=tokens,
        launches=launches,
        extent=counted.extent,
    )
    return replace(counted, chosen=chosen, rules=rules)


def _ending(sample: pl.DataFrame, others: pl.DataFrame, steps: Steps, begin: str | None) -> tuple[tuple[str, str], ...]:
    """Each launch may say that it is done: the last one tells how. One without a step shows nothing behind them."""
    begin_line = max(_launches(sample, begin) if begin else (), default=0)
    since = pl.col("line_no") >= begin_line
    has_steps = bool(steps.listed) and max(steps.line_nos, default=0) >= begin_line
    return ending(sample.filter(since), others.filter(since), steps.line_nos, has_steps=has_steps)


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
    draft = Draft(NAME, _signature(Steps(), None, others), settings=rules)
    return replace(_written(draft), columns=tuple(_listed(chosen, rules)))


def _settings(
    others: pl.DataFrame,
    counted: Collection[int],
    *,
    in_epochs: bool = False,
    step_tokens: float | None = None,
    launches: Sequence[int] = (),
    extent: Extent | None = None,
) -> tuple[list[Chosen], SettingRules]:
    """The settings that lines beside the `counted` ones of steps state, and the rules that read them.

    Epochs are planned steps only where they are the steps that the log counts (`in_epochs`), and steps are not.
    Launches, where there are several, may each state other values.
    """
    # Behind the last step, lines speak of what became of the model, as of the layers that were quantized.
    before = others.filter(pl.col("line_no") <= max(counted)) if counted else others
    statements = [
        replace(one, column=_PLANNED) if one.column == "epochs" else one
        for one in stated(_telling(before, launches))
        if one.column != ("epochs", _PLANNED)[in_epochs]
    ]
    statements = without_trained_part(without_measures(statements, before["text"]), before["text"])
    statements = outermost(statements)
    if extent:
        statements = extent.planned(statements, is_one_launch=len(launches) < _SEVERAL)
    chosen = choose_by_launch(statements, launches, step_tokens)
    return chosen, tried_settings(chosen, statements, others, launches)


def _plans_one_epoch(others: pl.DataFrame, counted: Collection[int]) -> bool:
    """Whether the lines in front of the last step state one number of epochs, and it is one."""
    before = others.filter(pl.col("line_no") <= max(counted)) if counted else others
    return {one.value for one in stated(_telling(before)) if one.column == "epochs"} == {"1"}


def _written(draft: Draft) -> Inference:
    """The dialect file of a draft, without what speaks for it."""
    text = toml_text(draft)
    document = read_document(text, "the inferred dialect", is_trusted=True, needs_steps=False)
    return replace(NOTHING, toml=text, document=document)


def _amount(
    found: Mapping[Key, Series], lines: Sequence[Line], counter: Counter | None, others: Callable[[], pl.DataFrame]
) -> Counter | None:
    """The counter of samples or tokens of a log that numbers no steps, or none beside its losses."""
    if counter and not losses_are_elsewhere(found, counter.key, lines):
        return None
    believed = {one.column: one.value for one in choose(stated(_telling(others()))) if one.is_used}
    return of_amounts(found, lines, believed)


def _others(sample: pl.DataFrame, counted: set[int]) -> pl.DataFrame:
    """Lines of the begin and the end that are no steps, nor look like one of `counted`: `line_no`, `text`."""
    near = sample.select("line_no", "text", shape=pl.col("text").str.replace_all(_NUMBER, "0"))
    if near.height > _MOST_OTHERS:
        near = pl.concat([near.head(_MOST_OTHERS - ENOUGH), near.tail(ENOUGH)])
    shapes = near.filter(pl.col("line_no").is_in(list(counted)))["shape"].unique()
    return near.filter(~pl.col("shape").is_in(shapes.implode())).select("line_no", "text")


def _telling(others: pl.DataFrame, launches: Sequence[int] = ()) -> list[tuple[int, str]]:
    """Lines that may state a setting, each text once in a launch."""
    ours = outside_sections(others).filter(pl.col("text").str.contains(SETTING_WORDS))
    launch = pl.Series(launches, dtype=pl.Int64).search_sorted(ours["line_no"], side="right")
    found = ours.with_columns(launch=launch).unique(["launch", "text"], keep="first", maintain_order=True)
    return list(found.drop("launch").head(_MOST_STATED).iter_rows())


def _listed(chosen: Sequence[Chosen], rules: SettingRules) -> list[Inferred]:
    found = []
    for one in chosen:
        piece, source = rules.by_column.get(one.column, ("", one.sources[0]))
        is_used = bool(piece)
        field = piece or source.name or source.printed
        confidence = one.confidence if is_used else LOW
        found.append(Inferred(one.column, field, "", confidence, one.reason, is_used, source.line_no, source.text))
    return found


def _signature(steps: Steps, table: Table | None, others: pl.DataFrame) -> tuple[str, ...]:
    """The header of a table, whose rows have no words; none where steps tell; else the first line with words."""
    if table and table.header:
        return (table.header[:_LONG_SIGNATURE],)
    if steps.rules or table:
        return ()
    texts = others["text"].head(20).to_list()
    good = [text.strip() for text in texts if len(text.strip()) >= _LEAST_SIGNATURE and re.search(r"[^\W\d_]{2}", text)]
    return (max(good, key=len)[:_LONG_SIGNATURE],) if good else ("text that only this trainer prints",)
