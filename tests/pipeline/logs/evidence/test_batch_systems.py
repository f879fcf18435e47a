"""Words with which batch systems, launchers, orchestrators and runtimes end a job, and what they make of a run."""

from __future__ import annotations

import polars as pl
import pytest

from sweepscope.pipeline.logs.engine import cleaning
from sweepscope.pipeline.logs.evidence import patterns
from sweepscope.pipeline.text import lines
from tests.pipeline.ingest_in_memory import run_of, runs_of, tables_of

STEP = (
    " [2025-05-01 12:00:0{n}] iteration        {n}/     100 | consumed samples:           64 | "
    "elapsed time per iteration (ms): 1000.0 | learning rate: 1.000E-04 | global batch size:    64 | "
    "lm loss: 9.000000E+00 | loss scale: 1.0 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
)
STEPS = "".join(STEP.format(n=n) for n in (1, 2, 3))
BANNER = "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 551 RUNNING AT n4\n=   EXIT CODE: {}\n"
OLD_TABLE = (
    "Root Cause:\n[0]:\n  time: 2021-08-01_12:00:00\n  rank: 13 (local_rank: 5)\n  exitcode: {} (pid: 3344)\n"
    '  error_file: <N/A>\n  msg: "Process failed with exitcode 1"\n====\nOther Failures:\n  <NO_OTHER_FAILURES>\n'
)

ENDS = [
    ("State: OUT_OF_MEMORY (exit code 0)", "host_oom"),
    ("State: TIMEOUT (exit code 0)", "timeout"),
    ("State: FAILED (exit code 1)", "crash"),
    ("771              gpt-tp4  NODE_FAIL      1:0   00:30:00", "node_fail"),
    ("771|gpt-tp4|OUT_OF_MEMORY|0:125|00:30:00", "host_oom"),
    ("771_3    gpt-tp4  OUT_OF_ME+    0:125", "host_oom"),
    ("771|gpt-tp4|CANCELLED by 1000|0:0|00:30:00", "cancelled"),
    ("771 gpt-tp4 gpu PREEMPTED 0:0", "preempted"),
    ("TERM_ADMIN: job killed by root or LSF administrator.\nExited with exit code 130.", "cancelled"),
    ("TERM_REQUEUE_OWNER: job killed and requeued by owner.\nExited with exit code 143.", "preempted"),
    ("TERM_SWAP: job killed after reaching LSF swap usage limit.", "host_oom"),
    ("Exited with signal termination: 9.", "crash"),
    ("Exited with signal termination: 15.", "cancelled"),
    ("ERROR:  One or more process (first noticed rank 17) terminated with signal 11 (core dumped)", "crash"),
    (
        "=>> PBS: job killed: node 2 (x3) requested job terminate, 'EOF' (code 1099) - received SISTER_EOF attempting to "
        "communicate with sister MOM's",
        "node_fail",
    ),
    ("   Exit Status:        -29 (Job failed due to exceeding walltime)", "timeout"),
    ("   Exit Status:        271 (Linux Signal 15 SIGTERM Termination)", "cancelled"),
    ("   Exit Status:        137 (Linux Signal 9 SIGKILL)", "crash"),
    ("   Exit Status:        1", "crash"),
    ("flux-job: task(s) exited with exit code 1", "crash"),
    ("wandb: Waiting for W&B process to finish... (failed 1). Press Control-C to abort syncing.", "crash"),
    (
        "3600.1s: job.exception type=timeout severity=0 resource allocation expired\nflux-job: task(s) Terminated",
        "timeout",
    ),
    ("9.1s: job.exception type=cancel severity=0 \nflux-job: task(s) Terminated", "cancelled"),
    ("9.1s: job.exception type=exec severity=0 lost contact with job shell on t3 (rank 3)", "node_fail"),
    ("9.1s: flux-shell[1]: ERROR: oom: Memory cgroup out of memory: killed 1 task on t3.", "host_oom"),
    ("ORTE has lost communication with a remote daemon.", "node_fail"),
    ("ORTE was unable to reliably start one or more daemons.", "crash"),
    ("mpirun: killing job...", "cancelled"),
    ("[mpiexec@n1] Sending Ctrl-C to processes as requested", "cancelled"),
    (
        "ray.exceptions.RayActorError: The actor died.\nThe actor is dead because its node has died. Node Id: 3b",
        "node_fail",
    ),
    (
        "(raylet) The node with node id: 3b and address: 10.0.0.4 has been marked dead because of missed heartbeats",
        "node_fail",
    ),
    ("5m2s   Warning   Evicted   pod/gpt-1   The node was low on resource: ephemeral-storage.", "preempted"),
    ("  Normal  EvictedDueToPreempted  2m  kueue-admission  Preempted to accommodate a workload", "preempted"),
    ("  Warning  Evict  2m  volcano  Pod is evicted, because of preempt", "preempted"),
    ("  Warning  BackoffLimitExceeded  2m  job-controller  Job has reached the specified backoff limit", "crash"),
    ("  Warning  DeadlineExceeded  2m  job-controller  Job was active longer than specified deadline", "timeout"),
    ("submitit WARNING (2025-05-01 12:00:30,001) - Caught signal SIGUSR2 on n1: this job is preempted.", "preempted"),
    (
        "submitit INFO (2025-05-01 12:00:30,001) - Job has timed out. Ran 59 minutes out of requested 60 minutes.",
        "timeout",
    ),
    ("requeing job 771...", "preempted"),
    (
        "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2025-05-01T12:30:00 DUE TO NODE n3 NOT RESPONDING ***",
        "node_fail",
    ),
    ("/var/spool/slurmd/job771/slurm_script: line 22: torchrun: command not found", "crash"),
    ("Received signal 15, initiating graceful stop", "cancelled"),
    ("subprocess.CalledProcessError: Command '['python']' died with <Signals.SIGTERM: 15>.", "cancelled"),
    ("subprocess.CalledProcessError: Command '['python']' died with <Signals.SIGKILL: 9>.", "crash"),
    ("srun: error: task 0 launch failed: Slurmd could not execve job", "crash"),
    ("The replica workerpool1-0 exited with a non-zero status of 1. To find out more", "crash"),
    ("2025-05-01 12:30:00,001 sagemaker-training-toolkit ERROR    Reporting training FAILURE", "crash"),
    ("ERROR: Job 3 failed with return code list: [1, 137]", "crash"),
    ("allocation failed: container failed with non-zero exit code: 137", "crash"),
    ("005 (1234.000.000) 2025-05-01 12:30:00 Job terminated.\n\t(0) Abnormal termination (signal 11)", "crash"),
    ("009 (1234.000.000) 2025-05-01 12:30:00 Job was aborted by the user.", "cancelled"),
    ("timeout: sending signal TERM to command 'python'", "timeout"),
    ('Command terminated by signal 9\n\tCommand being timed: "python"\n\tExit status: 0', "crash"),
    ('Command terminated by signal 15\n\tCommand being timed: "python"\n\tExit status: 0', "cancelled"),
    ('Command exited with non-zero status 1\n\tCommand being timed: "python"\n\tExit status: 1', "crash"),
    # pipeline.logs.evidence.faults
    ("Your notebook tried to allocate more memory than is available. It has restarted.", "host_oom"),
    ("The replica workerpool0-0 ran out-of-memory and exited with a non-zero status of 137(SIGKILL).", "host_oom"),
    ("systemd[1]: run-u12.service: A process of this unit has been killed by the OOM killer.", "host_oom"),
    ("mem avail:  1021 of 515000 MiB ( 0.20%), sending SIGTERM to process 5511 uid 1000", "host_oom"),
    ("\tError from slot1@n1: Docker job has gone over memory limit of 65536 Mb", "host_oom"),
    ("n1:47:99 [0] alloc.h:95 NCCL WARN HIP failure 'out of memory'", "oom"),
    ("[ 91.1] amdgpu 0000:c1:00.0: amdgpu: GPU reset begin!", "crash"),
    ("Loss is nan, stopping training", "crash"),
    ("ERROR loss is not finite at iteration 100, aborting", "crash"),
    ("E 10:12:01 helios.train: loss is nan for 3 consecutive steps, stopping", "crash"),
    ("non-finite loss encountered on rank 3: terminating", "crash"),
    ("ExecuteUserScriptError:", "crash"),
    ("[ERROR] [ft_launcher0@n1] Did not get subsequent heartbeat. Waited 1800.00 seconds.", "hang"),
    (
        "F0501 12:30:40.0 991 rendezvous.cc:100] Termination timeout for `join_thunk` of 40 seconds exceeded. Exiting to "
        "ensure a consistent program state.",
        "hang",
    ),
    ("jax.errors.JaxRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: Shutdown::1.", "hang"),
    (
        "OOM when allocating tensor with shape[8,8] and type half on /job:localhost/replica:0/task:0/device:GPU:0 by "
        "allocator GPU_0_bfc",
        "oom",
    ),
    (
        "RuntimeError: Bad StatusOr access: RESOURCE_EXHAUSTED: LoadExecutable e7 failed: message=Allocation Failure",
        "oom",
    ),
    (
        ":0:rocdevice.cpp :2879: Callback: Queue 0x7f aborting with error : HSA_STATUS_ERROR_OUT_OF_RESOURCES: The runtime "
        "failed to allocate the necessary resources. Code: 0x1008 Available Free mem : 0 MB",
        "oom",
    ),
    ("RuntimeError: unable to mmap 1024 bytes from file </w/a>: Cannot allocate memory (12)", "host_oom"),
    ("bash: fork: Cannot allocate memory", "host_oom"),
    ("!!!!!!! Segfault encountered !!!!!!!", "crash"),
    ("*** SIGABRT received at time=1746100000 on cpu 12 ***", "crash"),
    ("*** SIGTERM received at time=1746100000 on cpu 12 ***", "cancelled"),
    (
        "2026-11-03 15:03:33.111 | CRITICAL | trainer:run:201 - signal SIGTERM received, saving a checkpoint",
        "cancelled",
    ),
    ("[rank0] WARNING: Caught SIGTERM, exiting after this step", "cancelled"),
    ("F0501 12:00:30.000000 991 a.cc:112] Check failed: status.ok() INTERNAL: core halted", "crash"),
    ("/w/run.sh: line 12:  5511 Floating point exception(core dumped) python train.py", "crash"),
    ("[n4:05511] Signal: Aborted (6)", "crash"),
    ("[ 91.1] NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.", "crash"),
    ("CUDA error: Invalid access of peer GPU memory over nvlink or a hardware error", "crash"),
    ("pyarrow.lib.ArrowInvalid: Not an Arrow file", "crash"),
    ("SystemExit: 1", "crash"),
    (
        "RuntimeError: Rank 4 successfully reached monitoredBarrier, but received errors while waiting for send/recv",
        "hang",
    ),
]


def test_the_last_word_decides() -> None:
    runs = runs_of([f"{STEPS}{text}\n" for text, _ in ENDS])
    assert [(text, run["status"]) for (text, _), run in zip(ENDS, runs, strict=True)] == ENDS


HARMLESS = [
    "771.batch  batch  CANCELLED  0:15",
    "NCCL_TIMEOUT 1:0",
    "the State: TIMEOUT (exit code 0) is what seff says",
    "   Exit Status:        0",
    "Job has not timed out. Ran 9 minutes out of requested 60 minutes.",
    "requeing job is off",
    "Exited with exit code 0.",
    "Signal: strong",
    "SystemExit: 0",
    "HSA_STATUS_ERROR_OUT_OF_RESOURCES: Available Free mem : 190000 MB",
    "a node has died in the story",
    "OOM when allocating tensor: see the manual",
    "Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.10GiB with freed_by_count=0. The caller indicates that "
    "this is not a failure, but this may mean that there could be performance gains if more memory were available.",
    "Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.19GiB. The caller indicates that this is not a failure",
    "Check failed: ",
    "/var/spool/slurmd/job771/slurm_script: line 4: module: command not found",
    "timeout: 600 s",
    "Loss is 2.5, stopping training",
    "loss is nan, skipping this step",
    "set --nan-check if the loss is infinite",
    "the GPU reset begin! is in the manual",
    "exited with a non-zero status of mind",
    "a checkpoint is saved when SIGTERM received; set --no-sigterm otherwise",
    "flux-job: task(s) exited with exit code 0",
    "  Normal  Pulled  2m  kubelet  image is present, to be Preempted to accommodate nobody",
]


def test_a_word_is_not_a_sign() -> None:
    block = lines.split_many([(place, text.encode(), 1) for place, text in enumerate(HARMLESS)])
    assert patterns.events(cleaning.clean(block)).select("kind", "text").rows() == []


@pytest.mark.parametrize(("code", "status"), [(15, "cancelled"), (9, "crash"), (1, "crash")])
def test_hydras_banner_gives_way_to_the_signal_below_it(code: int, status: str) -> None:
    assert run_of(STEPS + BANNER.format(code))["status"] == status


def test_a_signal_that_prrte_breaks_off_names_the_rank() -> None:
    text = "prterun noticed that process rank 2 with PID 91 on node n4 exited on\nsignal {}.\n"
    run = run_of(STEPS + text.format("9 (Killed)"))
    assert (run["status"], run["first_failed_rank"], run["first_failed_host"]) == ("crash", 2, "n4")
    assert run_of(STEPS + text.format("15 (Terminated)"))["status"] == "cancelled"


@pytest.mark.parametrize("code", [1, -9])
def test_the_table_of_torch_1_9_names_the_rank(code: int) -> None:
    tables = tables_of({"train.log": STEPS + OLD_TABLE.format(code)})
    assert tables["runs"]["first_failed_rank"].to_list() == [13]
    said = tables["events"].filter(pl.col("kind") == "worker_failed")["text"].to_list()
    assert said == [f"root cause: time 2021-08-01_12:00:00, rank 13 (local_rank: 5), exitcode {code} (pid: 3344)"]


def test_sigkill_alone_is_distinguished_from_sigkill_with_a_reason() -> None:
    alone = run_of(STEPS + "Exited with signal termination: 9.\n")
    assert (alone["status"], alone["status_confidence"]) == ("crash", "low")
    assert "the signal may come from" in str(alone["status_evidence"])
    run = run_of(STEPS + "Killed\nslurmstepd: error: Detected 1 oom_kill event in StepId=7.0.\n")
    assert (run["status"], run["status_confidence"]) == ("host_oom", "high")


@pytest.mark.parametrize(
    ("text", "is_run"),
    [
        ("srun: error: Unable to create step for job 7: Requested node configuration is not available\n", True),
        ("slurmstepd: error: execve(): torchrun: No such file or directory\n", True),
        ("make: *** [Makefile:12: train] Error 1\n", False),
        ("ValueError: no\n", False),
    ],
)
def test_only_a_parallel_launchers_failure_makes_a_run_of_an_unknown_text(text: str, *, is_run: bool) -> None:
    assert tables_of({"notes.txt": text})["runs"]["status"].to_list() == (["crash"] if is_run else [])
    assert tables_of({"train.log": text})["runs"]["status"].to_list() == ["crash"]
