"""Every number of a profile: its value where nothing was fitted, which fits set it, and what leaving it out costs.

`python -m tests.validation.constants > docs/constants.md` writes the page anew; half a minute of one core. "Left out"
is the value with which the constant has no effect (NEUTRAL). The others are not refitted without it, so a constant that
another could stand in for looks dearer than it is; one that only the tables of its own fit need looks idle.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final

import numpy as np

from sweepscope.pipeline.estimate.calibration.fit import with_constants
from sweepscope.pipeline.estimate.calibration.transfer_tables import TABLES
from sweepscope.pipeline.estimate.physics.estimate import estimate
from sweepscope.pipeline.estimate.physics.layouts import Array
from sweepscope.pipeline.estimate.physics.profile import CONSTANTS, load_profiles
from tests.validation.cells import fastest_quarter
from tests.validation.peers.beside import Asked, asked_of

_ONE: Final = (
    "gemm_peak_share",
    "memory_share",
    "attention_efficiency",
    "link_share",
    "network_share",
    "multicast_share",
    "gain_kept",
)
NEUTRAL: Final[dict[str, float]] = {
    **dict.fromkeys((*_ONE, "full_recompute_cost", "expert_imbalance", "expert_efficiency", "memory_growth"), 1.0),
    **dict.fromkeys(("slow_node_chance", "optimizer_passes", "elementwise_passes", "dp_hidden", "tp_hidden"), 0.0),
    "gemm_wave_loss": 1e-9,
    "attention_backward": 2.0,
    "bucket_bytes": 1e15,
    "fp8_gain": 1.0,
    "kept_product_bytes": 2.0,
    "dispatch_bytes": 2.0,
    "software_rate": 1.0,
}
"""Values with which a constant has no effect, where that is not 0: shares of the whole, FLOPs as they are counted."""

HEAD: Final = """\
# The estimator's constants

Written by `python -m tests.validation.constants`, not by hand. Sources of the unfitted values are in `[about]` of the
files in `data/calibration`; what each constant does is in `pipeline/estimate/physics/profile.py`.

Errors are medians by table, their mean over {tables} bundled tables whose rows had no say in any constant: step time
{time:.1f} %, peak memory {memory:.1f} %. The last two columns: by how many points they grow where the constant
has the value in brackets and all others stay. A dash: less than 0.05, or only what no such table has (racks, stalls of
nanotron).

| constant | unfitted | fitted in | left out | time | memory |
|---|---|---|---|---|---|
"""


def _errors(rows: Asked, constants: dict[str, float]) -> tuple[float, float]:
    """Median errors in percent of step time (of a sweep on the fastest quarter of its cells) and of peak memory."""
    seconds, held = (np.full(rows.table.height, np.nan) for _ in range(2))
    for batch in rows.batches:
        found = estimate(with_constants(batch.asked, constants), batch.at)  # type: ignore[arg-type]  # values of its kinds
        seconds[batch.indices] = np.broadcast_to(found.step_time_s, batch.indices.shape)
        held[batch.indices] = np.broadcast_to(found.mem_bytes, batch.indices.shape)
    return _median(seconds / rows.step_time_s, fastest_quarter(rows.table, rows.step_time_s)), _median(
        held / rows.mem_bytes, np.ones(rows.table.height, dtype=bool)
    )


def _median(ratio: Array, kept: Array) -> float:
    apart = np.abs(ratio - 1)
    chosen = apart[kept & np.isfinite(apart)]
    return 100 * float(np.median(chosen)) if chosen.size else np.nan


def _means(tables: list[Asked], constants: dict[str, float]) -> tuple[float, float]:
    pairs = np.array([_errors(rows, constants) for rows in tables])
    time, memory = np.nanmean(pairs, axis=0)
    return float(time), float(memory)


def _fits() -> dict[str, list[str]]:
    """Profiles by the constants that were fitted or pooled for them."""
    found: dict[str, list[str]] = {}
    base = load_profiles()["default"]
    for name, profile in sorted(load_profiles().items()):
        for constant in profile.about.get("fitted", ()):
            found.setdefault(constant, []).append(name)
        if profile.about.get("kind") == "pooled":
            for constant in ("attention_efficiency", "gemm_peak_share", "kernel_launch_s"):
                if getattr(profile, constant) != getattr(base, constant):
                    found.setdefault(constant, []).append(f"{name} (pooled or published)")
    return found


def _lines() -> Iterator[str]:
    tables = [asked_of(name) for name in TABLES]
    base, fits = load_profiles()["default"], _fits()
    time, memory = _means(tables, {})
    yield from HEAD.format(tables=len(tables), time=time, memory=memory).splitlines()
    for constant in CONSTANTS:
        value = getattr(base, constant)
        if isinstance(value, bool | str):
            continue
        neutral = NEUTRAL.get(constant, 0.0)
        worse = _means(tables, {constant: neutral})
        grown = [round(after - before, 1) for after, before in zip(worse, (time, memory), strict=True)]
        shown = [f"{grows:+.1f}" if grows else "-" for grows in grown]
        where = ", ".join(fits.get(constant, [])) or "nowhere"
        yield f"| `{constant}` | {value:g} | {where} | ({neutral:g}) | {' | '.join(shown)} |"


def main() -> None:
    """Print the page as Markdown."""
    for line in _lines():
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
