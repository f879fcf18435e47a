"""Memory artefacts and ranks by file name. Imports only `re`, so that listing files stays fast."""

from __future__ import annotations

import re

PARSERS = ("memory_snapshot", "memory_stats", "memory_summary", "memory_timeline", "kineto", "nsys", "gpu_samples")
"""Names of the readers, as the ledger keeps them."""

_PICKLE = re.compile(r"\.(?:pickle|pkl)$")
_STATISTICS = re.compile(r"mem\w*[_.-]?(?:summary|stats?|statistics)\w*\.(?:txt|jsonl?|log)$")
_TRACE = re.compile(r"(?:mem|trace|timeline|prof|kineto|snapshot).*\.(?:json|raw)$|\.raw$")
_DEVICES = re.compile(r"^(?:gpus?|vram|nvidia|rocm|amd)(?:[_.-].*)?\.jsonl?$")
_SAMPLES = re.compile(
    r"(?:dcgm|dmon|gpustat|prometheus|query_range|(?:nvidia|rocm|amd)[_-]?smi).*\.(?:txt|log|out|prom|dat|jsonl?)$|\.prom$|\.xml$"
)
# Extensions of many formats: only with a name about memory.
_NAMED = re.compile(r"\.html$|(?:mem|alloc|oom|snapshot).*\.(?:zip|pt|pth|bin|p)$")
_OF_MEMORY = re.compile(r"mem|alloc|oom|snap|cuda|gpu|vram|hip|dump")
_RANK = re.compile(r"rank[_-]?(\d{1,6})|(?:^|[_.-])r(\d{1,6})(?=[_.-]|$)")


def is_memory_file(name: str) -> bool:
    """Whether a file may be a memory artefact, by its name. Compressed JSON is usually a profiler trace.

    >>> is_memory_file("rank3_memory_snapshot.pickle"), is_memory_file("model.pt"), is_memory_file("snapshot_oom.html")
    (True, False, True)
    """
    lower = name.lower()
    plain = re.sub(r"\.(?:gz|zst)$", "", lower)
    if plain != lower and plain.endswith(".json"):
        return True
    return any(kind.search(plain) for kind in (_PICKLE, _NAMED, _STATISTICS, _TRACE, _DEVICES, _SAMPLES))


def is_named_memory(path: str) -> bool:
    """Whether a file's name says more of memory than that it is a `.pkl`, which may hold anything.

    PyTorch's own snapshots are `.pickle` (torch/cuda/memory.py `_dump_snapshot`).

    >>> is_named_memory("a/b.pickle"), is_named_memory("a/rank0.pkl"), is_named_memory("a/tuner.pkl")
    (True, True, False)
    """
    name = path.lower().rpartition("/")[2]
    return not name.endswith(".pkl") or bool(_OF_MEMORY.search(name) or _RANK.search(name))


def rank_of(path: str) -> int | None:
    """Rank in a file's name, else in the name of a directory above it.

    >>> rank_of("/runs/tp2/rank3_oom/snapshot_oom_rank-5.pickle"), rank_of("/runs/tp2/rank_3/dump.pickle")
    (5, 3)
    """
    for part in reversed(path.split("/")):
        if found := _RANK.search(part.lower()):
            return int(found[1] or found[2])
    return None
