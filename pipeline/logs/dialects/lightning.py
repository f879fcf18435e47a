"""Lightning's Trainer under a custom script, and what NeMo inherits of it.

Formats: lightning/pytorch/callbacks/progress/tqdm_progress.py (`Epoch 1:  50%|##| 5/10 [00:05<00:05,  1.00it/s,
v_num=0, train/loss=2.5]`), loggers/csv_logs.py (`metrics.csv`: a row a call of log(), empty where that call had no such
name), trainer/setup.py (`GPU available: True (cuda), used: True`), utilities/rank_zero (`Trainer.fit` stopped).

A bar counts the batches of its epoch, steps count from 0 over all epochs. What is called the loss is up to the script.

callbacks/progress/rich_progress.py draws bars with rich (`Epoch 0/9  ━━━━━━━━ 98/98 0:00:22 • 0:00:00 4.44it/s v_num: 0
train/loss: 1.559`): the last epoch from 0 (-2 where there is no last; left out in 2022), the batches of this epoch
(`--` where their number is unknown), values of three decimals at most. Without a terminal, a bar is printed once per
refresh or once per epoch. Values that did not fit go on in the lines below and are not read.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

import polars as pl

from sweepscope.pipeline.logs.dialect import Dialect, History
from sweepscope.pipeline.logs.dialects import environment
from sweepscope.pipeline.logs.extractors import extract_numbers, last_of_each_step, matched_settings, milestones
from sweepscope.pipeline.logs.facts import STEP_FACTS, conform
from sweepscope.pipeline.logs.sidecars import hparams
from sweepscope.pipeline.text.field_extraction import extract_each
from sweepscope.pipeline.text.quantities import NUMBER, number
from sweepscope.pipeline.text.timestamps import timestamp

SIGNATURES = (
    ", v_num=",
    "it/s v_num: ",
    "GPU available: ",
    "LOCAL_RANK: 0 - CUDA_VISIBLE_DEVICES: ",
    "`Trainer.fit` stopped: ",
    "Total estimated model params size (MB)",
)
"""Printed under any script: dialects on top of Lightning count them too, so that their own literals decide."""

_LOSS = r"(?:reduced_)?(?:train[_/])?loss(?:_step)?"
_METRIC = rf"\[[^\]]*[ ,](?:{_LOSS}|train_step_timing in s)="
_BAR = rf"(?:^|\s)Epoch (\d+):+ *:? *\d{{1,3}}%\|[^|]*\| *(\d+)/(\d+) {_METRIC}"
_ENDLESS = rf"(?:^|\s)Epoch (\d+):+ *:? *(\d+)it {_METRIC}"
"""tqdm's bar of a dataset that does not know its length: only in the first epoch does its count say the step."""
_BAR_CLOSED = r"(?:\d+/\d+|\d+it) \[[^\]]*\]"


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
    """Lines with a bar that carries a metric, with its step `counted` and whether the bar `is_whole`."""
    text = pl.col("text")
    epoch, done, total = (text.str.extract(_BAR, group).cast(pl.Int64, strict=False) for group in (1, 2, 3))
    part, batches = (text.str.extract(_ENDLESS, group).cast(pl.Int64, strict=False) for group in (1, 2))
    found = lines.filter(text.str.contains(f"{_BAR}|{_ENDLESS}")).with_columns(
        counted=pl.coalesce(epoch * total + done - 1, pl.when(part == 0).then(batches - 1)),
        is_whole=text.str.contains(_BAR_CLOSED),
    )
    return found.filter(pl.col("counted").fill_null(0) >= 0)


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of bars with a loss; an open one stays unparsed."""
    rows = extract_numbers(bars(lines), _NUMBERS)
    rows = rows.with_columns(loss=pl.coalesce(*LOSSES))
    step = pl.when(pl.col("is_whole") & pl.col("loss").is_not_null()).then("counted")
    ts = timestamp(pl.concat_str("prefix", "text", ignore_nulls=True))
    return pl.concat([conform(rows.with_columns(step=step, ts=ts), STEP_FACTS), _rich_steps(lines)])


_RICH_BAR = r"(?:^|\s)Epoch (\d+)(?:/-?\d+)?\s+[━╸╺\- ]* (\d+)/(\d+|--) [\d:]+ • [\d:-]+ +[\d.]+it/s "


def _rich_field(label: str) -> str:
    """A value with what ends it: a blank or the line's end. Behind three decimals another text may follow at once."""
    return rf"it/s .*?\b{label}: (-?\d+\.\d\d\d|(?:-?\d+(?:\.\d+)?|nan|inf)(?:\s|$))"


_RICH_LOSSES = {
    "slash_loss": _rich_field("train/loss(?:_step)?"),
    "train_loss": _rich_field("train_loss(?:_step)?"),
    "plain_loss": r"it/s (?:.*\s)?loss(?:_step)?: (-?\d+\.\d\d\d|(?:-?\d+(?:\.\d+)?|nan|inf)(?:\s|$))",
}


def _rich_steps(lines: pl.DataFrame) -> pl.DataFrame:
    """Bars of rich with a loss; a bar cut before its loss is left out."""
    text = pl.col("text")
    mine = lines.filter(text.str.contains(_RICH_BAR))
    epoch, done, total = (
        mine["text"].str.extract(_RICH_BAR, group).cast(pl.Int64, strict=False) for group in (1, 2, 3)
    )
    rows = extract_each(mine, _RICH_LOSSES).with_columns(
        loss=pl.coalesce(number(pl.col(name).str.strip_chars()) for name in _RICH_LOSSES),
        # Without a total, batches are steps in the first epoch only.
        step=pl.coalesce(epoch * total + done - 1, pl.when(epoch == 0).then(done - 1)),
        ts=timestamp(pl.concat_str("prefix", "text", ignore_nulls=True)),
    )
    return conform(rows.filter((pl.col("step") >= 0) & pl.col("loss").is_not_null()), STEP_FACTS)


_LINE = {"num_gpus": r"All distributed processes registered\. Starting with (\d+) processes"}
END = r"`Trainer\.fit` stopped: `max_(?:steps|epochs)=\d+` reached"


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS of the number of processes, and the machine."""
    return pl.concat([matched_settings(lines, _LINE.items()), environment.settings(lines)])


_NEMO = ("reduced_train_loss", "train_step_timing in s")
_CSV_LOSSES = (
    *("reduced_train_loss", "train/loss_step", "train_loss_step", "train/loss", "train_loss", "loss_step", "loss"),
)
_CSV_COLUMNS = {
    "train_step_timing in s": "step_time_s",
    "tokens_per_sec_per_gpu": "tokens_per_s_per_gpu",
    "TFLOPS_per_GPU": "tflops_per_gpu_logged",
    "max_memory_reserved": "mem_reserved_bytes",
    "max_memory_allocated": "mem_allocated_bytes",
    "grad_norm": "grad_norm",
    "lr": "learning_rate",
}


def read_metrics(text: str) -> pl.DataFrame:
    """Steps of `metrics.csv` of a custom script. Raises ValueError for other tables, NeMo's among them."""
    table = _table(text)
    if set(_NEMO) & set(table.columns):
        raise ValueError("the table is NeMo's")
    return _steps_of(table)


def read_nemo_metrics(text: str) -> pl.DataFrame:
    """`metrics.csv` as NeMo leaves it. Raises ValueError for other tables."""
    table = _table(text)
    if not set(_NEMO) & set(table.columns):
        raise ValueError("no name of NeMo's in its header")
    return _steps_of(table)


def _table(text: str) -> pl.DataFrame:
    header = text.split("\n", 1)[0].strip().split(",")
    if "step" not in header or not set(header) & {*_CSV_LOSSES, *_NEMO}:
        raise ValueError("no table of steps with their loss")
    return pl.read_csv(io.StringIO(text), infer_schema=False, truncate_ragged_lines=True)


def _steps_of(table: pl.DataFrame) -> pl.DataFrame:
    """A step may stand in several rows: one per call of log()."""

    def first_known(names: Sequence[str]) -> pl.Expr:
        return pl.coalesce(*(number(pl.col(name)) for name in names if name in table.columns), pl.lit(None, pl.Float64))

    rows = table.select(
        line_no=pl.int_range(pl.len(), dtype=pl.Int64) + 2,
        step=number(pl.col("step")).cast(pl.Int64, strict=False),
        loss=first_known(_CSV_LOSSES),
        **{column: first_known([name]) for name, column in _CSV_COLUMNS.items()},
    )
    values = ["loss", *_CSV_COLUMNS.values()]
    merged = (
        rows.drop_nulls("step")
        .group_by("step", maintain_order=True)
        .agg(pl.col("line_no").min(), *(pl.col(name).drop_nulls().first() for name in values))
    )
    measured = merged.filter(pl.any_horizontal(pl.col(name).is_not_null() for name in ("loss", "step_time_s")))
    return conform(measured.sort("line_no"), STEP_FACTS)


_STEP_LITERALS = ("loss=", "loss_step=", "it/s v_num: ", "it/s loss: ", "it/s train")
_SETTING_LITERALS = ("All distributed processes registered", *environment.LITERALS)

DIALECT = Dialect(
    name="lightning",
    module=__name__,
    signature_literals=SIGNATURES,
    steps=steps,
    settings=settings,
    events=milestones(launch=_LINE["num_gpus"], training_end=END),
    finalize=last_of_each_step,
    sidecars=hparams.LIGHTNING,
    histories=(History("metrics.csv", read_metrics),),
    literals_by_function={
        "steps": _STEP_LITERALS,
        "settings": _SETTING_LITERALS,
        "events": ("All distributed processes registered", "`Trainer.fit` stopped"),
    },
)
