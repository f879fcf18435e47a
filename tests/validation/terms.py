"""What each term of the estimate is worth on tables that no constant was fitted on: the error without it.

`python -m tests.validation.terms` prints the table of docs/estimator.md anew. Constants are not refitted without the
term, so a term that another could stand in for looks dearer than it is.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

import numpy as np
import polars as pl

from sweepscope.pipeline.estimate.calibration.fit import Batch, with_constants
from sweepscope.pipeline.estimate.calibration.transfer_tables import TABLES
from sweepscope.pipeline.estimate.physics.estimate import estimate
from sweepscope.pipeline.estimate.physics.layouts import Array
from tests.validation.cells import fastest_quarter
from tests.validation.peers.beside import Asked, asked_of

Constants = Mapping[str, float | bool | str]
WITHOUT: dict[str, Constants] = {
    "wave quantisation of products": {"gemm_wave_loss": 1e-9, "gemm_half_waves": 0.0},
    "depth of products": {"gemm_half_depth": 0.0},
    "short sequences' attention": {"attention_half_tokens": 0.0},
    "elementwise traffic": {"elementwise_passes": 0.0},
    "kernel launches": {"kernel_launch_s": 0.0},
    "latency of exchanges": {"link_latency_s": 0.0, "network_latency_s": 0.0},
    "loss in wide groups": {"network_decay": 0.0},
    "hiding of tensor exchanges": {"tp_hidden": 0.0},
    "hiding of gradient exchanges": {"dp_hidden": 0.0},
    "contention of what hides": {"shard_contention": 0.0},
    "cost of recomputation below a pass": {"full_recompute_cost": 1.0},
    "fused accumulation": {"fuses_accumulation": False},
    "selective recomputation of products": {"selective": "attention"},
    "layers placed by cost": {"placement": "even"},
    "the age of the software": {"software_rate": 1.0},
}
"""Constants that switch a term off."""
PARTS = ("head", "recompute", "tp", "dp", "ep", "cp", "pp", "bubble", "optimizer", "rest")
"""Parts of a step that are left out whole."""


def _seconds(batch: Batch, constants: Constants, part: str = "") -> Array:
    found = estimate(with_constants(batch.asked, constants), batch.at)  # type: ignore[arg-type]
    left = getattr(found.time, part) if part else 0.0
    return np.broadcast_to(found.step_time_s - left, batch.indices.shape)


def _error(rows: Asked, seconds: Array) -> float:
    """Median error in percent, of a sweep on the fastest quarter of each cell."""
    apart = np.abs(seconds / rows.step_time_s - 1)
    kept = np.isfinite(apart) & fastest_quarter(rows.table, rows.step_time_s)
    return 100 * float(np.median(apart[kept]))


def terms() -> pl.DataFrame:
    """Median error of step times by table, whole and without each term, and how much the mean of them grows."""
    tables = {name: asked_of(name) for name in TABLES}
    variants: list[tuple[str, Constants, str]] = [("everything", {}, "")]
    variants += [(f"without {name}", constants, "") for name, constants in WITHOUT.items()]
    variants += [(f"without {part}", {}, part) for part in PARTS]
    entries = []
    for name, constants, part in variants:
        errors = []
        for rows in tables.values():
            seconds = np.full(rows.table.height, np.nan)
            for batch in rows.batches:
                seconds[batch.indices] = _seconds(batch, constants, part)
            errors.append(_error(rows, seconds))
        entries.append((name, *errors, float(np.mean(errors))))
    frame = pl.DataFrame(entries, schema=["term", *tables, "mean"], orient="row")
    return frame.with_columns((pl.col("mean") - pl.col("mean").first()).alias("worse by"))


def main() -> None:
    """Print the table as Markdown."""
    with pl.Config(tbl_formatting="MARKDOWN", tbl_rows=60, tbl_cols=20, tbl_hide_column_data_types=True) as _:
        pl.Config.set_tbl_hide_dataframe_shape(active=True)
        pl.Config.set_float_precision(1)
        pl.Config.set_fmt_str_lengths(40)
        pl.Config.set_tbl_width_chars(220)
        sys.stdout.write(f"{terms()}\n")


if __name__ == "__main__":
    main()
