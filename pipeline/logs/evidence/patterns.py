"""Events from lines that show how a run failed or ended, in the log of any framework.

Each `Pattern` is a literal pre-filter and an anchored expression: words such as "error", "timeout" and "OOM" occur in
harmless argument dumps, so a bare word is never evidence. `pipeline.logs.runs.outcome` derives the status.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from sweepscope.pipeline.logs.evidence import (
    batch_systems,
    endings,
    faults,
    ignored_exceptions,
    jobs,
    launchers,
    symptoms,
    torch_and_slurm,
)
from sweepscope.pipeline.logs.facts import EVENT_FACTS, conform
from sweepscope.pipeline.text.secret_columns import shortened
from sweepscope.pipeline.text.timestamps import timestamp
from sweepscope.pipeline.text.word_boundaries import ascii_bounded

MAX_TEXT_CHARS = 2_000


@dataclass(frozen=True)
class Pattern:
    """A line that holds one of `literals` and matches `regex` is an event of `kind` (vocab.EVENT_KIND)."""

    kind: str
    literals: tuple[str, ...]
    regex: str


_TABLES = (
    torch_and_slurm.PATTERNS,
    launchers.PATTERNS,
    batch_systems.PATTERNS,
    jobs.PATTERNS,
    faults.PATTERNS,
    ignored_exceptions.PATTERNS,
    symptoms.PATTERNS,
    endings.PATTERNS,
)
PATTERNS: tuple[Pattern, ...] = tuple(Pattern(*pattern) for table in _TABLES for pattern in table)

LITERALS: tuple[str, ...] = tuple(sorted({literal for pattern in PATTERNS for literal in pattern.literals}))

_PATTERNS_BY_LITERAL = pl.DataFrame(
    [(literal, number) for number, pattern in enumerate(PATTERNS) for literal in pattern.literals],
    schema={"literal": pl.String, "pattern": pl.Int64},
    orient="row",
)

# Echoes of a worker's failure: torchrun's agent and its failure table raise these themselves, and so does a rank that
# has lost another one (launchers.LOST_PEER). Python's subprocess reports a signal.
_ECHO = (
    r"ChildFailedError|SignalException|torch\.distributed\.elastic|died with <Signals\.SIG(?:TERM|KILL|INT)|"
    rf"{launchers.LOST_PEER}"
)


def events(lines: pl.DataFrame) -> pl.DataFrame:
    """Evidence lines as EVENT_FACTS, one row per line and kind, in file order."""
    text = pl.col("text")
    # One search for all literals shows which patterns a line may match; each is then tried on those few lines only.
    literals = lines.select(row=pl.int_range(pl.len()), literal=text.str.extract_many(list(LITERALS), overlapping=True))
    possible = literals.explode("literal").join(_PATTERNS_BY_LITERAL, on="literal").select("row", "pattern").unique()
    tried = possible.with_columns(lines["text"].gather(possible["row"])).partition_by("pattern", as_dict=True)
    found = [
        part.filter(text.str.contains(ascii_bounded(PATTERNS[number].regex))).select(
            "row", kind=pl.lit(PATTERNS[number].kind)
        )
        for (number,), part in tried.items()
    ]
    if not found:
        return pl.DataFrame(schema=EVENT_FACTS)
    matches = pl.concat(found, rechunk=True)
    rows = lines[matches["row"]].with_columns(matches["kind"])
    rows = rows.filter(~((pl.col("kind") == "exception") & text.str.contains(_ECHO)))
    rows = rows.with_columns(
        ts=timestamp(pl.concat_str("prefix", "text", ignore_nulls=True)),
        rank=launchers.rank_named(),
        host=launchers.host_named(),
        text=shortened(text.str.strip_chars(), MAX_TEXT_CHARS),
    )
    once = rows.unique(["source", "line_no", "kind", "text"], keep="first", maintain_order=True)
    return conform(once, EVENT_FACTS).sort("source", "line_no", "kind", maintain_order=True)
