"""Sentences on where a layout has to change: over accelerators at one batch, and over batches on one cluster."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from sweepscope.dashboard.format.numbers import ABOUT, capital, number, percent, plain, token_count
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.view_models.explorer import Setup
from sweepscope.dashboard.view_models.switch_points import BATCH, GPUS, Switches
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.estimate.search.switch_points import CONDITIONS
from sweepscope.pipeline.reference.layout_text import full_layout_text

KIND = {
    "data": "DP alone",
    "tensor": "TP in a domain",
    "pipeline": "with PP",
    "tensor_out": "TP beyond it",
}
"""Names of the kinds of layouts, at the ends of their lines."""
_SHORT = {
    "tensor_pays": "tensor parallelism pays off",
    "dp_shows": "the data-parallel exchange can no longer be hidden",
    "pipeline_pays": "pipelines pay off",
    "batch_short": "there are more GPUs than sequences",
    "tensor_leaves": "tensor groups leave the domain of links",
    "ratio_low": "compute is below ten times communication",
}


def marks(found: Switches) -> list[tuple[str, int, str]]:
    """(letter, accelerators, what holds from there on) of every condition that flips within the sizes tried, in order.

    What holds at the smallest size already is no switch.
    """
    flipped = [
        (flip.value, name)
        for name in CONDITIONS
        for flip in found.flips
        if flip.condition == name and flip.value is not None and flip.value > found.counts[0]
    ]
    ordered = sorted(flipped, key=lambda one: one[0])
    return [(chr(ord("A") + place), value, CONDITIONS[name]) for place, (value, name) in enumerate(ordered)]


def answer(found: Switches, setup: Setup, request: Request) -> str:
    """Up to where the layout scales, what changes first, and the smallest batch that keeps the efficiency."""
    batch = f"{token_count(setup.gbs_tokens)}-token batch"
    if found.base_mfu is None:
        return f"**No layout of {setup.model} fits on up to {number(found.counts[-1])} GPUs** at a {batch}."
    by_name = {flip.condition: flip.value for flip in found.flips}
    lost = by_name["efficiency_lost"]
    kept = [count for count in found.counts if lost is None or count < lost]
    beyond = "all sizes tried, " if lost is None else ""
    text = f"**{setup.model} keeps 90 % of its efficiency up to {beyond}{number(kept[-1])} GPUs** at a {batch}."
    changes = sorted(
        (value, words)
        for name, words in _SHORT.items()
        if (value := by_name[name]) is not None and value > found.counts[0]
    )
    if changes:
        listed = "; ".join(f"from {number(value)} {words}" for value, words in changes[:3])
        text += f" {capital(listed)}."
    return f"{text} {_batch_sentence(found, request)}"


def _batch_sentence(found: Switches, request: Request) -> str:
    where = f"On {number(request.num_gpus)} GPUs"
    if found.least_tokens is None:
        return f"{where} no batch tried reaches 90 %."
    if found.least_tokens == found.over_batches[BATCH].min():
        return f"{where} even the smallest batch tried keeps 90 %: {token_count(found.least_tokens)} tokens."
    return f"{where} the smallest batch that keeps 90 % is {token_count(found.least_tokens)} tokens."


def flip_rows(found: Switches) -> list[tuple[str, str]]:
    """Every condition with where it flips, for the list beside the chart."""
    letters = {words: letter for letter, _, words in marks(found)}
    rows = []
    for flip in found.flips:
        words = CONDITIONS[flip.condition]
        letter = f"{letters[words]} · " if words in letters else ""
        if flip.value is None:
            where = f"not up to {number(found.counts[-1])}"
        elif flip.value <= found.counts[0]:
            where = f"from {number(flip.value)} on, the smallest tried"
        else:
            where = f"from {number(flip.value)} GPUs on"
        rows.append((f"{letter}{capital(words)}", where))
    return rows


def hovers(rows: pl.DataFrame) -> list[str]:
    """One hover per estimated point: layout, MFU, and the ratios that decide."""
    return [_hover(row) for row in rows.iter_rows(named=True)]


def _hover(row: Row) -> str:
    lines = [f"<b>{KIND[row['kind']]}</b>", full_layout_text(row), f"{ABOUT}{percent(row['est_mfu'])} MFU, estimated"]
    if row["est_compute_per_comm"] is not None:
        lines.append(f"compute {number(row['est_compute_per_comm'], 1)} × communication")
    if row["est_dp_per_pass"] is not None:
        lines.append(f"DP exchange {number(row['est_dp_per_pass'], 2)} × the passes that could hide it")
    return "<br>".join(lines)


def run_hovers(rows: pl.DataFrame) -> list[str]:
    """One hover per run."""
    return [
        f"<b>{plain(row['layout'] or 'layout unknown')}</b><br>{percent(row['mfu'])} MFU, {row['origin']}"
        for row in rows.iter_rows(named=True)
    ]


def alt(rows: pl.DataFrame, axis: str, found: Switches) -> str:
    """What a chart shows, for those who cannot see it."""
    what = "GPUs" if axis == GPUS else "tokens in a batch"
    values = rows[axis]
    span = f"{number(values.min())} to {number(values.max())} {what}" if rows.height else f"no value of {what}"  # type: ignore[arg-type]  # as above: of integers
    flips = "; ".join(f"{letter}: {words} from {number(value)}" for letter, value, words in marks(found))
    return f"Estimated MFU of the fastest layout of each kind over {span}. {flips if axis == GPUS else ''}".strip()


def tick(axis: str, value: int) -> str:
    """A value of an axis in short."""
    return number(value) if axis == GPUS else token_count(value)


def axis_title(axis: str, request: Request) -> str:
    """What an axis shows, and what is fixed."""
    if axis == BATCH:
        return f"Global batch, tokens, on {number(request.num_gpus)} GPUs (log scale)"
    return f"GPUs at a {token_count(request.gbs * request.asked.seq_len)}-token batch (log scale)"


def kinds_shown(rows: pl.DataFrame) -> Sequence[str]:
    """Kinds that have a layout, in their order."""
    there = set(rows["kind"].to_list())
    return [kind for kind in KIND if kind in there]
