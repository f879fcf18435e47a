"""Sentences of Explorer & advisor, each computed from the estimate, the search or the store's own runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from dashboard.explorer import Answer, Part, Setup
from dashboard.labels import GIB, NBSP, count, gib, number, percent, points, seconds, significant, token_count
from pipeline.estimate.enumerate import Request
from pipeline.estimate.profile import Profile
from pipeline.estimate.search import Found

Row = Mapping[str, Any]

ABOUT = "~"
"""Before every estimated figure."""

KNOB = {
    "tp": "Tensor parallel (TP)", "pp": "Pipeline (PP)", "cp": "Context (CP)", "ep": "Expert (EP)",
    "vpp": "Chunks per stage (VPP)", "mbs": "Micro-batch (MBS)", "zero_stage": "ZeRO stage", "recompute": "Recompute",
}  # fmt: skip
_SHORT = {
    "tp": "TP", "pp": "PP", "cp": "CP", "ep": "EP", "vpp": "VPP", "mbs": "MBS", "zero_stage": "ZeRO-",
    "gas": "GAS", "dp": "DP",
}  # fmt: skip

HOW_TO_READ = (
    "**How to read it.** GPUs are fixed by the nodes, so DP takes what TP, PP and CP leave; the batch is fixed, so "
    "GAS takes what DP and MBS leave. A slider offers only values that can be launched with the others where they "
    "stand. Dark bars compute, light ones do not. A tilde stands before every figure that nobody measured.",
    "**What it hides.** The estimate is what the hardware allows with well-kept code: page Estimator says how far "
    "runs stay behind it, and with what. Interleaving follows Megatron's rules; a framework may allow less.",
)


def layout(row: Row) -> str:
    """A layout as the store writes it; degrees of 1 other than DP, TP and PP are left out.

    >>> layout({"dp": 16, "tp": 8, "pp": 1, "cp": 2, "ep": 1, "vpp": 1, "gas": 2, "mbs": 8, "zero_stage": 0,
    ...         "recompute": "full"})
    'DP16 TP8 PP1 CP2 · GAS2 MBS8 · Z0 · full recompute'
    """
    ranks = [f"DP{row['dp']} TP{row['tp']} PP{row['pp']}"]
    ranks += [f"{name.upper()}{row[name]}" for name in ("cp", "ep", "vpp") if row.get(name) not in (None, 1)]
    parts = [" ".join(ranks), f"GAS{row['gas']} MBS{row['mbs']}", f"Z{row['zero_stage']}"]
    if row["recompute"] not in (None, "none"):
        parts.append(f"{row['recompute']} recompute")
    return " · ".join(parts)


def _unbroken(text: str) -> str:
    return text.replace(" ", NBSP)


def answer(setup: Setup, request: Request, found: Found, measured: pl.DataFrame) -> str:
    """The fastest layout that fits, beside the best that was measured for the same question; or why there is none."""
    where = f"{setup.model} on {count(setup.nodes, 'node')}"
    if not found.launchable:
        return (
            f"**No layout of {where} can be launched** with {count(request.gbs, 'sequence')} per step: {_why(found)}."
        )
    card = request.asked.cluster.memory_bytes
    if not found.fitting:
        need = found.leanest_bytes + request.asked.profile.outside_bytes
        return (
            f"**No layout of {where} fits**: the leanest of {number(found.launchable)} needs {ABOUT}{gib(need, 0)} per "
            f"GPU, the card has {gib(card)}. Take more nodes or a shorter sequence."
        )
    best = found.layouts.row(0, named=True)
    first = (
        f"On {count(setup.nodes, 'node')}, {setup.model} should train fastest with **{_unbroken(layout(best))}: "
        f"{ABOUT}{percent(best['est_mfu'])} MFU**, of {number(found.fitting)} layouts that fit."
    )
    return f"{first} {_measured(setup, request, measured)}"


def _why(found: Found) -> str:
    return next(iter(found.pruned), "there is nothing to try")


def _measured(setup: Setup, request: Request, runs: pl.DataFrame) -> str:
    if runs.is_empty():
        return "No run of it on this accelerator is in the store."
    same = runs.filter(
        pl.col("num_gpus") == request.num_gpus, pl.col("seq_len") == setup.seq_len,
        pl.col("gbs_tokens") == setup.gbs_tokens, pl.col("mfu").is_not_null(),
    )  # fmt: skip
    if same.is_empty():
        return f"None of its {count(runs.height, 'run')} in the store had these nodes, sequence and batch."
    top = same.sort("mfu", descending=True).row(0, named=True)
    reached = f"{percent(top['mfu'])} with {_unbroken(top['layout'] or 'an unknown layout')}"
    if same.height == 1:
        return f"The one {same['origin'][0]} run reached {reached}."
    return f"The best of {number(same.height)} {same['origin'][0]} runs reached {reached}."


def meta(setup: Setup, request: Request) -> str:
    """The question, and where the constants come from."""
    cluster, shape = request.asked.cluster, request.asked.shape
    size = f"{significant(shape.params / 1e9)}B parameters"
    if shape.active_params != shape.params:
        size += f", {significant(shape.active_params / 1e9)}B active"
    precision = ", FP8" if setup.is_fp8 else ""
    return (
        f"{size} · {number(request.num_gpus)} {cluster.accelerator}, {cluster.gpus_per_node} per node{precision} · "
        f"sequence {number(setup.seq_len)}, {token_count(setup.gbs_tokens)}-token batch · "
        f"{constants(request.asked.profile)}"
    )


def constants(profile: Profile) -> str:
    """Where the constants come from, and how far off they were on rows that their fit had not seen."""
    about = profile.about
    if about.get("kind") != "fitted":
        return f"constants {profile.name}, from publications, not fitted to any run"
    error = about.get("time_median")
    unseen = f", median error {percent(error, 0)} on rows left out of the fit" if error is not None else ""
    return f"constants {profile.name}{unseen}"


def verdict(told: Answer) -> tuple[str, str]:
    """Symbol and words on whether the layout fits, with its room or its excess."""
    left = told.card_bytes - told.need_bytes
    if not told.fits:
        return "✕", f"**Does not fit**: {ABOUT}{gib(-left)} too much"
    near = " · near limit" if told.need_bytes > 0.9 * told.card_bytes else ""
    return "✓", f"**Fits**, {ABOUT}{gib(left)} to spare{near}"


def big_number(told: Answer) -> tuple[str, str]:
    """MFU of a layout that fits; of one that does not, the memory that it needs."""
    if told.fits:
        return f"{ABOUT}{percent(told.mfu)}", "MFU"
    return f"{ABOUT}{gib(told.need_bytes, 0)}", f"per GPU, the card has {gib(told.card_bytes)}"


def facts(told: Answer, found: Found) -> list[tuple[str, str]]:
    """What the panel lists of the chosen layout."""
    rows = [] if told.fits else [("MFU, had it the room", f"{ABOUT}{percent(told.mfu)}")]
    rows += [
        ("Memory", f"{ABOUT}{number(told.need_bytes / GIB, 1)} of {gib(told.card_bytes)}"),
        ("Step time", f"{ABOUT}{seconds(told.step_time_s)}"),
        ("Throughput", f"{ABOUT}{number(told.tokens_per_s_per_gpu)} tokens/s/GPU"),
    ]
    if told.fits and found.fitting:
        best = found.layouts["est_mfu"][0]
        place = found.place(told.tokens_per_s_per_gpu)
        rows.append(("Rank", f"{number(place)} of {number(found.fitting)} that fit with room"))
        rows.append(("Against the fastest", "is the fastest" if place == 1 else f"{points(told.mfu - best)} points"))
    return rows


def memory_value(part: Part) -> str:
    """A part of the memory."""
    return f"{ABOUT}{gib(part.size)}" if part.kind == "total" else number(part.size / GIB, 1)


def time_value(total: float) -> Any:
    """Text of a part of the step: its share of `total`; of the whole, seconds."""

    def text(part: Part) -> str:
        if part.kind == "total":
            return f"{ABOUT}{seconds(part.size)}"
        return f"{number(100 * part.size / total, 1)}{NBSP}%" if part.size else "0"

    return text


def left_out(names: Sequence[str]) -> str:
    """Which knobs of the address could not be honoured."""
    listed = ", ".join(KNOB[name] for name in names)
    return f"Cannot be launched with the rest, so taken from the fastest layout: {listed}." if names else ""


def like_this(near: pl.DataFrame, runs: int) -> str:
    """How close the store's runs come to the layout."""
    if not runs:
        return "The store has no completed run of this model on this accelerator."
    same = near.filter(pl.col("distance") == 0).height
    of = f"of the {count(runs, 'run')} of this model on this accelerator"
    return f"{number(same)} {of} had exactly this layout." if same else f"None {of} had exactly this layout; nearest:"


def neighbour(row: Row) -> tuple[str, str]:
    """A measured run beside the layout: its layout and what is not the same, then measured and estimated MFU."""
    other = ", ".join(_value(name, row[name]) for name in row["differs"])
    told = f"differs in {other}" if other else "the same"
    measured = percent(row["mfu"]) if row["mfu"] is not None else f"{number(row['tokens_per_s_per_gpu'])} tokens/s/GPU"
    estimated = f" · {ABOUT}{percent(row['est_mfu'])}" if row["est_mfu"] is not None else ""
    return f"{row['layout'] or 'layout unknown'}: {told}", f"{measured}{estimated}"


def _value(name: str, value: Any) -> str:
    """One setting in short.

    >>> _value("tp", 4), _value("num_gpus", 64), _value("recompute", "full"), _value("gbs_tokens", 2**20)
    ('TP4', '64 GPUs', 'full recompute', '1M-token batch')
    """
    if name == "num_gpus":
        return count(value, "GPU")
    if name == "gbs_tokens":
        return f"{token_count(value)}-token batch"
    if name == "seq_len":
        return f"sequence {number(value)}"
    if name == "recompute":
        return "no recompute" if value == "none" else f"{value} recompute"
    return f"{_SHORT[name]}{value}"


def front_hover(row: Row) -> str:
    """A layout of the front."""
    return "<br>".join([
        f"<b>{layout(row)}</b>",
        f"{ABOUT}{percent(row['est_mfu'])} MFU, {ABOUT}{seconds(row['est_step_time_s'])} per step",
        f"{ABOUT}{gib(row['est_mem_reserved_bytes'])} reserved",
    ])  # fmt: skip


def front_alt(found: Found, told: Answer) -> str:
    """The front in one sentence."""
    fast, lean = found.front.row(0, named=True), found.front.row(-1, named=True)
    ends = " to ".join(
        f"{layout(row)} at {percent(row['est_mfu'])} and {gib(row['est_mem_reserved_bytes'])}" for row in (fast, lean)
    )
    return (
        f"Estimated MFU against memory per GPU of {count(found.front.height, 'layout')} that nothing beats on both: "
        f"from {ends}; the chosen layout is at {percent(told.mfu)} and {gib(told.need_bytes)}."
    )


def pruned(found: Found) -> list[tuple[str, str]]:
    """Why layouts are not among those that fit, most first."""
    return [(f"{reason[:1].upper()}{reason[1:]}", number(amount)) for reason, amount in found.pruned.items()]
