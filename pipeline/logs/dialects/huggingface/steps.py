"""Which step a log dict of transformers' Trainer belongs to: the dict does not say.

The dict is written over the progress bar, which is drawn again right behind it with the number of steps done
(tqdm.write): the first bar behind a dict, before the next one, is its step. A terminal that overwrote those bars, or
two streams that were joined later, leave dicts without one: they are `logging_steps` apart, or as far apart as the
other dicts show. A file without any bar gives ordinal numbers times `logging_steps` (1 where it is not printed).

A training without any dict has the steps of its bar (`bars`), which is known by its total.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialects.huggingface import notebook_tables
from sweepscope.pipeline.logs.dialects.huggingface.bars import steps_of
from sweepscope.pipeline.logs.dialects.huggingface.dicts import rejoined
from sweepscope.pipeline.logs.dialects.huggingface.settings import with_ranks
from sweepscope.pipeline.logs.facts import STEP_FACTS, Facts, conform

_RUN = ["source", "part"]


_ECHO = r">> \{'loss': "
"""LLaMA-Factory train/callbacks.py on_log logs each dict once more, rounded."""


def finalize(facts: Facts) -> Facts:
    """Dicts with their steps and without the bars; step times and throughput from the running totals they print."""
    facts = rejoined(notebook_tables.resolved(facts))
    rows = _without_echoes(_in_trainings(facts))
    has_value = pl.col("loss").is_not_null()
    rows = rows.with_columns(nth=has_value.cast(pl.Int64).cum_sum().over(_RUN), has_value=has_value)
    bars = rows.filter("is_bar")
    behind = bars.filter(pl.col("nth") > 0).group_by(*_RUN, "nth").agg(behind=pl.col("step").first())
    # A bar that moved since the dict before: the last one shown before this dict.
    moved = bars.group_by(*_RUN, (pl.col("nth") + 1).alias("nth")).agg(
        before=pl.when(pl.col("step").last() > pl.col("step").first()).then(pl.col("step").last())
    )
    dicts = rows.filter("has_value").join(behind, on=[*_RUN, "nth"], how="left", maintain_order="left")
    dicts = dicts.join(moved, on=[*_RUN, "nth"], how="left", maintain_order="left")
    dicts = _numbered(dicts.with_columns(own=pl.col("step"), anchor=pl.coalesce("step", "behind", "before")))
    unread = rows.filter(~pl.col("is_bar") & ~pl.col("has_value"))
    is_told = pl.col("has_value").any().over("source", "launch")
    is_bare = pl.col("is_bar") & (pl.col("steps_planned") == pl.col("total")) & ~is_told
    drawn = steps_of(rows.filter(is_bare.fill_null(value=False)))
    steps = pl.concat(conform(part, STEP_FACTS) for part in (_rates(dicts), drawn, unread))
    settings = with_ranks(facts.settings)
    return Facts(steps.sort("source", "line_no", maintain_order=True), settings, facts.peaks, facts.events)


def _in_trainings(facts: Facts) -> pl.DataFrame:
    """Step facts with `launch` (its line), `part` (a training within the file), `is_bar` and `every`.

    Bars of evaluations are gone.
    """
    order = ["source", "line_no"]
    rows = facts.steps.sort(order, maintain_order=True)
    launches = facts.events.filter(pl.col("kind") == "launch").select(*order, launch="line_no").unique().sort(order)

    def latest(name: str, value: str) -> pl.DataFrame:
        stated = facts.settings.filter(pl.col("name") == name)
        return stated.select(*order, pl.col("value").cast(pl.Float64, strict=False).alias(value)).sort(order)

    known = (launches, latest("steps_planned", "total"), latest("arg:logging_steps", "every"))
    for frame in known:
        rows = rows.join_asof(frame, on="line_no", by="source", strategy="backward", check_sortedness=False)
    rows = rows.with_columns(
        pl.col("launch").fill_null(0),
        # A share of the training below 1 is not a number of steps.
        every=pl.when(pl.col("every") >= 1).then(pl.col("every")),
        is_bar=pl.col("step").is_not_null() & pl.col("loss").is_null(),
    )
    first_bar = pl.col("steps_planned").filter(pl.col("is_bar")).first().over("source", "launch")
    is_other = pl.col("is_bar") & (
        pl.col("steps_planned") != pl.coalesce(pl.col("total").cast(pl.Int64, strict=False), first_bar)
    )
    rows = rows.filter(~is_other)
    shown = pl.col("step").forward_fill().over("source")
    is_back = pl.col("is_bar") & (pl.col("step") < shown.shift(1).over("source"))
    back = is_back.fill_null(value=False).cast(pl.Int64).cum_sum().over("source")
    return rows.with_columns(part=pl.struct("launch", back.alias("back")).rank("dense").cast(pl.Int64))


def _numbered(dicts: pl.DataFrame) -> pl.DataFrame:
    """Steps from the anchors, and from the distance between dicts where there is no anchor."""
    anchored = pl.col("anchor").is_not_null()
    previous, next_one = pl.col("anchor").forward_fill().over(_RUN), pl.col("anchor").backward_fill().over(_RUN)
    anchored_nth = pl.when(anchored).then("nth")
    dicts = dicts.with_columns(
        previous=previous,
        previous_nth=anchored_nth.forward_fill().over(_RUN),
        next_one=next_one,
        next_nth=anchored_nth.backward_fill().over(_RUN),
    )
    gap = (pl.col("next_one") - pl.col("previous").shift(1).over(_RUN)) / (
        pl.col("next_nth") - pl.col("previous_nth").shift(1).over(_RUN)
    )
    seen = pl.when(anchored).then(gap).median().over(_RUN).round()
    every = pl.coalesce("every", seen).clip(lower_bound=1).fill_null(1)
    dicts = dicts.with_columns(every=every.cast(pl.Int64, strict=False))
    since = pl.col("previous") + pl.col("every") * (pl.col("nth") - pl.col("previous_nth"))
    until = pl.col("next_one") - pl.col("every") * (pl.col("next_nth") - pl.col("nth"))
    dicts = dicts.with_columns(step=pl.coalesce(since, pl.when(until > 0).then(until), pl.col("nth") * pl.col("every")))
    # Streams joined out of order: one number per dict is worth more than a bar's.
    is_mixed = (pl.col("step").diff() <= 0).any().over(_RUN)
    dicts = dicts.with_columns(step=pl.when(is_mixed).then(pl.col("nth") * pl.col("every")).otherwise("step"))
    # A bar that is not drawn again behind its dict leaves that of the next step there.
    beyond = (pl.col("step").max() - pl.col("total").cast(pl.Int64, strict=False).max()).clip(0).over(_RUN)
    is_shifted = ~is_mixed & (pl.col("step").min().over(_RUN) > beyond)
    shifted = pl.when(is_shifted).then(pl.col("step") - beyond.fill_null(0)).otherwise("step")
    return dicts.with_columns(step=pl.coalesce("own", shifted))


def _without_echoes(rows: pl.DataFrame) -> pl.DataFrame:
    """`rows` without the logger's copies of dicts, where the dicts themselves are there."""
    is_dict = pl.col("loss").is_not_null()
    is_echo = (is_dict & pl.col("text").str.contains(_ECHO)).fill_null(value=False)
    is_printed = (is_dict & ~is_echo).any().over("source")
    return rows.filter(~is_echo | ~is_printed)


def _rates(dicts: pl.DataFrame) -> pl.DataFrame:
    printed = pl.col("step_time_s")
    step_own_s = pl.when(printed < 0).then(-printed)  # see dicts.read
    seconds = pl.when(printed >= 0).then(printed).diff().over(_RUN)
    tokens = pl.col("consumed_tokens").diff().over(_RUN)
    done = pl.col("step").diff().over(_RUN)
    is_timed = (seconds > 0) & (done > 0)
    return dicts.with_columns(
        step_time_s=pl.coalesce(step_own_s, pl.when(is_timed).then((seconds / done).round(6))),
        tokens_per_s=pl.when(is_timed & (tokens > 0)).then((tokens / seconds).round(3)),
        steps_planned=pl.coalesce(pl.col("total").cast(pl.Int64, strict=False), "steps_planned"),
        text=pl.lit(None, pl.String),  # read after all
    )
