"""The overlap checklist of the heuristics (`data/rules/rules.toml`), item by item, for one run.

An item holds, does not, is not needed by this layout, or cannot be told because the run does not say. What a framework
usually does is no statement of the run; what it was launched with is (`arguments`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import polars as pl

from sweepscope.pipeline.estimate.rows.argument_facts import facts_of_arguments
from sweepscope.pipeline.reference.accelerators import EIGHT_BIT, SIXTEEN_BIT
from sweepscope.schemas.thresholds import MEM_NEAR_LIMIT

State = Literal["holds", "open", "not_needed", "not_stated"]
BUCKET_MB: Final = 25.0
"""What the heuristics take as a good default, and PyTorch's DDP does (`bucket_cap_mb`)."""
LEAST_MICROBATCHES: Final = 8
"""In a pipeline; the heuristics say 8 to 16, and more only shrink the bubble."""


@dataclass(frozen=True)
class Item:
    """One line of the checklist: what it asks for, how the run stands to it, and the fact that says so."""

    name: str
    state: State
    reason: str


def checklist(run: Mapping[str, Any]) -> list[Item]:
    """The five items for a run: columns of `runs`, `memory_bytes` of its card, `est_fits`, and what `launch_facts`
    found."""
    return [_buckets(run), _prefetch(run), _microbatches(run), _recompute(run), _precision(run)]


_WORKERS: Final = ("num_workers", "dataloader_num_workers", "num_loading_workers", "data_loader_num_workers")
"""Names of the processes that load data on a rank: Megatron-LM and PyTorch, transformers, nanotron."""


def launch_facts(arguments: pl.DataFrame) -> dict[str, Any]:
    """`bucket_mb`, `overlap_dp` and `data_workers` of one run's rows of `arguments` (`name`, `value`), where stated."""
    named = arguments.select("name", "value", run_id=pl.lit(""))
    facts = facts_of_arguments(named).select("bucket_mb", "overlap_dp").to_dicts() if named.height else []
    of_training = ~pl.col("name").str.contains("(?i)eval|valid|test|preprocess")
    count = pl.col("value").str.strip_chars().cast(pl.Int64, strict=False)
    workers = named.filter(pl.col("name").str.split(".").list.last().is_in(_WORKERS), of_training, count >= 0)
    stated = {"data_workers": int(workers["value"][0])} if workers.height else {}
    return {**(facts[0] if facts else {}), **stated}


def _buckets(run: Mapping[str, Any]) -> Item:
    name = "Gradients exchanged in buckets (25 MB)"
    if run.get("dp") == 1 and (run.get("cp") or 1) == 1:
        return Item(name, "not_needed", "no replicas exchange gradients")
    size, overlaps = run.get("bucket_mb"), run.get("overlap_dp")
    waits = "" if overlaps is None else ", beside the backward pass" if overlaps else ", after the backward pass"
    if size is None and overlaps is None:
        return Item(name, "not_stated", "the log does not give the bucket size")
    if size is None:
        return Item(name, "holds" if overlaps else "open", f"of a size that is not logged{waits}")
    holds = size > 0 and overlaps is not False
    return Item(name, "holds" if holds else "open", f"buckets of {size:g} MB{waits}" if size else "no buckets")


def _prefetch(run: Mapping[str, Any]) -> Item:
    name = "Next batch loaded while this one computes"
    workers = run.get("data_workers")
    if workers is None:
        return Item(name, "not_stated", "the log does not give the loader's workers")
    if workers:
        return Item(name, "holds", f"{workers} loader worker{'' if workers == 1 else 's'} per rank")
    return Item(name, "open", "no loader workers: each batch is loaded when it is wanted")


def _microbatches(run: Mapping[str, Any]) -> Item:
    name = "In a pipeline, 8 to 16 micro-batches"
    stages, count = run.get("pp"), run.get("gas")
    if stages == 1:
        return Item(name, "not_needed", "no pipeline")
    if stages is None or count is None:
        return Item(name, "not_stated", "stages or micro-batches are not logged")
    fact = f"{count:,} micro-batch{'' if count == 1 else 'es'} on {stages} stages"
    return Item(name, "holds" if count >= LEAST_MICROBATCHES else "open", fact)


def _recompute(run: Mapping[str, Any]) -> Item:
    name = "Activations recomputed where memory limits"
    mode = run.get("recompute")
    peak = run.get("mem_peak_reserved_bytes") or run.get("mem_peak_allocated_bytes")
    card = run.get("memory_bytes")
    if mode in ("full", "selective"):
        return Item(name, "holds", f"{mode} recomputation")
    limits = run.get("status") == "oom"
    share = peak / card if peak and card else None
    if mode is None:
        return Item(name, "not_stated", "the log does not say what is recomputed")
    if limits:
        return Item(name, "open", "none, and the run ran out of memory")
    if share is None:
        fits = run.get("est_fits")
        if fits is None:
            return Item(name, "not_stated", "none; whether memory limits is unknown")
        return Item(
            name, "not_needed" if fits else "open", f"none, and the estimate {'fits' if fits else 'does not fit'}"
        )
    near = share > MEM_NEAR_LIMIT
    return Item(name, "open" if near else "not_needed", f"none, at {share:.0%} of the card")


def _precision(run: Mapping[str, Any]) -> Item:
    name = "Communication in 16 bit or less"
    precision = run.get("precision")
    if precision is None:
        return Item(name, "not_stated", "the log does not give the precision")
    short = precision in SIXTEEN_BIT or precision in EIGHT_BIT
    return Item(name, "holds" if short else "open", f"trained in {precision}")
