"""The ratios that decide, as lines of name and value: of an estimate, and of a run with what NCCL took of its card."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweepscope.dashboard.format.numbers import ABOUT, count, number, percent, seconds
from sweepscope.pipeline.estimate.advice.overlap_checklist import Item
from sweepscope.pipeline.estimate.physics.ratios import DIMENSIONS
from sweepscope.pipeline.estimate.search.switch_points import RULE_OF_THUMB

_DIMENSION = {"tp": "TP", "cp": "CP", "ep": "Experts", "dp": "DP", "pp": "PP"}
TITLE = "The ratios that decide: communication, overlap, bubble"
QUALIFIER = "~ estimated; exposed = not hidden by compute"
NO_RATIOS = "This run could not be estimated, and no file of it has NCCL output."
_STATE = {
    "holds": "✓ holds",
    "open": "✕ does not hold",
    "not_needed": "– not needed",
    "not_stated": "? not stated",
}
_FASTER = 0.98
"""Of the estimated step time: a run that takes less than this is faster, and not level."""
Values = Mapping[str, Any]
"""Columns of an estimate: est_comm_*_s, est_time_*_s and the ratios."""


def has_ratios(values: Values) -> bool:
    """Whether an estimate has any: those of older versions have none."""
    return values.get("est_comm_dp_s") is not None


def communication(values: Values) -> list[tuple[str, str]]:
    """What each dimension that communicates takes of a step, and what of it compute does not hide; the sum first."""
    spent = {name: (values[f"est_comm_{name}_s"] or 0.0, values[f"est_time_{name}_s"] or 0.0) for name in DIMENSIONS}
    used = {name: pair for name, pair in spent.items() if pair[0] > 0}
    if not used:
        return [("Communication", "none")]
    total = (sum(pair[0] for pair in used.values()), sum(pair[1] for pair in used.values()))
    rows = [("Communication per step", _spent(*total))]
    return [*rows, *((_DIMENSION[name], _spent(*pair)) for name, pair in used.items())]


def _spent(whole: float, shown: float) -> str:
    return f"{ABOUT}{seconds(whole)}, of which {ABOUT}{seconds(shown)} exposed"


def deciding(values: Values, gas: int | None) -> list[tuple[str, str]]:
    """Each ratio that the layout has, with what its threshold says. `gas` are its micro-batches."""
    rows = []
    if (ratio := values["est_compute_per_comm"]) is not None:
        side = "above" if ratio >= RULE_OF_THUMB else "below"
        rows.append(("Compute over communication", f"{_times(ratio)}, {side} the rule of thumb of {RULE_OF_THUMB:.0f}"))
    if (ratio := values["est_rho_tp"]) is not None:
        bound = ", TP communicates longer than it computes" if ratio < 1 else ""
        rows.append(("Compute over TP communication", f"{_times(ratio)}{bound}"))
    if (ratio := values["est_dp_per_pass"]) is not None:
        side = "too long to be hidden" if ratio > 1 else "can be hidden"
        rows.append(("DP communication over overlappable compute", f"{_times(ratio, 2)}, {side}"))
    if (ratio := values["est_flops_per_comm_byte"]) is not None:
        rows.append(("FLOPs per byte sent", f"{ABOUT}{number(ratio)}"))
    if (share := values["est_bubble_fraction"]) is not None:
        rows.append(("Pipeline bubble", f"{ABOUT}{percent(share)} of the step" if share else "none"))
    if (least := values["est_pp_break_even_gas"]) is not None:
        rows.append(
            ("Twice the stages pay off", f"from {ABOUT}{count(int(least), 'micro-batch', 'micro-batches')}{_has(gas)}")
        )
    mfu, best = values["est_mfu"], values["est_mfu_overlapped"]
    if mfu is not None and best is not None:
        rows.append(("If overlap were perfect", f"{ABOUT}{percent(best)} MFU instead of {ABOUT}{percent(mfu)}"))
    return rows


def beaten(step_time_s: float | None, est_step_time_s: float | None) -> str:
    """What a run that is faster than its estimate says of estimated figures; empty where it is not."""
    if not step_time_s or not est_step_time_s or step_time_s > _FASTER * est_step_time_s:
        return ""
    faster = percent(est_step_time_s / step_time_s - 1.0, 0)
    return f"The run is {faster} faster than its estimate, so figures marked ~ are on the slow side here."


def contention(values: Values) -> list[tuple[str, str]]:
    """What NCCL's channels take of the card while they run beside compute; nothing where no file says how many."""
    channels, processors = values["num_channels"], values["processors"]
    if channels is None or not processors:
        return []
    share = values["nccl_processor_share"]
    left = f"compute beside it has {percent(1 - share, 0)} of the peak"
    return [("SMs that NCCL takes", f"{number(channels)} of {number(processors)}, one per channel: {left}")]


def _times(ratio: float, decimals: int = 1) -> str:
    return f"{ABOUT}{number(ratio, decimals)} ×"


def _has(gas: int | None) -> str:
    return f"; it has {number(gas)}" if gas is not None else ""


def checked(item: Item) -> str:
    """How a run stands to an item of the checklist, by symbol, word and the fact that says so."""
    return f"{_STATE[item.state]} · {item.reason}"


def checklist_qualifier(items: list[Item]) -> str:
    """How many items hold, do not, are not needed, and are not stated: all of them."""
    held, missed, unneeded, silent = (
        sum(item.state == state for item in items) for state in ("holds", "open", "not_needed", "not_stated")
    )
    parts = [f"{held} of {len(items)} hold"]
    parts += [f"{missed} {'does' if missed == 1 else 'do'} not"] if missed else []
    parts += [f"{unneeded} not needed"] if unneeded else []
    parts += [f"{silent} not stated"] if silent else []
    return ", ".join(parts)
