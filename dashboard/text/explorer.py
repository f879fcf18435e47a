"""Sentences of Explorer & advisor on a question: its answer, its constants, the front and the search."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from sweepscope.dashboard.format.metrics import performance
from sweepscope.dashboard.format.numbers import (
    ABOUT,
    NBSP,
    between,
    capital,
    count,
    gib,
    number,
    percent,
    significant,
    token_count,
    unbroken,
)
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.text.cell import UNKNOWN_LAYOUT
from sweepscope.dashboard.text.explorer_layout import KNOB, mfu_of
from sweepscope.dashboard.view_models.explorer import Setup, likely_mfu
from sweepscope.dashboard.view_models.explorer_layout import Answer
from sweepscope.pipeline.estimate.physics.profile import Profile
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.estimate.search.search import AUTO, EXPECTATION, PHYSICS, Found
from sweepscope.pipeline.reference.layout_text import full_layout_text, layout_key

PARTS = {"layouts": "Fastest layouts", "switches": "Where the layout changes", "rules": "Flowchart and rules"}
PRECISIONS = {"bf16": "16 bit", "fp8": "FP8", "fp4": "FP4"}
RANKED_BY = {AUTO: "what runs reach, where enough are known", PHYSICS: "what the hardware allows"}

OWN_NOT_ESTIMATED = (
    "Your own runs cannot be estimated: none states the shape of its model, or names one that is known. Asked about "
    "instead: a known model under the conditions of your runs. "
    "**sweepscope ingest PATH --set model=NAME** names theirs."
)
HOW_TO_READ = (
    "**How to read it.** GPUs are fixed by the nodes, so DP takes what TP, PP and CP leave; the batch is fixed, so "
    "GAS takes what DP and MBS leave. A slider offers only values that can be launched with the other "
    "settings. Dark bars compute, light ones do not. A tilde marks every estimated figure.",
    "**What it hides.** Breakdowns show what the hardware allows. How much slower a framework's runs are was learned "
    "from measured runs of its own, and is left out where none made such a choice; an interval holds 80 % of "
    "comparable runs. Interleaving follows Megatron's rules; a framework may allow less.",
)


def answer(setup: Setup, request: Request, found: Found, measured: pl.DataFrame) -> str:
    """The fastest layout that fits, beside the best that was measured for the same question; or why there is none."""
    where = f"{setup.model} on {count(setup.nodes, 'node')}"
    if not found.launchable:
        why = next(iter(found.pruned), "there is nothing to try")
        return f"**No layout of {where} can be launched** with {count(request.gbs, 'sequence')} per step: {why}."
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
    # Runs in 16 bit stand beside it, whose MFU is of another peak.
    peak = "" if setup.precision == "bf16" else f" of the {PRECISIONS[setup.precision]} peak"
    expected = f"{ABOUT}{percent(likely)} MFU{peak}"
    same = _of_this_question(setup, request, measured)
    if same.height and same["tokens_per_s_per_gpu"][0] > speed:
        return _measured_is_faster(setup, same, best, f"{expected}{interval}")
    pick = f"**{unbroken(full_layout_text(best))}: {expected}**{interval}"
    first = f"On {count(setup.nodes, 'node')}, {setup.model} should train fastest with {pick}."
    return f"{first} {_measured(measured, same)}"


def _measured_is_faster(setup: Setup, same: pl.DataFrame, pick: Row, expected: str) -> str:
    """The answer when a run is faster than every estimate: that run, and what the estimate ranks first."""
    top = same.row(0, named=True)
    is_first = layout_key(pick) == layout_key(top)
    first = "it first, too" if is_first else f"{unbroken(full_layout_text(pick))} first"
    among = "the only" if same.height == 1 else f"the best of {number(same.height)}"
    return (
        f"On {count(setup.nodes, 'node')}, {setup.model} trained fastest with **{_top_layout(top)}: "
        f"{performance(top)}**, {among} {top['origin']} run{'' if same.height == 1 else 's'}. "
        f"The estimate ranks {first}: {expected}."
    )


def _of_this_question(setup: Setup, request: Request, runs: pl.DataFrame) -> pl.DataFrame:
    """The runs with these nodes, sequence and batch, fastest first."""
    return runs.filter(
        pl.col("num_gpus") == request.num_gpus,
        pl.col("seq_len") == setup.seq_len,
        pl.col("gbs_tokens") == setup.gbs_tokens,
        pl.col("tokens_per_s_per_gpu").is_not_null(),
    ).sort("tokens_per_s_per_gpu", descending=True, maintain_order=True)


def _top_layout(run: Row) -> str:
    return unbroken(run["layout"] or UNKNOWN_LAYOUT)


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
    precision = "" if setup.precision == "bf16" else f", {PRECISIONS[setup.precision]}"
    return (
        f"{size} · {number(request.num_gpus)} {cluster.accelerator}, {cluster.gpus_per_node} per node{precision} · "
        f"sequence {number(setup.seq_len)}, {token_count(setup.gbs_tokens)}-token batch · "
        f"{constants(request.asked.profile, found.ranked_by)}{_software(setup, request.asked.profile)}"
    )


def _software(setup: Setup, profile: Profile) -> str:
    """Of which year the kernels are, where that is the runs' and changes the estimate."""
    year = setup.software.year
    counts = year is not None and profile.software_since and profile.about.get("kind") != "fitted"
    return f", with kernels of {int(year)} as the newest runs have" if year is not None and counts else ""


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


def left_out(names: Sequence[str]) -> str:
    """Which knobs of the address could not be applied."""
    listed = ", ".join(KNOB[name] for name in names)
    return f"Cannot be launched with the rest, so taken from the fastest layout: {listed}." if names else ""


def front_hover(row: Row) -> str:
    """A layout of the front."""
    return (
        f"<b>{full_layout_text(row)}</b><br>{ABOUT}{percent(row['likely_mfu'])} MFU, the hardware allows "
        f"{ABOUT}{percent(row['est_mfu'])}<br>{ABOUT}{gib(row['est_mem_reserved_bytes'])} reserved"
    )


def front_alt(found: Found, estimate: Answer) -> str:
    """The front in one sentence."""
    likely = likely_mfu(found.front, found.ranked_by)
    first_and_last = [(found.front.row(index, named=True), likely[index]) for index in (0, -1)]
    ends = " to ".join(
        f"{full_layout_text(row)} at {percent(mfu)} and {gib(row['est_mem_reserved_bytes'])}"
        for row, mfu in first_and_last
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
    return [(capital(reason), number(amount)) for reason, amount in found.pruned.items()]
