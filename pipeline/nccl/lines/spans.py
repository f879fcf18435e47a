"""Spans of lines of one thread or process within which no communicator begins or ends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from sweepscope.pipeline.nccl.lines.distinct import coded_rows
from sweepscope.pipeline.nccl.lines.info_lines import InfoLines

_OWNER = {"thread": ["host", "pid", "tid"], "process": ["host", "pid"]}


class Spans:
    """The lines with which communicators begin, are ready or end."""

    def __init__(self, inits: InfoLines) -> None:
        rows = inits.with_prefix(inits.rows, "host", "pid", "tid")
        self._inits = _with_end(rows).select("end", "pid", "tid", "position")

    def divide(self, lines: InfoLines, owner: str) -> InfoLines:
        """`lines` with the `span` of each.

        Args:
            owner: "thread" or "process": whose communicators count.
        """
        names = ["end", *_OWNER[owner][1:]]
        owners, owner_id = coded_rows(_with_end(lines.prefixes).select(names))
        inits = self._inits.join(owners.with_columns(owner_id=pl.int_range(pl.len())), on=names)
        prefix_id = lines.rows["prefix_id"].to_numpy()
        borders = _ordered(inits["owner_id"].to_numpy(), inits["position"].to_numpy())
        # One before and one after such a line, since other messages may be glued to it.
        borders = np.sort(np.concatenate((borders - 1, borders)))
        keys = _ordered(owner_id[prefix_id], lines.rows["position"].to_numpy())
        order = np.argsort(owner_id[prefix_id].astype(np.min_scalar_type(len(owners))), kind="stable")  # fast for few
        passed = np.empty(len(keys), dtype=np.int64)
        passed[order] = np.searchsorted(borders, keys[order])  # and so is this in their order
        _, number = coded_rows(lines.prefixes.select("source", *_OWNER[owner]))
        span = number[prefix_id] * (len(borders) + 1) + passed
        return replace(lines, rows=lines.rows.with_columns(span=span))


def _with_end(prefixes: pl.DataFrame) -> pl.DataFrame:
    """`end`, the last letter of the host.

    A host's name may have swallowed the end of another text, and its names are merged when the whole file is known (see
    `hosts`). They have the same last letter, so a border for one is a border for all of that letter.
    """
    return prefixes.with_columns(end=pl.col("host").str.tail(1))


def _ordered(owner: np.ndarray, position: np.ndarray) -> np.ndarray:
    """One number for owner and position, in their order; a block has far fewer lines than 2^32."""
    found: np.ndarray = (owner.astype(np.int64) << 32) + position
    return found
