"""Patterns of lines that launchers and container platforms print when processes fail; the rank that failed first.

Sources of the wording:
- torchrun: torch/distributed/elastic/multiprocessing/errors/__init__.py (the table of failures, `ChildFailedError`),
  elastic/agent/server/api.py (restarts; nvidia-resiliency-ext's ft_launcher and DLRover print the same),
  elastic/rendezvous/{api,c10d_rendezvous_backend,dynamic_rendezvous}.py;
- Open MPI 4 and PRRTE (Open MPI 5): help-orterun.txt, help-prun.txt; MPICH's Hydra and Intel MPI: pmiserv;
  HPE PALS (`rank 3 died from signal 9`);
- JAX: jax/_src/distributed.py's client of the coordination service (xla pjrt/distributed/client.h);
- Kubernetes: kubectl exec, the reasons and events of kubectl describe pod, the kernel's line in them.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.facts import EVENT_FACTS, conform

TABLE_LINE = "worker_failed"
"""Kind of the lines of torchrun's table of failures, which `fold_tables` merges into one event per worker."""

_FIELD = r"^(time|host|rank|exitcode|error_file|traceback)\s*: (.*)$"
_ROOT = r"^Root Cause(?: \(first observed failure\))?:"
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
            "  time      : ",
            "  host      : ",
            "  rank      : ",
            "  exitcode  : ",
            "Root Cause",
            "<NO_OTHER_FAIL",
            "  time: ",
            " (local_rank: ",
            "  exitcode: ",
        ),
        # torch 1.9 did not align the colons, and printed the root cause first.
        r"^\s{1,4}(?:time|host|rank|exitcode) {2,6}: \S|^\s?Root Cause(?: \(first observed failure\))?:\s*$|"
        r"^\s{1,4}(?:time: \d{4}-\d\d-\d\d_|rank: \d+ \(local_rank: |exitcode: -?\d+ \(pid: )|^\s*<NO_OTHER_FAILURES>",
    ),
    (
        "rendezvous",
        (
            "RendezvousConnectionError",
            "RendezvousTimeoutError",
            "RendezvousClosedError",
            "RendezvousStateError",
            "DistStoreError",
            "DistNetworkError",
            "store->get(",
            "Socket Timeout",
            "by peer",
            "Broken pipe",
            "JAX distributed service detected fatal errors",
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
            "exited on signal",
            "died from signal",
            "BY SIGNAL: ",
            "command terminated with exit code",
            "Exit Code: ",
            "exited with non-zero status, thus causing",
            "EXIT_CODE=",
            "Primary job",
            "MPI_ABORT was invoked",
            "BAD TERMINATION",
            "Process name: [",
            "exited due to process rank",
        ),
        r"(?:exited on|died from) signal (?:[1-8]|1[0-4]|1[6-9]|[2-6]\d)\b|BY SIGNAL: (?:[1-8]|1[0-4])\b|"
        rf"^\s?command terminated with exit code {_CODE}$|^\s*Exit Code:\s+{_CODE}$|"
        r"^\s?EXIT_CODE=[1-9]\d*\s*$|"  # XPK
        r"^\s?mpi(?:run|exec) detected that one or more processes exited with non-zero status|"
        r"^\s?Primary job\s+terminated normally, but \d+ process|^\s?MPI_ABORT was invoked on rank \d+|"
        r"BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES|^\s*Process name: \[.*\d\]|"
        r"has exited due to process rank \d+",
    ),
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


def fold_tables(events: pl.DataFrame) -> pl.DataFrame:
    """EVENT_FACTS with one event per failed worker in place of the lines of torchrun's tables.

    A table lists the other failures first and the root cause last. A worker has up to six lines, perhaps in two blocks;
    its event has the number of the first line, and time, rank and host of the worker.
    """
    lines = events.filter(pl.col("kind") == TABLE_LINE).sort("source", "line_no", maintain_order=True)
    if lines.is_empty():
        return events
    field, value = (pl.col("text").str.extract(_FIELD, group) for group in (1, 2))
    is_title = pl.col("text").str.contains(_ROOT)
    rows = lines.with_columns(field=field, value=value, is_title=is_title)
    # `time` is the first line of a worker. A gap means that lines of the table are missing.
    is_new = (pl.col("field") == "time").fill_null(value=False) | (pl.col("line_no").diff() > 8).fill_null(value=True)
    rows = rows.with_columns(
        worker=(is_new | pl.col("is_title")).cast(pl.Int64).cum_sum().over("source"),
        is_root=(pl.col("is_title").shift(1).over("source") & (pl.col("line_no").diff().over("source") <= 2)),
    ).drop_nulls("field")
    root = pl.when(pl.col("is_root").any()).then(pl.lit("root cause: ")).otherwise(pl.lit("")).first()
    fields = pl.concat_str(pl.col("field"), pl.lit(" "), pl.col("value").str.strip_chars()).str.join(", ")
    workers = rows.group_by("source", "worker", maintain_order=True).agg(
        pl.col("line_no").first(),
        pl.col("ts").drop_nulls().first(),
        kind=pl.lit(TABLE_LINE).first(),
        rank=pl.col("value")
        .filter(pl.col("field") == "rank")
        .str.extract(r"^(\d+)")
        .first()
        .cast(pl.Int64, strict=False),
        host=pl.col("value").filter(pl.col("field") == "host").str.strip_chars().first(),
        text=pl.concat_str(root, fields),
    )
    others = events.filter(pl.col("kind") != TABLE_LINE)
    known = workers.filter(pl.col("rank").is_not_null() | pl.col("host").is_not_null())
    return pl.concat([others, conform(known, EVENT_FACTS)]).sort("source", "line_no", maintain_order=True)


_DIED = ("exit_code", "sigkill", "host_oom", "child_failed")
_RAISED = ("oom", "exception", "nccl_error", "hang")


def first_failures(events: pl.DataFrame) -> pl.DataFrame:
    """`run_id`, `first_failed_rank`, `first_failed_host`.

    torchrun's table is preferred, since it has times: the earliest failure, of equal ones the root cause of a node, of
    those the one printed first. Next comes the first line of a launcher with a rank or a host, then the first error
    with a rank, which is weaker: lines of several ranks reach a log in any order.
    """
    named = events.filter(
        pl.col("run_id").is_not_null() & (pl.col("rank").is_not_null() | pl.col("host").is_not_null())
    )
    order = (
        pl.when(pl.col("kind") == TABLE_LINE)
        .then(0)
        .when(pl.col("kind").is_in(_DIED))
        .then(1)
        .when(pl.col("kind").is_in(_RAISED))
        .then(2)
    )
    ranked = named.with_columns(
        order=order,
        failed_at=pl.when(order == 0).then("ts"),
        is_echo=pl.when(order == 0).then(~pl.col("text").str.starts_with("root cause")),
    ).drop_nulls("order")
    first = ranked.sort("run_id", "order", "failed_at", "is_echo", "line_no", nulls_last=True, maintain_order=True)
    once = first.unique("run_id", keep="first", maintain_order=True)
    return once.select("run_id", first_failed_rank="rank", first_failed_host="host")


_JOB = r"(?:StepId=|\*\*\* (?:JOB|STEP) |\bslurmd\[\S+\]: .*\bjob )(\d+(?:_\d+)?)"


def job_ids(events: pl.DataFrame) -> pl.DataFrame:
    """`run_id`, `job_id` from the lines that slurmstepd prints at a job's end."""
    named = events.with_columns(job_id=pl.col("text").str.extract(_JOB)).drop_nulls(["run_id", "job_id"])
    return named.select("run_id", "job_id").unique("run_id", keep="last", maintain_order=True)
