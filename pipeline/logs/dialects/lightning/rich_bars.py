"""Bars of Lightning as rich draws them, in one line or in several.

Format: lightning/pytorch/callbacks/progress/rich_progress.py: `Epoch 0/9  ━━━━━━━━ 98/98 0:00:22 • 0:00:00 4.44it/s
v_num: 0 train/loss: 1.559`: the last epoch from 0 (-2 where there is no last; left out in 2022), the batches of this
epoch (`--` where their number is unknown), the rate of the last seconds, values of three decimals at most. Without a
terminal, a bar is printed once per refresh or when it ends.

It is a row of a table (rich/table.py): what does not fit goes on below its column, words as a whole, and a column of
times may be broken, too. Such a line means nothing by itself: it is a fact without a step until `rejoined`.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialects.lightning.bars import EPOCH
from sweepscope.pipeline.logs.facts import STEP_FACTS, Facts, conform
from sweepscope.pipeline.text.field_extraction import extract_each
from sweepscope.pipeline.text.quantities import number
from sweepscope.pipeline.text.timestamps import timestamp

_HEAD = r"(?:^|\s)Epoch (\d+)(?:/(-?\d+))?\s+[━╸╺\- ]* (\d+)/(\d+|--) +[\d:]+ •(?: +[\d:-]+)? +([\d.]+)it/s(?: |$)"
_INDENT = " " * 28
_BELOW = rf"^{_INDENT} *\S"
_MOST_LINES = 12
LITERALS = ("it/s v_num: ", "it/s loss: ", "it/s train", "it/s   ", _INDENT)


def _field(label: str) -> str:
    """A value with what ends it: a blank or the line's end. Behind three decimals another text may follow at once."""
    return rf"it/s .*?\b{label}: +(-?\d+\.\d\d\d|(?:-?\d+(?:\.\d+)?|nan|inf)(?:\s|$))"


_LOSSES = {
    "slash_loss": _field("train/loss(?:_step)?"),
    "train_loss": _field("train_loss(?:_step)?"),
    "plain_loss": r"it/s (?:.*\s)?loss(?:_step)?: +(-?\d+\.\d\d\d|(?:-?\d+(?:\.\d+)?|nan|inf)(?:\s|$))",
}


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of bars with a loss, and, without a step, of those that may have it below, and of what is below."""
    text = pl.col("text")
    heads = lines.filter(text.str.contains(_HEAD))
    read = _read(heads)
    broken = heads.join(read.drop_nulls("loss"), on=["source", "line_no"], how="anti", maintain_order="left")
    below = lines.filter(text.str.contains(_BELOW))
    parts = pl.concat([broken, below]).with_columns(ts=timestamp(pl.concat_str("prefix", "text", ignore_nulls=True)))
    return pl.concat([conform(read.drop_nulls(["step", "loss"]), STEP_FACTS), conform(parts, STEP_FACTS)])


def _read(heads: pl.DataFrame) -> pl.DataFrame:
    """Bars with their step as EPOCH says (NULL where it is not known), total and loss."""
    text = heads["text"]
    epoch, done, total = (text.str.extract(_HEAD, group).cast(pl.Int64, strict=False) for group in (1, 3, 4))
    rate = text.str.extract(_HEAD, 5).cast(pl.Float64, strict=False)
    is_known = (done > 0) & (total.is_not_null() | (epoch == 0))
    return extract_each(heads, _LOSSES).with_columns(
        loss=pl.coalesce(number(pl.col(name).str.strip_chars()) for name in _LOSSES),
        step=pl.when(is_known).then(epoch * EPOCH + done),
        steps_planned=total,
        # Negative: the mean of the last seconds, not the seconds so far.
        step_time_s=pl.when(rate > 0).then(-1 / rate),
        ts=timestamp(pl.concat_str("prefix", "text", ignore_nulls=True)),
    )


def rejoined(facts: Facts) -> Facts:
    """`facts` with one row per bar that goes on below its line, and without the lines below."""
    text = pl.col("text")
    is_part = pl.col("step").is_null() & text.str.contains(rf"{_HEAD}|{_BELOW}").fill_null(value=False)
    parts = facts.steps.filter(is_part).sort("source", "line_no", maintain_order=True)
    if parts.is_empty():
        return facts
    is_head = text.str.contains(_HEAD)
    is_behind = (pl.col("line_no").diff() == 1) & (pl.col("source").diff() == 0)
    groups = parts.with_columns(group=(is_head | ~is_behind.fill_null(value=False)).cum_sum(), is_head=is_head)
    groups = groups.with_columns(at=pl.int_range(pl.len()).over("group"), begun=pl.col("is_head").first().over("group"))
    whole = (
        groups.filter(pl.col("begun") & (pl.col("at") < _MOST_LINES))
        .group_by("group", maintain_order=True)
        .agg(pl.col("source", "line_no", "rank", "ts").first(), text.str.strip_chars().str.join(" "))
        .with_columns(prefix=pl.lit(None, pl.String))
    )
    read = conform(_read(whole).drop_nulls(["step", "loss"]), STEP_FACTS)
    steps = pl.concat([facts.steps.filter(~is_part), read]).sort("source", "line_no", maintain_order=True)
    return Facts(steps, facts.settings, facts.peaks, facts.events)


def planned(lines: pl.DataFrame) -> pl.DataFrame:
    """`source`, `line_no` and `total` of bars of the first epoch where there is no last: their total is `max_steps`.

    Or that of an epoch, if a training of so many steps takes more than one (progress_bar.py total_train_batches).
    """
    epoch, last, done, total = (pl.col("text").str.extract(_HEAD, group) for group in (1, 2, 3, 4))
    found = lines.filter(((epoch == "0") & (last == "-2")).fill_null(value=False))
    return found.select("source", "line_no", total=total, done=done).filter(pl.col("total") != "--")
