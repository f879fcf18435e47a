"""Patterns of signals, aborted runtimes and failed hardware: deaths of processes without a Python exception.

Sources of the wording:
- absl's failure signal handler (JAX, TensorFlow) and its CHECK; torch's own handler (ATen/csrc signal_handler.cpp);
  Open MPI's (opal/util/stacktrace.c); bash about a command of its script;
- NVIDIA's kernel driver and fabric manager (Xid and SXid); CUDA's and HIP's error strings (cudaGetErrorString,
  hipGetErrorString); ROCm's runtime (hsa_status_string, rocdevice.cpp) and rocBLAS;
- memory that ran out: TensorFlow's allocator and AWS Neuron's runtime (GPU); mmap, shared memory and fork, systemd,
  earlyoom, Kaggle, Vertex AI and HTCondor (host);
- timm's and MAE's training loops when the loss is NaN (`Loss is nan, stopping training`), and loops like them.
"""

from __future__ import annotations

_CUDA = (
    r"Invalid access of peer GPU memory|unknown error|invalid program counter|hardware stack error|"
    r"the launch timed out and was terminated|no CUDA-capable device|system not yet initialized|operation not permitted"
)

_LOST_LOSS = ("oss is ", "oss became ", "-finite loss", "aN loss", "nan loss")
_GIVEN_UP = (
    r"\b(?i:loss (?:is|became)(?: now)? -?(?:nan|inf(?:inite)?|non-?finite|not (?:finite|a number))|"
    r"(?:nan|non-?finite|infinite) loss)\b.{0,60}\b(?i:stopping|aborting|terminating|exiting|halting|giving up)\b"
)

PATTERNS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "oom",
        ("OOM when allocating tensor", "HSA_STATUS_ERROR_OUT_OF_RESOURCES", "Allocation Failure"),
        # In a traceback of Graph execution the line is apart from the error's name. ROCm's runtime prints the free
        # memory: it fails to set its scratch memory up when there is hardly any.
        r"^\s*(?:\(\d+\) )?OOM when allocating tensor with shape.*device:GPU|"
        r"HSA_STATUS_ERROR_OUT_OF_RESOURCES: .*Available Free mem : \d{1,2} MB|"
        r"RESOURCE_EXHAUSTED: .*Allocation Failure|\bNMGR:.*status=4 message=\"Allocation Failure\"",
    ),
    (
        "host_oom",
        (
            "annot allocate memory",
            "allocate more memory than is available",
            "ran out-of-memory and exited",
            "killed by the OOM killer",
            "sending SIGTERM to process",
            "gone over memory limit",
            "exceeded request_memory",
        ),
        r"\bunable to (?:mmap|open shared memory object)\b.*: Cannot allocate memory \(12\)|"
        r"\bfork: (?:retry: (?:Resource temporarily unavailable: )?)?Cannot allocate memory|"
        r"^\s?Your notebook tried to allocate more memory than is available|"
        r"^\s?The replica \S+ ran out-of-memory and exited|has been killed by the OOM killer\.|"
        r"^\s?mem avail: .*, sending SIGTERM to process \d|has gone over memory limit of \d|"
        r"memory usage exceeded request_memory",
    ),
    (
        "exception",
        (
            *("Segfault encountered", " received at time=", "Check failed: ", "] Signal: "),
            *("fallen off the bus", "SXid (PCI:", "CUDA error: ", "hipErrorNoBinaryForGpu: "),
            *("rocBLAS error: ", "HIP error: ", ".ArrowInvalid: ", "._LinAlgError: ", "._InactiveRpcError: "),
            *("._MultiThreadedRendezvous: ", "SystemExit: ", "GPU reset begin!", *_LOST_LOSS),
        ),
        r"^!+ Segfault encountered !+|^\s?\*\*\* SIG(?:SEGV|ABRT|BUS|FPE|ILL) received at time=\d|^Check failed: \S|"
        r"^\[\S+:\d+\] Signal: \w|GPU has fallen off the bus|SXid \(PCI:[^)]*\): \d+, Fatal|"
        rf"(?:CUDA|HIP) error: (?:{_CUDA})|hipErrorNoBinaryForGpu: Unable to find code object|^\s?rocBLAS error: |"
        r"^\s?(?:[A-Za-z_]\w*\.)+(?:ArrowInvalid|_LinAlgError|_InactiveRpcError|_MultiThreadedRendezvous): |"
        rf"^\s?SystemExit: [1-9]|\bamdgpu: GPU reset begin!|{_GIVEN_UP}",
    ),
    (
        "exit_code",
        ("(core dumped)",),
        r"\b(?:Floating point exception|Illegal instruction|Trace/breakpoint trap) ?\s*\(core dumped\)",
    ),
    (
        "hang",
        (
            "successfully reached monitoredBarrier",
            "Did not get subsequent heartbeat. Waited ",
            "Termination timeout for ",
            "DEADLINE_EXCEEDED: Barrier timed out",
        ),
        # nvidia-resiliency-ext's rank monitor; XLA's rendezvous of the ranks of one process; JAX's barriers
        r"successfully reached monitoredBarrier, but received errors while waiting|"
        r"Did not get subsequent heartbeat\. Waited [\d.]+ seconds|"
        r"^\s?Termination timeout for .* exceeded\. Exiting to ensure a consistent program state|"
        r"DEADLINE_EXCEEDED: Barrier timed out",
    ),
)
"""(kind of vocab.EVENT_KIND, literals of which a line holds one, expression): arguments of `patterns.Pattern`."""
