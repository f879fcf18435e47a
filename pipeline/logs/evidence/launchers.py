"""Patterns of lines that launchers and container platforms print when processes fail, or end well.

Sources of the wording:
- torchrun: torch/distributed/elastic/multiprocessing/errors/__init__.py (the table of failures, `ChildFailedError`),
  elastic/agent/server/api.py (restarts; nvidia-resiliency-ext's ft_launcher and DLRover print the same),
  elastic/rendezvous/{api,c10d_rendezvous_backend,dynamic_rendezvous}.py;
- Open MPI 4 and PRRTE (Open MPI 5): help-orterun.txt, help-prun.txt; MPICH's Hydra and Intel MPI: pmiserv;
  HPE PALS (`rank 3 died from signal 9`);
- JAX: jax/_src/distributed.py's client of the coordination service (xla pjrt/distributed/client.h);
- DeepSpeed: launcher/launch.py;
- Kubernetes: kubectl exec, the reasons and events of kubectl describe pod, the kernel's line in them.
"""

from __future__ import annotations

import polars as pl

TABLE_LINE = "worker_failed"
"""Kind of the lines of torchrun's table of failures; `failed_workers.fold_tables` merges them into one per worker."""

_CODE = r"(?:[1-9]\d?|1[0-25-9]\d|13[0-689]|14[0-24-9]|2\d\d)"  # not 0, nor 137 (SIGKILL) and 143 (SIGTERM)
_SIGNAL = r"(?:exited on|died from|BY) ?(?:signal|SIGNAL):? "

LOST_PEER = (
    r"DistStoreError: |DistNetworkError: (?:The client socket has|Connection reset|Failed to recv|Broken pipe)|"
    r"store->get\(.*\) got error: |RuntimeError: (?:Socket Timeout|Connection reset by peer|Broken pipe)\b|"
    r"RuntimeError: .*gloo/transport/.*Connection (?:closed|reset) by peer"
)
"""Errors of torch's TCPStore, sockets and gloo about an absent rank: socket.cpp, TCPStore.cpp, NCCLUtils."""

PATTERNS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        TABLE_LINE,
        (
            *("  time      : ", "  host      : ", "  rank      : ", "  exitcode  : "),
            *("Root Cause", "<NO_OTHER_FAIL", "  time: ", " (local_rank: ", "  exitcode: "),
        ),
        # torch 1.9 did not align the colons, and printed the root cause first.
        r"^\s{1,4}(?:time|host|rank|exitcode) {2,6}: \S|^\s?Root Cause(?: \(first observed failure\))?:\s*$|"
        r"^\s{1,4}(?:time: \d{4}-\d\d-\d\d_|rank: \d+ \(local_rank: |exitcode: -?\d+ \(pid: )|^\s*<NO_OTHER_FAILURES>",
    ),
    (
        "rendezvous",
        (
            *("RendezvousConnectionError", "RendezvousTimeoutError", "RendezvousClosedError"),
            *("RendezvousStateError", "DistStoreError", "DistNetworkError", "store->get("),
            *("Socket Timeout", "by peer", "Broken pipe", "JAX distributed service detected fatal errors"),
        ),
        r"(?:^|\] )Terminating process because the JAX distributed service detected fatal errors|"
        r"^\s?(?:\w+\.)*Rendezvous(?:Connection|Timeout|Closed|State)Error\b|"
        rf"^\s?(?:\w+\.)*(?:\w+: \[.*)?(?:{LOST_PEER})",
    ),
    (
        "launch",
        ("attempts left; will restart worker group",),
        r"Worker group [A-Z_]+\. \d+/\d+ attempts left; will restart worker group",
    ),
    ("oom", ("_STATUS_ALLOC_FAILED",), r"[Ee]rror: (?:CU|HIP|ROC)(?:BLAS|DNN|SOLVER|SPARSE)_STATUS_ALLOC_FAILED"),
    (
        "oom",
        ("failure 2 'out of memory'", "failure 'out of memory'", "failure: 'out of memory'"),
        r"(?:Cuda|HIP) failure:? (?:2 )?'out of memory'",
    ),
    (
        "oom",
        ("OOM when allocating tensor", "ResourceExhaustedError"),
        r"(?:ResourceExhaustedError|[Rr]esource exhausted)\b.*(?:OOM when allocating tensor.*device:GPU|"
        r"failed to allocate memory)",
    ),
    # TensorFlow's allocator, and JAX's (bfc_allocator.cc). "The caller indicates that this is not a failure" follows
    # the size where a smaller buffer will do. XLA on TPUs, on the line after the error's name.
    (
        "oom",
        ("_bfc) ran out of memory trying to allocate", "That was not possible. There are "),
        r"\(GPU_\d+_bfc\) ran out of memory trying to allocate [\d.]+\w+"
        r"(?: \(rounded to|\.  Current allocation| ?requested)|"
        r"Attempting to (?:reserve|allocate) [\d.]+\w*(?: at the (?:bottom|top) of memory)?\. That was not possible",
    ),
    ("host_oom", ("OOM when allocating tensor",), r"OOM when allocating tensor.*device:CPU"),
    ("host_oom", ("cgroup out of memory: Kill",), r"Memory cgroup out of memory: Kill(?:ed)? process"),
    (
        "host_oom",
        ("low on resource: memory", "low on resource: [Memory"),
        r"The node was low on resource: \[?[Mm]emory",
    ),
    (
        "preempted",
        ("Evicted", "Preempted", "TaintManagerEviction", "TerminationByKubelet"),
        r"^\s*(?:Reason:|Warning|Normal)\s+(?:Evicted|Preempted|Preempting|TaintManagerEviction|TerminationByKubelet)\b|"
        r"^\s*DisruptionTarget\s+True",
    ),
    ("node_fail", ("NodeNotReady", "NodeLost"), r"^\s*(?:Reason:|Warning|Normal)\s+(?:NodeNotReady|NodeLost)\b"),
    (
        "sigkill",
        ("signal 9", "SIGNAL: 9", "exit code 137", "Exit Code:    137"),
        rf"{_SIGNAL}9\b|^\s*signal 9 \(Killed\)|^\s?command terminated with exit code 137|^\s*Exit Code:\s+137$",
    ),
    (
        "sigterm",
        ("signal 15", "SIGNAL: 15", "exit code 143", "Exit Code:    143"),
        rf"{_SIGNAL}15\b|^\s*signal 15 \(Terminated\)|^\s?command terminated with exit code 143|^\s*Exit Code:\s+143$",
    ),
    (
        "exit_code",
        (
            *("exited on signal", "died from signal", "BY SIGNAL: ", "command terminated with exit code"),
            *("Exit Code: ", "exited with non-zero status, thus causing", "EXIT_CODE=", "Primary job"),
            *("MPI_ABORT was invoked", "BAD TERMINATION", "Process name: [", "exited due to process rank"),
        ),
        r"(?:exited on|died from) signal (?:[1-8]|1[0-4]|1[6-9]|[2-6]\d)\b|BY SIGNAL: (?:[1-8]|1[0-4])\b|"
        rf"^\s?command terminated with exit code {_CODE}$|^\s*Exit Code:\s+{_CODE}$|"
        r"^\s?EXIT_CODE=[1-9]\d*\s*$|"  # XPK
        r"^\s?mpi(?:run|exec) detected that one or more processes exited with non-zero status|"
        r"^\s?Primary job\s+terminated normally, but \d+ process|^\s?MPI_ABORT was invoked on rank \d+|"
        r"BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES|^\s*Process name: \[.*\d\]|"
        r"has exited due to process rank \d+",
    ),
    # DeepSpeed's launcher prints it for each process that returned 0; at the first failure it kills the others instead.
    ("training_end", ("exits successfully",), r"\[launch\.py:\d+:main\] Process \d+ exits successfully"),
)
"""(kind of vocab.EVENT_KIND, literals of which a line holds one, expression): arguments of `patterns.Pattern`."""

_RANKS = (
    r"process rank (\d+) with PID",
    r"MPI_ABORT was invoked on rank (\d+)",
    r"\brank (\d+) (?:exited with|died from)",
    r"Process name: \[.*[,.](\d+)\]",
    r"\(first noticed rank (\d+)\)",
    r"\bsrun: error: \S+: task (\d+): ",
    r"^=\s+RANK (\d+) PID",
)
_HOSTS = (
    r"with PID \d+ on node (\S+) ",
    r"\bsrun: error: ([\w.-]+): tasks? [\d,-]+: ",
    r"^([\w.-]+): (?:rank \d+|shepherd) ",
    r"\*\*\* (?:JOB|STEP) \S+ ON (\S+) CANCELLED",
    r"\bNode failure on ([\w.-]+)",
)


def rank_named() -> pl.Expr:
    """The rank in a launcher's line, else the one that printed the line."""
    found = (pl.col("text").str.extract(pattern).cast(pl.Int64, strict=False) for pattern in _RANKS)
    return pl.coalesce(*found, "rank")


def host_named() -> pl.Expr:
    """The host in a launcher's line, else the one that printed the line."""
    return pl.coalesce(*(pl.col("text").str.extract(pattern) for pattern in _HOSTS), "host")
