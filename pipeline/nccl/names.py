"""Kinds, ranks and operations read from file names: debug files and dumps have no suffix."""

from __future__ import annotations

import re

# NCCL_DEBUG_FILE=nccl.%h.%p and the like: NCCL as a word, and a process id or nothing at the end.
_DEBUG_FILE = re.compile(r"(?:.*[._-])?r?nccl(?:[._-][\w.-]*)?")
# Usual names of the file that `-J` of nccl-tests writes; a second one gets a number behind it.
_BENCH = re.compile(
    r"(?!.*(?:trace|mem|prof|config)).*(?:[nr]ccl[._-]?(?:tests?|bench|perf|results?|out(?:put)?)|_perf|all[._-]?reduce|all[._-]?gather"
    r"|reduce[._-]?scatter|all[._-]?to[._-]?all|send[._-]?recv).*\.json(?:\.\d{1,3})?"
)
_COMPRESSED = re.compile(r"\.(?:gz|zst)$")
# TORCH_FR_DUMP_TEMP_FILE + rank: nccl_trace_rank_3, comm_lib_trace_rank_3; torchtitan's comm_traces/rank_3.
_DUMP = re.compile(
    r"(?P<set>(?:.*[._-])?trace(?:[._-]\w+?)?[._-]?rank[._-]?)(?P<rank>\d{1,6})(?P<suffix>\.json|\.pickle|\.pkl)?"
)
_BARE_DUMP = re.compile(r"(?P<set>rank[._-]?)(?P<rank>\d{1,6})(?P<suffix>)")

# As nccl-tests names its programs (src/*.cu). Longer names first: reduce_scatter is no reduce.
_OPERATIONS = (
    ("ReduceScatter", r"reduce[_-]?scatter"),
    ("AllReduce", r"all[_-]?reduce"),
    ("AllGather", r"all[_-]?gather"),
    ("AlltoAllv", r"all[_-]?to[_-]?all[_-]?v"),
    ("AlltoAll", r"all[_-]?(?:to|2)[_-]?all"),
    ("SendRecv", r"send[_-]?recv"),
    ("Broadcast", r"broadcast|bcast"),
    ("Hypercube", "hypercube"),
    ("Scatter", "scatter"),
    ("Gather", "gather"),
    ("Reduce", "reduce"),
)
_OPERATION = re.compile(
    "|".join(f"(?P<o{number}>{pattern})" for number, (_, pattern) in enumerate(_OPERATIONS)), re.IGNORECASE
)
OPERATIONS = tuple(sorted(name for name, _ in _OPERATIONS))
"""What nccl-tests measures."""


def kind_of(path: str) -> str | None:
    """'nccl' or 'flight_record' for a path of such a name, else None; logs are recognised by their content, not here.

    >>> [kind_of(f"/run/{name}") for name in ("nccl.gpu-7.4711", "nccl_trace_rank_3", "comm_traces/rank_0", "nccl.h")]
    ['nccl', 'flight_record', 'flight_record', None]
    """
    if _dump(path):
        return "flight_record"
    name = _COMPRESSED.sub("", path.rsplit("/", 1)[-1].lower())
    suffix = name.rsplit(".", 1)[1] if "." in name else ""
    is_debug = _DEBUG_FILE.fullmatch(name) is not None and (not suffix or suffix.isdecimal())
    return "nccl" if is_debug or is_bench_file(path) else None


def is_bench_file(path: str) -> bool:
    """Whether the name is one of a JSON file of nccl-tests.

    >>> [is_bench_file(name) for name in ("run/all_reduce.json", "nccl-tests.json.0", "config.json", "nccl_trace.json")]
    [True, True, False, False]
    """
    return _BENCH.fullmatch(_COMPRESSED.sub("", path.rsplit("/", 1)[-1].lower())) is not None


def operation_named_in(path: str) -> str | None:
    """The nccl-tests operation in a file's name or, if there is none, in its directory's; None for several.

    >>> [operation_named_in(f"/logs/{path}") for path in ("n8_all_reduce.dat", "reduce_scatter/1", "allgather-reduce")]
    ['AllReduce', 'ReduceScatter', None]
    """
    for part in reversed(path.split("/")[-2:]):
        found = {_OPERATIONS[int(str(hit.lastgroup)[1:])][0] for hit in _OPERATION.finditer(part)}
        if found:
            return found.pop() if len(found) == 1 else None
    return None


def dump_set(path: str) -> str:
    """Key of the dumps of all ranks of one job: the path without the rank."""
    found = _dump(path)
    return f"{path.rsplit('/', 1)[0]}/{found['set']}*{found['suffix'] or ''}" if found else path


def dump_rank(path: str) -> int | None:
    """Global rank of a dump, which only the name has."""
    found = _dump(path)
    return int(found["rank"]) if found else None


def _dump(path: str) -> re.Match[str] | None:
    directory, _, name = path.rpartition("/")
    name = _COMPRESSED.sub("", name)
    if found := _DUMP.fullmatch(name):
        return found
    return _BARE_DUMP.fullmatch(name) if "trace" in directory.rsplit("/", 1)[-1] else None
