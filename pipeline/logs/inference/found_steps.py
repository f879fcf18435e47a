"""The lines of steps, of a counter or of a table: the rule that reads them, and what speaks for each value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sweepscope.pipeline.logs.inference.bare_rows import bare_rows
from sweepscope.pipeline.logs.inference.below import find_below
from sweepscope.pipeline.logs.inference.checks import checked, evidence, tokens_of_a_step
from sweepscope.pipeline.logs.inference.columns import HIGH, LOW, MEDIUM, Guess, are_in_turn, guesses
from sweepscope.pipeline.logs.inference.counter import Counter
from sweepscope.pipeline.logs.inference.labels import is_unnamed
from sweepscope.pipeline.logs.inference.losses import has_losses, has_measures
from sweepscope.pipeline.logs.inference.naming import named
from sweepscope.pipeline.logs.inference.ordinals import in_order
from sweepscope.pipeline.logs.inference.result import Inferred
from sweepscope.pipeline.logs.inference.samples import of_a_step
from sweepscope.pipeline.logs.inference.series import Key, Line, Series, course
from sweepscope.pipeline.logs.inference.step_rules import StepRule, rows_of_steps, step_rule
from sweepscope.pipeline.logs.inference.tables import Table

_TELLING = ("loss", "tokens_per_s", "tokens_per_s_per_gpu", "step_time", "grad_norm", "learning_rate")
"""Columns of which a line of a step has one; the first that a log prints is meant."""
_SELDOM = 0.1
"""Of the lines that have the commonest of these columns: fewer are not the steps."""
_LEAST_REDRAWN, _MOST_REDRAWN = 3, 0.8
"""Steps that are drawn with the loss of the one before: how many at least, and their share of those drawn twice."""


_LEAST_EPOCHS = 5
_RISING = 0.9
_LOSS = "loss"
_LEAST_LOSSES = 5
"""Of a training that calls its loss by another name."""


@dataclass(frozen=True)
class Steps:
    """Rules of the lines of steps, each with an example, and what they fill; `line_nos` are those lines.

    `table` has them where they are rows of numbers, which no rule finds by a word. `tokens` are those of one step,
    where the lines print a rate and a time.
    """

    rules: tuple[tuple[StepRule, Line], ...] = ()
    listed: tuple[Inferred, ...] = ()
    line_nos: frozenset[int] = frozenset()
    repeated: str = ""
    tokens: float | None = None
    table: Table | None = None


def steps_of(
    found: Mapping[Key, Series], lines: Sequence[Line], counter: Counter, settings: Mapping[str, str]
) -> Steps:
    """The steps that a counter numbers; none where its lines are not those of steps.

    Args:
        found: all series.
        lines: the sample.
        counter: what numbers the lines.
        settings: believed values by column.
    """
    ranked = checked(
        guesses(found, counter, lines),
        found,
        evidence(
            in_order(found[counter.key], lines) if counter.is_lines else found[counter.key],
            found.get((counter.key[0], "of", counter.key[2])),
            lines,
            settings,
            of_a_step(counter, settings),
        ),
    )
    chosen: list[Guess] = []
    for guess in ranked:
        is_better = guess.is_read
        same = next((one for one in chosen if one.column == guess.column), None)
        if same is None or (is_better and not same.is_read):
            chosen = [*(one for one in chosen if one is not same), guess]
    surely = {one.key for one in chosen if one.is_read and one.confidence != LOW}
    chosen = [one for one in chosen if one.confidence != LOW or one.key not in surely]  # a value is one thing
    chosen += _losses_of_others(chosen, found, set(found[counter.key].rows))
    columns = [one.column for one in chosen]
    read = [one.column for one in chosen if one.is_read]  # what only may be the loss hides none below
    below = find_below(found, counter, lines, has_loss="loss" in read)
    telling = _telling_column(found, chosen)
    has_loss = "loss" in columns or any(one.column == "loss" for one in below.values())
    is_counter = named(counter.key[0], "step") == 0 or (counter.epoch is not None and is_unnamed(counter.key[0]))
    is_measured = bool(settings) and _measures_epochs(counter, found, lines)
    if not has_loss and (has_losses(found) or not (is_measured or (telling is not None and is_counter))):
        return Steps()  # its losses stand beside another counter
    keys = [one.key for one in chosen if one.column == telling] if telling else [counter.key]
    rows = rows_of_steps(found, lines, counter, keys)
    if rows and (table := bare_rows(lines, rows, counter, chosen)):
        return _of_bare_rows(table, chosen)
    rule = step_rule(found, lines, counter, chosen, rows) if rows else None
    if rule is None:
        return Steps()
    rule = replace(rule, below={key: one for key, one in below.items() if one.column not in read})
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
    loss = next((one.key for one in rule.guesses if one.column == "loss"), None)
    is_late = loss is not None and _moves_before(found[counter.key], found[loss], lines)
    repeated = "last" if counter.is_epoch or is_late else ""
    numbers = frozenset(lines[row].number for row in rows)
    tokens = tokens_of_a_step(rule.guesses, found, settings)
    return Steps(((rule, example),), (*used, *unused), numbers, repeated, tokens)


def _moves_before(counter: Series, losses: Series, lines: Sequence[Line]) -> bool:
    """Whether a bar moves to its next step before it shows the loss of that step: it is drawn with the old one first.

    As tqdm's `update` in front of `set_postfix` does: `2/9 [.., loss=3.1]`, `2/9 [.., loss=2.9]`.
    """
    rows = [row for row in counter.by_row if row in losses.by_row]
    old = again = 0
    for one, two, three in zip(rows, rows[1:], rows[2:], strict=False):
        numbers = [counter.by_row[row].number for row in (one, two, three)]
        shown = [losses.by_row[row].number for row in (one, two, three)]
        is_near = lines[one].block == lines[three].block and numbers[0] != numbers[1] == numbers[2]
        if is_near and shown[1] != shown[2]:
            again += 1
            old += shown[0] == shown[1]
    return old >= _LEAST_REDRAWN and old >= _MOST_REDRAWN * again


def _measures_epochs(counter: Counter, found: Mapping[Key, Series], lines: Sequence[Line]) -> bool:
    """Whether epochs are counted, and beside each stands a number that is none of our columns: `[epoch 3] mIoU=0.42`.

    As of trainings whose measures have names of their own.
    """
    epochs = found[counter.key]
    went = course(epochs, lines)
    if named(counter.key[0], "epoch") != 0 or went.distinct < _LEAST_EPOCHS or went.rising < _RISING:
        return False
    return has_measures(set(epochs.rows), found)


def _losses_of_others(chosen: Sequence[Guess], found: Mapping[Key, Series], rows: set[int]) -> list[Guess]:
    """The losses of other trainings in the log, where each calls its own by another name: `ce_loss`, then `kd_loss`.

    Beside others, some of these names are those of a part; alone in their lines, they are the loss.
    """
    own = next((one for one in chosen if one.column == "loss" and one.is_read), None)
    if own is None:
        return []
    others = [
        series.within(rows)
        for key, series in found.items()
        if key != own.key and not key[1] and not key[2] and key[0].endswith(_LOSS) and not series.is_whole
    ]
    others = [one for one in others if len(one.rows) >= _LEAST_LOSSES]
    if not others or not are_in_turn([found[own.key].within(rows), *others]):
        return []
    return [replace(own, key=one.key, reason=f"named {one.label!r}, in lines of its own") for one in others]


def _of_bare_rows(table: Table, chosen: Sequence[Guess]) -> Steps:
    """The steps that rows of numbers tell."""
    line_no, text = table.example
    guessed = {one.column: one for one in chosen}
    listed = [Inferred("step", table.columns[0][1], "", MEDIUM, "it rises with the lines", True, line_no, text)]
    for column, name, unit in table.columns[1:]:
        guess = guessed[column]
        listed.append(Inferred(column, name, unit, guess.confidence, guess.reason, True, line_no, text))
    return Steps(listed=tuple(listed), line_nos=table.line_nos, table=table)


def _telling_column(found: Mapping[Key, Series], chosen: Sequence[Guess]) -> str | None:
    """The first of _TELLING that is printed about as often as any other; a line at the end may have one of its own."""
    often = {
        column: max(len(found[one.key].by_row) for one in chosen if one.column == column)
        for column in _TELLING
        if any(one.column == column for one in chosen)
    }
    most = max(often.values(), default=0)
    return next((column for column, count in often.items() if count >= _SELDOM * most), None)


def steps_of_table(table: Table) -> Steps:
    """The steps that the rows of a table tell."""
    line_no, text = table.example
    listed = tuple(
        Inferred(column, name, unit, HIGH, f"the cell is called {name!r}", True, line_no, text)
        for column, name, unit in table.columns
    )
    return Steps(listed=listed, line_nos=table.line_nos)
