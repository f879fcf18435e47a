"""Patterns of lines that torch, NCCL, Python, the shell and Slurm's steps print when a run fails or is ended."""

from __future__ import annotations

PATTERNS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    # torch: c10/cuda/CUDACachingAllocator.cpp. <=1.12 RuntimeError, 1.13-2.1 torch.cuda.OutOfMemoryError, later
    # torch.OutOfMemoryError; HIP builds print HIP, other back ends their own name. Triton's driver calls. JAX:
    # RESOURCE_EXHAUSTED. Ray's and Java's errors of that name concern the host.
    (
        "oom",
        ("out of memory", "OutOfMemoryError", "MODULE:PT_DEVMEM Allocation failed"),
        # Gaudi's device allocator comes last.
        r"(?:CUDA|HIP|XPU|NPU|MUSA) out of memory\. Tried to\b|MPS backend out of memory \(|"
        r"(?:^|[^.\w]|torch\.|cuda\.)OutOfMemoryError: |"
        # llm.c's cudaCheck has the words of cudaGetErrorString on a line of its own.
        r"^\s?out of memory\s*$|"
        r"(?:CUDA|HIP) error: out of memory|Triton Error \[\w+\]: out of memory|Failed to CUDA .*: out of memory|"
        r"FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::",
    ),
    ("oom", ("RESOURCE_EXHAUSTED",), r"RESOURCE_EXHAUSTED: .*(?:memory|HBM|allocat)"),
    # slurmd/slurmstepd cgroup plugin and older memory limits; srun on a task; the kernel; kubectl.
    (
        "host_oom",
        (
            *("oom_kill", "oom-kill", "Out of memory: Kill", "OOM Killed", ": Out Of Memory"),
            *("memory limit", "OOMKilled", "llocate memory", "not enough memory: you tried", "MemoryError"),
            *("TERM_MEMLIMIT", "memory pressure (OOM)", "exceeded limit", "'std::bad_alloc'"),
        ),
        r"[Dd]etected \d+ oom[_-]kill event|Some of the step tasks have been OOM Killed|"
        r"Out of memory: Kill(?:ed)? process|oom-kill:constraint|\bsrun: error: .*tasks? [\d,-]+: Out Of Memory|"
        r"\b(?:slurmstepd|srun): error: .*[Ee]xceeded (?:\w+ )?memory limit|^\s*[Rr]eason:\s+OOMKilled|"
        # torch's CPU allocator, Python, numpy, the C library; Ray; LSF and PBS
        r"DefaultCPUAllocator: (?:can't allocate memory|not enough memory)|^\s?(?:[\w.]+\._Array)?MemoryError\b|"
        r"^\s?OSError: \[Errno 12\] Cannot allocate memory|^\s?ray\.exceptions\.OutOfMemoryError\b|"
        r"killed due to memory pressure \(OOM\)|^\s?TERM_MEMLIMIT: |PBS: job killed: v?mem \S+ exceeded limit|"
        r"^\s?terminate called after throwing an instance of 'std::bad_alloc'",
    ),
    # torch ProcessGroupNCCL.cpp: checkTimeout and the watchdog.
    (
        "hang",
        (
            *("Watchdog caught collective operation timeout", "Timed out waiting"),
            *("failed to pass monitoredBarrier", "watchdog got stuck for", "timed out in blocking wait"),
            *("due to a collective timeout", "ProcessGroupNCCL watchdog hang"),
            *("Heartbeat monitor timed out! Process", "Timeout at NCCL work: "),
            *("] Caught collective operation timeout", "EI0002: ", "EE1002: "),
        ),
        # The heartbeat monitor and the dump that one rank requests from the others (TORCH_NCCL_DUMP_ON_TIMEOUT); gloo;
        # torch.distributed.monitored_barrier; TORCH_NCCL_BLOCKING_WAIT. Ascend's CANN: a task that waits for another
        # rank's notification, and a stream that does not end.
        r"(?:Watchdog c|\] C)aught collective operation timeout|Timed out waiting \d+ms for (?:send|recv) operation|"
        r"Ranks? [\d, ]+ failed to pass monitoredBarrier|watchdog got stuck for \d+|"
        r"due to ProcessGroupNCCL watchdog hang|"
        r"WorkNCCL\(.*timed out in blocking wait|Received a dump signal due to a collective timeout|"
        r"Heartbeat monitor timed out! Process will be terminated|\] Timeout at NCCL work: \d|"
        r"\bEI0002: .*Notify register times out|\bEE1002: .*Stream synchronize timeout",
    ),
    # torch NCCLUtils.hpp / ProcessGroupNCCL.cpp: C10D_NCCL_CHECK; torch/csrc/cuda/nccl.cpp; NCCL's own result names.
    # torch_npu ProcessGroupHCCL.cpp; CANN: sockets between ranks that did not come up in time.
    (
        "nccl_error",
        (
            *("NCCL error", "ncclSystemError", "ncclUnhandledCudaError", "ncclInternalError"),
            *("ncclRemoteError", "ncclInvalidUsage", "NCCL communicator was aborted"),
            *("NCCL Error ", "HCCL error in", "error: Hccl", "EI0006: "),
        ),
        r"(?:DistBackendError|RuntimeError): NCCL (?:error in|communicator was aborted|Error \d+: )|"
        r"\[ERROR\] HCCL error in|OPS function error: Hccl\w+, error code|\bEI0006: .*Getting socket times out|"
        r"watchdog thread terminated with exception: NCCL error|"
        r"(?:^|\s)nccl(?:SystemError|UnhandledCudaError|InternalError|RemoteError|InvalidUsage): ",
    ),
    # slurmstepd: the reason follows the time, perhaps on a separate line; without a reason it was scancel.
    (
        "timeout",
        ("DUE TO TIME LIMIT", "TERM_RUNLIMIT", "PBS: job killed: walltime"),
        r"CANCELLED (?:AT \S+ )?DUE TO TIME LIMIT|^\s?DUE TO TIME LIMIT \*\*\*|"
        r"^\s?TERM_RUNLIMIT: |PBS: job killed: walltime \S+ exceeded limit",
    ),
    ("node_fail", ("DUE TO NODE FAILURE", "NODE FAILURE", "Node failure on "), r"DUE TO NODE FAILURE|Node failure on "),
    (
        "preempted",
        ("DUE TO PREEMPTION", "DUE TO JOB REQUEUE", "TERM_PREEMPT"),
        r"DUE TO (?:PREEMPTION|JOB REQUEUE)|^\s?TERM_PREEMPT: ",
    ),
    (
        "cancelled",
        ("CANCELLED AT", "TERM_OWNER"),
        r"(?:slurm(?:step)?d(?:[-\[]\S+)?: (?:error: )?|(?:^|\] )error: )\*\*\* (?:JOB|STEP) \S+ (?:ON \S+ )?"
        r"CANCELLED AT \S+ (?:DUE (?i:to) SIGNAL [\w ]+ )?\*\*\*|^\s?TERM_OWNER: ",
    ),
    # torchrun prints the enum's name or, from Python 3.11 on, its number.
    (
        "sigterm",
        (
            *("SIGTERM", "Terminated", "signal: 15", "signal: 1", "signal 15", "15 death signal"),
            *("return code = -15", "failed (exitcode: -15)", "srun: Force Terminated "),
        ),
        # Megatron's --exit-signal-handler; bash about a command of its script; a terminal that was closed (1);
        # DeepSpeed's launcher (a negative code is a signal's number); torchrun's agent about a worker; srun, when the
        # controller ends the job on its own (step_launch.c); a handler of anybody's, at the begin of its message
        r"(?:^|\s)(?:Main process received SIGTERM|Received SIGTERM|received signal 15|got SIGTERM)|"
        r"Received (?:Signals\.SIGTERM|15) death signal|^\s?Terminated$|SignalException: .* got signal: 15?\b|"
        r"exiting program after receiving SIGTERM|: line \d+: +\d+ Terminated\b|exits with return code = -15\b|"
        r"\bsrun: error: .*tasks? [\d,-]+: Terminated$|(?:^|\] |api:)failed \(exitcode: -15\)|"
        r"\bSignal 15 \(SIGTERM\) received by PID \d|^\s?srun: Force Terminated (?:job|StepId=)|"
        r"(?:^|[:|\]>-] )\s*(?i:(?:signal )?SIGTERM (?:signal )?(?:received|caught)|"
        r"(?:caught|received|trapped) (?:signal )?SIGTERM)\b",
    ),
    (
        "interrupted",
        (
            *("KeyboardInterrupt", "got signal: 2", "SIGINT", "2 death signal"),
            *("srun: sending Ctrl-C", "return code = -2", "^C"),
        ),
        # First a terminal's echo of the key, alone or followed by the next output of the program.
        r"^\s*\^C(?:\s*$|Traceback|[WE]\d{4} )|"
        r"^\s?(?:\w+\.)*KeyboardInterrupt\b|SignalException: .* got signal: 2\b|[Rr]eceived SIGINT|"
        r"Received (?:Signals\.SIGINT|2) death signal|"
        r"(?:^\s?|Warning: )Detected KeyboardInterrupt, attempting graceful shutdown|"
        r"srun: sending Ctrl-C to|exits with return code = -2\b",
    ),
    (
        "sigkill",
        (
            *("SIGKILL", "Signal 9", "return code = -9", "exitcode: -9"),
            *("exitcode  : -9", "Killed", "exited on signal 9"),
        ),
        # bash about a command of its script, and about one that was typed in
        r": line \d+: +\d+ Killed\b|^\s?Killed\s*$|"
        r"Signal 9 \(SIGKILL\)|\bsrun: error: .*tasks? [\d,-]+: Killed$|exited on signal 9 \(Killed\)|"
        r"exits with return code = -9|\(exitcode: -9\)|^\s*exitcode\s*: -9\b",
    ),
    (
        "child_failed",
        ("ChildFailedError", "failed (exitcode"),
        r"ChildFailedError:|(?:^|\] |api:)failed \(exitcode: (?:\d+|-(?:\d|1[0-46-9]|[2-9]\d+))\)",
    ),
    (
        "exit_code",
        (
            *("xited with exit code", "exits with return code", "exited with code", "(core dumped)"),
            *("crashed with exit code", " TASK FAILURE", "double free or corruption", "free(): invalid"),
            *("malloc(): ", "corrupted size vs. prev_size", "Error executing job with overrides: ["),
        ),
        # abort() and the C library's message before it; Slurm from 23.11 about other tasks of a step with a failed one;
        # composer/cli/launcher.py; Hydra (_internal/utils.py run_and_report), in front of the traceback
        r"Error executing job with overrides: \[|"
        r"Exited with exit code -?[1-9]\d*|exited with code -?[1-9]\d*|\bRank \d+ crashed with exit code -?[1-9]|"
        r"exits with return code = (?:[1-9]\d*|-(?:[13-9]|1[0-46-9]|[2-9]\d))\b|"
        r"\bAborted +\(core dumped\)|CANCELLED AT \S+ DUE TO TASK FAILURE|"
        r"^\s?(?:double free or corruption|free\(\): invalid|malloc\(\): |corrupted size vs\. prev_size)",
    ),
    ("traceback", ("Traceback (most recent call last)",), r"Traceback \(most recent call last\):"),
    (
        "exception",
        (
            *("Error", "Exception", "terminate called", "Segmentation fault", "Fatal Python error", "Signal 11"),
            *("Bus error", "bus error", "CUDA error: ", "HIP error: ", ".exc.", ".errors.", ".exceptions."),
            *("StopIteration", "BrokenProcessPool", "BadZipFile", "TimeoutExpired", "queue.Empty"),
            *("socket.timeout", "socket.gaierror", ".py: error: ", "can't open file", "HW Exception by GPU"),
            *("Memory access fault by GPU", "Xid (PCI:", "aborting with error : HSA_STATUS_ERROR"),
        ),
        # Exceptions by name (Python's own without a common ending one by one), or by their module
        # (torch._dynamo.exc.Unsupported); what the watchdog's thread prints of a kernel's failure; argparse; the fault
        # handler of ROCm's runtime; Xids after which the GPU is unusable (NVIDIA's Xid catalogue).
        r"^\s?(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)(?::(?: .*)?)?$|^\s?Exception: |"
        r"^\s?StopIteration(?:: .*)?$|"
        r"^\s?(?:\w+\.)+(?:BrokenProcessPool|BadZipFile|TimeoutExpired): |^\s?_?queue\.Empty$|"
        r"^\s?socket\.(?:timeout|gaierror): |^\s?terminate called after throwing|"
        r"Segmentation fault|^\s?Fatal Python error|Signal 11 \(SIGSEGV\)|\b[Bb]us error\b|"
        r"(?:CUDA|HIP) error: (?:an illegal (?:memory access|instruction)|device-side assert|misaligned address|"
        r"unspecified launch failure|uncorrectable ECC)|"
        r"^\s?(?:[A-Za-z_]\w*\.)+(?:exc|errors|exceptions)\.[A-Z]\w*(?:\(\w+\))?(?:: .*)?$|"
        r"^\s?[\w./-]+\.py: error: |^\s?\S*python[\d.]*: can't open file |"
        r"(?:HW Exception|Memory access fault) by GPU node|[qQ]ueue(?: 0x\w+)? aborting with error : HSA_STATUS_ERROR|"
        r"Xid \(PCI:[\w:.]+\): (?:48|62|74|79|92|94|95|119|120)\b",
    ),
)
"""(kind of vocab.EVENT_KIND, literals of which a line holds one, expression): arguments of `patterns.Pattern`."""
