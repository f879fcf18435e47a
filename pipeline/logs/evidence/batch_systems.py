"""Patterns of lines that batch systems, MPI launchers and orchestrators print when a job ends.

Sources of the wording:
- Slurm: contribs/seff; sacct's rows, where a job prints them itself; srun's and slurmd's launch (launch.c, req.c);
  NVIDIA's pyxis;
- LSF: the codes of lsbatch.h (TERM_...) and the report that it appends to a job's output; jsrun;
- PBS: resmom's messages, its negative exit codes (pbs_ifl.h JOB_EXEC_KILL_...) as NCI's epilogue explains them;
- Flux: flux-core src/cmd/job (attach), src/shell (doom, oom), job-exec;
- Open MPI's ORTE and PRRTE: help-errmgr-base.txt, help-plm-base.txt; MPICH's Hydra: pmiserv, mpiexec's signals;
- Kubernetes' job controller and kubelet, Kueue, Volcano: events of `kubectl describe` and `kubectl get events`;
- Ray: python/ray/exceptions.py, the GCS about nodes; submitit core/job_environment.py; Lightning's signal connector;
  NeMo's PreemptionCallback; SkyPilot's jobs; Vertex AI's replicas, SageMaker's training toolkit, Determined's
  allocations, HTCondor's user log; coreutils' timeout; GNU time (src/time.c summarize, and the last line of
  `-v`); wandb up to 0.16 (wandb_run.py _footer_exit_status_info).
"""

from __future__ import annotations

_SEFF = r"^\s?State: {} ?\(exit code \d+\)"
# Of the job as a whole: the state, followed by the exit code as in sacct's default columns.
_SACCT = r"^\s?\d+(?:_\d+)?[ |].*[ |]{}[ |]+\d+:\d+(?:[ |]|$)"
_EVENT = r"^\s*(?:(?:\d+[dhms]){{1,3}} +)?(?:Reason:|Warning|Normal) +{}"
_NO_SIGNAL = r"(?:[1-9]\d?|1[0-25-9]\d|13[0-689]|14[0-24-9]|2[0-5]\d)"
"""An exit code other than 0, 137 (SIGKILL), 143 and 271 (SIGTERM: the signal plus 128, or plus PBS's 256)."""


def ended(*states: str) -> str:
    """Pattern of rows of seff and sacct with one of the states."""
    word = f"(?:{'|'.join(states)})"
    return f"{_SEFF.format(word)}|{_SACCT.format(word)}"


PATTERNS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "host_oom",
        ("OUT_OF_ME", "TERM_SWAP", "exceeding mem", "ERROR: oom: "),
        rf"{ended('OUT_OF_MEMORY', 'OUT_OF_ME[+]')}|^\s?TERM_SWAP: |\(Job failed due to exceeding v?mem|"
        r"flux-shell\[\d+\]: ERROR: oom: Memory cgroup out of memory: killed",
    ),
    (
        "timeout",
        (
            *("State: TIMEOUT", " TIMEOUT ", "|TIMEOUT|", "exceeding walltime"),
            *("exception type=timeout", "DeadlineExceeded", "TERM_CPULIMIT", "TERM_DEADLINE"),
            *("timeout: sending signal ", "this job is timed-out", "Job has timed out. Ran "),
        ),
        rf"{ended('TIMEOUT')}|\(Job failed due to exceeding walltime|\bjob\.exception type=timeout severity=0|"
        rf"{_EVENT.format('DeadlineExceeded')}|^\s?TERM_(?:CPULIMIT|DEADLINE): |this job is timed-out\.|"
        r"Job has timed out\. Ran \d+ minutes|^\s?timeout: sending signal \w+ to command ",
    ),
    (
        "node_fail",
        (
            *("NODE_FAIL", "SISTER_EOF", "lost contact with job shell"),
            *("lost communication with a remote daemon", "because its node has died"),
            *("NodeDiedError: ", "has been marked dead because", "EvictedDueToNodeFailures"),
            *("imminent node shutdown", "NodeShutdown", "TERM_ZOMBIE", " NOT RESPONDING"),
        ),
        rf"{ended('NODE_FAIL')}|CANCELLED AT \S+ DUE TO NODE \S+ NOT RESPONDING|received SISTER_EOF|"
        rf"\bjob\.exception type=exec .*lost contact with job shell|"
        r"^\s?(?:ORTE|PRTE|PRRTE|PMIx) has lost communication with a remote daemon|"
        r"The actor is dead because its node has died|^\s?ray\.exceptions\.NodeDiedError: |"
        r"The node with node id: .* has been marked dead because|^\s?TERM_ZOMBIE: |"
        rf"{_EVENT.format('(?:EvictedDueToNodeFailures|NodeShutdown)')}|"
        rf"was terminated in response to imminent node shutdown",
    ),
    (
        "preempted",
        (
            *("State: PREEMPTED", " PREEMPTED ", "|PREEMPTED|", "TERM_REQUEUE_", "EvictedDueToPreempt"),
            *("Preempted to accommodate", "because of preempt", "this job is preempted", "requeing job "),
            *("Preemption detected, saving checkpoint", "Cluster is preempted or failed", "  Evicted "),
        ),
        rf"{ended('PREEMPTED')}|^\s?TERM_REQUEUE_\w+: |{_EVENT.format('(?:EvictedDueToPreempt|Evicted )')}|"
        rf"{_EVENT.format('.*Preempted to accommodate a ')}|"
        rf"{_EVENT.format('Evict .*because of preempt')}|this job is preempted\.|\brequeing job \d+\.\.\.|"
        r"Preemption detected, saving checkpoint and exiting|\bCluster is preempted or failed\. Recovering",
    ),
    (
        "cancelled",
        (
            *("State: CANCELLED", " CANCELLED ", "CANCELLED+", "|CANCELLED"),
            *("TERM_ADMIN", "TERM_FORCE_", "exception type=cancel"),
        ),
        rf"{ended('CANCELLED', 'CANCELLED[+]', 'CANCELLED by [0-9]+')}|^\s?TERM_(?:ADMIN|FORCE_OWNER|FORCE_ADMIN): |"
        r"\bjob\.exception type=cancel severity=0",
    ),
    (
        "sigterm",
        (
            *("task(s) Terminated", "mpirun: killing job", "(signal 15)", "EXIT CODE: 15", "signal termination: 15"),
            *("SIGTERM Termination", "terminated with signal 15", "died with <Signals.SIGTERM"),
            *("SIGTERM received at time=", "Job was aborted", "SIGTERM caught at ", "signal 15, initiating"),
            "Command terminated by signal 15",
        ),
        r"^\s?(?:flux-job: )?task\(s\) Terminated|^\s?mpirun: killing job\.\.\.|EXIT STRING: Terminated \(signal 15\)|"
        r"^=\s+EXIT CODE: 15\s*$|^\s?Exited with signal termination: 15\b|\(Linux Signal 15 SIGTERM Termination\)|"
        r"One or more process .*terminated with signal 15\b|died with <Signals\.SIGTERM: 15>|"
        r"^\s?\*\*\* SIGTERM received at time=\d|\bSIGTERM caught at \d{4}-|"
        r"^\s?Command terminated by signal 15$|"
        r"Received signal 15, initiating graceful stop|\) \d{4}-\d\d-\d\d [\d:]+ Job was aborted\b",
    ),
    (
        "interrupted",
        ("Sending Ctrl-C to processes", "died with <Signals.SIGINT"),
        r"^\s?\[mpiexec@\S+\] Sending Ctrl-C to processes as requested|died with <Signals\.SIGINT: 2>",
    ),
    (
        "sigkill",
        (
            *("task(s) Killed", "EXIT CODE: 9", "(signal 9)", "signal termination: 9"),
            *("SIGKILL)", "terminated with signal 9", "died with <Signals.SIGKILL"),
            *("TERM_EXTERNAL_SIGNAL", "termination (signal 9)", "exit code: 137"),
            "Command terminated by signal 9",
        ),
        r"^\s?(?:flux-job: )?task\(s\) Killed|^=\s+EXIT CODE: (?:9|137)\s*$|EXIT STRING: Killed \(signal 9\)|"
        r"^\s?Exited with signal termination: 9\b|\(Linux Signal 9 SIGKILL|^\s?TERM_EXTERNAL_SIGNAL: |"
        r"One or more process .*terminated with signal 9\b|died with <Signals\.SIGKILL: 9>|"
        r"\(0\) Abnormal termination \(signal 9\)|container failed with non-zero exit code: 137\b|"
        r"^\s?Command terminated by signal 9$",
    ),
    (
        "exit_code",
        (
            *("State: FAILED", " FAILED ", "|FAILED|", "signal termination: ", "Exit Status:"),
            *("task(s) exited with exit code", "job.exception type=", "was unable to reliably start"),
            *("has unexpectedly failed after launch", "processes terminated badly", "first noticed rank"),
            *("noticed that process rank", "BackoffLimitExceeded", "Unable to create step"),
            *("Unable to allocate resources", "Application launch failed", " launch failed: "),
            *("Task launch for ", "execve(): ", "Batch job submission failed", "error: pyxis: "),
            *("spank: required plugin", "make: *** [", "docker: Error response from daemon: "),
            *(": command not found", "exited with a non-zero status of", "Reporting training FAILURE"),
            *("failed with return code list: ", "non-zero exit code: ", "Abnormal termination (signal "),
            *("Command exited with non-zero status ", "Command terminated by signal "),
            "W&B process to finish... ",
        ),
        rf"{ended('FAILED')}|^\s?Exited with signal termination: (?:[1-8]|1[0-4]|1[6-9]|[2-6]\d)\b|"
        rf"^\s*Exit Status:\s+(?:{_NO_SIGNAL}\s*$|\d+ \(Linux Signal (?:[1-8]|1[0-4])\b)|"
        r"^\s?(?:flux-job: )?task\(s\) exited with exit code [1-9]|\bjob\.exception type=(?:exec|alloc|"
        r"dependency) severity=0 |"
        r"^\s?(?:ORTE|PRTE) was unable to reliably start one or more daemons|"
        r"daemon has unexpectedly failed after launch|\[mpiexec@\S+\] .*processes terminated badly|"
        r"One or more process \(first noticed rank \d+\) terminated with signal (?:[1-8]|1[0-4]|[2-6]\d)\b|"
        r"noticed that process rank \d+ with PID \d+ on node \S+ exited on\s*$|"
        rf"{_EVENT.format('BackoffLimitExceeded')}|"
        r"\b(?:srun|salloc): error: (?:Unable to (?:create step|allocate resources)|Application launch failed|"
        r"task \d+ launch failed: |Task launch for )|\bslurmstepd[^:]*: error: execve\(\): |"
        r"\bsbatch: error: Batch job submission failed|"
        r"\bslurmstepd[^:]*: error: (?:pyxis: (?:failed|couldn't|could not)|spank: required plugin \S+: \S+ failed)|"
        # Missing commands that a training script cannot do without.
        r"\S: line \d+: (?:torchrun|python[\d.]*|accelerate|deepspeed|srun|mpirun|mpiexec): command not found$|"
        r"^\s?make(?:\[\d+\])?: \*\*\* \[.*\] Error [1-9]|^\s?docker: Error response from daemon: |"
        rf"^\s?The replica \S+ exited with a non-zero status of {_NO_SIGNAL}\b|Reporting training FAILURE$|"
        r"^\s?ERROR: Job \d+ failed with return code list: |"
        rf"container failed with non-zero exit code: {_NO_SIGNAL}\b|"
        r"\(0\) Abnormal termination \(signal (?:[1-8]|1[0-4])\)|"
        rf"^\s?Command exited with non-zero status {_NO_SIGNAL}$|^\s?Command terminated by signal (?:[1-8]|1[0-4])$|"
        rf"^\s?wandb: Waiting for W&B process to finish\.\.\. .{{0,20}}\(failed {_NO_SIGNAL}\)",
    ),
)
"""(kind of vocab.EVENT_KIND, literals of which a line holds one, expression): arguments of `patterns.Pattern`."""

HEADINGS = r"BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES|noticed that process rank .* exited on\s*$"
"""Lines of kind exit_code that a launcher prints before the one with the signal."""

FROM_PARALLEL_LAUNCHER = (
    r"\b(?:srun|salloc|sbatch): error: |\bslurmstepd|^\s?(?:flux-job: )?task\(s\) exited with|"
    r"\bjob\.exception type=|\b(?:ORTE|PRTE) was unable|"
    r"\bmpi(?:run|exec)\b|\bprterun\b|MPI_ABORT was invoked|BAD TERMINATION|^\s*Exit Status: |"
    r"^\s?Exited with (?:exit code|signal termination)|One or more process \(first noticed rank"
)
"""Exit codes that only a launcher of parallel jobs reports: they make a log a run even without any other sign."""
