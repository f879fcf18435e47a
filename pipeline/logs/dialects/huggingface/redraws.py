"""Steps of log dicts that came later than their bars: Python writes stdout in blocks, and tqdm stderr at once.

So a log has stretches of bars only, and then dozens of dicts without a bar between them (trainer_callback.py
ProgressCallback writes both). But tqdm.write (std.py external_write_mode) draws the bar once more with the same count
for each dict, where the training was then: the first dict that is written belongs to the first bar drawn twice.
An evaluation's dict does so, too, but behind the evaluation's own bar. The final dict redraws the last bar. Of steps
faster than tqdm's tenth of a second a bar is drawn for the dict only, and once: those have no step from here.
"""

from __future__ import annotations

import polars as pl

_PART = ["source", "part"]


def is_redrawn(*counters: str) -> pl.Expr:
    """Whether a bar is that before it, drawn once more; of rows in order with `is_bar` and what bars count."""
    before = (pl.when("is_bar").then(name).forward_fill().shift(1).over("source") == pl.col(name) for name in counters)
    return (pl.col("is_bar") & pl.all_horizontal(before)).fill_null(value=False)


def of_blocks(rows: pl.DataFrame) -> pl.DataFrame:
    """`source`, `part`, `nth`, `redrawn` and `redrawn_s` (step, clock) of each dict of parts that have dicts in blocks.

    The latter are NULL where bars and dicts do not go together.

    Args:
        rows: facts by training (`trainings.in_trainings`), with `nth`, the number of dicts so far in each part.
    """
    bars = rows.filter("is_bar")
    dicts = rows.filter("has_value").select(*_PART, "nth", count=pl.col("nth").max().over(_PART))
    followed = bars.select(*_PART, "nth").unique()
    in_blocks = dicts.filter(pl.col("nth") < pl.col("count")).join(followed, on=[*_PART, "nth"], how="anti")
    shown = bars.filter("is_redrawn").join(in_blocks, on=_PART, how="semi")
    shown = shown.unique([*_PART, "step"], keep="first", maintain_order=True)
    numbered = shown.select(
        *_PART,
        redrawn="step",
        redrawn_s="step_time_s",
        drawn_at="nth",
        nth=pl.int_range(1, pl.len() + 1).over(_PART),
        redraws=pl.len().over(_PART),
    )
    found = dicts.join(in_blocks, on=_PART, how="semi", maintain_order="left")
    found = found.join(numbered, on=[*_PART, "nth"], how="left", maintain_order="left")
    # A dict is in the file before its redraw only where that is right behind it.
    is_late = (pl.col("drawn_at") <= pl.col("nth")).fill_null(value=False)
    # The buffer of a process that was killed, or still writes, has more dicts; one that ended has none.
    fits = ~pl.col("is_over") | (pl.col("redraws") - pl.col("count")).is_between(0, 1)
    over = rows.group_by(_PART).agg(is_over=pl.col("is_over").any())
    found = found.join(over, on=_PART, how="left", maintain_order="left")
    is_known = (is_late & fits).fill_null(value=False).all().over(_PART)
    return found.select(*_PART, "nth", *(pl.when(is_known).then(name).alias(name) for name in ("redrawn", "redrawn_s")))
