"""Lines that any framework's log may hold and that say how a run failed or ended.

Each `Pattern` is a literal pre-filter and an anchored expression: words such as "error", "timeout" and "OOM" stand in
harmless argument dumps, so a bare word is never evidence. `pipeline.parse.outcome` weighs what is found here.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from pipeline.parse import launchers, symptoms
from pipeline.parse.lines import holding
from pipeline.parse.protocol import EVENT_FACTS, conform
from pipeline.parse.timestamps import timestamp

MAX_TEXT_CHARS = 2_000


@dataclass(frozen=True)
class Pattern:
    """`kind` of vocab.EVENT_KIND for a line that holds one of `literals` and matches `regex`."""

    kind: str
    literals: tuple[str, ...]
    regex: str


PATTERNS: tuple[Pattern, ...] = (
    # torch: c10/cuda/CUDACachingAllocator.cpp. <=1.12 RuntimeError, 1.13-2.1 torch.cuda.OutOfMemoryError, later
    # torch.OutOfMemoryError; HIP builds say HIP. JAX: RESOURCE_EXHAUSTED.
    Pattern(
        "oom",
        ("out of memory", "OutOfMemoryError"),
        r"(?:CUDA|HIP) out of memory\. Tried to\b|OutOfMemoryError: |CUDA error: out of memory",
    ),
    Pattern("oom", ("RESOURCE_EXHAUSTED",), r"RESOURCE_EXHAUSTED: .*(?:memory|HBM|allocat)"),
    # slurmd/slurmstepd cgroup plugin and older memory limits; srun's word for a task; the kernel's own line; kubectl.
    Pattern(
        "host_oom",
        (
            "oom_kill", "oom-kill", "Out of memory: Kill", "OOM Killed", ": Out Of Memory", "memory limit", "OOMKilled",
        ),
        r"[Dd]etected \d+ oom[_-]kill event|Some of the step tasks have been OOM Killed|"
        r"Out of memory: Kill(?:ed)? process|oom-kill:constraint|\bsrun: error: .*tasks? [\d,-]+: Out Of Memory|"
        r"\b(?:slurmstepd|srun): error: .*[Ee]xceeded (?:\w+ )?memory limit|^\s*[Rr]eason:\s+OOMKilled",
    ),
    # torch ProcessGroupNCCL.cpp: checkTimeout and the watchdog.
    Pattern(
        "hang",
        ("Watchdog caught collective operation timeout", "Timed out waiting"),
        r"Watchdog caught collective operation timeout|Timed out waiting \d+ms for (?:send|recv) operation",
    ),
    # torch NCCLUtils.hpp / ProcessGroupNCCL.cpp: C10D_NCCL_CHECK; NCCL's own result names.
    Pattern(
        "nccl_error",
        (
            "NCCL error", "ncclSystemError", "ncclUnhandledCudaError", "ncclInternalError", "ncclRemoteError",
            "ncclInvalidUsage", "NCCL communicator was aborted",
        ),
        r"(?:DistBackendError|RuntimeError): NCCL (?:error in|communicator was aborted)|"
        r"(?:^|\s)nccl(?:SystemError|UnhandledCudaError|InternalError|RemoteError|InvalidUsage): ",
    ),
    # slurmstepd: the reason follows the time; without one it is scancel.
    Pattern("timeout", ("DUE TO TIME LIMIT",), r"CANCELLED (?:AT \S+ )?DUE TO TIME LIMIT"),
    Pattern(
        "node_fail",
        ("DUE TO NODE FAILURE", "NODE FAILURE", "Node failure on "),
        r"DUE TO NODE FAILURE|Node failure on ",
    ),
    Pattern("preempted", ("DUE TO PREEMPTION", "DUE TO JOB REQUEUE"), r"DUE TO (?:PREEMPTION|JOB REQUEUE)"),
    Pattern(
        "cancelled",
        ("CANCELLED AT",),
        r"slurm(?:step)?d(?:\[\S+\])?: (?:error: )?\*\*\* (?:JOB|STEP) \S+ (?:ON \S+ )?CANCELLED AT \S+ \*\*\*",
    ),
    # torchrun prints the enum's name or, from Python 3.11 on, its number.
    Pattern(
        "sigterm",
        ("SIGTERM", "Terminated", "signal: 15", "signal 15", "15 death signal"),
        r"(?:^|\s)(?:Main process received SIGTERM|Received SIGTERM|received signal 15|got SIGTERM)|"
        r"Received (?:Signals\.SIGTERM|15) death signal|^\s?Terminated$|SignalException: .* got signal: 15\b",
    ),
    Pattern(
        "interrupted",
        ("KeyboardInterrupt", "got signal: 2", "SIGINT", "2 death signal"),
        r"^\s?(?:\w+\.)*KeyboardInterrupt\b|SignalException: .* got signal: 2\b|[Rr]eceived SIGINT|"
        r"Received (?:Signals\.SIGINT|2) death signal",
    ),
    Pattern(
        "sigkill",
        (
            "SIGKILL", "Signal 9", "return code = -9", "exitcode: -9", "exitcode  : -9", ": Killed",
            "exited on signal 9",
        ),
        r"Signal 9 \(SIGKILL\)|\bsrun: error: .*tasks? [\d,-]+: Killed$|exited on signal 9 \(Killed\)|"
        r"exits with return code = -9|\(exitcode: -9\)|^\s*exitcode\s*: -9\b",
    ),
    Pattern(
        "child_failed",
        ("ChildFailedError", "failed (exitcode"),
        r"ChildFailedError:|(?:^|\] )failed \(exitcode: -?\d+\)",
    ),
    Pattern(
        "exit_code",
        ("xited with exit code", "exits with return code", "exited with code"),
        r"Exited with exit code -?[1-9]\d*|exits with return code = -?[1-9]\d*|exited with code -?[1-9]\d*",
    ),
    Pattern("traceback", ("Traceback (most recent call last)",), r"Traceback \(most recent call last\):"),
    Pattern(
        "exception",
        (
            "Error", "Exception", "terminate called", "Segmentation fault", "Fatal Python error", "Signal 11",
            "Bus error", "CUDA error: ", "HIP error: ",
        ),
        # The last alternative: what remains of a kernel's failure when only the watchdog's thread gets to print it.
        r"^\s?(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)(?:: .*)?$|^\s?terminate called after throwing|"
        r"Segmentation fault|^\s?Fatal Python error|Signal 11 \(SIGSEGV\)|\bBus error\b|"
        r"(?:CUDA|HIP) error: (?:an illegal (?:memory access|instruction)|device-side assert|misaligned address|"
        r"unspecified launch failure|uncorrectable ECC)",
    ),
)  # fmt: skip
PATTERNS += tuple(Pattern(*pattern) for pattern in (*launchers.PATTERNS, *symptoms.SYMPTOMS))

ANCHORS: tuple[str, ...] = tuple(sorted({literal for pattern in PATTERNS for literal in pattern.literals}))

_TRIED_FOR = pl.DataFrame(
    [(literal, number) for number, pattern in enumerate(PATTERNS) for literal in pattern.literals],
    schema={"literal": pl.String, "pattern": pl.Int64},
    orient="row",
)

# torchrun's agent and its failure table raise these themselves; they echo a worker's failure, they are not its cause.
_ECHO = r"ChildFailedError|SignalException|torch\.distributed\.elastic"


def events(lines: pl.DataFrame) -> pl.DataFrame:
    """Evidence lines as EVENT_FACTS, one row per line and kind, in file order."""
    near = lines.filter(holding(ANCHORS))
    if near.is_empty():
        return pl.DataFrame(schema=EVENT_FACTS)
    text = pl.col("text")
    # One search tells which patterns a line can match at all; each is then tried on those few lines only.
    numbered = near.with_row_index("place")
    literals = numbered.select("place", literal=text.str.extract_many(list(ANCHORS), overlapping=True))
    possible = literals.explode("literal").join(_TRIED_FOR, on="literal").select("place", "pattern").unique()
    found = [
        numbered.join(part.select("place"), on="place", maintain_order="left")
        .filter(text.str.contains(PATTERNS[number].regex))
        .drop("place")
        .with_columns(kind=pl.lit(PATTERNS[number].kind))
        for (number,), part in possible.partition_by("pattern", as_dict=True).items()
    ]
    if not found:
        return pl.DataFrame(schema=EVENT_FACTS)
    rows = pl.concat(found).filter(~((pl.col("kind") == "exception") & text.str.contains(_ECHO)))
    rows = rows.with_columns(
        ts=timestamp(pl.concat_str("prefix", "text", ignore_nulls=True)),
        rank=launchers.rank_named(),
        host=launchers.host_named(),
        text=text.str.strip_chars().str.slice(0, MAX_TEXT_CHARS),
    )
    once = rows.unique(["source", "line_no", "kind", "text"], keep="first", maintain_order=True)
    return conform(once, EVENT_FACTS).sort("source", "line_no", "kind", maintain_order=True)
