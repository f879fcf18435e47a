"""Lines of a block in which texts and threads repeat, so that each is looked at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

ROWS = pl.Schema({"at": pl.Int64, "line_no": pl.Int64, "who": pl.UInt32, "told": pl.UInt32})


@dataclass(frozen=True)
class Lines:
    """Regular INFO lines.

    Attributes:
        rows: `at` (index in the block), `line_no`, `who` (index into `threads`), `told` (index into `texts`).
        texts: what stands behind the mark, each once.
        threads: `source`, `host`, `pid`, `tid`, `dev`, `is_first` of each distinct prefix of each source, and dense
            numbers of its `thread` and `process` within the source.
    """

    rows: pl.DataFrame
    texts: pl.Series
    threads: pl.DataFrame

    def named(self) -> pl.DataFrame:
        """The rows with their texts and their threads' columns."""
        columns = self.threads[self.rows["who"]]
        return self.rows.with_columns(self.texts.gather(self.rows["told"]).alias("text"), *columns.get_columns())

    def alike(self) -> pl.DataFrame:
        """`source`, `told`, `line_no` of the first and number of `lines` with the same text of the same source."""
        rows = self.rows.select("told", "line_no", source=self.threads["source"].gather(self.rows["who"]))
        return rows.group_by("source", "told").agg(pl.col("line_no").min(), lines=pl.len())

    def of_texts(self, chosen: np.ndarray) -> Lines:
        """The lines with texts that are `chosen` (a mask), which alone are kept."""
        if chosen.all():
            return self
        told = self.rows["told"].to_numpy()
        rows = self.rows.filter(chosen[told])
        place = np.cumsum(chosen) - 1
        return Lines(
            rows.with_columns(told=pl.Series(place[rows["told"].to_numpy()], dtype=pl.UInt32)),
            self.texts.filter(pl.Series(chosen)),
            self.threads,
        )
