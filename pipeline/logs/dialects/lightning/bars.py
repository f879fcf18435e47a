"""Bars of Lightning as tqdm draws them, and the names under which scripts show their loss.

Format: lightning/pytorch/callbacks/progress/tqdm_progress.py (`Epoch 1:  50%|##| 5/10 [00:05<00:05,  1.00it/s,
v_num=0, train/loss=2.5]`). A bar counts the batches of its epoch, epochs count from 0. Its rate is the mean of the
epoch so far (`smoothing=0`).
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.extractors import extract_numbers
from sweepscope.pipeline.logs.facts import STEP_FACTS, conform
from sweepscope.pipeline.text.quantities import NUMBER
from sweepscope.pipeline.text.timestamps import timestamp

EPOCH = 1 << 40
"""In the step of a bar until `batches.steps_of`: epochs times this, and the batches done within the epoch."""

_LOSS = r"(?:reduced_)?(?:train[_/])?loss(?:_step)?"
_METRIC = rf"\[[^\]]*[ ,](?:{_LOSS}|train_step_timing in s)="
_BAR = rf"(?:^|\s)Epoch (\d+):+ *:? *(?:\d{{1,3}}%)?\|[^|]*\| *(\d+)/(\d+|\?) {_METRIC}"
"""Beyond its total, a bar shows `15/?`."""
_ENDLESS = rf"(?:^|\s)Epoch (\d+):+ *:? *(\d+)it {_METRIC}"
"""tqdm's bar of a dataset that does not know its length: only in the first epoch does its count say the step."""
_BAR_CLOSED = r"(?:\d+/(?:\d+|\?)|\d+it) \[[^\]]*\]"
_RATE, _PACE = r"(\d[\d.]*)it/s, ", r"(\d[\d.]*)s/it, "
_HALF_A_DIGIT = 0.005
"""By how much a printed rate may be off."""


def field(label: str) -> str:
    """Pattern of a number behind its name. It counts with what ends it: a separator, the bracket or the line's end."""
    return rf"(?:[|,] *)(?:{label})(?:: |=)({NUMBER})(?:\s*[|,\]]|\s*$)"


LOSSES = {
    name: field(label)
    for name, label in (
        ("reduced_loss", "reduced_train_loss"),
        ("slash_loss", "train/loss(?:_step)?"),
        ("train_loss", "train_loss(?:_step)?"),
        ("plain_loss", "loss(?:_step)?"),
    )
}
"""Names under which scripts log the loss, the most specific first."""

_NUMBERS = {**LOSSES, "learning_rate": field("lr"), "grad_norm": field("grad_norm")}


def bars(lines: pl.DataFrame) -> pl.DataFrame:
    """Lines with a bar that carries a metric: its `epoch`, `done` and `total` batches, and whether it `is_whole`.

    And `counted`, the number of its batch over epochs that are all as long as this one, from 0.
    """
    text = pl.col("text")
    epoch, done, total = (text.str.extract(_BAR, group).cast(pl.Int64, strict=False) for group in (1, 2, 3))
    endless, batches = (text.str.extract(_ENDLESS, group).cast(pl.Int64, strict=False) for group in (1, 2))
    found = lines.filter(text.str.contains(f"{_BAR}|{_ENDLESS}")).with_columns(
        epoch=pl.coalesce(epoch, endless),
        done=pl.coalesce(done, batches),
        total=total,
        counted=pl.coalesce(epoch * total + done - 1, pl.when(endless == 0).then(batches - 1)),
        is_whole=text.str.contains(_BAR_CLOSED),
    )
    return found.filter(pl.col("counted").fill_null(0) >= 0)


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of bars with a loss, an open one unparsed: steps as EPOCH says, times as seconds of the epoch."""
    rows = extract_numbers(bars(lines), _NUMBERS | {"rate": _RATE, "pace": _PACE})
    rows = rows.filter(pl.col("done") > 0)  # with the loss of the epoch before
    is_read = pl.col("is_whole") & pl.col("done").is_not_null() & pl.coalesce(*LOSSES).is_not_null()
    seconds = pl.coalesce(pl.col("done") / pl.col("rate"), pl.col("done") * pl.col("pace"))
    found = rows.with_columns(
        step=pl.when(is_read).then(pl.col("epoch") * EPOCH + pl.col("done")),
        steps_planned="total",
        loss=pl.coalesce(*LOSSES),
        step_time_s=pl.when(seconds.is_finite()).then(seconds),
        ts=timestamp(pl.concat_str("prefix", "text", ignore_nulls=True)),
    )
    return conform(found, STEP_FACTS)


def seconds_off(seconds: pl.Expr, done: pl.Expr) -> pl.Expr:
    """By how much seconds that follow from a bar's rate may be off, rounded as it is to hundredths."""
    pace = seconds / done
    of_rate = done * _HALF_A_DIGIT * pace**2  # printed as it/s: 1 / (rate - off) - 1 / rate
    return pl.when(pace < 1).then(of_rate).otherwise(done * _HALF_A_DIGIT)
