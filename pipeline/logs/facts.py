"""Facts: the frames that a dialect extracts from lines, before anything is decided about runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cache

import polars as pl

from sweepscope.schemas import vocab

STEP_BASIS = pl.Enum(list(vocab.STEP_BASIS))

STEP_FACTS = pl.Schema(
    {
        "source": pl.Int64(),
        "line_no": pl.Int64(),
        "rank": pl.Int64(),
        "ts": pl.Datetime("us"),
        "step": pl.Int64(),
        "steps_planned": pl.Int64(),
        "loss": pl.Float64(),
        "step_time_s": pl.Float64(),
        "tokens_per_s": pl.Float64(),
        "tokens_per_s_per_gpu": pl.Float64(),
        "tflops_per_gpu_logged": pl.Float64(),
        "mfu_logged": pl.Float64(),
        "mem_allocated_bytes": pl.Int64(),
        "mem_reserved_bytes": pl.Int64(),
        "grad_norm": pl.Float64(),
        "learning_rate": pl.Float64(),
        "consumed_tokens": pl.Int64(),
        "step_basis": STEP_BASIS,
        "text": pl.String(),
    }
)
"""One row per metric line. `step` NULL: the line did not parse and becomes a reject with its `text`. `step_basis` NULL:
the step is one of the optimizer."""

SETTING_FACTS = pl.Schema(
    {"source": pl.Int64, "line_no": pl.Int64, "name": pl.String, "value": pl.String, "setting_source": pl.String}
)
"""One row per configuration value: `name` is a column of `runs`, `value` its text."""

PEAK_FACTS = pl.Schema({"source": pl.Int64, "line_no": pl.Int64, "name": pl.String, "value": pl.Float64})
"""One row per observed peak (of memory), of which the run keeps the largest; `name` is a column of `runs`."""

EVENT_FACTS = pl.Schema(
    {
        "source": pl.Int64(),
        "line_no": pl.Int64(),
        "ts": pl.Datetime("us"),
        "kind": pl.String(),
        "rank": pl.Int64(),
        "host": pl.String(),
        "text": pl.String(),
    }
)
"""One row per evidence line and kind."""

FACT_SCHEMAS = {"steps": STEP_FACTS, "settings": SETTING_FACTS, "peaks": PEAK_FACTS, "events": EVENT_FACTS}
"""Kinds of facts: the fields of `Facts`, and the functions of a dialect."""

INFERRED = "inferred"
"""Dialect of a log that no dialect knows, read by what it seems to print (`pipeline.logs.inference`)."""

RUN_HEADER = "run_header"
"""Kind of the event of a line with which a script announces the run that it launches next, with its settings."""

EVIDENCE = "evidence"
"""Parser of runs of logs in which no line of a trainer was found, only how their processes ended."""

NOTHING = ("None", "null", "")
"""Printed values that mean that a setting is not set. Lower-case none is a word (of vocab.RECOMPUTE)."""

_ORDER_CHECK_ROWS = 1 << 18
"""Rows whose order is checked at once: differences of all of some million rows would take a column's memory each."""


@dataclass(frozen=True)
class Facts:
    """Facts of a batch of lines."""

    steps: pl.DataFrame
    settings: pl.DataFrame
    peaks: pl.DataFrame
    events: pl.DataFrame

    @classmethod
    @cache
    def empty(cls) -> Facts:
        """No facts at all."""
        return cls(**{kind: pl.DataFrame(schema=schema) for kind, schema in FACT_SCHEMAS.items()})

    @classmethod
    def only_events(cls, events: pl.DataFrame) -> Facts:
        """Events and nothing else."""
        nothing = cls.empty()
        return cls(nothing.steps, nothing.settings, nothing.peaks, events)

    def without_steps(self, sources: Collection[int]) -> Facts:
        """The same without the steps of some sources."""
        if not sources:
            return self
        steps = self.steps.filter(~pl.col("source").is_in(list(sources)))
        return Facts(steps, self.settings, self.peaks, self.events)

    def map(self, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Facts:
        """`change` applied to each kind of facts; it may use the columns they share, `source` and `line_no`."""
        return Facts(change(self.steps), change(self.settings), change(self.peaks), change(self.events))

    def map_large(self, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Facts:
        """`change` applied to the facts of which each line may have some: steps and peaks."""
        return Facts(change(self.steps), self.settings, change(self.peaks), self.events)

    @property
    def large_bytes(self) -> int:
        """Bytes that steps and peaks take."""
        return sum(int(frame.estimated_size()) for frame in (self.steps, self.peaks))

    @classmethod
    def concat(cls, parts: Iterable[Facts]) -> Facts:
        """All facts of several blocks, in the order given."""
        parts = [part for part in parts if part is not cls.empty()]
        if len(parts) < 2:
            return parts[0] if parts else cls.empty()
        return cls(**{kind: pl.concat([getattr(part, kind) for part in parts]) for kind in FACT_SCHEMAS})


def conform(frame: pl.DataFrame, schema: pl.Schema) -> pl.DataFrame:
    """`frame` with exactly the columns of a fact schema; NULL where one is missing, or its text is no such value."""
    have = frame.columns
    return frame.select(
        (pl.col(name) if name in have else pl.lit(None)).cast(dtype, strict=False).alias(name)
        for name, dtype in schema.items()
    )


def in_order(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows in the order of their files and lines; without a copy where they are already, as those of one file."""
    keys = frame["source", "line_no"]  # a query over the frame would rechunk all of its columns
    overlapping = (keys[start : start + _ORDER_CHECK_ROWS + 1] for start in range(0, keys.height, _ORDER_CHECK_ROWS))
    source, line_no = pl.col("source").diff(), pl.col("line_no").diff()
    goes_back = ((source < 0) | ((source == 0) & (line_no < 0))).any()
    if any(rows.select(goes_back).item() for rows in overlapping):
        return frame.sort("source", "line_no", maintain_order=True)
    return frame
