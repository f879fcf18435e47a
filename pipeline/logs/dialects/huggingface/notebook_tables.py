"""The table in which a notebook shows the losses of transformers' Trainer, instead of dicts.

Formats: transformers/utils/notebook.py NotebookTrainingTracker: a bar `[60/60 03:42, Epoch 0/1]` above a table of HTML,
whose first columns are `Step` and `Training Loss`. Copied as text its cells stand between tabs; saved, each cell has
a line. Where the evaluation follows the epochs, the table counts epochs, and the bar has the steps of one:
`[564/564 10:10, Epoch 3/3]`. Before an epoch's first loss it shows `No log`.

A row means nothing without its header, so rows are facts with neither step nor loss until `resolved`.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from sweepscope.pipeline.logs.facts import EVENT_FACTS, STEP_FACTS, Facts, conform
from sweepscope.pipeline.text.quantities import number
from sweepscope.pipeline.text.timestamps import timestamp

SIGNATURES = ("Step\tTraining Loss", "Epoch\tTraining Loss", "<th>Training Loss</th>", "TrainOutput(global_step=")
BAR_LITERALS = (", Epoch ",)
LITERALS = ("\t", "<td>", "<th>", *BAR_LITERALS)

_BAR = r"^[\s\"]*\[ *(\d+)/(\d+) (?:\d+:)?\d+:\d+(?:, Epoch [\d.]+/(\d+)\]| <.*, Epoch [\d.]+/(\d+)\])"
_HEADER = "^\\s*(Step|Epoch)\tTraining Loss"
_ROW = "^\\s*(\\d+)\t([\\d.]+|No log)(?:\t[^\t]*)*$"
_CELL = r"^[\s\"]*<t[dh]>([^<>]*)</t[dh]>(?:\\n)?[\",]*\s*$"
_MINE = f"{_HEADER}|{_ROW}|{_CELL}|{_BAR}"


def rows(lines: pl.DataFrame) -> pl.DataFrame:
    """Bars, headers, rows and cells, as lines that `resolved` reads."""
    return lines.filter(pl.col("text").str.contains(_MINE))


def steps_planned(lines: pl.DataFrame) -> pl.DataFrame:
    """The number of steps that a notebook's bar shows: `source`, `line_no`, `value`."""
    totals = lines.select("source", "line_no", value=pl.col("text").str.extract(_BAR, 2))
    return totals.drop_nulls("value")


def events(lines: pl.DataFrame) -> pl.DataFrame:
    """EVENT_FACTS of a bar that is full."""
    text = pl.col("text")
    full = lines.filter((text.str.extract(_BAR, 1) == text.str.extract(_BAR, 2)).fill_null(value=False))
    ended = full.with_columns(kind=pl.lit("training_end"), ts=timestamp(text), text=text.str.strip_chars())
    return conform(ended, EVENT_FACTS)


def resolved(facts: Facts) -> Facts:
    """`facts` with a step per row of a table, and without what else looked like a part of one."""
    order = ["source", "line_no"]
    is_mine = pl.col("step").is_null() & pl.col("loss").is_null() & pl.col("text").str.contains(_MINE)
    is_mine = is_mine.fill_null(value=False)
    mine = facts.steps.filter(is_mine).sort(order, maintain_order=True)
    if mine.is_empty():
        return facts
    text = pl.col("text")
    epochs = pl.coalesce(text.str.extract(_BAR, group) for group in (3, 4)).cast(pl.Int64, strict=False)
    bars = mine.select(*order, an_epoch=text.str.extract(_BAR, 2).cast(pl.Int64, strict=False) // epochs)
    rows = pl.concat([_of_lines(mine), _of_cells(mine)]).sort(order, maintain_order=True)
    rows = rows.join_asof(
        bars.drop_nulls("an_epoch"), on="line_no", by="source", strategy="backward", check_sortedness=False
    )
    counted = rows.with_columns(
        step=pl.col("count").cast(pl.Int64, strict=False)
        * pl.when(pl.col("unit") == "Epoch").then("an_epoch").otherwise(1),
        loss=number(pl.col("value")),
    )
    steps = pl.concat([facts.steps.filter(~is_mine), conform(counted.drop_nulls(["step", "loss"]), STEP_FACTS)])
    return replace(facts, steps=steps.sort(order, maintain_order=True))


_FOUND = ("source", "line_no", "rank", "ts", "unit", "count", "value")


def _of_lines(mine: pl.DataFrame) -> pl.DataFrame:
    """Rows right behind a header, cells between tabs."""
    text = pl.col("text")
    table = mine.filter(text.str.contains(f"{_HEADER}|{_ROW}")).with_columns(unit=text.str.extract(_HEADER))
    is_new = pl.col("unit").is_not_null() | (pl.col("line_no").diff() != 1) | (pl.col("source").diff() != 0)
    parts = table.with_columns(part=is_new.fill_null(value=True).cum_sum())
    rows = parts.with_columns(
        unit=pl.col("unit").first().over("part"), count=text.str.extract(_ROW, 1), value=text.str.extract(_ROW, 2)
    )
    return rows.drop_nulls(["unit", "count"]).select(_FOUND)


def _of_cells(mine: pl.DataFrame) -> pl.DataFrame:
    """Rows of cells a line each, of the table whose header's cells came last."""
    text = pl.col("text")
    cells = mine.filter(text.str.contains(_CELL)).with_columns(
        cell=text.str.extract(_CELL).str.strip_chars(), is_head=text.str.contains("<th>", literal=True)
    )
    is_new = (pl.col("line_no").diff() != 1) | (pl.col("source").diff() != 0)
    numbered = cells.with_columns(row=is_new.fill_null(value=True).cum_sum())
    table = numbered.group_by("row", maintain_order=True).agg(
        pl.col("source", "line_no", "rank", "ts", "is_head").first(),
        count=pl.col("cell").first(),
        value=pl.col("cell").get(1, null_on_oob=True),
    )
    is_ours = pl.col("count").is_in(["Step", "Epoch"]) & (pl.col("value") == "Training Loss")
    head = pl.when("is_head").then(pl.when(is_ours).then("count").otherwise(pl.lit("")))
    units = table.with_columns(unit=head.forward_fill().over("source"))
    return units.filter(~pl.col("is_head") & (pl.col("unit") != "")).select(_FOUND)
