"""How far off estimates are for a framework that nothing was fitted for: intervals from other frameworks' tables.

Every bundled table was estimated by the constants of its card's generation alone, as a run of an unknown framework is.
A table counts once, however many rows it has: what one framework's runs have in common says nothing of the next one's.
The file `data/calibration/transfer/tables.json` is written by `sweepscope calibrate --published`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

from sweepscope.pipeline.estimate.learned.track_record import COVERAGE, Interval
from sweepscope.pipeline.estimate.physics.layouts import Array
from sweepscope.pipeline.estimate.physics.profile import CALIBRATION, EQUATIONS

TABLES = CALIBRATION / "transfer" / "tables.json"
QUANTILES = 41
"""Quantiles of its rows' residuals that stand for a table."""
TAIL = 0.05
"""Share of the pooled rows beyond either end. A new table lies further off than rows of the tables that are known: at
this tail, four fifths of the rows of a left-out table are inside in the mean (`make validate`), as COVERAGE has it."""


@dataclass(frozen=True)
class Transfer:
    """Residuals of one table on one generation of cards and precision, as if its framework were unknown.

    `time` and `memory` are quantiles of the log of measured over estimated, in ascending order; empty where the table
    has too few.
    """

    table: str
    generation: str
    is_fp8: bool
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


def quantiles_of(ratios: Array) -> tuple[float, ...]:
    """QUANTILES of log ratios, rounded."""
    at = (np.arange(QUANTILES) + 0.5) / QUANTILES
    return tuple(float(value) for value in np.round(np.quantile(ratios, at), 4))


def transfer_interval(found: Sequence[Transfer], what: str) -> Interval | None:
    """Factors on an estimate between which COVERAGE of the rows of another table lie; None without tables.

    Tables of the same generation or precision alone are too few: intervals from them held less of a table left out.

    Args:
        found: the tables.
        what: "time" or "memory".
    """
    known = [one for one in found if getattr(one, what)]
    if not known:
        return None
    low, middle, high = np.exp(np.quantile([getattr(one, what) for one in known], [TAIL, 0.5, 1.0 - TAIL]))
    rows, tables = sum(one.rows for one in known), len({one.table for one in known})
    basis = f"{COVERAGE:.0%} of runs of other frameworks: {tables} tables of {rows:,} runs, each counting alike"
    return Interval(float(low), float(middle), float(high), rows, basis)


def with_transfers(predicted: pl.DataFrame, found: Sequence[Transfer] | None = None) -> pl.DataFrame:
    """`predicted` (PREDICTED) with intervals of other frameworks' runs, beside the physics, where a row has none.

    A row with a penalty or a learned memory factor is left as it is: its centre is another.
    """
    tables = load_transfers() if found is None else found
    time, memory = transfer_interval(tables, "time"), transfer_interval(tables, "memory")
    lacks_time = pl.col("est_step_time_lo_s").is_null() & pl.col("est_penalty").is_null()
    lacks_memory = pl.col("est_mem_lo_bytes").is_null() & pl.col("expected_mem_bytes").is_null()
    is_estimated = pl.col("est_step_time_s").is_not_null()
    filled: dict[str, pl.Expr] = {}
    if time is not None:
        seconds, mfu = pl.col("est_step_time_s"), pl.col("est_mfu")
        ends = {"est_step_time_lo_s": time.low * seconds, "est_step_time_hi_s": time.high * seconds}
        ends |= {"est_mfu_lo": mfu / time.high, "est_mfu_hi": mfu / time.low}
        ends |= {"est_interval_runs": pl.lit(time.runs, pl.Int64), "est_interval_basis": pl.lit(time.basis)}
        filled |= {name: pl.when(is_estimated & lacks_time).then(end).otherwise(name) for name, end in ends.items()}
    if memory is not None:
        bytes_ = pl.col("est_mem_bytes")
        ends = {"est_mem_lo_bytes": memory.low * bytes_, "est_mem_hi_bytes": memory.high * bytes_}
        ends["est_mem_interval_runs"] = pl.lit(memory.runs, pl.Int64)
        filled |= {name: pl.when(is_estimated & lacks_memory).then(end).otherwise(name) for name, end in ends.items()}
    return predicted.with_columns(**filled)
