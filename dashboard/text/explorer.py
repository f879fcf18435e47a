"""Sentences of Explorer & advisor, each computed from the estimate, the search or the store's own runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from sweepscope.dashboard.format.metrics import performance
from sweepscope.dashboard.format.numbers import (
    GIB,
    NBSP,
    count,
    gib,
    number,
    percent,
    seconds,
    significant,
    token_count,
)
from sweepscope.dashboard.view_models.estimator import times
from sweepscope.dashboard.view_models.explorer import Answer, Part, Setup, likely_mfu
from sweepscope.pipeline.estimate.physics.profile import Profile
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.estimate.search.search import AUTO, EXPECTATION, PHYSICS, Found
from sweepscope.pipeline.reference.layout_text import full_layout_text, layout_key
from sweepscope.schemas.thresholds import MEM_NEAR_LIMIT

Row = Mapping[str, Any]

_LEVEL = 5e-4  # a difference that prints as 0.0 %
RANKED_BY = {AUTO: "what runs reach, where enough are known", PHYSICS: "what the hardware allows"}

ABOUT = "~"
"""Before every estimated figure."""

KNOB = {
    "tp": "Tensor parallel (TP)",
    "pp": "Pipeline (PP)",
    "cp": "Context (CP)",
    "ep": "Expert (EP)",
    "pipeline_schedule": "Pipeline schedule",
    "vpp": "Chunks per stage (VPP)",
    "mbs": "Micro-batch (MBS)",
    "zero_stage": "ZeRO stage",
    "dp_replicate": "Copies of what ZeRO shards (HSDP)",
    "recompute": "Recompute",
}
_SHORT = {
    "tp": "TP",
    "pp": "PP",
    "cp": "CP",
    "ep": "EP",
    "vpp": "VPP",
    "mbs": "MBS",
    "zero_stage": "ZeRO-",
    "gas": "GAS",
    "dp": "DP",
}

HOW_TO_READ = (
    "**How to read it.** GPUs are fixed by the nodes, so DP takes what TP, PP and CP leave; the batch is fixed, so "
    "GAS takes what DP and MBS leave. A slider offers only values that can be launched with the other "
    "settings. Dark bars compute, light ones do not. A tilde marks every estimated figure.",
    "**What it hides.** Breakdowns show what the hardware allows. How much slower a framework's runs are was learned "
    "from measured runs of its own, and is left out where none made such a choice; an interval holds 80 % of "
    "comparable runs. Interleaving follows Megatron's rules; a framework may allow less.",
)


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
    likely = likely_mfu(found.layouts, found.ranked_by)[0]
    speed = best["est_tokens_per_s_per_gpu"] * likely / best["est_mfu"]
    ends = (best["est_mfu_lo"], best["est_mfu_hi"])
    interval = f" ({between(ends)} in 80{NBSP}% of comparable runs)" if None not in ends else ""
    expected = f"{ABOUT}{percent(likely)} MFU"
    same = _of_this_question(setup, request, measured)
    if same.height and same["tokens_per_s_per_gpu"][0] > speed:
        return _measured_is_faster(setup, same, best, f"{expected}{interval}")
    pick = _unbroken(full_layout_text(best))
    first = (
        f"On {count(setup.nodes, 'node')}, {setup.model} should train fastest with **{pick}: {expected}**{interval}."
    )
    return f"{first} {_measured(measured, same)}"


def _measured_is_faster(setup: Setup, same: pl.DataFrame, pick: Row, expected: str) -> str:
    """The answer when a run is faster than every estimate: that run, and what the estimate ranks first."""
    top = same.row(0, named=True)
    is_first = layout_key(pick) == layout_key(top)
    first = "it first, too" if is_first else f"{_unbroken(full_layout_text(pick))} first"
    among = "the only" if same.height == 1 else f"the best of {number(same.height)}"
    return (
        f"On {count(setup.nodes, 'node')}, {setup.model} trained fastest with **{_top_layout(top)}: "
        f"{performance(top)}**, {among} {top['origin']} run{'' if same.height == 1 else 's'}. "
        f"The estimate ranks {first}: {expected}."
    )


def between(ends: Sequence[float]) -> str:
    """Two shares as an interval.

    >>> between((0.316, 0.386)).replace(NBSP, " ")
    '31.6 to 38.6 %'
    """
    return f"{number(100 * ends[0], 1)} to {percent(ends[1])}".replace(" to ", f"{NBSP}to{NBSP}")


def _why(found: Found) -> str:
    return next(iter(found.pruned), "there is nothing to try")


def _of_this_question(setup: Setup, request: Request, runs: pl.DataFrame) -> pl.DataFrame:
    """The runs with these nodes, sequence and batch, fastest first."""
    return runs.filter(
        pl.col("num_gpus") == request.num_gpus,
        pl.col("seq_len") == setup.seq_len,
        pl.col("gbs_tokens") == setup.gbs_tokens,
        pl.col("tokens_per_s_per_gpu").is_not_null(),
    ).sort("tokens_per_s_per_gpu", descending=True, maintain_order=True)


def _top_layout(run: Row) -> str:
    return _unbroken(run["layout"] or "an unknown layout")


def _measured(runs: pl.DataFrame, same: pl.DataFrame) -> str:
    if runs.is_empty():
        return "No run of it on this accelerator is in the store."
    if same.is_empty():
        return f"None of its {count(runs.height, 'run')} in the store had these nodes, sequence and batch."
    top = same.row(0, named=True)
    reached = f"{performance(top, unit='')} with {_top_layout(top)}"
    if same.height == 1:
        return f"The one {same['origin'][0]} run reached {reached}."
    return f"The best of {number(same.height)} {same['origin'][0]} runs reached {reached}."


def meta(setup: Setup, request: Request, found: Found) -> str:
    """The question, and where the constants come from."""
    cluster, shape = request.asked.cluster, request.asked.shape
    size = f"{significant(shape.params / 1e9)}B parameters"
    if shape.active_params != shape.params:
        size += f", {significant(shape.active_params / 1e9)}B active"
    precision = ", FP8" if setup.is_fp8 else ""
    return (
        f"{size} · {number(request.num_gpus)} {cluster.accelerator}, {cluster.gpus_per_node} per node{precision} · "
        f"sequence {number(setup.seq_len)}, {token_count(setup.gbs_tokens)}-token batch · "
        f"{constants(request.asked.profile, found.ranked_by)}"
    )


def constants(profile: Profile, ranked_by: str) -> str:
    """Where the constants come from, and how far off the physics alone was on rows that their fit had not seen.

    Where slow runs are accounted for by a learned penalty, that error does not apply to what is shown.
    """
    about = profile.about
    if ranked_by == EXPECTATION:
        return f"constants {profile.name}, with the penalty learned from its runs"
    if about.get("kind") != "fitted":
        return f"constants {profile.name}, from publications, not fitted to any run"
    error = about.get("time_median")
    unseen = f", median error {percent(error, 0)} on rows left out of the fit" if error is not None else ""
    return f"constants {profile.name}{unseen}"


def verdict(estimate: Answer) -> tuple[str, str]:
    """Symbol and words on whether the layout fits, with its room or its excess."""
    left = estimate.card_bytes - estimate.need_bytes
    if not estimate.fits:
        return "✕", f"**Does not fit**: {ABOUT}{gib(-left)} too much"
    near = " · near limit" if estimate.need_bytes > MEM_NEAR_LIMIT * estimate.card_bytes else ""
    return "✓", f"**Fits**, {ABOUT}{gib(left)} to spare{near}"


def mfu_of(estimate: Answer, ranked_by: str) -> float:
    """MFU of a layout by what layouts are ranked by."""
    return estimate.likely_mfu if ranked_by == EXPECTATION else estimate.mfu


def big_number(estimate: Answer, ranked_by: str) -> tuple[str, str]:
    """MFU of a layout that fits; of one that does not, the memory that it needs."""
    if estimate.fits:
        interval = f", {between(estimate.interval)} likely" if estimate.interval else ""
        return f"{ABOUT}{percent(mfu_of(estimate, ranked_by))}", f"MFU{interval}"
    return f"{ABOUT}{gib(estimate.need_bytes, 0)}", f"per GPU, the card has {gib(estimate.card_bytes)}"


def facts(estimate: Answer, found: Found) -> list[tuple[str, str]]:
    """What the panel lists of the chosen layout."""
    slow = estimate.penalty or 1.0
    rows = [("The hardware allows", f"{ABOUT}{percent(estimate.mfu)} MFU")]
    rows.append(
        ("Runs like it take", f"{ABOUT}{times(estimate.penalty)} as long" if estimate.penalty else _no_penalty(found))
    )
    step = f"{ABOUT}{seconds(slow * estimate.step_time_s)}"
    rows.append(("Step, throughput", f"{step}, {ABOUT}{number(estimate.tokens_per_s_per_gpu / slow)} tokens/s/GPU"))
    if estimate.fits and found.fitting:
        place = found.rank(estimate.tokens_per_s_per_gpu)
        rows.append(("Rank by the hardware", f"{number(place)} of {number(found.fitting)} that fit with room"))
        speed = mfu_of(estimate, found.ranked_by) / likely_mfu(found.layouts, found.ranked_by)[0]
        rows.append(("Against the fastest", _against(speed)))
    return rows


def _against(speed: float) -> str:
    """A share of the fastest layout's speed in words: "4.1 % slower".

    >>> _against(0.959).replace(NBSP, " "), _against(1.0002)
    ('4.1 % slower', 'level')
    """
    if abs(speed - 1) < _LEVEL:
        return "level"
    return f"{percent(abs(speed - 1))} {'slower' if speed < 1 else 'faster'}"


def _no_penalty(found: Found) -> str:
    return "unknown: no run made such a choice" if found.ranked_by == EXPECTATION else "not learned for these constants"


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


def nearest_run(row: Row) -> tuple[str, str]:
    """A measured run beside the layout: its layout and what is not the same, then measured and estimated MFU."""
    other = ", ".join(_value(name, row[name]) for name in row["differs"])
    difference = f"differs in {other}" if other else "the same"
    measured = performance(row, unit="")
    estimated = f" · {ABOUT}{percent(row['est_mfu'])}" if row["est_mfu"] is not None else ""
    return f"{row['layout'] or 'layout unknown'}: {difference}", f"{measured}{estimated}"


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
    return "<br>".join(
        [
            f"<b>{full_layout_text(row)}</b>",
            f"{ABOUT}{percent(row['likely_mfu'])} MFU, the hardware allows {ABOUT}{percent(row['est_mfu'])}",
            f"{ABOUT}{gib(row['est_mem_reserved_bytes'])} reserved",
        ]
    )


def front_alt(found: Found, estimate: Answer) -> str:
    """The front in one sentence."""
    likely = likely_mfu(found.front, found.ranked_by)
    ends_of_front = [(found.front.row(place, named=True), likely[place]) for place in (0, -1)]
    ends = " to ".join(
        f"{full_layout_text(row)} at {percent(mfu)} and {gib(row['est_mem_reserved_bytes'])}"
        for row, mfu in ends_of_front
    )
    return (
        f"Estimated MFU against memory per GPU of {count(found.front.height, 'layout')} that nothing beats on both: "
        f"from {ends}; the chosen layout is at {percent(mfu_of(estimate, found.ranked_by))} "
        f"and {gib(estimate.need_bytes)}."
    )


def ranked(found: Found) -> str:
    """What the table is ordered by."""
    by = "what runs reach" if found.ranked_by == EXPECTATION else "what the hardware allows"
    return f"by {by}, all figures estimated; select a row to take it"


def pruned(found: Found) -> list[tuple[str, str]]:
    """Why layouts are not among those that fit, most first."""
    return [(f"{reason[:1].upper()}{reason[1:]}", number(amount)) for reason, amount in found.pruned.items()]
