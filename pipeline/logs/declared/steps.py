"""Steps of lines, by the rules of a dialect file: each line by the first rule that finds it.

A line knows nothing of others. What needs them is left for `finalizer`: values in lines below a step have no step until
then, and a step that is counted within an epoch of unknown length is far beyond any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce

import polars as pl

from sweepscope.pipeline.logs.declared.columns import EPOCH_STEP
from sweepscope.pipeline.logs.declared.epoch_lines import EpochLines
from sweepscope.pipeline.logs.declared.line_template import Field
from sweepscope.pipeline.logs.declared.rules import BATCH_OF, EPOCHS, LINES, Document, Rule, key_regex
from sweepscope.pipeline.logs.declared.units import PER_LINE
from sweepscope.pipeline.logs.declared.values import UNKNOWN_LENGTH, candidates, with_pairs, with_values
from sweepscope.pipeline.logs.dialects import environment
from sweepscope.pipeline.logs.extractors import last_of_each_step
from sweepscope.pipeline.logs.facts import STEP_BASIS, STEP_FACTS, Facts, conform, in_order
from sweepscope.pipeline.text.timestamps import times_of

_COUNTERS = ("step", EPOCH_STEP)
_VALUES = [
    name for name in STEP_FACTS.names() if name not in ("source", "line_no", "rank", "ts", "step", "step_basis", "text")
]


def steps(lines: pl.DataFrame, rules: Sequence[Rule]) -> pl.DataFrame:
    """STEP_FACTS of the lines that a rule finds, and without a step lines below them and those that nearly are one."""
    rows = lines.with_columns(times_of(lines)).with_row_index("row")
    found, near = [rows.head(0)], [rows.head(0)]
    for rule in rules:
        likely = _without(candidates(rows, rule), found)
        values = with_values(likely, rule)
        if rule.counts == EPOCHS:
            values = values.with_columns(step_basis=pl.lit("whole_epoch", STEP_BASIS))
        elif rule.counts == LINES:  # `numbered` counts them
            is_one = pl.col(rule.columns[0]).is_not_null()
            values = values.with_columns(step=pl.when(is_one).then(0), step_basis=pl.lit("ordinal", STEP_BASIS))
        is_found = values["step"].is_not_null()
        found.append(values.filter(is_found))
        missed = likely.filter(~is_found)
        near.append(missed.filter(is_near(rule)) if missed.height else missed)
    for rule in rules:
        if rule.below:
            found.append(below(_without(rows, found), rule))
    hits = pl.concat(found, how="diagonal")
    missed = pl.concat(near).unique("row", maintain_order=True)
    if missed.is_empty() and len(rules) == 1:
        return conform(hits if not rules[0].below else hits.sort("row"), STEP_FACTS)
    missed = missed.join(hits, on="row", how="anti", maintain_order="left")
    both = pl.concat([hits, missed], how="diagonal").sort("row")
    return conform(both, STEP_FACTS)


def _without(rows: pl.DataFrame, found: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Rows that no rule has found."""
    taken = pl.concat([frame.select("row") for frame in found])
    return rows.join(taken, on="row", how="anti") if taken.height else rows


def is_near(rule: Rule) -> pl.Expr:
    """Whether a line that the rule does not find looks like one of its records all the same.

    It has the words a regex says its lines hold; or the step and another key of the pairs; or the beginning of the
    first part and another one; or it begins like the line, up to its first value, and holds half of its other words, or
    ends too early. The line above an epoch is none.
    """
    text = pl.col("text")
    if rule.epoch_line:
        return is_near(replace(rule, epoch_line=None)) & ~text.str.contains(rule.epoch_line.regex)
    if rule.parts:
        first, *further = rule.parts
        begin = next(at for at, part in enumerate(first.elements) if isinstance(part, Field))
        other = [text.str.contains(part.regex) for part in further]
        return text.str.contains(first.upto(begin)) & pl.any_horizontal(*other, pl.lit(value=False))
    if rule.pairs is not None:
        others = [key_regex(key) for key, kept in rule.pairs.items() if kept.column not in _COUNTERS]
        counters = [key_regex(key) for key, kept in rule.pairs.items() if kept.column in _COUNTERS]
        return pl.all_horizontal(text.str.contains("|".join(keys)) if keys else False for keys in (counters, others))
    if rule.template is None:
        return pl.lit(value=True)
    labels = rule.template.labels
    present = [text.str.contains(label, literal=True).cast(pl.Int64) for label in labels]
    has_labels = pl.sum_horizontal(present) * 2 >= len(labels) if labels else pl.lit(value=False)
    begins = text.str.contains(rule.template.upto(rule.template.head))
    return begins & (has_labels | text.str.contains(rule.template.cut))


def below(rows: pl.DataFrame, rule: Rule) -> pl.DataFrame:
    """Of `rows`, those that hold a value of the step above them, with a column for each."""
    if not rule.below:
        return rows.head(0)
    likely = rows.filter(pl.col("text").str.contains_any(list(rule.below)))
    values = with_pairs(likely, rule.below)
    names = [kept.column for kept in rule.below.values()]
    return values.filter(pl.any_horizontal(pl.col(names).is_not_null()))


def finalizer(document: Document) -> Callable[[Facts], Facts]:
    """What the facts of whole files need before they are steps and settings."""
    changes: list[Callable[[Facts], Facts]] = [_with_counted_ranks]
    if any(rule.counts == LINES for rule in document.steps):
        changes.append(numbered)
    if any(rule.below for rule in document.steps):
        changes.append(joined)
    if any(EPOCH_STEP in rule.columns and rule.epoch_steps is None and not rule.epoch_line for rule in document.steps):
        changes.append(counted_on)
    epochs = EpochLines.of(document.steps)
    if epochs.lines:
        changes.append(epochs.counted)
    batches = {BATCH_OF[rule.counts] for rule in document.steps if rule.counts in BATCH_OF}
    changes += [partial(counted_in_steps, batch=name) for name in sorted(batches)]
    if any(target.printed.word.endswith(PER_LINE) for rule in document.steps for target in rule.filled):
        changes.append(timed_since_line)
    if document.repeated == "last":
        changes.append(last_of_each_step)
    return lambda facts: reduce(lambda done, change: change(done), changes, facts)


def _with_counted_ranks(facts: Facts) -> Facts:
    return replace(facts, settings=environment.with_counted_ranks(facts.settings))


def numbered(facts: Facts) -> Facts:
    """`facts` with the number of each line that prints none: the first one of a launch, or of a rank in it, is 1."""
    begun = facts.events.filter(pl.col("kind") == "launch").select("source", "line_no").unique()
    begun = begun.sort("source", "line_no").with_columns(launch="line_no")
    rows = in_order(facts.steps).join_asof(
        begun, on="line_no", by="source", strategy="backward", check_sortedness=False
    )
    is_line = (pl.col("step_basis") == "ordinal").fill_null(value=False) & pl.col("step").is_not_null()
    ordinal = is_line.cast(pl.Int64).cum_sum().over("source", "rank", "launch")
    counted = rows.with_columns(step=pl.when(is_line).then(ordinal).otherwise("step"))
    return replace(facts, steps=conform(counted, STEP_FACTS))


def joined(facts: Facts) -> Facts:
    """`facts` with the values below a step in its row; of those above the first step nothing is left."""
    rows = in_order(facts.steps)
    is_step = pl.col("step").is_not_null()
    is_part = ~is_step & pl.any_horizontal(pl.col(_VALUES).is_not_null())
    marked = rows.with_columns(block=is_step.cast(pl.Int64).cum_sum().over("source", "rank"), is_part=is_part)
    whole = (
        marked.filter((is_step | pl.col("is_part")) & (pl.col("block") > 0))
        .group_by("source", "rank", "block", maintain_order=True)
        .agg(pl.col("line_no", "ts", "step", *_VALUES).drop_nulls().first())
    )
    rejects = marked.filter(~is_step & ~pl.col("is_part"))
    steps = pl.concat([conform(whole, STEP_FACTS), conform(rejects, STEP_FACTS)])
    return replace(facts, steps=steps.sort("source", "line_no", maintain_order=True))


def counted_on(facts: Facts) -> Facts:
    """`facts` with steps that go on over the epochs of a launch, each as long as the largest number in it.

    What was not logged at the end of an epoch is missing from its length, unless the steps that are planned tell it: as
    whole epochs, each a little longer than the largest number. Where these are the steps of one epoch, and the log has
    more, nothing is known to be planned. Where epochs fall back, another launch begins, of which the epochs may be of
    another length.
    """
    step, epoch = pl.col("step"), pl.col("step") // UNKNOWN_LENGTH
    if not facts.steps.select((step >= UNKNOWN_LENGTH).any()).item():
        return facts
    is_back = (epoch < epoch.forward_fill().shift(1)).fill_null(value=False)
    launch = is_back.cast(pl.Int64).cum_sum().over("source", "rank")
    number, part = step % UNKNOWN_LENGTH, ("source", "rank", "launch")
    apart = number.diff().over(part)
    rows = (
        facts.steps.with_columns(launch=launch)
        .with_columns(
            largest=number.max().over(part) + (number.min().over("source") == 0),
            apart=apart.filter(apart > 0).min().over("source"),
            has_more=epoch.n_unique().over("source") > 1,
        )
        .join(_planned(facts.settings), on="source", how="left")
    )
    known = ("planned", "largest", "apart")
    lengths = rows.select(known).drop_nulls().unique()
    found = pl.Series("length", [epoch_length(*row) for row in lengths.iter_rows()], dtype=pl.Int64)
    rows = rows.join(lengths.with_columns(found), on=known, how="left").with_columns(
        length=pl.coalesce("length", "largest"),
        is_of_one=(pl.col("length") == pl.col("planned")) & pl.col("has_more"),
    )
    of_one = rows.filter(pl.col("is_of_one")).select("source").unique().with_columns(name=pl.lit("steps_planned"))
    steps = rows.sort("source", "line_no", maintain_order=True).with_columns(step=epoch * pl.col("length") + number)
    settings = facts.settings.join(of_one, on=["source", "name"], how="anti", maintain_order="left")
    return replace(facts, steps=conform(steps, STEP_FACTS), settings=settings)


def epoch_length(planned: int, largest: int, apart: int) -> int | None:
    """Steps of an epoch, of which those planned are a whole number; None where no length, or several, would do.

    Args:
        planned: steps of the training.
        largest: the last step of an epoch that is logged.
        apart: steps between two that are logged: the epoch ends before the next one would be.

    >>> epoch_length(132_750, 4_400, 100), epoch_length(480, 40, 10), epoch_length(479, 40, 10)
    (4425, None, None)
    """
    most, least = planned // largest, planned // (largest + apart) + 1
    lengths = [planned // epochs for epochs in range(least, most + 1) if planned % epochs == 0]
    return lengths[0] if len(lengths) == 1 else None


def _planned(settings: pl.DataFrame) -> pl.DataFrame:
    """The planned steps of each source, as `planned`."""
    stated = settings.filter(pl.col("name") == "steps_planned").unique("source", keep="last", maintain_order=True)
    return stated.select("source", planned=pl.col("value").cast(pl.Int64, strict=False))


def timed_since_line(facts: Facts) -> Facts:
    """`facts` with a step's part of the time since the line before, in its place; unknown where steps do not rise."""
    rows = in_order(facts.steps)
    steps = pl.col("step").diff().over("source", "rank")
    time = pl.when(steps > 0).then(pl.col("step_time_s") / steps)
    return replace(facts, steps=rows.with_columns(step_time_s=time))


def counted_in_steps(facts: Facts, *, batch: str) -> Facts:
    """`facts` with steps in place of samples or tokens, by the batch that the file states; without it, none is known.

    Where an epoch does not end with a whole batch, the steps of later ones are rounded, which `step_basis` says.

    Args:
        facts: with samples as steps.
        batch: setting with the samples or tokens of a step: "gbs", "mbs" or "gbs_tokens", which may follow from "gbs".
    """
    parts = (batch, "gbs", "seq_len") if batch == "gbs_tokens" else (batch,)
    stated = facts.settings.filter(pl.col("name").is_in(parts)).unique(["source", "name"], keep="last")
    sizes = stated.pivot(on="name", on_columns=parts, index="source", values="value").with_columns(
        pl.col(parts).cast(pl.Float64, strict=False)
    )
    size = pl.coalesce(batch, pl.col("gbs") * pl.col("seq_len")) if len(parts) > 1 else pl.col(batch)
    batches = sizes.select("source", batch=pl.when(size > 0).then(size))
    rows = facts.steps.join(batches, on="source", how="left", maintain_order="left")
    is_rounded = ((pl.col("step") % pl.col("batch")) != 0).any().over("source")
    counted = (pl.col("step", "steps_planned") / pl.col("batch")).round().cast(pl.Int64, strict=False)
    basis = pl.when(is_rounded).then(pl.lit("epoch", STEP_BASIS)).otherwise("step_basis")
    return replace(facts, steps=rows.with_columns(counted, step_basis=basis).drop("batch"))
