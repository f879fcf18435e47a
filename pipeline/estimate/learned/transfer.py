"""How far off estimates are for a framework that nothing was fitted for: intervals from other frameworks' tables.

Every bundled table, and each beside the file, was estimated by the constants of its generation alone, as a run of
an unknown framework is. A table counts once, however many rows it has: what one framework's runs have in common says
nothing of the next one's. Tables of another generation or precision count less. Of a sweep only the faster half of each
cell is taken: what other tables hold was tuned before it was published, and how much slower a framework's other layouts
are is its own matter.
The file `data/calibration/transfer/tables.json` is written by `sweepscope calibrate --published`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from sweepscope.pipeline.estimate.learned.track_record import COVERAGE, Interval
from sweepscope.pipeline.estimate.physics.layouts import Array
from sweepscope.pipeline.estimate.physics.profile import CALIBRATION, EQUATIONS

TABLES = CALIBRATION / "transfer" / "tables.json"
QUANTILES = 41
"""Quantiles of its rows' residuals that stand for a table."""
OTHER_GENERATION, OTHER_PRECISION = 0.25, 0.25
"""What a table of another generation of cards, or of 16 bit instead of FP8, counts beside one of the same."""
OF_OTHERS: Final = "is_record_of_others"
"""Column of rows whose own interval is that of a bundled track record: of runs on one cluster, by one version."""
LEAST_TAIL = 0.04
"""Share of the pooled rows beyond either end that intervals are cut at, at least: beyond, single rows decide."""


@dataclass(frozen=True)
class Transfer:
    """Residuals of one table on one generation of cards and precision, as if its framework were unknown.

    `time` and `memory` are quantiles of the log of measured over estimated, in ascending order; empty where the table
    has too few.
    """

    table: str
    generation: str
    is_below_16_bit: bool
    rows: int
    time: tuple[float, ...]
    memory: tuple[float, ...]


def render_transfers(found: Sequence[Transfer]) -> str:
    """Text of the file."""
    lines = [json.dumps(asdict(one), separators=(",", ":")) for one in found]
    return f'{{"equations": {EQUATIONS}, "tables": [\n' + ",\n".join(lines) + "\n]}\n"


@cache
def load_transfers(path: Path = TABLES) -> tuple[Transfer, ...]:
    """The bundled tables' residuals; none where they are of other equations."""
    if not path.exists():
        return ()
    found = json.loads(path.read_text(encoding="utf-8"))
    if found["equations"] != EQUATIONS:
        return ()
    return tuple(
        Transfer(**{**entry, "time": tuple(entry["time"]), "memory": tuple(entry["memory"])})
        for entry in found["tables"]
    )


def is_measured(generation: str) -> bool:
    """Whether any bundled table has runs on a generation of cards."""
    return any(one.generation == generation for one in load_transfers())


def quantiles_of(ratios: Array) -> tuple[float, ...]:
    """QUANTILES of log ratios, rounded."""
    at = (np.arange(QUANTILES) + 0.5) / QUANTILES
    return tuple(float(value) for value in np.round(np.quantile(ratios, at), 4))


def transfer_interval(
    found: Sequence[Transfer], what: str, generation: str | None = None, *, is_below_16_bit: bool = False
) -> Interval | None:
    """Factors on an estimate between which COVERAGE of the rows of another table lie; None without tables.

    Conformal over tables: of n tables and the next one, that one is the outermost with a chance of 1/(n + 1), half of
    it at either end, so that less of the rows that are known lies beyond the ends than may of the next table's.

    Args:
        found: the tables.
        what: "time" or "memory".
        generation: that of the card estimated for; without one all tables count alike.
        is_below_16_bit: whether its products run in FP8.
    """
    known = [one for one in found if getattr(one, what)]
    if not known:
        return None
    near = np.ones(len(known))
    if generation is not None:
        near *= [1.0 if one.generation == generation else OTHER_GENERATION for one in known]
        near *= [1.0 if one.is_below_16_bit == is_below_16_bit else OTHER_PRECISION for one in known]
    names = np.array([one.table for one in known])
    weights = np.zeros(len(known))
    for name in np.unique(names):
        # A table of several generations or precisions counts as its nearest part does, split among the parts.
        parts = names == name
        weights[parts] = near[parts].max() * near[parts] / near[parts].sum()
    values = np.concatenate([getattr(one, what) for one in known])
    counts = np.repeat(weights / QUANTILES, [len(getattr(one, what)) for one in known])
    rows, tables = sum(one.rows for one in known), len(set(names))
    tail = max((1.0 - COVERAGE) / 2.0 - 0.5 / (tables + 1.0), LEAST_TAIL)
    low, middle, high = np.exp(_weighted_quantiles(values, counts, (tail, 0.5, 1.0 - tail)))
    like = f", those on {generation} cards most" if generation in {one.generation for one in known} else ""
    basis = (
        f"{COVERAGE:.0%} of tuned runs of other frameworks: {tables} tables of {rows:,} runs, each counting once{like}"
    )
    return Interval(float(low), float(middle), float(high), rows, basis)


def _weighted_quantiles(values: Array, weights: Array, shares: tuple[float, ...]) -> Array:
    """Quantiles of `values` that count by `weights`, between the middles of neighbouring ones."""
    order = np.argsort(values, kind="stable")
    heights = np.cumsum(weights[order]) - weights[order] / 2.0
    return np.interp(shares, heights / weights.sum(), values[order])


_ENDS = pl.Schema(
    {
        **dict.fromkeys(("time_low", "time_high", "memory_low", "memory_high"), pl.Float64()),
        **{"time_runs": pl.Int64(), "memory_runs": pl.Int64(), "basis": pl.String()},
    }
)


def _ends_of(found: Sequence[Transfer], generation: str | None, *, is_below_16_bit: bool) -> dict[str, object]:
    """Row of _ENDS of a stratum."""
    row: dict[str, object] = dict.fromkeys(_ENDS)
    for what in ("time", "memory"):
        if (one := transfer_interval(found, what, generation, is_below_16_bit=is_below_16_bit)) is not None:
            row |= {f"{what}_low": one.low, f"{what}_high": one.high, f"{what}_runs": one.runs}
            row["basis"] = row["basis"] or one.basis
    return row


def with_transfers(
    predicted: pl.DataFrame, strata: pl.DataFrame, found: Sequence[Transfer] | None = None
) -> pl.DataFrame:
    """`predicted` (PREDICTED) with intervals of other frameworks' runs, beside the physics, where a row has none.

    A row with a penalty or a learned memory factor is left as it is: its centre is another. Rows that are OF_OTHERS
    keep what they have, at least as wide: how far off the runs of a framework are on one cluster does not say how far
    they are on the next. Of an earlier sweep with nanotron 5 % of the runs were inside the playbook's intervals, of an
    earlier one of MosaicML's 1 % inside those of llm-foundry.

    Args:
        predicted: rows of any number, of PREDICTED and, where some are, OF_OTHERS, which is left out.
        strata: generation and is_below_16_bit of each row (`rows.strata.STRATA`).
        found: the tables, those that are bundled by default.
    """
    tables = load_transfers() if found is None else found
    pairs = strata.select("generation", "is_below_16_bit").rows()
    by_stratum = {pair: _ends_of(tables, pair[0], is_below_16_bit=bool(pair[1])) for pair in dict.fromkeys(pairs)}
    ends = pl.DataFrame([by_stratum[pair] for pair in pairs], schema=_ENDS, orient="row")
    lacks_time = pl.col("est_step_time_lo_s").is_null() & pl.col("est_penalty").is_null()
    lacks_memory = pl.col("est_mem_lo_bytes").is_null() & pl.col("expected_mem_bytes").is_null()
    seconds, bytes_, mfu = pl.col("est_step_time_s"), pl.col("est_mem_bytes"), pl.col("est_mfu")
    has_time = seconds.is_not_null() & lacks_time & ends["time_low"].is_not_null()
    has_memory = seconds.is_not_null() & lacks_memory & ends["memory_low"].is_not_null()
    of_time: dict[str, pl.Series | pl.Expr] = {
        "est_step_time_lo_s": ends["time_low"] * seconds,
        "est_step_time_hi_s": ends["time_high"] * seconds,
        "est_mfu_lo": mfu / ends["time_high"],
        "est_mfu_hi": mfu / ends["time_low"],
        "est_interval_runs": ends["time_runs"],
        "est_interval_basis": ends["basis"],
    }
    of_memory: dict[str, pl.Series | pl.Expr] = {
        "est_mem_lo_bytes": ends["memory_low"] * bytes_,
        "est_mem_hi_bytes": ends["memory_high"] * bytes_,
        "est_mem_interval_runs": ends["memory_runs"],
    }
    known = predicted.with_columns(
        *(pl.when(has_time).then(end).otherwise(name).alias(name) for name, end in of_time.items()),
        *(pl.when(has_memory).then(end).otherwise(name).alias(name) for name, end in of_memory.items()),
    )
    if OF_OTHERS not in predicted.columns:
        return known
    is_theirs = predicted[OF_OTHERS].fill_null(False)
    has_own = {name: is_theirs & predicted[name].is_not_null() for name in ("est_step_time_lo_s", "est_mem_lo_bytes")}
    return _as_wide_as_elsewhere(known, ends, *has_own.values()).drop(OF_OTHERS)


def _as_wide_as_elsewhere(
    known: pl.DataFrame, ends: pl.DataFrame, has_time: pl.Series, has_memory: pl.Series
) -> pl.DataFrame:
    """`known` with intervals of rows that have one of their own, of time and memory, reaching as far as `ends` do."""
    widens_time, widens_memory = (
        has_time & ends["time_low"].is_not_null(),
        has_memory & ends["memory_low"].is_not_null(),
    )
    centre = pl.coalesce("expected_step_time_s", "est_step_time_s")
    bytes_ = pl.coalesce("expected_mem_bytes", "est_mem_bytes")
    mfu = pl.col("est_mfu") * pl.col("est_step_time_s") / centre
    low = {
        "est_step_time_lo_s": ends["time_low"] * centre,
        "est_penalty_lo": ends["time_low"] * pl.col("est_penalty"),
        "est_mfu_lo": mfu / ends["time_high"],
    }
    high = {
        "est_step_time_hi_s": ends["time_high"] * centre,
        "est_penalty_hi": ends["time_high"] * pl.col("est_penalty"),
        "est_mfu_hi": mfu / ends["time_low"],
    }
    beyond = pl.col("est_interval_basis") + "; on any other cluster as far off as other frameworks' tables"
    return known.with_columns(
        *(pl.when(widens_time).then(pl.min_horizontal(n, e)).otherwise(n).alias(n) for n, e in low.items()),
        *(pl.when(widens_time).then(pl.max_horizontal(n, e)).otherwise(n).alias(n) for n, e in high.items()),
        pl.when(widens_time).then(beyond).otherwise("est_interval_basis").alias("est_interval_basis"),
        pl.when(widens_memory)
        .then(pl.min_horizontal("est_mem_lo_bytes", ends["memory_low"] * bytes_))
        .otherwise("est_mem_lo_bytes")
        .alias("est_mem_lo_bytes"),
        pl.when(widens_memory)
        .then(pl.max_horizontal("est_mem_hi_bytes", ends["memory_high"] * bytes_))
        .otherwise("est_mem_hi_bytes")
        .alias("est_mem_hi_bytes"),
    )
