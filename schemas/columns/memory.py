"""Columns and words of what GPU memory artefacts say; `schemas.columns.shared` takes them in."""

from __future__ import annotations

from sweepscope.schemas.core.column import bool_column as _bool
from sweepscope.schemas.core.column import float_column as _float
from sweepscope.schemas.core.column import int_column as _int
from sweepscope.schemas.core.column import text_column as _text
from sweepscope.schemas.core.column import time_column as _time

MEM_SOURCE: dict[str, str] = {
    "snapshot": "an allocator snapshot (torch.cuda.memory._dump_snapshot), replayed",
    "memory_stats": "a dump of torch.cuda.memory_stats()",
    "memory_summary": "text of torch.cuda.memory_summary(), rounded by its printer",
    "profiler_timeline": "an export of the profiler's memory timeline",
    "kineto": "the [memory] events of a profiler trace",
}

MEM_CATEGORY: dict[str, str] = {
    "total": "everything together",
    "parameters": "model weights",
    "gradients": "gradients of weights",
    "optimizer_state": "what the optimizer keeps between steps",
    "activations": "made in the forward pass and kept for the backward pass",
    "input": "inputs of the model",
    "temporary": "made and released within one phase",
    "workspace": "scratch space of cuBLAS, cuDNN and other kernels",
    "communication": "buffers of collectives: gathered parameters, buckets, reduced gradients",
    "autograd_detail": "what autograd keeps beside activations and gradients",
    "unknown": "no rule applies; the rule says what is missing",
    "unattributed": "part of the level that no live block accounts for",
}

MEM_ORIGIN: dict[str, str] = {
    "recorded": "allocated while events were recorded",
    "from_block": "there before; the stack is the one that the block keeps",
    "from_free": "there before; known from the event that freed it, whose stack it is",
    "no_record": "there before, without a stack",
}

COLUMNS = (
    _int(
        "device", "id", "device ordinal within the process; -1 is the CPU, NULL where the file does not say", minimum=-1
    ),
    _text("mem_source", "what kind of file says so", MEM_SOURCE),
    _int("segments", "count", "cudaMalloc calls, or mapped ranges of expandable segments, held at the end"),
    _int("blocks", "count", "blocks of the segments at the end, free ones included"),
    _int("events", "count", "allocator events in the file for this device"),
    _int("reserved_bytes", "bytes", "bytes that the allocator holds from the driver"),
    _int("allocated_bytes", "bytes", "bytes of blocks in use, as the allocator rounds them"),
    _int("active_bytes", "bytes", "the same, and blocks freed by the program that another stream still uses"),
    _int("requested_bytes", "bytes", "bytes that the callers of the active blocks asked for"),
    _int("inactive_split_bytes", "bytes", "free bytes in segments that are partly in use: not releasable"),
    _int("inactive_split_blocks", "count", "free blocks in segments of several blocks"),
    _int("releasable_bytes", "bytes", "free bytes in segments that are free as a whole: cache, releasable at any time"),
    _int("rounding_bytes", "bytes", "active bytes that nobody asked for: rounding to 512 bytes, remainders not split"),
    _int("largest_free_block_bytes", "bytes", "the largest free block"),
    _float("fragmentation", "fraction", "reserved over allocated, minus 1; meaningless near an empty device"),
    _float("fragmentation_releasable", "fraction", "the part of `fragmentation` that is cache"),
    _float("fragmentation_split", "fraction", "the part of `fragmentation` that is split or pending blocks"),
    _int("peak_requested_allocated_bytes", "bytes", "most bytes requested and allocated at a time"),
    _int("peak_requested_active_bytes", "bytes", "most bytes requested and active at a time"),
    _int("peak_reserved_bytes", "bytes", "most bytes reserved at a time"),
    _int("peak_allocated_bytes", "bytes", "most bytes allocated at a time, as the allocator rounds them"),
    _bool("peak_is_lower_bound", "the record begins with memory in use, so that the true peak may lie before it"),
    _int("peak_after_events", "count", "events before the active peak"),
    _time("peak_at", "time of the event that made the active peak (UTC)"),
    _text("peak_phase", "innermost annotation open at the active peak"),
    _int("reserved_at_peak_bytes", "bytes", "reserved at the active peak"),
    _float("fragmentation_at_peak", "fraction", "reserved over requested active bytes at the active peak, minus 1"),
    _int("start_requested_active_bytes", "bytes", "requested and active before the first event"),
    _time("recorded_from", "time of the first event (UTC)"),
    _time("recorded_until", "time of the last event (UTC)"),
    _int("oom_events", "count", "allocations that failed"),
    _int("oom_requested_bytes", "bytes", "what the last failed allocation asked for"),
    _int("oom_device_free_bytes", "bytes", "what the device had left at the last failure"),
    _int("oom_requested_active_bytes", "bytes", "requested and active at the last failure"),
    _int("oom_reserved_bytes", "bytes", "reserved at the last failure"),
    _int(
        "oom_inactive_bytes",
        "bytes",
        "free bytes inside the allocator's segments at the last failure; at most, where events went on after it",
    ),
    _int("oom_segments_freed", "count", "cached segments, or pages of them, given back right before the last failure"),
    _int("alloc_retries", "count", "allocations that succeeded only after cached segments were given back"),
    _bool("is_expandable", "some segments are expandable"),
    _text("allocator_settings", "PYTORCH_CUDA_ALLOC_CONF, or the settings that differ from the default"),
    _int("violations", "count", "events and blocks that contradict each other in the replay"),
    _text("warnings", "what was found odd, in words; NULL when nothing was"),
    _text("category", "what the bytes are for", MEM_CATEGORY),
    _int("requested_allocated_bytes", "bytes", "requested and allocated at this point"),
    _int("requested_active_bytes", "bytes", "requested and active at this point"),
    _text("phase", "innermost annotation open at this point"),
    _int("group_no", "id", "number of the group of blocks, from the largest", minimum=1),
    _text("rule", "the rule that chose the category, and what it saw"),
    _int("site_no", "id", "number of the site, from the one with the largest maximum", minimum=1),
    _int("max_bytes", "bytes", "most that was alive of the site at one of the points"),
    _int("allocations", "count", "allocations of the site that were recorded"),
    _int("allocated_in_all_bytes", "bytes", "requested bytes of these allocations together"),
    _int("point", "count", "events before this point, or its number along the record"),
    _text("mem_origin", "how much is known about the blocks", MEM_ORIGIN),
    _text("frame", "innermost line of the user's own code, else of any Python code, else of C++"),
    _int("block_bytes", "bytes", "requested bytes of each of the blocks; NULL where several sizes are together"),
    _text("label", "category or metadata that the user or the profiler gave the blocks"),
    _int("gpu_index", "id", "index of the GPU on its host, as printed"),
    _text("gpu_uuid", "UUID of the GPU; its PCI address where neither UUID nor index is told"),
    _int("mem_used_bytes", "bytes", "memory in use on the device, by all processes and the driver"),
    _int("mem_free_bytes", "bytes", "memory free on the device"),
    _int("mem_total_bytes", "bytes", "memory of the device"),
    _int("mem_driver_reserved_bytes", "bytes", "memory that the driver keeps for itself"),
    _float("gpu_utilisation", "fraction", "share of time with a kernel running, as sampled", minimum=0),
    _float("mem_utilisation", "fraction", "share of time with memory read or written, as sampled", minimum=0),
    _text("gpu", "host, if known, and UUID or index of the GPU"),
    _int("samples", "count", "samples within the run"),
    _float("clock_offset_s", "s", "added to the samples' times; 0 where they overlap with the run as printed"),
    _int("mem_used_max_bytes", "bytes", "most memory in use on the device, by all processes and the driver"),
    _int("mem_process_max_bytes", "bytes", "most memory of one process on the device, where processes were listed"),
    _int(
        "outside_allocator_bytes",
        "bytes",
        "most memory in use, or of one process, less the run's peak reserved: context, libraries, other processes",
        minimum=None,
    ),
    _float("power_w", "W", "power draw", minimum=0),
    _float("temperature_c", "°C", "temperature of the GPU"),
)
