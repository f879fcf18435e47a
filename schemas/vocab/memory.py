"""Words of GPU memory artefacts and of the views that explain them."""

from __future__ import annotations

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
    "unknown": "no rule applies; `rule` names what is missing",
    "unattributed": "part of the level that no live block accounts for",
}

MEM_ORIGIN: dict[str, str] = {
    "recorded": "allocated while events were recorded",
    "from_block": "there before; the stack is the one that the block keeps",
    "from_free": "there before; known from the event that freed it, whose stack it is",
    "no_record": "there before, without a stack",
}

MEM_FIT: dict[str, str] = {
    "others": "other processes filled the GPU: it would have fitted without them",
    "expandable_segments": "would fit with expandable_segments: enough was free, but in pieces",
    "pools": "enough is free inside expandable segments, in other pools or streams",
    "recompute": "needs recompute: giving up activations frees enough",
    "micro_batch": "needs a smaller micro-batch: all layers are recomputed already",
    "sharding": "needs sharding: model states and the activations that remain exceed the GPU",
    "fragmented": "fits, near the limit; expandable_segments would give back most of the gap",
    "fits": "fits, near the limit",
    "unknown": "what would make it fit is unknown: the sizes or the shape are not known, or enough was free",
}

VERDICT_BASIS: dict[str, str] = {
    "snapshot": "an allocator snapshot recorded the failure",
    "oom_report": "the out-of-memory line in the log",
    "estimate": "the estimate alone: the log gives no bytes",
    "peak": "peaks of a run without a sign that it ran out of memory",
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
    "measured": "a part of the allocated level, from a snapshot; together they are the level `allocated`",
}

PART: dict[str, str] = {
    "weights": "weights",
    "gradients": "gradients",
    "optimizer": "optimizer states",
    "activations": "activations",
    "logits": "logits and what the loss needs at once (estimated apart; snapshots count them as activations)",
    "buffers": "estimated: gathered weights, working sets, context; measured: communication, workspaces, temporaries",
    "unknown": "live at the peak, of unknown purpose",
    "beyond_snapshot": "allocated beyond the snapshot's peak: rounding, other ranks, what its window missed",
    "estimate": "estimated peak of allocated bytes",
    "estimate_gap": "what the estimate missed (negative: it was too high)",
    "never_allocated": "estimated beyond what was allocated when the run ended without completing",
    "allocated": "measured peak of allocated bytes",
    "fragmentation": "reserved by the allocator and not allocated: cached, split and rounded blocks",
    "reserved": "measured peak of reserved bytes",
    "outside_allocator": "context, NCCL, libraries; other processes too where no source knows the process",
    "process": "all that the process holds on the device",
    "other_processes": "held by other processes",
    "device": "most bytes in use on the device",
    "headroom": "unused",
    "card": "memory of the card",
}
