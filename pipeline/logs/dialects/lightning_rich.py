"""Lightning's bars where the package rich draws them.

Format: lightning/pytorch/callbacks/progress/rich_progress.py (`Epoch 0/9  ━━━━━━━━ 98/98 0:00:22 • 0:00:00 4.44it/s
v_num: 0 train/loss: 1.559`): the last epoch from 0 (-2 where there is no last; left out in 2022), the batches of this
epoch (`--` where nobody knows them), values of three decimals at most. Where the output is no terminal, a bar stands
there once per refresh, or once per epoch. Values that did not fit go on in the lines below and are not read.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialect import STEP_FACTS, conform
from sweepscope.pipeline.text.field_extraction import extract_each
from sweepscope.pipeline.text.quantities import number
from sweepscope.pipeline.text.timestamps import timestamp

SIGN = "it/s v_num: "
ANCHORS = (SIGN, "it/s loss: ", "it/s train")

_BAR = r"(?:^|\s)Epoch (\d+)(?:/-?\d+)?\s+[━╸╺\- ]* (\d+)/(\d+|--) [\d:]+ • [\d:-]+ +[\d.]+it/s "


def _field(label: str) -> str:
    """A value with what ends it: a blank or the line's end. Behind three decimals another text may follow at once."""
    return rf"it/s .*?\b{label}: (-?\d+\.\d\d\d|(?:-?\d+(?:\.\d+)?|nan|inf)(?:\s|$))"


_LOSSES = {
    "slash_loss": _field("train/loss(?:_step)?"),
    "train_loss": _field("train_loss(?:_step)?"),
    "plain_loss": r"it/s (?:.*\s)?loss(?:_step)?: (-?\d+\.\d\d\d|(?:-?\d+(?:\.\d+)?|nan|inf)(?:\s|$))",
}


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """Bars with a loss, as STEP_FACTS; one that does not reach its loss says nothing."""
    text = pl.col("text")
    mine = lines.filter(text.str.contains(_BAR))
    epoch, done, total = (mine["text"].str.extract(_BAR, group).cast(pl.Int64, strict=False) for group in (1, 2, 3))
    rows = extract_each(mine, _LOSSES).with_columns(
        loss=pl.coalesce(number(pl.col(name).str.strip_chars()) for name in _LOSSES),
        # Without a total only the first epoch's count says the step.
        step=pl.coalesce(epoch * total + done - 1, pl.when(epoch == 0).then(done - 1)),
        ts=timestamp(pl.concat_str("prefix", "text", ignore_nulls=True)),
    )
    return conform(rows.filter((pl.col("step") >= 0) & pl.col("loss").is_not_null()), STEP_FACTS)
