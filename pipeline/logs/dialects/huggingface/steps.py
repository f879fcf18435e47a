"""Which step a log dict of transformers' Trainer belongs to: the dict does not say.

The dict is written over the progress bar, which is drawn again right behind it with the number of steps done
(tqdm.write): the first bar behind a dict, before the next one, is its step. Dicts that came later than
the bars have left their redraws (`redraws`). A terminal that overwrote those bars, or two streams that were joined
later, leave dicts without one: they are `logging_steps` apart, as far apart as the other dicts show, or as their epochs
say (`epochs`). Where nothing tells, dicts are numbered, which `step_basis` says. A logger that prints a dict before the
Trainer does writes behind the bar, on its line: that bar is the step, and the next one that of the next dict.

A training without any dict has the steps of its bar (`bars`), which is known by its total.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from sweepscope.pipeline.logs.dialects.huggingface import epochs, notebook_tables, redraws, totals
from sweepscope.pipeline.logs.dialects.huggingface.bars import steps_of
from sweepscope.pipeline.logs.dialects.huggingface.dicts import precision, rejoined, shown_epoch
from sweepscope.pipeline.logs.dialects.huggingface.rates import with_rates
from sweepscope.pipeline.logs.dialects.huggingface.settings import with_ranks
from sweepscope.pipeline.logs.dialects.huggingface.trainings import in_trainings
from sweepscope.pipeline.logs.extractors import computed_settings
from sweepscope.pipeline.logs.facts import EVENT_FACTS, STEP_BASIS, STEP_FACTS, Facts, conform
from sweepscope.pipeline.logs.sidecars.speed_metrics import Span

_ORDER = ["source", "line_no"]
_RUN = ["source", "part"]
_BESIDE = (("behind", "before"), ("behind_s", "before_s"))
_CLOCK_OFF = 0.5
"""Seconds by which a bar's clock may be off: it shows whole ones."""

_VALUES = ("loss", "grad_norm", "learning_rate")
"""Of a dict that a callback prints once more, with the epoch rounded."""

_DECAYED = 0.02
"""Of the highest learning rate, at the end of a schedule."""
_LAST_STEP = (1 << 63) - 1

_ECHO = r">> \{'loss': "
"""LLaMA-Factory train/callbacks.py on_log logs each dict once more, rounded."""
_ECHO_DECIMALS = 4


def finalize(facts: Facts) -> Facts:
    """Dicts with their steps and without the bars; times and throughput from running totals, settings from the ends."""
    facts = rejoined(notebook_tables.resolved(facts))
    rows = _without_echoes(in_trainings(facts))
    rows = rows.with_columns(nth=pl.col("has_value").cast(pl.Int64).cum_sum().over(_RUN))
    ends = totals.ends(rows, facts)
    dicts = _by_epochs(_with_steps(rows), ends)
    bars = rows.filter("is_bar").join(dicts, on=["source", "training"], how="anti", maintain_order="left")
    of_training = _of_training(bars, ends).rename({"training": "launch"})
    unread = rows.filter(~pl.col("is_bar") & ~pl.col("has_value"))
    steps = pl.concat(conform(part, STEP_FACTS) for part in (_rates(dicts), steps_of(of_training), unread))
    settings = pl.concat([with_ranks(facts.settings), totals.concluded(rows, dicts, ends), _planned(bars)])
    events = pl.concat([facts.events, _begun_again(rows, facts.events)])
    return Facts(steps.sort("source", "line_no", maintain_order=True), settings, facts.peaks, events)


def _begun_again(rows: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """EVENT_FACTS of the first line of each training of a file but the first, where no banner announces it."""
    key = ["source", "training"]
    begun = rows.unique(key, keep="first", maintain_order=True).sort(_ORDER)
    last = rows.group_by(key).agg(last=pl.col("line_no").max())
    begun = begun.join(last, on=key, how="left", maintain_order="left")
    begun = begun.with_columns(previous=pl.col("last").shift(1).over("source")).drop_nulls("previous")
    banners = events.filter(pl.col("kind") == "launch").select(*_ORDER, announced="line_no").sort(_ORDER)
    begun = begun.join_asof(banners, on="line_no", by="source", strategy="backward", check_sortedness=False)
    again = begun.filter(
        (pl.col("announced").fill_null(0) <= pl.col("previous")) & (pl.col("line_no") > pl.col("previous"))
    )
    return conform(again.with_columns(kind=pl.lit("launch"), ts=None, host=None), EVENT_FACTS)


def _with_steps(rows: pl.DataFrame) -> pl.DataFrame:
    """Log dicts with `step` and `step_basis`, and what their running totals are: see `rates.with_rates`."""
    bars = rows.filter("is_bar")
    clock = pl.col("step_time_s")
    behind = (
        bars.filter(pl.col("nth") > 0).group_by(*_RUN, "nth").agg(behind=pl.col("step").first(), behind_s=clock.first())
    )
    # A bar that moved since the dict before: the last one shown before this dict.
    has_moved = pl.col("step").last() > pl.col("step").first()
    moved = bars.group_by(*_RUN, (pl.col("nth") + 1).alias("nth")).agg(
        before=pl.when(has_moved).then(pl.col("step").last()), before_s=pl.when(has_moved).then(clock.last())
    )
    dicts = rows.filter("has_value").join(behind, on=[*_RUN, "nth"], how="left", maintain_order="left")
    dicts = dicts.join(moved, on=[*_RUN, "nth"], how="left", maintain_order="left")
    of_blocks = redraws.of_blocks(rows).with_columns(in_blocks=True)
    dicts = dicts.join(of_blocks, on=[*_RUN, "nth"], how="left", maintain_order="left")
    # The bars around a block of dicts are those of later steps.
    is_alone = pl.col("in_blocks").is_null() & ~pl.col("is_shown_before")
    beside, beside_s = (pl.when(is_alone).then(pl.coalesce(*pair)) for pair in _BESIDE)
    dicts = dicts.with_columns(
        own=pl.col("step"), anchor=pl.coalesce("step", "redrawn", beside), **precision()
    ).with_columns(
        own_time_s=pl.when(clock < 0).then(-clock),  # see dicts.read
        seconds=pl.coalesce(pl.when(clock >= 0).then(clock), "echoed_s", "redrawn_s", beside_s),
        seconds_off=pl.when(clock >= 0).then("seconds_off").otherwise(_CLOCK_OFF),
        tokens=pl.col("consumed_tokens").cast(pl.Float64),
    )
    return _numbered(dicts)


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
    every = pl.coalesce("every", seen).clip(lower_bound=1)
    dicts = dicts.with_columns(every_known=every, every=every.fill_null(1).cast(pl.Int64, strict=False))
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
    # One step each is certain where as many dicts as steps came before a bar.
    is_counted = (pl.col("anchor") == pl.col("nth")).any() | pl.col("own").is_not_null().any() | anchored.all()
    is_sure = (pl.col("every_known").is_not_null() | is_counted.fill_null(value=False)).over(_RUN)
    basis = pl.when(~is_sure).then(pl.lit("ordinal"))
    return dicts.with_columns(step=pl.coalesce("own", shifted), step_basis=basis.cast(STEP_BASIS))


def _without_echoes(rows: pl.DataFrame) -> pl.DataFrame:
    """`rows` without copies of dicts: those of the logger, and of a callback that prints the dict above once more.

    The logger's stay where their dict is missing, as it is where a log was cut.
    """
    is_dict = pl.col("loss").is_not_null()
    is_echo = (is_dict & pl.col("text").str.contains(_ECHO)).fill_null(value=False)
    rows = _with_steps_of_echoes(rows.with_columns(is_echo=is_echo))
    dicts = rows.filter("has_value").select(*_RUN, "line_no", *_VALUES, epoch=shown_epoch())
    has_same = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(1)) for name in (*_RUN, *_VALUES))
    epoch, above = pl.col("epoch"), pl.col("epoch").shift(1)
    again = dicts.with_columns(is_rounded=epoch != above).filter(
        has_same & ((epoch == above) | (epoch == above.round(2)))
    )
    again = again.filter(pl.col("is_rounded").any().over(_RUN))
    return rows.join(again, on=["source", "line_no"], how="anti", maintain_order="left") if again.height else rows


def _with_steps_of_echoes(rows: pl.DataFrame) -> pl.DataFrame:
    """`rows` without the logger's copies, and with the steps of dicts whose copy is on the line of a bar.

    In parts that hold such (`is_shown_before`) a bar is drawn before its dict.
    """
    if not rows["is_echo"].any():
        return rows.drop("is_echo").with_columns(is_shown_before=pl.lit(value=False), echoed_s=pl.lit(None, pl.Float64))
    is_echo, bar = pl.col("is_echo"), pl.when("is_bar")
    shown = rows.with_columns(
        shown=pl.col("loss").round(_ECHO_DECIMALS),
        bar_line=bar.then("line_no").forward_fill().over("source"),
        bar_step=bar.then("step").forward_fill().over("source"),
        bar_s=bar.then("step_time_s").forward_fill().over("source"),
        turn=is_echo.cast(pl.Int64).cum_sum().over("source"),
    )
    printed = shown.filter(pl.col("loss").is_not_null(), ~is_echo).select("source", "shown").unique()
    is_of_line = pl.when(pl.col("bar_line") == pl.col("line_no"))
    of_line = {"echoed": is_of_line.then("bar_step"), "echoed_s": is_of_line.then("bar_s")}
    echoes = shown.filter("is_echo").select("source", "turn", "shown", **of_line)
    # The dict of a copy is the first behind it.
    own = shown.filter("has_value", ~is_echo).unique(["source", "turn"], keep="first", maintain_order=True)
    own = own.select("source", "line_no", "turn", "shown").join(echoes, on=["source", "turn", "shown"], how="inner")
    alone = shown.filter("is_echo").join(printed, on=["source", "shown"], how="anti")
    known = pl.concat(
        [
            own.select("source", "line_no", *of_line, is_alone=False),
            alone.select("source", "line_no", **of_line, is_alone=True),
        ]
    ).unique(["source", "line_no"], keep="first")
    rows = rows.join(known, on=["source", "line_no"], how="left", maintain_order="left")
    step = pl.when("has_value").then(pl.coalesce("step", "echoed")).otherwise("step")
    kept = ~is_echo | pl.col("is_alone").fill_null(value=False)
    is_shown_before = pl.col("echoed").is_not_null().any().over(_RUN)
    rows = rows.filter(kept).with_columns(step=step, is_shown_before=is_shown_before)
    return rows.drop("is_echo", "is_alone", "echoed")


def _by_epochs(dicts: pl.DataFrame, ends: Mapping[tuple[int, int], totals.End]) -> pl.DataFrame:
    """`dicts` with steps by their epochs in parts where nothing else tells how far apart they are."""
    is_open = (pl.col("step_basis") == "ordinal").fill_null(value=False)
    if not dicts.select(is_open.any()).item():
        return dicts
    parts = dicts.filter(is_open).partition_by(_RUN, maintain_order=True)
    placed = [_of_epochs(part, ends.get((part["source"][0], part["training"][0]))) for part in parts]
    return pl.concat([dicts.filter(~is_open), *placed]).sort("source", "line_no", maintain_order=True)


def _of_epochs(part: pl.DataFrame, end: totals.End | None) -> pl.DataFrame:
    if end is None and not part["anchor"].count():
        return part
    spans = [epochs.span_of(text) if text else None for text in part["epoch"]]
    steps: int | None
    over: Span | None
    anchored = [(step, span) for step, span in zip(part["anchor"], spans, strict=True) if step and span]
    if anchored:
        steps, over = anchored[-1]
    elif end is not None:
        steps, over = end.speed.steps_planned(), end.spans["epoch"]
        if steps is None and _is_decayed(part["learning_rate"]):
            # A first step of its own, of many: its epoch is rounded to none.
            first = int(part.height > 1 and spans[0] is not None and spans[0].low <= 0)
            steps, over = end.speed.last_logged(part.height - first), spans[-1]
    else:
        return part
    if steps is None and over and end is not None:
        found = _agreed(spans, end, over)
    else:
        found = epochs.steps_of(spans, steps=steps, over=over) if steps and over else None
    if found is None:
        return part
    of_part, basis = found
    if any(step is not None and step > _LAST_STEP for step in of_part):
        return part  # what they were computed from cannot be right
    return part.with_columns(
        pl.Series("step", of_part, dtype=pl.Int64),
        step_basis=pl.lit(None if basis == "step" else basis, STEP_BASIS),
    )


def _agreed(spans: Sequence[Span | None], end: totals.End, over: Span) -> tuple[list[int], str] | None:
    """Steps of dicts by the steps per second and the seconds of their training, where all that these allow agree."""
    if (allowed := end.speed.steps_allowed()) is None:
        return None
    found = [epochs.steps_of(spans, steps=steps, over=over) for steps in allowed]
    return found[0] if found[0] is not None and all(one == found[0] for one in found) else None


def _is_decayed(rates: pl.Series) -> bool:
    """Whether the learning rate came down to its end: the planned steps were all taken."""
    known = rates.drop_nulls().to_list()
    return len(known) > 1 and known[-1] <= _DECAYED * max(known)


def _of_training(bars: pl.DataFrame, ends: Mapping[tuple[int, int], totals.End]) -> pl.DataFrame:
    """The bars of trainings without a dict: with as many steps as were planned, by a line or by the final totals."""
    planned = [(*key, end.speed.steps_planned()) for key, end in ends.items()]
    schema = {"source": pl.Int64, "training": pl.Int64, "concluded": pl.Int64}
    concluded = pl.DataFrame(planned, schema, orient="row")
    known = bars.join(concluded, on=["source", "training"], how="left", maintain_order="left")
    return known.filter(pl.col("steps_planned") == pl.coalesce("stated", "concluded")).drop("concluded")


def _rates(dicts: pl.DataFrame) -> pl.DataFrame:
    """`dicts` with time and throughput of their steps, which a step's own time replaces."""
    return with_rates(dicts).with_columns(
        step_time_s=pl.coalesce("own_time_s", "step_time_s"),
        steps_planned=pl.coalesce("total", "steps_planned"),
        text=pl.lit(None, pl.String),  # read after all
    )


def _planned(bars: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS of planned steps, from the one bar that trainings without a dict left before its end.

    Bars of what comes before a training, and of an evaluation, reach theirs.
    """
    each = bars.group_by("source", "training", "steps_planned", maintain_order=True).agg(
        pl.col("line_no").first(), is_open=pl.col("step").max() < pl.col("steps_planned").first()
    )
    alone = each.filter("is_open").filter(pl.len().over("source", "training") == 1)
    return computed_settings(alone, {"steps_planned": pl.col("steps_planned").cast(pl.String)})
