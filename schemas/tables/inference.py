"""What was inferred from logs that no dialect knows."""

from __future__ import annotations

from sweepscope.schemas import vocab
from sweepscope.schemas.columns.shared import columns
from sweepscope.schemas.core.column import flag, text
from sweepscope.schemas.core.table import Table

DOUBTFUL_SPEED = "throughput read by inference, low confidence: confirm it on Data health"
"""`runs.quarantine_reason` of runs whose speed rests on a column of the least confidence."""

INFERRED_COLUMNS = Table(
    name="inferred_columns",
    description="What logs that no dialect knows were taken for: which printed value is which column, and how sure.",
    grain="one row per log, column and printed value taken for it",
    primary_key=("source_path", "column_name", "field"),
    nullable_key=("line_no",),
    columns=columns(
        "source_path",
        text("column_name", "column of `steps` or `runs` that the value fills, or would fill"),
        text("field", "the printed value: text of the line with the column's name in its place"),
        text("printed_unit", "how the value is printed, as a dialect file spells it; NULL for the column's usual way"),
        text("confidence", "how sure it is that the value is this column", vocab.CONFIDENCE),
        flag("is_read", "the column has these values; otherwise they are not sure enough and stay out of it"),
        text("grounds", "what speaks for it, and what against"),
        "line_no",
        text("example", "a line that prints the value"),
    ),
)

INFERRED_DIALECTS = Table(
    name="inferred_dialects",
    description="The dialect file by which each log that no dialect knows was read.",
    grain="one row per log in which steps were inferred",
    primary_key=("source_path",),
    columns=columns(
        "source_path",
        text(
            "dialect_text", "rules of the dialect file, as TOML without comments; logs of one form have the same steps"
        ),
    ),
)
