"""Sentences of the page on memory, each computed from the rows on screen."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from sweepscope.dashboard.format.implementation import framework_name
from sweepscope.dashboard.format.numbers import MINUS, count, memory, number, percent, plain, ratio
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.text.memory_run import need
from sweepscope.schemas.thresholds import EXPLAINED_SHARE

NOTHING = (
    "**No run of this store logged how much memory it used.** Ingest logs that print peak memory, allocator snapshots "
    "(torch.cuda.memory._dump_snapshot) or the output of nvidia-smi."
)
HOW_TO_GET = (
    "**Peaks and fragmentation:** Megatron's --log-memory-to-tensorboard line, torchtitan's memory column, "
    "nanotron's and picotron's logs, or a dump of torch.cuda.memory_stats() beside the log.",
    "**What was alive at the peak:** torch.cuda.memory._record_memory_history(max_entries=100000), then "
    'torch.cuda.memory._dump_snapshot("rank0.pickle") in the run\'s directory, on an OOM as well.',
    "**What lies outside PyTorch:** nvidia-smi --query-gpu=timestamp,index,uuid,memory.used,memory.total "
    "--format=csv -l 1 into a file in the run's directory.",
)
HOW_TO_READ = (
    "**How to read it.** Levels are peaks of a run's fullest GPU: estimated from first principles, allocated and "
    "reserved as PyTorch counts them, the GPU's use as its driver counts it. Each gap is the difference of the "
    "levels beside it. Fragmentation is reserved over allocated, minus 1, both of one source. A verdict compares what "
    "the failed request lacked with the bytes that were free in pieces, the rest with activations and model states.",
    "**What it hides.** An OOM line shows what the first request lacked, not what the rest of the step would have "
    "needed; where the estimate is higher, the estimate counts. The peak of a run that failed is a lower bound. Terms "
    "are tried one at a time: two that are off together can hide each other. Samples a second apart miss short peaks.",
)
NO_FRAGMENTATION = "No completed run logs both allocated and reserved memory."
NO_TERMS = "A term is fitted to five completed runs with an estimate and a peak at least."
NO_SNAPSHOT = "No allocator snapshot, timeline or statistics dump is among these files."


_LEVELS = {
    "mem_peak_allocated_bytes": "allocated",
    "mem_peak_reserved_bytes": "reserved",
    "mem_used_max_bytes": "in use",
    "mem_total_bytes": "card",
}
TERM_NAME = {
    "states": "Weights, gradients, optimizer",
    "activations": "Activations",
    "logits": "Logits and loss",
    "buffers": "Buffers, context",
    "constant": "A constant on every run",
}


def answer(peaks: pl.DataFrame, verdicts: Sequence[tuple[str, int]], spread: pl.DataFrame, snapshots: int) -> str:
    """What the failed runs need, and how much the allocator holds beyond what is allocated.

    Args:
        peaks: rows of `queries.memory.peaks`.
        verdicts: verdicts of the failed runs with their number.
        spread: rows of `memory_fragmentation`, the widest scope first.
        snapshots: number of memory artefacts.
    """
    parts = [part for part in (_failed(peaks, verdicts), _fragmentation(spread)) if part]
    if parts:
        return " ".join(parts)
    if peaks.height:
        return f"**None of {count(peaks.height, 'run')} ran out of GPU memory.**"
    return f"**{count(snapshots, 'memory file')}** without a run, listed under snapshots below."


def _failed(peaks: pl.DataFrame, verdicts: Sequence[tuple[str, int]]) -> str:
    failed = sum(runs for _, runs in verdicts)
    if not failed:
        return f"**None of {count(peaks.height, 'run')} ran out of GPU memory.**" if peaks.height else ""
    parts = [f"{number(runs)} {_needs(verdict, runs)}" for verdict, runs in verdicts]
    return f"**{count(failed, 'run')} ran out of GPU memory:** {', '.join(parts)}."


def _needs(verdict: str, runs: int) -> str:
    s = "" if runs > 1 else "s"
    return {
        "others": "had the GPU filled by other processes",
        "expandable_segments": "would fit with expandable_segments",
        "pools": "had enough free in other pools or streams",
        "recompute": f"need{s} recompute",
        "micro_batch": f"need{s} a smaller micro-batch",
        "sharding": f"need{s} sharding",
    }.get(verdict, f"leave{s} open what would help")


def _fragmentation(spread: pl.DataFrame) -> str:
    if spread.is_empty():
        return ""
    row = spread.row(0, named=True)
    runs = f"{count(row['n'], 'run')}" + (f" of {framework_name(row['framework'])}" if row["framework"] else "")
    return f"The allocator held **{percent(row['eps_frag'])}** more than was allocated ({runs})."


def meta(runs: int, sweep: str | None, sweeps: int, snapshots: int) -> str:
    """Runs, artefacts, sweeps."""
    parts = [f"{count(runs, 'run')} with a known peak or verdict" if runs else "no run"]
    if snapshots:
        parts.append(count(snapshots, "memory file"))
    if sweep is None and sweeps > 1:
        parts.append(f"{number(sweeps)} sweeps together")
    return " · ".join(parts)


def figures(peaks: pl.DataFrame, spread: pl.DataFrame, terms: pl.DataFrame) -> list[tuple[str, str, str]]:
    """Label, value and note of the plain figures.

    `peaks` are rows of `queries.memory.peaks`, `spread` of `memory_fragmentation`, `terms` of `memory_terms`.
    """
    return [
        ("Fullest GPU", *_fullest(peaks)),
        ("Reserved beyond allocated", *_beyond_allocated(spread)),
        ("Outside the allocator", *_outside(peaks)),
        ("Estimate", *_off(terms)),
    ]


def _fullest(peaks: pl.DataFrame) -> tuple[str, str]:
    known = peaks.filter(pl.col("card_share").is_not_null()).sort("card_share", descending=True)
    if known.is_empty():
        return "not logged", ""
    row = known.row(0, named=True)
    return percent(row["card_share"], 0), f"of {memory(row['mem_total_bytes'])}, {row['layout'] or 'layout unknown'}"


def _beyond_allocated(spread: pl.DataFrame) -> tuple[str, str]:
    if spread.is_empty():
        return "not logged", ""
    row = spread.row(0, named=True)
    return percent(row["eps_frag"]), f"10 to 90 %: {percent(row['eps_frag_low'])} to {percent(row['eps_frag_high'])}"


def _outside(peaks: pl.DataFrame) -> tuple[str, str]:
    outside = peaks["outside_allocator_bytes"].drop_nulls() if peaks.height else pl.Series([], dtype=pl.Int64)
    median = outside.median()
    if not isinstance(median, float):
        return "not known", "needs nvidia-smi, DCGM or an OOM line"
    return memory(median), f"median of {count(len(outside), 'run')}"


def _off(terms: pl.DataFrame) -> tuple[str, str]:
    """Value and note: the term that explains most of the estimate's error, if one does."""
    worst = next((row for row in terms.iter_rows(named=True) if row["explained_share"] is not None), None)
    if worst is None:
        return "not fitted", NO_TERMS
    name, share = TERM_NAME[worst["term"]], percent(worst["explained_share"], 0)
    if worst["explained_share"] < EXPLAINED_SHARE:
        return "no one term is off", f"{name} explains {share} of its error"
    return name, f"explains {share} of its error: {factor(worst)}"


def factor(row: Row) -> str:
    """The factor or constant that a term was fitted with."""
    if row["term"] == "constant":
        return f"{'' if row['term_offset_bytes'] < 0 else '+'}{memory(row['term_offset_bytes'])}"
    return ratio(row["term_factor"]).replace("-", MINUS) if row["term_factor"] >= 0 else "no plausible factor"


def peak_hover(row: Row, name: str) -> str:
    """Levels of one run."""
    levels = [f"{word} {memory(row[column])}" for column, word in _LEVELS.items() if row[column] is not None]
    lines = [f"<b>{plain(name)}</b>", ", ".join(levels)]
    if row["est_mem_bytes"] is not None:
        lines.append(f"~{memory(row['est_mem_bytes'])} estimated")
    if needed := need(row):
        lines.append(needed)
    return "<br>".join(lines)


def peaks_alt(rows: pl.DataFrame) -> str:
    """The peaks in one sentence."""
    failed = number(rows.filter(pl.col("status") == "oom").height)
    return f"Peak memory of {count(rows.height, 'run')} beside their cards; {failed} ran out of memory."


def spread_name(row: Row) -> str:
    """Name of a row of `memory_fragmentation`."""
    sweep = row["sweep"] or "all sweeps"
    # a folder is often named after the framework whose logs it holds
    return sweep if row["framework"] in (None, row["sweep"]) else f"{sweep} · {row['framework']}"


def spread_hover(row: Row) -> str:
    """Median, spread, number."""
    spread = f"{percent(row['eps_frag_low'])} to {percent(row['eps_frag_high'])}"
    return (
        f"<b>{plain(spread_name(row))}</b><br>median {percent(row['eps_frag'])}, 10 to 90 % {spread}<br>"
        f"{count(row['n'], 'run')}, at most {memory(row['fragmentation_max_bytes'])}"
    )


def terms_qualifier(terms: pl.DataFrame) -> str:
    """Whose runs the terms were fitted to."""
    row = terms.row(0, named=True)
    missed = row["residual_median_bytes"]
    whose = f"{count(row['n'], 'run')} of {framework_name(row['framework']) or 'all frameworks'}"
    return f"{whose}, median {memory(abs(missed))} {'more' if missed > 0 else 'less'} than estimated"


def measured_terms(terms: pl.DataFrame) -> str:
    """What snapshots measured of each term beside the estimate; empty without snapshots."""
    parts = [
        f"{TERM_NAME[row['term']].lower()} {memory(row['measured_median_bytes'])} measured, "
        f"~{memory(row['est_beside_median_bytes'])} estimated"
        for row in terms.iter_rows(named=True)
        if row["n_snapshots"] and row["est_beside_median_bytes"] is not None
    ]
    return f"**By snapshots:** {'; '.join(parts)}." if parts else ""
