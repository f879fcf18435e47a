"""The tables of what GPU memory artefacts say: allocator snapshots, timelines, device samples."""

from __future__ import annotations

import polars as pl

from sweepscope.schemas.core.column import Column, int_column, text_column, time_column
from sweepscope.schemas.core.table import Table

_RANK = int_column("rank", "id", "rank named in the file's path")

MEMORY_SNAPSHOTS = Table(
    name="memory_snapshots",
    description="What each memory artefact says about each device: state at its end, peaks, fragmentation, failures. "
    "Joined to `runs` by run_dir.",
    grain="one row per file and device",
    primary_key=("source_path", "device"),
    column_names=(
        "source_path",
        "device",
        "run_dir",
        "sweep",
        "rank",
        "mem_source",
        "segments",
        "blocks",
        "events",
        "reserved_bytes",
        "allocated_bytes",
        "active_bytes",
        "requested_bytes",
        "inactive_split_bytes",
        "inactive_split_blocks",
        "releasable_bytes",
        "rounding_bytes",
        "largest_free_block_bytes",
        "fragmentation",
        "fragmentation_releasable",
        "fragmentation_split",
        "peak_requested_allocated_bytes",
        "peak_requested_active_bytes",
        "peak_reserved_bytes",
        "peak_allocated_bytes",
        "peak_is_lower_bound",
        "peak_after_events",
        "peak_at",
        "peak_phase",
        "reserved_at_peak_bytes",
        "fragmentation_at_peak",
        "start_requested_active_bytes",
        "recorded_from",
        "recorded_until",
        "oom_events",
        "oom_requested_bytes",
        "oom_device_free_bytes",
        "oom_requested_active_bytes",
        "oom_reserved_bytes",
        "oom_inactive_bytes",
        "oom_segments_freed",
        "alloc_retries",
        "is_expandable",
        "allocator_settings",
        "violations",
        "warnings",
    ),
    overrides=(_RANK,),
    nullable_key=("device",),
)

MEMORY_TIMELINE = Table(
    name="memory_timeline",
    description="Memory over time, thinned out so that every peak stays.",
    grain="one row per file, device, category and kept point",
    primary_key=("source_path", "device", "category", "point"),
    nullable_key=("device",),
    column_names=(
        "source_path",
        "device",
        "category",
        "point",
        "ts",
        "requested_allocated_bytes",
        "requested_active_bytes",
        "allocated_bytes",
        "reserved_bytes",
        "phase",
    ),
    overrides=(time_column("ts", "time of the last event before this point (UTC)"),),
)

MEMORY_AT_PEAK = Table(
    name="memory_at_peak",
    description="What was alive at the active peak: blocks grouped by category, source line and size. "
    "The bytes of one file and device add up to its peak.",
    grain="one row per file, device and group of blocks",
    primary_key=("source_path", "device", "group_no"),
    nullable_key=("device",),
    column_names=(
        "source_path",
        "device",
        "group_no",
        "category",
        "rule",
        "mem_origin",
        "frame",
        "stack",
        "label",
        "block_bytes",
        "blocks",
        "bytes",
    ),
    overrides=(
        text_column("stack", "innermost frames, C++ as well, without the recorder's own, separated by ' < '"),
        int_column("blocks", "count", "live blocks of the group"),
        int_column("bytes", "bytes", "requested bytes of the group"),
    ),
)

MEMORY_SITES = Table(
    name="memory_sites",
    description="The source lines that took memory during a snapshot's record, each with one use; the largest of them.",
    grain="one row per file, device and site",
    primary_key=("source_path", "device", "site_no"),
    nullable_key=("device",),
    column_names=(
        "source_path",
        "device",
        "site_no",
        "category",
        "rule",
        "mem_origin",
        "frame",
        "stack",
        "label",
        "max_bytes",
        "allocations",
        "allocated_in_all_bytes",
    ),
    overrides=(text_column("stack", "innermost frames of one of the blocks, separated by ' < '"),),
)

MEMORY_ALIVE = Table(
    name="memory_alive",
    description="What each site of memory_sites had alive along the record: a row holds until the site's next one. "
    "Values are those at some 400 points of the timeline, peaks and failures among them; between two points they may "
    "have been others.",
    grain="one row per file, device, site and point at which its level differs from that at the point before",
    primary_key=("source_path", "device", "site_no", "point"),
    nullable_key=("device",),
    column_names=("source_path", "device", "site_no", "point", "bytes", "blocks"),
    overrides=(
        int_column("blocks", "count", "live blocks of the site"),
        int_column("bytes", "bytes", "requested bytes of the site"),
    ),
)

GPU_SAMPLES = Table(
    name="gpu_samples",
    description="Samples of nvidia-smi, dcgmi, dcgm-exporter, rocm-smi and the like: what a device had in use.",
    grain="one row per line: a sampled GPU, or (`pid`) one process on it",
    primary_key=("source_path", "line_no"),
    column_names=(
        "source_path",
        "line_no",
        "run_dir",
        "ts",
        "host",
        "gpu_index",
        "gpu_uuid",
        "accelerator",
        "mem_used_bytes",
        "mem_free_bytes",
        "mem_total_bytes",
        "mem_driver_reserved_bytes",
        "pid",
        "mem_process_bytes",
        "gpu_utilisation",
        "mem_utilisation",
        "power_w",
        "temperature_c",
    ),
    overrides=(
        text_column("host", "host that was sampled"),
        time_column("ts", "time of the sample (as printed, no time zone)"),
        Column("accelerator", pl.String, "name of the GPU, as printed"),
    ),
)

RUN_GPU_MEMORY = Table(
    name="run_gpu_memory",
    description="What nvidia-smi or DCGM saw on each GPU during each run of the samples' directory, clocks aligned.",
    grain="one row per run attempt, file of samples and GPU",
    primary_key=("run_id", "source_path", "gpu"),
    column_names=(
        "run_id",
        "source_path",
        "gpu",
        "clock_offset_s",
        "samples",
        "mem_used_max_bytes",
        "mem_process_max_bytes",
        "mem_total_bytes",
        "mem_peak_reserved_bytes",
        "outside_allocator_bytes",
        "gpu_utilisation",
    ),
    layer="view",
)
