"""What people write down about runs, cells and days, and the views of pages that they name."""

from __future__ import annotations

from sweepscope.schemas.columns.shared import columns
from sweepscope.schemas.core.column import text, time
from sweepscope.schemas.core.table import Table
from sweepscope.schemas.vocab.notes import NOTE_ABOUT, NOTE_KIND

CELL = ("origin", "model", "num_nodes", "num_gpus", "accelerator", "seq_len", "gbs_tokens")
"""Columns that a note on a cell may name; one that it leaves out is NULL, and any value then is meant."""

NOTES = Table(
    name="notes",
    description="Notes and tags on runs, cells and days, and named views. They stay when files are read again; "
    "those on a run go when its files are forgotten.",
    grain="one row per text and what it is about",
    primary_key=("note_id",),
    replaced_by="note_id",
    redefines=("run_id", "text", "day"),
    columns=columns(
        text("note_id", "hash of kind, text and what it is about: writing it again changes nothing"),
        text("note_kind", "what it is", NOTE_KIND),
        text("run_id", "the run that it is about; NULL for one on a cell, a day or a view"),
        " ".join(CELL),
        text("day", "the day that it is about, YYYY-MM-DD"),
        text("text", "the remark, the tag, or the name of the view"),
        text("address", "page and query of a named view, as after the slash of its address"),
        "author",
        time("written_at", "when it was written (UTC)"),
    ),
)

RUN_NOTES = Table(
    name="run_notes",
    description="The notes and tags that are about a run: its own, and those on its cell and its day.",
    grain="one row per run attempt and note or tag",
    primary_key=("run_id", "note_id"),
    layer="view",
    redefines=("text",),
    columns=columns(
        "run_id",
        NOTES.columns[0],
        NOTES.columns[1],
        text("note_about", "what it was written about", NOTE_ABOUT),
        text("text", "the remark or the tag"),
        NOTES.columns[-2],
        NOTES.columns[-1],
    ),
)
