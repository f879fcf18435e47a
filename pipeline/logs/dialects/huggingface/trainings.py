"""Which training of a file a bar or a log dict of transformers' Trainer belongs to, and which bars are its own.

A banner begins a training, and so does what is logged behind the final dict of the one before, or a dict whose epoch
lies well before that of the one above: of a training that was launched again into the same file. Within it the bar may
fall back to the beginning, as after a restart: that is another part. An evaluation draws bars of the same form: the
training's is the one whose total is printed, on a line or in the dicts, between whose redraws the dicts are, or else
the one that lasts. A bar that ends before the step of a dict is another's: of samples, or of a dataset. Where there is
neither a total nor a dict, it is unknown, and all bars are left.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialects.huggingface.dicts import shown_epoch
from sweepscope.pipeline.logs.dialects.huggingface.redraws import is_redrawn
from sweepscope.pipeline.logs.facts import Facts

_ORDER = ["source", "line_no"]
_BAR = ("step", "steps_planned")
_WELL_BEFORE = 0.5
"""Of the epoch above. One that goes on from a checkpoint falls back by less, and is the same training."""
_ROUNDED = 0.02
"""Epochs by which dicts with two decimals and in full may differ."""


def in_trainings(facts: Facts) -> pl.DataFrame:
    """Step facts in order, bars of evaluations left out, and of each what is known of its training.

    Further columns: `training` (its number within the file), `part` (a stretch in which the bar moves on only),
    `is_bar`, `is_redrawn` (see `redraws`), `is_over` (an end is stated in the file), `has_value`, `total` (planned
    steps), `stated` (those that are printed), `every` (`logging_steps`).
    """
    rows = facts.steps.sort(_ORDER, maintain_order=True).with_columns(
        is_bar=pl.col("step").is_not_null() & pl.col("loss").is_null(), has_value=pl.col("loss").is_not_null()
    )
    over = facts.events.filter(pl.col("kind") == "training_end")["source"]
    rows = rows.with_columns(is_redrawn=is_redrawn(*_BAR), is_over=pl.col("source").is_in(over.unique().implode()))
    for frame, has_own_line in (
        (_lines(facts, "launch", "launch"), True),
        # The final dict is written over the bar, on its line: what was drawn before it is there, too.
        (_lines(facts, "training_end", "end"), False),
        (_latest(facts, "steps_planned", "stated"), True),
        (_latest(facts, "arg:logging_steps", "every"), True),
    ):
        rows = rows.join_asof(
            frame,
            on="line_no",
            by="source",
            strategy="backward",
            check_sortedness=False,
            allow_exact_matches=has_own_line,
        )
    rows = _with_totals(_numbered(_begun_anew(rows.with_columns(pl.col("launch", "end").fill_null(0)))))
    is_other = pl.col("is_bar") & (pl.col("steps_planned") != pl.col("shown_total"))
    rows = rows.filter(~is_other.fill_null(value=False))
    shown = pl.col("step").forward_fill().shift(1).over("source")
    rows = rows.with_columns(is_back=(pl.col("is_bar") & (pl.col("step") < shown)).fill_null(value=False))
    back = pl.col("is_back").cast(pl.Int64).cum_sum().over("source")
    share = pl.when(pl.col("every") < 1).then((pl.col("every") * pl.col("total")).ceil())
    return rows.with_columns(
        part=pl.struct("training", back.alias("back")).rank("dense").cast(pl.Int64),
        every=pl.when(pl.col("every") >= 1).then("every").otherwise(share),
    ).drop("launch", "end", "anew", "shown_total", "is_back")


def _begun_anew(rows: pl.DataFrame) -> pl.DataFrame:
    """`rows` with `anew`: how often the epoch of the dicts of a launch has fallen back to its begin."""
    launch = ["source", "launch"]
    epoch = shown_epoch()
    above = epoch.forward_fill().shift(1).over(launch)
    is_fall = (epoch <= _WELL_BEFORE * above) & (epoch < above - _ROUNDED)
    rows = rows.with_columns(anew=is_fall.fill_null(value=False).cast(pl.Int64))
    return rows.with_columns(pl.col("anew").cum_sum().over(launch))


def _lines(facts: Facts, kind: str, name: str) -> pl.DataFrame:
    found = facts.events.filter(pl.col("kind") == kind).select(*_ORDER, pl.col("line_no").alias(name))
    return found.unique().sort(_ORDER)


def _latest(facts: Facts, setting: str, name: str) -> pl.DataFrame:
    stated = facts.settings.filter(pl.col("name") == setting)
    return stated.select(*_ORDER, pl.col("value").cast(pl.Float64, strict=False).alias(name)).sort(_ORDER)


def _numbered(rows: pl.DataFrame) -> pl.DataFrame:
    """`rows` with `training`; behind its end a bar is drawn once more as it was."""
    last = [pl.when("is_bar").then(name).forward_fill().shift(1).over("source") for name in _BAR]
    is_again = pl.col("is_bar") & (pl.col("step") == last[0]) & (pl.col("steps_planned") == last[1])
    # One frame after the other: polars evaluates a window within a window group by group.
    rows = rows.with_columns(goes_on=~is_again.fill_null(value=False) & (pl.col("end") > 0))
    is_first = pl.col("goes_on") & (pl.col("goes_on").cast(pl.Int64).cum_sum() == 1)
    rows = rows.with_columns(begins=is_first.over("source", "launch", "end"))
    rows = rows.with_columns(ended=pl.col("begins").cast(pl.Int64).cum_sum().over("source", "launch"))
    rows = _without_late_dicts(rows)
    # Bars behind the end that no dict follows are those of an evaluation.
    has_values = pl.col("has_value").any().over("source", "launch", "ended")
    rows = rows.filter(~(pl.col("is_bar") & (pl.col("ended") > 0) & ~has_values))
    training = pl.struct("launch", "ended", "anew").rank("dense").over("source").cast(pl.Int64)
    return rows.with_columns(training=training).drop("goes_on", "begins", "ended")


def _without_late_dicts(rows: pl.DataFrame) -> pl.DataFrame:
    """`rows` with `ended` as before for dicts that were printed in the training that has ended, and came late.

    Bars and notes go to one stream and dicts to the other, which is kept back where it is no terminal. Such dicts have
    no bar though their training had one, and their epochs go on.
    """
    key = ["source", "launch", "ended"]
    has_bar = (pl.col("is_bar") & pl.col("has_moved")).any()
    epoch = shown_epoch()
    rows = rows.with_columns(
        has_moved=(pl.col("step") > pl.col("step").shift(1)).over(key) & pl.col("is_bar"),
    )
    each = rows.group_by(key, maintain_order=True).agg(
        has_bar=has_bar, first=epoch.drop_nulls().first(), last=epoch.drop_nulls().last()
    )
    before = (pl.col("has_bar").shift(1), pl.col("last").forward_fill().shift(1))
    had_bar, last = (one.over("source", "launch") for one in before)
    goes_on = (pl.col("first") >= last - _ROUNDED).fill_null(last.is_null())
    each = each.with_columns(is_late=had_bar & ~pl.col("has_bar") & goes_on & pl.col("first").is_not_null())
    late = pl.col("is_late").fill_null(value=False).cast(pl.Int64).cum_sum().over("source", "launch")
    each = each.with_columns(late=late).select(*key, "late")
    rows = rows.join(each, on=key, how="left", maintain_order="left", nulls_equal=True)
    return rows.with_columns(ended=pl.col("ended") - pl.col("late")).drop("late", "has_moved")


def _with_totals(rows: pl.DataFrame) -> pl.DataFrame:
    """`rows` with `total`, and `shown_total`, that of the training's own bars."""
    key = ["source", "training"]
    is_bar = pl.col("is_bar")
    stated = pl.col("stated").cast(pl.Int64, strict=False).max().over(key)
    in_dicts = pl.when("has_value").then("steps_planned").max().over(key)
    reached = pl.when("has_value").then("step").max().over(key).fill_null(0)
    known = rows.with_columns(
        stated=pl.coalesce(stated, in_dicts),
        is_in_dicts=in_dicts.is_not_null(),
        reached=reached,
        before=pl.when(is_bar).then("steps_planned").forward_fill().shift(1).over(key),
        done_before=pl.when(is_bar).then("step").forward_fill().shift(1).over(key),
    )
    # Behind a bar that is full, what is logged is another's: of the training, behind the bar of its evaluation.
    is_beside = (pl.col("before") >= pl.col("reached")) & (pl.col("done_before") < pl.col("before"))
    beside = known.filter("has_value", is_beside).group_by(*key, "before").agg(n=pl.len())
    beside = beside.sort("n", descending=True, maintain_order=True).unique(key, keep="first", maintain_order=True)
    lasting = (
        known.filter(is_bar, pl.col("steps_planned") >= pl.col("reached"))
        .group_by(*key, "steps_planned", maintain_order=True)
        .agg(is_open=pl.col("step").max() < pl.col("steps_planned").first(), seconds=pl.col("step_time_s").max())
        .sort("is_open", "seconds", descending=True, maintain_order=True, nulls_last=True)
        .unique(key, keep="first", maintain_order=True)
    )
    rows = known.join(beside.select(*key, beside="before"), on=key, how="left", maintain_order="left")
    rows = rows.join(lasting.select(*key, lasting="steps_planned"), on=key, how="left", maintain_order="left")
    has_stated_bar = (is_bar & (pl.col("steps_planned") == pl.col("stated"))).any().over(key)
    has_values = pl.col("has_value").any().over(key)
    by_bars = pl.coalesce("beside", "lasting", pl.when(pl.col("reached") > 0).then("reached"))
    shown = pl.when(has_stated_bar | pl.col("is_in_dicts")).then("stated").when(has_values).then(by_bars)
    total = pl.coalesce("stated", pl.when(has_stated_bar | has_values).then(pl.coalesce("beside", "lasting")))
    aside = ("is_in_dicts", "reached", "before", "done_before", "beside", "lasting")
    return rows.with_columns(shown_total=shown, total=total).drop(aside)
