"""What file names say: NCCL_DEBUG_FILE outputs and flight recorder dumps have no suffix that would tell them."""

from __future__ import annotations

import re

# NCCL_DEBUG_FILE=nccl.%h.%p and the like: NCCL as a word, and a process id or nothing at the end.
_DEBUG_FILE = re.compile(r"(?:.*[._-])?r?nccl(?:[._-][\w.-]*)?")
# What people call the file that `-J` of nccl-tests names; a second one gets a number behind it.
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


def kind_of(path: str) -> str | None:
    """'nccl' or 'flight_record' for a path whose name promises one; a log is told by its content, not here.

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
    """Whether a name promises the JSON of nccl-tests.

    >>> [is_bench_file(name) for name in ("run/all_reduce.json", "nccl-tests.json.0", "config.json", "nccl_trace.json")]
    [True, True, False, False]
    """
    return _BENCH.fullmatch(_COMPRESSED.sub("", path.rsplit("/", 1)[-1].lower())) is not None


def dump_set(path: str) -> str:
    """What the dumps of all ranks of one job have in common: the path without the rank."""
    found = _dump(path)
    return f"{path.rsplit('/', 1)[0]}/{found['set']}*{found['suffix'] or ''}" if found else path


def dump_rank(path: str) -> int | None:
    """Global rank of a dump; it stands in the name only."""
    found = _dump(path)
    return int(found["rank"]) if found else None


def _dump(path: str) -> re.Match[str] | None:
    directory, _, name = path.rpartition("/")
    name = _COMPRESSED.sub("", name)
    if found := _DUMP.fullmatch(name):
        return found
    return _BARE_DUMP.fullmatch(name) if "trace" in directory.rsplit("/", 1)[-1] else None
