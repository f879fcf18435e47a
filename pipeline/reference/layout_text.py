"""Layouts as text."""

from __future__ import annotations

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
