"""The three-step recipe (fit in memory, reach the batch, then throughput) told with a search's own figures."""

from __future__ import annotations

from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.estimate.search.search import PHYSICS, Found

_SPENT = {
    "linear": "matrix products",
    "attention": "attention",
    "elementwise": "norms and activation functions",
    "head": "output head",
    "recompute": "recomputation",
    "tp": "tensor-parallel exchange",
    "cp": "context exchange",
    "ep": "expert exchange",
    "pp": "pipeline transfers",
    "dp": "gradient and weight exchange",
    "stall": "waiting for launches",
    "bubble": "pipeline idle time",
    "optimizer": "optimizer",
    "rest": "fixed cost",
    "stragglers": "waiting for the slowest node",
}
SCHEDULE_NAMES = {
    "afab": "AFAB",
    "1f1b": "1F1B",
    "interleaved": "interleaved 1F1B",
    "zb-h1": "ZB-H1",
    "zb-v": "ZB-V",
    "dualpipe": "DualPipe",
    "dualpipe-v": "DualPipe-V",
}
"""Pipeline schedules as their papers write them."""
USEFUL = ("linear", "attention", "elementwise", "head", "optimizer", "rest")


def layout_name(row: dict[str, object]) -> str:
    """A layout in one text, without degrees of 1.

    >>> layout_name({"dp": 8, "tp": 4, "pp": 1, "cp": 1, "ep": 1, "vpp": 1, "gas": 2, "mbs": 1, "zero_stage": 1,
    ...              "recompute": "none"})
    'DP8 TP4 · GAS2 MBS1 · Z1'
    >>> layout_name({"dp": 16, "tp": 1, "pp": 4, "cp": 1, "ep": 1, "vpp": 2, "gas": 8, "mbs": 1, "zero_stage": 1,
    ...              "dp_replicate": 2, "pipeline_schedule": "zb-v", "recompute": "none"})
    'DP16 PP4 VPP2 · GAS8 MBS1 · Z1 in 2 copies · ZB-V'
    """
    ranks = [f"{name.upper()}{row[name]}" for name in ("dp", "tp", "pp", "vpp", "cp", "ep") if row[name] != 1]
    copies, schedule = row.get("dp_replicate") or 1, str(row.get("pipeline_schedule") or "1f1b")
    sharding = f"Z{row['zero_stage']}" + (f" in {copies} copies" if copies != 1 else "")
    parts = [" ".join(ranks) or "DP1", f"GAS{row['gas']} MBS{row['mbs']}", sharding]
    if schedule not in ("1f1b", "interleaved"):  # chunks (VPP) tell those apart
        parts.append(SCHEDULE_NAMES[schedule])
    if row["recompute"] != "none":
        parts.append(f"{row['recompute']} recomputation")
    return " · ".join(parts)


def _placed(best: dict[str, object]) -> str:
    """How its layers lie, where stages differ."""
    counts = str(best["stage_layers"])
    return f", {counts} layers on its stages" if len(set(counts.split("-"))) > 1 else ""


def _speed(best: dict[str, object], ranked_by: str) -> str:
    """How fast the best layout is, and by whose word."""
    seconds, mfu, penalty = (float(str(best[name] or 1.0)) for name in ("est_step_time_s", "est_mfu", "est_penalty"))
    if ranked_by == PHYSICS:
        return f"fastest, {100 * mfu:.1f} % MFU and {seconds:.3g} s per step"
    return (
        f"expected to be fastest, {100 * mfu / penalty:.1f} % MFU and {seconds * penalty:.3g} s per step; physics "
        f"alone says {100 * mfu:.1f} % and {seconds:.3g} s"
    )


def tell(request: Request, found: Found) -> list[str]:
    """Three sentences, one per step, and one on what limits the winner. Needs at least one fitting layout."""
    card = request.asked.cluster
    best = found.layouts.row(0, named=True)
    lean = found.front.row(-1, named=True)
    lost = {name: best[f"est_time_{name}_s"] for name in _SPENT if name not in USEFUL}
    largest = max(lost, key=lambda name: float(lost[name]))
    share = lost[largest] / best["est_step_time_s"]
    plain = found.front.sort("est_mem_reserved_bytes").row(0, named=True)
    return [
        f"1 Fit: {found.fitting:,} of {found.launchable:,} layouts that can be launched fit into "
        f"{card.memory_bytes / 2**30:.0f} GiB; the leanest of the front, {layout_name(lean)}, needs "
        f"{plain['est_mem_reserved_bytes'] / 2**30:.1f} GiB.",
        f"2 Batch: {request.gbs:,} sequences are dp {best['dp']} x gas {best['gas']} x micro-batch {best['mbs']}.",
        f"3 Throughput: {layout_name(best)} is {_speed(best, found.ranked_by)}{_placed(best)}.",
        f"Its largest loss is {_SPENT[largest]}: {100 * share:.1f} % of the step that physics allows."
        if share > 0
        else "It loses nothing to communication.",
    ]
