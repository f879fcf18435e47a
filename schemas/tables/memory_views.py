"""Views that explain GPU memory: which run an artefact belongs to, the waterfall, fragmentation, terms, fit."""

from __future__ import annotations

from sweepscope.schemas.core.column import bool_column, float_column, int_column
from sweepscope.schemas.core.table import Table

_RUN = ("origin", "sweep", "framework", "model", "accelerator", "num_nodes", "num_gpus", "layout", "recompute")
_EST = tuple(
    f"est_mem_{part}_bytes" for part in ("weights", "gradients", "optimizer", "activations", "logits", "buffers")
)
_PARTS = tuple(f"mem_{part}_bytes" for part in ("weights", "gradients", "optimizer", "activations", "buffers"))

GPU_OOM_REPORTS = Table(
    name="gpu_oom_reports",
    description="The figures of PyTorch's out-of-memory texts, to their printed two decimals.",
    grain="one row per evidence line with figures",
    primary_key=("source_path", "line_no", "run_id"),
    column_names=(
        "run_id",
        "source_path",
        "line_no",
        "rank",
        "host",
        "gpu_index",
        "oom_requested_bytes",
        "oom_device_free_bytes",
        "oom_missing_bytes",
        "allocated_bytes",
        "reserved_bytes",
        "oom_inactive_bytes",
        "mem_process_bytes",
        "mem_used_bytes",
        "mem_total_bytes",
    ),
    layer="view",
    overrides=(int_column("oom_inactive_bytes", "bytes", "reserved by the allocator and not allocated", minimum=None),),
)

RUN_SNAPSHOTS = Table(
    name="run_snapshots",
    description="Which run a memory artefact belongs to.",
    grain="one row per file and device that can be told to belong to one run",
    primary_key=("source_path", "device"),
    column_names=("run_id", "source_path", "device"),
    layer="view",
    nullable_key=("device",),
)

MEMORY_WATERFALL = Table(
    name="memory_waterfall",
    description="From the estimated parts over allocated, reserved, process and device to the card: the levels of each "
    "run's fullest GPU and the gaps between them. Each gap is the difference of its levels, NULL where one is unknown.",
    grain="one row per run attempt with any measured memory (duplicates are left out)",
    primary_key=("run_id",),
    column_names=(
        "run_id",
        *_RUN,
        "status",
        *_EST,
        "est_mem_bytes",
        "estimate_gap_bytes",
        "snapshot_path",
        "snapshot_device",
        *_PARTS,
        "mem_unknown_bytes",
        "beyond_snapshot_bytes",
        "mem_peak_allocated_bytes",
        "peak_source",
        "peak_is_lower_bound",
        "fragmentation_bytes",
        "eps_frag",
        "mem_peak_reserved_bytes",
        "outside_allocator_bytes",
        "mem_process_bytes",
        "other_processes_bytes",
        "mem_used_max_bytes",
        "used_source",
        "headroom_bytes",
        "mem_total_bytes",
    ),
    layer="view",
    overrides=(
        int_column("mem_peak_allocated_bytes", "bytes", "peak allocated, of the source that saw most"),
        int_column("mem_peak_reserved_bytes", "bytes", "peak reserved, of the same source"),
        int_column(
            "outside_allocator_bytes",
            "bytes",
            "process less reserved: context, NCCL, libraries; the device's use less reserved where no source knows "
            "the process, other processes included",
            minimum=None,
        ),
        int_column("mem_total_bytes", "bytes", "memory of the card, as its driver or its data sheet says"),
    ),
)

MEMORY_WATERFALL_PARTS = Table(
    name="memory_waterfall_parts",
    description="`memory_waterfall` in long form, in the order of a picture; what is unknown keeps its row, as NULL.",
    grain="one row per run attempt with any measured memory, and part",
    primary_key=("run_id", "part_no"),
    column_names=("run_id", "part_no", "part_kind", "part", "bytes", "begins_at_bytes"),
    layer="view",
    overrides=(float_column("bytes", "bytes", "the part; negative where a level lies below the one before it"),),
)

MEMORY_FRAGMENTATION = Table(
    name="memory_fragmentation",
    description="What the allocator reserves beyond what is allocated (eps_frag), with its spread.",
    grain="one row per origin, sweep (NULL: over all sweeps of the origin) and framework",
    primary_key=("origin", "sweep", "framework"),
    column_names=(
        "origin",
        "sweep",
        "framework",
        "n",
        "eps_frag",
        "eps_frag_low",
        "eps_frag_high",
        "eps_frag_max",
        "est_eps_frag",
        "fragmentation_max_bytes",
    ),
    layer="view",
    nullable_key=("sweep", "framework"),
)

MEMORY_TERMS = Table(
    name="memory_terms",
    description="Which term of the memory estimate is off: the factor on each term alone that explains the residuals "
    "best and how much of them it explains, and the term as snapshots measured it.",
    grain="one row per origin, sweep (NULL: over all sweeps of the origin), framework and term",
    primary_key=("origin", "sweep", "framework", "term"),
    column_names=(
        "origin",
        "sweep",
        "framework",
        "term",
        "n",
        "est_median_bytes",
        "residual_median_bytes",
        "term_factor",
        "term_offset_bytes",
        "explained_share",
        "n_snapshots",
        "est_beside_median_bytes",
        "measured_median_bytes",
    ),
    layer="view",
    nullable_key=("sweep", "framework"),
)

MEMORY_FIT = Table(
    name="memory_fit",
    description="What each run that ran out of GPU memory, or came near to it, needs; with the bytes that show it.",
    grain="one row per run attempt that ran out of GPU memory or held most of its card (duplicates are left out)",
    primary_key=("run_id",),
    column_names=(
        "run_id",
        *_RUN,
        "mbs",
        "status",
        "mem_verdict",
        "verdict_basis",
        "verdict_evidence",
        "oom_requested_bytes",
        "oom_device_free_bytes",
        "oom_missing_bytes",
        "oom_inactive_bytes",
        "is_expandable",
        "allocated_bytes",
        "held_bytes",
        "est_mem_bytes",
        "states_bytes",
        "activations_bytes",
        "parts_are_estimated",
        "mem_total_bytes",
        "status_evidence",
        "source_path",
    ),
    layer="view",
    overrides=(
        int_column(
            "oom_inactive_bytes",
            "bytes",
            "free bytes inside the allocator's segments at the failure; of a run that did not fail, its peak reserved "
            "less its peak allocated",
            minimum=None,
        ),
        int_column("allocated_bytes", "bytes", "allocated at the failure, or at the peak"),
        bool_column("is_expandable", "segments were expandable; NULL: nothing says so"),
        bool_column("parts_are_estimated", "states and activations are estimated, not measured at a snapshot's peak"),
        int_column("mem_total_bytes", "bytes", "memory of the card, as its driver or its data sheet says"),
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
