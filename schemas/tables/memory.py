"""GPU memory artefacts: allocator snapshots, timelines, device samples."""

from __future__ import annotations

from sweepscope.schemas.columns.shared import columns
from sweepscope.schemas.core.column import flag, integer, number, text, time
from sweepscope.schemas.core.rules import at_most, in_order, within
from sweepscope.schemas.core.table import Table
from sweepscope.schemas.vocab.memory import MEM_SOURCE

_PRINTED_SHARE = 0.0013
"""Rounding of torch.cuda.memory_summary(), which prints at least 768 of a unit."""

MEMORY_SNAPSHOTS = Table(
    name="memory_snapshots",
    description="Each device of each memory artefact: state at its end, peaks, fragmentation, failures. "
    "Joined to `runs` by run_dir.",
    grain="one row per file and device",
    primary_key=("source_path", "device"),
    nullable_key=("device",),
    rules=(
        within("allocated_bytes", "reserved_bytes", relative=_PRINTED_SHARE),
        within("peak_allocated_bytes", "peak_reserved_bytes", relative=_PRINTED_SHARE),
        in_order("recorded_from", "recorded_until"),
    ),
    redefines=("rank",),
    columns=columns(
        "source_path device run_dir sweep",
        integer("rank", "id", "rank named in the file's path"),
        text("mem_source", "kind of file", MEM_SOURCE),
        integer("segments", "count", "cudaMalloc calls, or mapped ranges of expandable segments, held at the end"),
        integer("blocks", "count", "blocks of the segments at the end, free ones included"),
        integer("events", "count", "allocator events in the file for this device"),
        "reserved_bytes allocated_bytes",
        integer("active_bytes", "bytes", "the same, and blocks freed by the program that another stream still uses"),
        integer("requested_bytes", "bytes", "bytes that the callers of the active blocks asked for"),
        integer("inactive_split_bytes", "bytes", "free bytes in segments that are partly in use: not releasable"),
        integer("inactive_split_blocks", "count", "free blocks in segments of several blocks"),
        integer("releasable_bytes", "bytes", "free bytes in segments that are free as a whole: releasable any time"),
        integer("rounding_bytes", "bytes", "active beyond requested bytes: rounding to 512 bytes, unsplit remainders"),
        integer("largest_free_block_bytes", "bytes", "the largest free block"),
        number("fragmentation", "fraction", "reserved over allocated, minus 1; meaningless near an empty device"),
        number("fragmentation_releasable", "fraction", "the part of `fragmentation` that is cache"),
        number("fragmentation_split", "fraction", "the part of `fragmentation` that is split or pending blocks"),
        integer("peak_requested_allocated_bytes", "bytes", "most bytes requested and allocated at a time"),
        integer("peak_requested_active_bytes", "bytes", "most bytes requested and active at a time"),
        integer("peak_reserved_bytes", "bytes", "most bytes reserved at a time"),
        integer("peak_allocated_bytes", "bytes", "most bytes allocated at a time, as the allocator rounds them"),
        "peak_is_lower_bound",
        integer("peak_after_events", "count", "events before the active peak"),
        time("peak_at", "time of the event that made the active peak (UTC)"),
        text("peak_phase", "innermost annotation open at the active peak"),
        integer("reserved_at_peak_bytes", "bytes", "reserved at the active peak"),
        number("fragmentation_at_peak", "fraction", "reserved over requested active bytes at the active peak, minus 1"),
        integer("start_requested_active_bytes", "bytes", "requested and active before the first event"),
        time("recorded_from", "time of the first event (UTC)"),
        time("recorded_until", "time of the last event (UTC)"),
        integer("oom_events", "count", "allocations that failed"),
        "oom_requested_bytes oom_device_free_bytes",
        integer("oom_requested_active_bytes", "bytes", "requested and active at the last failure"),
        integer("oom_reserved_bytes", "bytes", "reserved at the last failure"),
        integer(
            "oom_inactive_bytes",
            "bytes",
            "free bytes inside the allocator's segments at the last failure; at most, where events went on after it",
        ),
        integer("oom_segments_freed", "count", "cached segments, or pages of them, given back before the last failure"),
        integer("alloc_retries", "count", "allocations that succeeded only after cached segments were given back"),
        flag("is_expandable", "some segments are expandable"),
        text("allocator_settings", "PYTORCH_CUDA_ALLOC_CONF, or the settings that differ from the default"),
        integer("violations", "count", "events and blocks that contradict each other in the replay"),
        text("warnings", "what was found odd, in words; NULL when nothing was"),
    ),
)

MEMORY_TIMELINE = Table(
    name="memory_timeline",
    description="Memory over time, thinned out so that every peak stays.",
    grain="one row per file, device, category and kept point",
    primary_key=("source_path", "device", "category", "point"),
    nullable_key=("device",),
    redefines=("ts",),
    columns=columns(
        "source_path device category point",
        time("ts", "time of the last event before this point (UTC)"),
        integer("requested_allocated_bytes", "bytes", "requested and allocated at this point"),
        integer("requested_active_bytes", "bytes", "requested and active at this point"),
        "allocated_bytes reserved_bytes",
        text("phase", "innermost annotation open at this point"),
    ),
)

MEMORY_AT_PEAK = Table(
    name="memory_at_peak",
    description="What was alive at the active peak: blocks grouped by category, source line and size. "
    "The bytes of one file and device add up to its peak.",
    grain="one row per file, device and group of blocks",
    primary_key=("source_path", "device", "group_no"),
    nullable_key=("device",),
    redefines=("stack", "blocks", "bytes"),
    columns=columns(
        "source_path device",
        integer("group_no", "id", "number of the group of blocks, from the largest", minimum=1),
        "category rule mem_origin frame",
        text("stack", "innermost frames, C++ as well, without the recorder's own, separated by ' < '"),
        "label",
        integer("block_bytes", "bytes", "requested bytes of each of the blocks; NULL where several sizes are together"),
        integer("blocks", "count", "live blocks of the group"),
        integer("bytes", "bytes", "requested bytes of the group"),
    ),
)

MEMORY_SITES = Table(
    name="memory_sites",
    description="The source lines that took memory during a snapshot's record, each with one use; the largest of them.",
    grain="one row per file, device and site",
    primary_key=("source_path", "device", "site_no"),
    nullable_key=("device",),
    redefines=("stack",),
    columns=columns(
        "source_path device site_no category rule mem_origin frame",
        text("stack", "innermost frames of one of the blocks, separated by ' < '"),
        "label",
        integer("max_bytes", "bytes", "most that was alive of the site at one of the points"),
        integer("allocations", "count", "allocations of the site that were recorded"),
        integer("allocated_in_all_bytes", "bytes", "requested bytes of these allocations together"),
    ),
)

MEMORY_ALIVE = Table(
    name="memory_alive",
    description="What each site of memory_sites had alive along the record: a row holds until the site's next one. "
    "Values are those at some 400 points of the timeline, peaks and failures among them; between two points they may "
    "have been others.",
    grain="one row per file, device, site and point at which its level differs from that at the point before",
    primary_key=("source_path", "device", "site_no", "point"),
    nullable_key=("device",),
    redefines=("blocks", "bytes"),
    columns=columns(
        "source_path device site_no point",
        integer("bytes", "bytes", "requested bytes of the site"),
        integer("blocks", "count", "live blocks of the site"),
    ),
)

GPU_SAMPLES = Table(
    name="gpu_samples",
    description="Samples of nvidia-smi, dcgmi, dcgm-exporter, rocm-smi and the like: what a device had in use.",
    grain="one row per line: a sampled GPU, or (`pid`) one process on it",
    primary_key=("source_path", "line_no"),
    rules=(
        within("mem_used_bytes", "mem_total_bytes"),
        within("mem_free_bytes", "mem_total_bytes"),
        within("mem_process_bytes", "mem_total_bytes"),
        at_most("gpu_utilisation", 1),
        at_most("mem_utilisation", 1),
    ),
    redefines=("host", "ts", "accelerator"),
    columns=columns(
        "source_path line_no run_dir",
        time("ts", "time of the sample (as printed, no time zone)"),
        text("host", "host that was sampled"),
        "gpu_index",
        text("gpu_uuid", "UUID of the GPU; its PCI address where neither UUID nor index is known"),
        text("accelerator", "name of the GPU, as printed"),
        "mem_used_bytes",
        integer("mem_free_bytes", "bytes", "memory free on the device"),
        "mem_total_bytes",
        integer("mem_driver_reserved_bytes", "bytes", "memory that the driver keeps for itself"),
        "pid mem_process_bytes gpu_utilisation",
        number("mem_utilisation", "fraction", "share of time with memory read or written, as sampled", minimum=0),
        number("power_w", "W", "power draw", minimum=0),
        number("temperature_c", "°C", "temperature of the GPU"),
    ),
)

RUN_GPU_MEMORY = Table(
    name="run_gpu_memory",
    description="What nvidia-smi or DCGM saw on each GPU during each run of the samples' directory, clocks aligned.",
    grain="one row per run attempt, file of samples and GPU",
    primary_key=("run_id", "source_path", "gpu"),
    layer="view",
    is_stored=True,
    columns=columns(
        "run_id source_path",
        text("gpu", "host, if known, and UUID or index of the GPU"),
        number("clock_offset_s", "s", "added to the samples' times; 0 where they overlap with the run as printed"),
        integer("samples", "count", "samples within the run"),
        "mem_used_max_bytes",
        integer("mem_process_max_bytes", "bytes", "most memory of a process on the device, where processes are listed"),
        "mem_total_bytes mem_peak_reserved_bytes",
        integer(
            "outside_allocator_bytes",
            "bytes",
            "most memory in use, or of one process, less the run's peak reserved: context, libraries, other processes",
            minimum=None,
        ),
        "gpu_utilisation power_mean_w power_busy_w",
    ),
)

TABLES = (MEMORY_SNAPSHOTS, MEMORY_TIMELINE, MEMORY_AT_PEAK, MEMORY_SITES, MEMORY_ALIVE, GPU_SAMPLES)
