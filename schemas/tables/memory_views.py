"""Views that explain GPU memory: which run an artefact belongs to, the waterfall, fragmentation, terms, fit."""

from __future__ import annotations

from sweepscope.schemas.columns.shared import columns
from sweepscope.schemas.core.column import flag, integer, number, text
from sweepscope.schemas.core.table import Table
from sweepscope.schemas.vocab.memory import MEM_FIT, PART, PART_KIND, PEAK_SOURCE, TERM, USED_SOURCE, VERDICT_BASIS

_RUN = "origin sweep framework model accelerator num_nodes num_gpus layout recompute"
_PARTS = {
    "weights": "weights",
    "gradients": "gradients",
    "optimizer": "optimizer states",
    "activations": "activations, inputs and what autograd keeps",
    "buffers": "communication, workspaces and temporaries",
    "unknown": "blocks that no rule knows, and bytes that no block explains",
}

GPU_OOM_REPORTS = Table(
    name="gpu_oom_reports",
    description="The figures of out-of-memory texts of PyTorch, XLA and TensorFlow, to their printed two decimals.",
    grain="one row per evidence line with figures",
    primary_key=("source_path", "line_no", "run_id"),
    layer="view",
    redefines=("oom_inactive_bytes",),
    columns=columns(
        "run_id source_path line_no rank host gpu_index oom_requested_bytes oom_device_free_bytes "
        "oom_missing_bytes allocated_bytes reserved_bytes",
        integer("oom_inactive_bytes", "bytes", "reserved by the allocator and not allocated", minimum=None),
        "mem_process_bytes mem_used_bytes mem_total_bytes",
    ),
)

RUN_SNAPSHOTS = Table(
    name="run_snapshots",
    description="Which run a memory artefact belongs to.",
    grain="one row per file and device of which the run is known",
    primary_key=("source_path", "device"),
    layer="view",
    is_stored=True,
    nullable_key=("device",),
    columns=columns("run_id source_path device"),
)

MEMORY_WATERFALL = Table(
    name="memory_waterfall",
    description="From the estimated parts over allocated, reserved, process and device to the card: the levels of each "
    "run's fullest GPU and the gaps between them. Each gap is the difference of its levels, NULL where one is unknown.",
    grain="one row per run attempt with any measured memory (duplicates are left out)",
    primary_key=("run_id",),
    layer="view",
    is_stored=True,
    is_run_by_run=True,
    redefines=("mem_peak_allocated_bytes", "mem_peak_reserved_bytes", "outside_allocator_bytes", "mem_total_bytes"),
    columns=columns(
        "run_id",
        _RUN,
        "status est_mem_weights_bytes est_mem_gradients_bytes est_mem_optimizer_bytes "
        "est_mem_activations_bytes est_mem_logits_bytes est_mem_buffers_bytes est_mem_bytes",
        number("estimate_gap_bytes", "bytes", "allocated less estimated"),
        text("snapshot_path", "the snapshot with the largest peak of the run"),
        integer("snapshot_device", "id", "device of that snapshot"),
        tuple(
            integer(f"mem_{part}_bytes", "bytes", f"at that snapshot's peak: {what}") for part, what in _PARTS.items()
        ),
        integer(
            "beyond_snapshot_bytes",
            "bytes",
            "allocated less that snapshot's peak: rounding, other ranks, what its window missed",
            minimum=None,
        ),
        integer("mem_peak_allocated_bytes", "bytes", "peak allocated, of the source that saw most"),
        text("peak_source", "where allocated and reserved come from", PEAK_SOURCE),
        "peak_is_lower_bound",
        integer("fragmentation_bytes", "bytes", "reserved less allocated", minimum=None),
        "eps_frag",
        integer("mem_peak_reserved_bytes", "bytes", "peak reserved, of the same source"),
        integer(
            "outside_allocator_bytes",
            "bytes",
            "process less reserved: context, NCCL, libraries; the device's use less reserved where no source knows "
            "the process, other processes included",
            minimum=None,
        ),
        "mem_process_bytes",
        integer("other_processes_bytes", "bytes", "in use on the device beyond this process", minimum=None),
        "mem_used_max_bytes",
        text("used_source", "where mem_used_max_bytes comes from", USED_SOURCE),
        integer("headroom_bytes", "bytes", "the card less the last known level before it", minimum=None),
        integer("mem_total_bytes", "bytes", "memory of the card, from its driver or its data sheet"),
    ),
)

MEMORY_WATERFALL_PARTS = Table(
    name="memory_waterfall_parts",
    description="`memory_waterfall` in long form, in the order of a picture; what is unknown keeps its row, as NULL.",
    grain="one row per run attempt with any measured memory, and part",
    primary_key=("run_id", "part_no"),
    layer="view",
    redefines=("bytes",),
    columns=columns(
        "run_id",
        integer("part_no", "id", "place of the part, from the estimate to the card", minimum=1),
        text("part_kind", "what the part's bytes are to the parts beside it", PART_KIND),
        text("part", "part of the memory", PART),
        number("bytes", "bytes", "the part; negative where a level lies below the one before it"),
        number("begins_at_bytes", "bytes", "where the part begins when parts are drawn one after the other"),
    ),
)

MEMORY_FRAGMENTATION = Table(
    name="memory_fragmentation",
    description="What the allocator reserves beyond what is allocated (eps_frag), with its spread.",
    grain="one row per origin, sweep (NULL: over all sweeps of the origin) and framework",
    primary_key=("origin", "sweep", "framework"),
    layer="view",
    nullable_key=("sweep", "framework"),
    columns=columns(
        "origin sweep framework n eps_frag",
        number("eps_frag_low", "fraction", "10 % quantile of eps_frag"),
        number("eps_frag_high", "fraction", "90 % quantile of eps_frag"),
        number("eps_frag_max", "fraction", "largest eps_frag"),
        number("est_eps_frag", "fraction", "median allowance for fragmentation in the estimates of these runs"),
        integer("fragmentation_max_bytes", "bytes", "largest difference of reserved and allocated"),
    ),
)

MEMORY_TERMS = Table(
    name="memory_terms",
    description="Which term of the memory estimate is off: the factor on each term alone that explains the residuals "
    "best and how much of them it explains, and the term as snapshots measured it.",
    grain="one row per origin, sweep (NULL: over all sweeps of the origin), framework and term",
    primary_key=("origin", "sweep", "framework", "term"),
    layer="view",
    nullable_key=("sweep", "framework"),
    columns=columns(
        "origin sweep framework",
        text("term", "part of the estimated memory", TERM),
        "n",
        number("est_median_bytes", "bytes", "median of the estimated term"),
        number("residual_median_bytes", "bytes", "median of allocated less estimated, over all terms"),
        number("term_factor", "1", "factor on the estimated term that explains the residuals best, all else right"),
        number("term_offset_bytes", "bytes", "the constant that explains the residuals best, all else right"),
        number("explained_share", "fraction", "share of the residuals' sum of squares that the factor explains"),
        integer("n_snapshots", "count", "runs whose snapshot measured the term"),
        number("est_beside_median_bytes", "bytes", "median of the estimated term of the runs with snapshots"),
        number("measured_median_bytes", "bytes", "median of the measured term of the runs with snapshots"),
    ),
)

MEMORY_FIT = Table(
    name="memory_fit",
    description="What each run that ran out of GPU memory, or came near to it, needs; with the bytes that show it.",
    grain="one row per run attempt that ran out of GPU memory or held most of its card (duplicates are left out)",
    primary_key=("run_id",),
    layer="view",
    redefines=("oom_inactive_bytes", "allocated_bytes", "is_expandable", "mem_total_bytes"),
    columns=columns(
        "run_id",
        _RUN,
        "mbs status",
        text("mem_verdict", "what the run needs", MEM_FIT),
        text("verdict_basis", "what the verdict rests on", VERDICT_BASIS),
        text("verdict_evidence", "the bytes that show it, in words"),
        "oom_requested_bytes oom_device_free_bytes oom_missing_bytes",
        integer(
            "oom_inactive_bytes",
            "bytes",
            "free bytes inside the allocator's segments at the failure; of a run that did not fail, its peak reserved "
            "less its peak allocated",
            minimum=None,
        ),
        flag("is_expandable", "segments were expandable; NULL: unknown"),
        integer("allocated_bytes", "bytes", "allocated at the failure, or at the peak"),
        integer("held_bytes", "bytes", "most bytes in use on the GPU, by what is known best"),
        "est_mem_bytes",
        number("states_bytes", "bytes", "weights, gradients and optimizer states per GPU"),
        number("activations_bytes", "bytes", "activations per GPU"),
        flag("parts_are_estimated", "states and activations are estimated, not measured at a snapshot's peak"),
        integer("mem_total_bytes", "bytes", "memory of the card, from its driver or its data sheet"),
        "status_evidence source_path",
        integer("oom_line_no", "count", "line with that request: of the status's evidence, else of the fullest GPU"),
    ),
)

VIEWS = (
    GPU_OOM_REPORTS,
    RUN_SNAPSHOTS,
    MEMORY_WATERFALL,
    MEMORY_WATERFALL_PARTS,
    MEMORY_FRAGMENTATION,
    MEMORY_TERMS,
    MEMORY_FIT,
)
