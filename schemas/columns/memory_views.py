"""Columns and words of the views that explain GPU memory: waterfall, fragmentation, terms, fit."""

from __future__ import annotations

from sweepscope.schemas.columns.memory import MEM_SOURCE
from sweepscope.schemas.core.column import float_column as _float
from sweepscope.schemas.core.column import int_column as _int
from sweepscope.schemas.core.column import text_column as _text

MEM_FIT: dict[str, str] = {
    "others": "other processes filled the GPU: it would have fitted without them",
    "expandable_segments": "would fit with expandable_segments: enough was free, but in pieces",
    "pools": "enough is free inside expandable segments, in other pools or streams",
    "recompute": "needs recompute: giving up activations frees enough",
    "micro_batch": "needs a smaller micro-batch: all layers are recomputed already",
    "sharding": "needs sharding: states and what remains exceed the GPU",
    "fragmented": "fits, near the limit; expandable_segments would give back most of the gap",
    "fits": "fits, near the limit",
    "unknown": "what would make it fit is not known: sizes or the shape are not told",
}

VERDICT_BASIS: dict[str, str] = {
    "snapshot": "an allocator snapshot recorded the failure",
    "oom_report": "the out-of-memory line in the log",
    "estimate": "the estimate alone: the log says no bytes",
    "peak": "peaks of a run of which nothing says that it ran out of memory",
}

PEAK_SOURCE: dict[str, str] = {
    "log": "the training log",
    "oom_report": "the out-of-memory line: what was in use when it failed",
    **MEM_SOURCE,
}

USED_SOURCE: dict[str, str] = {
    "oom_report": "the out-of-memory line, which knows the device's free bytes",
    "gpu_samples": "samples of nvidia-smi or DCGM during the run",
}

TERM: dict[str, str] = {
    "states": "weights, gradients and optimizer states",
    "activations": "activations kept for the backward pass",
    "logits": "logits and what the loss needs at once",
    "buffers": "gathered weights, working sets, context",
    "constant": "the same bytes on every run",
}

PART_KIND: dict[str, str] = {
    "estimated": "a term of the estimate; together they are the level `estimate`",
    "level": "a level that is measured or known, from 0",
    "gap": "the difference of the levels beside it",
    "measured": "what a snapshot says of the allocated level; together they are the level `allocated`",
}

PART: dict[str, str] = {
    "weights": "weights",
    "gradients": "gradients",
    "optimizer": "optimizer states",
    "activations": "activations",
    "logits": "logits and what the loss needs at once (estimated apart; snapshots count them as activations)",
    "buffers": "estimated: gathered weights, working sets, context; measured: communication, workspaces, temporaries",
    "unknown": "live at the peak, without a rule that says what for",
    "beyond_snapshot": "allocated beyond the snapshot's peak: rounding, other ranks, what its window missed",
    "estimate": "estimated peak of allocated bytes",
    "estimate_gap": "what the estimate missed (negative: it was too high)",
    "allocated": "measured peak of allocated bytes",
    "fragmentation": "reserved by the allocator and not allocated: cached, split and rounded blocks",
    "reserved": "measured peak of reserved bytes",
    "outside_allocator": "context, NCCL, libraries; other processes too where no source knows the process",
    "process": "all that the process holds on the device",
    "other_processes": "held by other processes",
    "device": "most bytes in use on the device",
    "headroom": "nobody used it",
    "card": "memory of the card",
}

_PARTS = {
    "weights": "weights",
    "gradients": "gradients",
    "optimizer": "optimizer states",
    "activations": "activations, inputs and what autograd keeps",
    "buffers": "communication, workspaces and temporaries",
    "unknown": "blocks that no rule knows, and bytes that no block explains",
}

COLUMNS = (
    _text("peak_source", "where allocated and reserved come from", PEAK_SOURCE),
    _float("estimate_gap_bytes", "bytes", "allocated less estimated"),
    _text("snapshot_path", "the snapshot with the largest peak of the run"),
    _int("snapshot_device", "id", "device of that snapshot"),
    *(_int(f"mem_{part}_bytes", "bytes", f"at that snapshot's peak: {what}") for part, what in _PARTS.items()),
    _int(
        "beyond_snapshot_bytes",
        "bytes",
        "allocated less that snapshot's peak: rounding, other ranks, what its window missed",
        minimum=None,
    ),
    _int("fragmentation_bytes", "bytes", "reserved less allocated", minimum=None),
    _float("eps_frag", "fraction", "reserved over allocated, minus 1, both of one source"),
    _int("mem_process_bytes", "bytes", "memory of the process on the device, context and libraries included"),
    _int("other_processes_bytes", "bytes", "in use on the device beyond this process", minimum=None),
    _text("used_source", "where mem_used_max_bytes comes from", USED_SOURCE),
    _int("headroom_bytes", "bytes", "the card less the last known level before it", minimum=None),
    _int("part_no", "id", "place of the part, from the estimate to the card", minimum=1),
    _text("part_kind", "what the part's bytes are to its neighbours", PART_KIND),
    _text("part", "part of the memory", PART),
    _float("begins_at_bytes", "bytes", "where the part begins when parts are drawn one after the other"),
    _int("n", "count", "runs that the figures rest on", minimum=1),
    _float("eps_frag_low", "fraction", "10 % quantile of eps_frag"),
    _float("eps_frag_high", "fraction", "90 % quantile of eps_frag"),
    _float("eps_frag_max", "fraction", "largest eps_frag"),
    _float("est_eps_frag", "fraction", "median allowance for fragmentation in the estimates of these runs"),
    _int("fragmentation_max_bytes", "bytes", "largest difference of reserved and allocated"),
    _text("term", "part of the estimated memory", TERM),
    _float("est_median_bytes", "bytes", "median of the estimated term"),
    _float("residual_median_bytes", "bytes", "median of allocated less estimated, over all terms"),
    _float("term_factor", "1", "factor on the estimated term that explains the residuals best, all else right"),
    _float("term_offset_bytes", "bytes", "the constant that explains the residuals best, all else right"),
    _float("explained_share", "fraction", "share of the residuals' sum of squares that the factor explains"),
    _int("n_snapshots", "count", "runs whose snapshot measured the term"),
    _float("est_beside_median_bytes", "bytes", "median of the estimated term of the runs with snapshots"),
    _float("measured_median_bytes", "bytes", "median of the measured term of the runs with snapshots"),
    _text("mem_verdict", "what the run needs", MEM_FIT),
    _text("verdict_basis", "what the verdict rests on", VERDICT_BASIS),
    _text("verdict_evidence", "the bytes that show it, in words"),
    _int("oom_missing_bytes", "bytes", "asked for less what the device, or a share of it, had left", minimum=None),
    _int("held_bytes", "bytes", "most bytes in use on the GPU, by what is known best"),
    _float("states_bytes", "bytes", "weights, gradients and optimizer states per GPU"),
    _float("activations_bytes", "bytes", "activations per GPU"),
)
