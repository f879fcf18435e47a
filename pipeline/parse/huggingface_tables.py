"""The table in which a notebook shows the losses of transformers' Trainer, instead of dicts.

Formats: transformers/utils/notebook.py NotebookTrainingTracker: a bar `[60/60 03:42, Epoch 0/1]` above a table of HTML,
whose first columns are `Step` and `Training Loss`. Copied as text its cells stand between tabs; saved, each cell has
a line. Where the evaluation follows the epochs, the table counts epochs and tells no step: it is left alone.

A row says nothing without its header, so all of them are facts with neither step nor loss until `resolved`.
"""

from __future__ import annotations

import polars as pl

from pipeline.parse.protocol import EVENT_FACTS, STEP_FACTS, Facts, conform
from pipeline.parse.quantities import number
from pipeline.parse.timestamps import timestamp

SIGNS = ("Step\tTraining Loss", "Epoch\tTraining Loss", "<th>Training Loss</th>", "TrainOutput(global_step=")
ANCHORS = ("\t", "<td>", "<th>")
BAR_ANCHORS = (", Epoch ",)

_BAR = r"^\s*\[ *(\d+)/(\d+) (?:\d+:)?\d+:\d+(?:, Epoch [\d.]+/\d+\]| <)"
_HEADER = "^\\s*Step\tTraining Loss"
_ROW = "^\\s*(\\d+)\t([\\d.]+|No log)(?:\t[^\t]*)*$"
_CELL = r"^[\s\"]*<t[dh]>([^<>]*)</t[dh]>(?:\\n)?[\",]*\s*$"


def rows(lines: pl.DataFrame) -> pl.DataFrame:
    """Headers, rows and cells, as lines that `resolved` reads."""
    text = pl.col("text")
    return lines.filter(text.str.contains(f"{_HEADER}|{_ROW}") | text.str.contains(_CELL))


def steps_planned(lines: pl.DataFrame) -> pl.DataFrame:
    """The number of steps that a notebook's bar shows: `source`, `line_no`, `value`."""
    said = lines.select("source", "line_no", value=pl.col("text").str.extract(_BAR, 2))
    return said.drop_nulls("value")


def events(lines: pl.DataFrame) -> pl.DataFrame:
    """A bar that is full."""
    text = pl.col("text")
    full = lines.filter((text.str.extract(_BAR, 1) == text.str.extract(_BAR, 2)).fill_null(value=False))
    ended = full.with_columns(kind=pl.lit("training_end"), ts=timestamp(text), text=text.str.strip_chars())
    return conform(ended, EVENT_FACTS)


def resolved(facts: Facts) -> Facts:
    """`facts` with a step per row of a table of steps, and without what else looked like a row or a cell."""
    order = ["source", "line_no"]
    is_mine = pl.col("step").is_null() & pl.col("loss").is_null() & pl.col("text").is_not_null()
    is_mine = is_mine & (pl.col("text").str.contains(f"{_HEADER}|{_ROW}") | pl.col("text").str.contains(_CELL))
    mine = facts.steps.filter(is_mine.fill_null(value=False)).sort(order, maintain_order=True)
    if mine.is_empty():
        return facts
    told = pl.concat([_of_lines(mine), _of_cells(mine)])
    others = facts.steps.filter(~is_mine.fill_null(value=False))
    steps = pl.concat([others, conform(told, STEP_FACTS)]).sort(order, maintain_order=True)
    return Facts(steps, facts.settings, facts.gauges, facts.events)


def _of_lines(mine: pl.DataFrame) -> pl.DataFrame:
    """Rows right behind a header, cells between tabs."""
    text = pl.col("text")
    table = mine.filter(text.str.contains(f"{_HEADER}|{_ROW}")).with_columns(is_header=text.str.contains(_HEADER))
    is_new = pl.col("is_header") | (pl.col("line_no").diff() != 1) | (pl.col("source").diff() != 0)
    parts = table.with_columns(part=is_new.fill_null(value=True).cum_sum())
    headed = parts.filter(pl.col("is_header").any().over("part") & ~pl.col("is_header"))
    return (
        headed.with_columns(
            step=text.str.extract(_ROW, 1).cast(pl.Int64, strict=False), loss=number(text.str.extract(_ROW, 2))
        )
        .select(STEP_FACTS.names())
        .drop_nulls("loss")
    )


def _of_cells(mine: pl.DataFrame) -> pl.DataFrame:
    """Rows of cells a line each, of the table whose header's cells came last."""
    text = pl.col("text")
    cells = mine.filter(text.str.contains(_CELL)).with_columns(
        cell=text.str.extract(_CELL).str.strip_chars(), is_head=text.str.contains("<th>", literal=True)
    )
    is_new = (pl.col("line_no").diff() != 1) | (pl.col("source").diff() != 0)
    numbered = cells.with_columns(row=is_new.fill_null(value=True).cum_sum())
    table = numbered.group_by("row", maintain_order=True).agg(
        pl.col("source", "line_no", "rank", "ts", "is_head").first(), first=pl.col("cell").first(),
        second=pl.col("cell").get(1, null_on_oob=True),
    )  # fmt: skip
    is_ours = (pl.col("first") == "Step") & (pl.col("second") == "Training Loss")
    counted = table.with_columns(is_ours=pl.when("is_head").then(is_ours).forward_fill().over("source"))
    told = counted.filter(pl.col("is_ours").fill_null(value=False) & ~pl.col("is_head"))
    found = told.with_columns(step=pl.col("first").cast(pl.Int64, strict=False), loss=number(pl.col("second")))
    return conform(found.drop_nulls(["step", "loss"]), STEP_FACTS)
