"""Step times and throughput from running totals: seconds since the beginning, and tokens seen.

A total is rounded when it is printed (a bar shows whole seconds, version 5 of transformers four digits), so a
difference means something only over so many steps that the rounding is a small part of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

_PRECISE = 1 / 30
"""Of a difference, what the rounding of both totals may be: 3 % in a single value, nothing in the median of many."""

_PART = ["source", "part"]


def with_rates(dicts: pl.DataFrame) -> pl.DataFrame:
    """`dicts` with `step_time_s` and `tokens_per_s` of the steps since the dict from which they can be told.

    Args:
        dicts: in order, with `source`, `part`, `step`, `seconds` and `tokens` so far, and by how much those may be off:
            `seconds_off`, `tokens_off`.
    """
    if dicts.is_empty():
        return dicts.with_columns(step_time_s=pl.lit(None, pl.Float64), tokens_per_s=pl.lit(None, pl.Float64))
    if not dicts.select((pl.col("seconds_off") > 0).any() | (pl.col("tokens_off") > 0).any()).item():
        return _between_neighbours(dicts)
    return pl.concat(_between_distant(part) for part in dicts.partition_by(_PART, maintain_order=True))


def _between_neighbours(dicts: pl.DataFrame) -> pl.DataFrame:
    seconds, tokens, done = (pl.col(name).diff().over(_PART) for name in ("seconds", "tokens", "step"))
    is_timed = (seconds > 0) & (done > 0)
    return dicts.with_columns(
        step_time_s=pl.when(is_timed).then((seconds / done).round(6)),
        tokens_per_s=pl.when(is_timed & (tokens > 0)).then((tokens / seconds).round(3)),
    )


def _between_distant(part: pl.DataFrame) -> pl.DataFrame:
    seconds, tokens, steps = part["seconds"].to_list(), part["tokens"].to_list(), part["step"].to_list()
    times, rates = [None] * part.height, [None] * part.height
    for before, after in _stretches(part, ["seconds"]):
        done = steps[after] - steps[before]
        times[after] = round((seconds[after] - seconds[before]) / done, 6) if done > 0 else None
    for before, after in _stretches(part, ["seconds", "tokens"]):
        rates[after] = round((tokens[after] - tokens[before]) / (seconds[after] - seconds[before]), 3)
    return part.with_columns(
        pl.Series("step_time_s", times, dtype=pl.Float64), pl.Series("tokens_per_s", rates, dtype=pl.Float64)
    )


def _stretches(part: pl.DataFrame, names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Rows between which every one of the totals of these names grew by much more than it may be off."""
    known = part.with_row_index().filter(pl.all_horizontal(pl.col(names).is_not_null()))
    rows = known["index"].to_list()
    totals = [(known[name].to_list(), known[f"{name}_off"].fill_null(0).to_list()) for name in names]
    start = 0
    for row in range(1, len(rows)):
        is_back, is_far = False, True
        for total, off in totals:  # a loop over plain numbers: a log has as many rows as steps
            growth = total[row] - total[start]
            is_back |= growth < 0
            is_far &= growth > 0 and off[row] + off[start] <= _PRECISE * growth
        if is_far:
            yield rows[start], rows[row]
        if is_far or is_back:
            start = row
