"""Optimizer steps from the batches that Lightning's bars count.

lightning/pytorch/loops/training_epoch_loop.py: a step takes `accumulate_grad_batches` batches, and the last one of an
epoch those that are left. A training that stops at `max_steps` tells how many: no other number makes so many steps of
its batches. Otherwise the number is that of a batch, which `step_basis` says. Both count from 0, as `metrics.csv` does.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from sweepscope.pipeline.logs.dialects.huggingface.rates import with_rates
from sweepscope.pipeline.logs.dialects.lightning.bars import EPOCH, seconds_off
from sweepscope.pipeline.logs.extractors import last_of_each_step
from sweepscope.pipeline.logs.facts import SETTING_FACTS, STEP_BASIS, STEP_FACTS, Facts, conform

_ORDER = ["source", "line_no"]
_TRAINING = ["source", "training"]


def steps_of(facts: Facts) -> Facts:
    """`facts` with steps and times of bars in place of their EPOCH numbers, and what the trainings tell of batches."""
    facts = last_of_each_step(_without_stale(facts))
    bars = facts.steps.filter(pl.col("step").is_not_null())
    if bars.is_empty():
        return facts
    bars = _in_trainings(bars, facts)
    lengths = _lengths(bars)
    sizes = _accumulations(lengths, bars, facts)
    known = _steps_before(lengths.join(sizes.drop("line_no"), on=_TRAINING, maintain_order="left"))
    rows = bars.join(known, on=[*_TRAINING, "epoch"], how="left", maintain_order="left")
    timed = _timed(_counted(rows))
    steps = pl.concat([conform(timed, STEP_FACTS), facts.steps.filter(pl.col("step").is_null())])
    settings = pl.concat([facts.settings, _settings(timed, sizes)])
    return Facts(steps.sort(_ORDER, maintain_order=True), settings, facts.peaks, facts.events)


def _without_stale(facts: Facts) -> Facts:
    """`facts` without the bars of a new epoch that were drawn before it was reset: full, as the last one before.

    Lightning 1.7 and others write the epoch into the bar first, which draws it: `Epoch 1: 100%|..| 395/395`, and then
    `Epoch 1:  13%|..| 50/395`.
    """
    # All redraws of a line have its number.
    rows = facts.steps.sort(_ORDER, maintain_order=True).with_row_index("row")
    step, total = pl.col("step"), pl.col("steps_planned")
    before, behind = (step.shift(by).over("source") for by in (1, -1))
    is_reset = (step - before == EPOCH) & (behind // EPOCH == step // EPOCH) & (behind < step)
    is_stale = is_reset & (step % EPOCH == total) & (total == total.shift(1).over("source"))
    stale = rows.filter(step.is_not_null()).filter(is_stale.fill_null(value=False))["row"]
    kept = rows.filter(~pl.col("row").is_in(stale.implode())).drop("row")
    return Facts(kept, facts.settings, facts.peaks, facts.events)


def _in_trainings(bars: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    """Bars with `epoch`, `done`, `total`, and `training`: a launch begins one, and a bar that falls back."""
    launches = facts.events.filter(pl.col("kind") == "launch").select(*_ORDER, launch="line_no").unique().sort(_ORDER)
    rows = bars.sort(_ORDER, maintain_order=True).join_asof(
        launches, on="line_no", by="source", strategy="backward", check_sortedness=False
    )
    is_new = (pl.col("step").diff() < 0) | pl.col("launch").ne_missing(pl.col("launch").shift())
    rows = rows.with_columns(is_new=is_new.fill_null(value=False).over("source"))
    return rows.with_columns(
        training=pl.col("is_new").cast(pl.Int64).cum_sum().over("source"),
        epoch=pl.col("step") // EPOCH,
        done=pl.col("step") % EPOCH,
        total=pl.col("steps_planned"),
    )


def _lengths(bars: pl.DataFrame) -> pl.DataFrame:
    """Epochs of each training: `shown_total`, `last_done`, `length` and, of all epochs before it, `before` batches.

    One that no bar shows is as long as the one that is shown before it, or else behind it.
    """
    done, total = pl.col("done").max(), pl.col("total").max()
    epochs = bars.group_by(*_TRAINING, "epoch").agg(
        length=pl.max_horizontal(total, done), last_done=done, shown_total=total
    )
    epochs = epochs.sort(*_TRAINING, "epoch")
    gap = pl.col("epoch").diff().over(_TRAINING)
    grown = pl.coalesce(gap * pl.col("length").shift().over(_TRAINING), pl.col("epoch") * pl.col("length"))
    return epochs.with_columns(grown=grown).with_columns(before=pl.col("grown").cum_sum().over(_TRAINING)).drop("grown")


def _steps_before(epochs: pl.DataFrame) -> pl.DataFrame:
    """Epochs with the steps of all before them, `steps_before`; NULL where `gas` is."""
    gas, length = pl.col("gas"), pl.col("length").shift(1).over(_TRAINING)
    gap = pl.col("epoch").diff().over(_TRAINING)
    of_epoch = (pl.coalesce(length, "length") + gas - 1) // gas
    grown = pl.coalesce(gap, "epoch") * of_epoch
    return (
        epochs.with_columns(grown=grown)
        .with_columns(steps_before=pl.col("grown").cum_sum().over(_TRAINING))
        .select(*_TRAINING, "epoch", "length", "before", "steps_before", "gas", "max_steps", "is_placed")
    )


def _accumulations(lengths: pl.DataFrame, bars: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    """Of each training its last line, `max_steps` where it stopped there, `gas` if that tells it, and `is_placed`.

    A later epoch that shows no total, or one that it goes beyond, does not tell how many batches came before it.
    """
    stops = facts.settings.filter(pl.col("name") == MAX_STEPS).select(
        *_ORDER, max_steps=pl.col("value").cast(pl.Int64, strict=False)
    )
    ends = bars.group_by(_TRAINING, maintain_order=True).agg(pl.col("line_no").last()).sort(_ORDER)
    # tqdm's last bar comes before the line, rich's behind it.
    ends = ends.join_asof(stops.sort(_ORDER), on="line_no", by="source", strategy="nearest", check_sortedness=False)
    first = lengths.unique(_TRAINING, keep="first", maintain_order=True)
    is_placed = (pl.col("epoch") == 0) | (pl.col("last_done") <= pl.col("shown_total")).fill_null(value=False)
    ends = ends.join(first.select(*_TRAINING, is_placed=is_placed), on=_TRAINING, maintain_order="left")
    found = []
    for source, training, max_steps, placed in ends.select(*_TRAINING, "max_steps", "is_placed").iter_rows():
        mine = lengths.filter(source=source, training=training)
        found.append(accumulation(_all_lengths(mine), max_steps) if max_steps and placed else None)
    return ends.with_columns(pl.Series("gas", found, dtype=pl.Int64))


def _all_lengths(epochs: pl.DataFrame) -> list[int]:
    """Batches of every epoch from the first one on, of the last one those that were done."""
    shown: list[int] = []
    for epoch, length in epochs.select("epoch", "length").iter_rows():
        shown += [shown[-1] if shown else length] * (epoch - len(shown)) + [length]
    return [*shown[:-1], epochs["last_done"][-1]]


def accumulation(lengths: Sequence[int], steps: int) -> int | None:
    """Batches of a step, if epochs of these lengths make so many steps with one number only.

    >>> accumulation([40], 20), accumulation([5, 5], 6), accumulation([480], 250), accumulation([2], 1)
    (2, 2, None, 2)
    """
    batches = sum(lengths)
    near = {max(batches // steps + more, 1) for more in (-1, 0, 1, 2)}
    fitting = [each for each in near if sum(-(-length // each) for length in lengths) == steps]
    exact = [each for each in fitting if batches == each * steps]
    return exact[0] if exact else fitting[0] if len(fitting) == 1 else None


def _counted(rows: pl.DataFrame) -> pl.DataFrame:
    """Bars with their `step`; those of the batches before the first step are gone."""
    gas, done, length = pl.col("gas"), pl.col("done"), pl.col("length")
    left = pl.when((done == length) & (done % gas > 0)).then(1).otherwise(0)
    step = (
        pl.when(gas.is_not_null()).then(pl.col("steps_before") + done // gas + left).otherwise(pl.col("before") + done)
    )
    # All that is known of bars without a place is that the last one is that of the last step.
    is_last = pl.int_range(pl.len()).over(_TRAINING) == pl.len().over(_TRAINING) - 1
    step = pl.when("is_placed").then(step).when(is_last).then("max_steps")
    basis = pl.when(gas.is_null() & pl.col("is_placed")).then(pl.lit("batch"))
    counted = rows.with_columns(step=step - 1, step_basis=basis.cast(STEP_BASIS), steps_planned=None)
    return counted.filter(pl.col("step") >= 0)


def _timed(rows: pl.DataFrame) -> pl.DataFrame:
    """Bars with the time of their steps, from the seconds of the epoch so far or from the rate of the last seconds."""
    seconds = pl.col("step_time_s")
    totals = rows.with_columns(
        part=pl.struct("training", "epoch").rank("dense"),
        of_batch=pl.when(seconds < 0).then(-seconds),
        seconds=pl.when(seconds > 0).then(seconds),
        tokens=pl.lit(None, pl.Float64),
        tokens_off=pl.lit(0.0),
    ).with_columns(seconds_off=seconds_off(pl.col("seconds"), pl.col("done")))
    return with_rates(totals).with_columns(
        step_time_s=pl.coalesce(
            pl.when("is_placed").then(pl.col("of_batch") * pl.col("gas").fill_null(1)), "step_time_s"
        )
    )


def _settings(bars: pl.DataFrame, sizes: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS of accumulation, and of the mean step time of an epoch of which no part can be timed."""
    gas = sizes.drop_nulls("gas").select(*_ORDER, name=pl.lit("gas"), value=pl.col("gas").cast(pl.String))
    alone = bars.filter(pl.col("step_time_s").is_null().all().over(_TRAINING)).drop_nulls("seconds")
    last = alone.group_by(_TRAINING, maintain_order=True).last()
    step_time_s = (pl.col("seconds") / pl.col("done") * pl.col("gas").fill_null(1)).round(6).cast(pl.String)
    means = [
        last.select(*_ORDER, name=pl.lit("step_time_s"), value=step_time_s),
        last.select(*_ORDER, name=pl.lit("step_time_basis"), value=pl.lit("whole_run")),
    ]
    found = pl.concat([gas, *means]).with_columns(setting_source=pl.lit("log_line"))
    return conform(found, SETTING_FACTS)


MAX_STEPS = "arg:max_steps"
"""Name of the number of steps at which the Trainer says it stopped."""
