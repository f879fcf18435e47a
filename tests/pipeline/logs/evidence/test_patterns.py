"""Lines that say how a run failed, and lines that only sound like it."""

from __future__ import annotations

from datetime import datetime

import polars as pl
import pytest

from sweepscope.pipeline.logs.engine import cleaning
from sweepscope.pipeline.logs.evidence import patterns
from sweepscope.pipeline.logs.evidence.patterns import MAX_TEXT_CHARS
from sweepscope.pipeline.text import lines


def kinds(text: str) -> set[str]:
    return set(found(text)["kind"])


def kinds_of_each(texts: list[str]) -> list[set[str]]:
    """Kinds of events of each text, as if it were alone."""
    block = lines.split_many([(place, text.encode(), 1) for place, text in enumerate(texts)])
    events = patterns.events(cleaning.clean(block))
    return [set(events.filter(source=place)["kind"]) for place in range(len(texts))]


def found(text: str) -> pl.DataFrame:
    return patterns.events(cleaning.clean(lines.split(0, text.encode())))


SIGNS = [
    ("RuntimeError: CUDA out of memory. Tried to", "oom"),
    ("XlaRuntimeError: RESOURCE_EXHAUSTED: Attempting to allocate 1.25G. That was not possible.", "oom"),
    ("[CUDA ERROR] at file train_gpt2.cu:265:\nout of memory", "oom"),
    ("srun: error: n1: task 0: Out Of Memory", "host_oom"),
    ("slurmstepd: error: Job 9 exceeded memory limit (5000 > 4096), being killed", "host_oom"),
    ("srun: error: task 0: Exceeded job memory limit", "host_oom"),
    ("[12345.6] Out of memory: Kill process 4711 (python) score 900 or sacrifice child", "host_oom"),
    ("      Reason:       OOMKilled", "host_oom"),
    ("slurmstepd: error: *** JOB 9 ON n CANCELLED DUE TO TIME LIMIT AT 2021-05-27T21:42:11 ***", "timeout"),
    ("slurmd[n1]: *** JOB 9 CANCELLED AT 2012-05-27T21:42:11 ***", "cancelled"),
    ("srun: error: n1: tasks 0-3: Killed", "sigkill"),
    ("mpirun noticed that process rank 3 with PID 0 on node n1 exited on signal 9 (Killed).", "sigkill"),
    (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 79.33 GiB total capacity)",
        "oom",
    ),
    ("RuntimeError: CUDA error: out of memory", "oom"),
    ("RuntimeError: [Rank:0] FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::134217728 (128)MB", "oom"),
    ("Error executing job with overrides: ['trainer.nnodes=1', 'data.train_batch_size=8']", "exit_code"),
    ("srun: Force Terminated StepId=889123.0", "sigterm"),
    ("srun: Force Terminated job 9", "sigterm"),
    ("terminate called after throwing an instance of 'std::bad_alloc'", "host_oom"),
    (
        "slurmstepd: error: *** STEP 9.0 ON n1 CANCELLED AT 2024-05-06T07:08:09 DUE TO SIGNAL User defined signal 1 ***",
        "cancelled",
    ),
    (
        ":0:rocdevice.cpp :2984: 27870us: [pid:1] Callback: Queue 0x7d00 aborting with error : HSA_STATUS_ERROR_EXCEPTION: An "
        "HSAIL operation resulted in a hardware exception. code: 0x1016",
        "exception",
    ),
    (
        "F0406 03:00:00.123456 1234 client.h:80] Terminating process because the JAX distributed service detected fatal "
        "errors. This most likely indicates that another task died",
        "rendezvous",
    ),
    ("RuntimeError: MPS backend out of memory (MPS allocated: 17.98 GB, other allocations: 100.00 MB)", "oom"),
    ("/bin/bash: line 1:  1234 Killed                  python train.py --config a.yaml", "sigkill"),
    ("mpirun detected that one or more processes exited with non-zero status, thus causing", "exit_code"),
    (
        "[F ProcessGroupNCCL.cpp:1557] [Rank 3] Terminating the process after attempting to dump debug info, "
        "due to ProcessGroupNCCL watchdog hang.",
        "hang",
    ),
    (
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1 bytes.",
        "oom",
    ),
    (
        "slurmstepd: error: Detected 1 oom_kill event in StepId=1.0. Some of the step tasks have been OOM Killed.",
        "host_oom",
    ),
    ("[12345.6] Out of memory: Killed process 4711 (python) total-vm:1kB", "host_oom"),
    ("[rank1]:[E ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(", "hang"),
    ("RuntimeError: [Rank 2] Caught collective operation timeout: WorkNCCL(SeqNum=8, OpType=BROADCAST", "hang"),
    ("RuntimeError: NCCL communicator was aborted on rank 3.", "nccl_error"),
    ("ncclSystemError: System call (e.g. socket, malloc) or external library call failed", "nccl_error"),
    ("slurmstepd: error: *** JOB 9 ON n CANCELLED AT 2021-05-27T21:42:11 DUE TO TIME LIMIT ***", "timeout"),
    ("slurmstepd: error: *** JOB 9 ON n CANCELLED AT 2021-05-27T21:42:11 ***", "cancelled"),
    ("slurmstepd: error: *** JOB 9 ON n CANCELLED AT 2021-05-27T21:42:11 DUE TO PREEMPTION ***", "preempted"),
    ("srun: error: Node failure on node-17", "node_fail"),
    (
        "W1120 23:30:08.8 16891 torch/distributed/elastic/agent/server/api.py:704] Received Signals.SIGTERM death signal",
        "sigterm",
    ),
    ("KeyboardInterrupt", "interrupted"),
    ("  ^C", "interrupted"),
    ("^CTraceback (most recent call last):", "interrupted"),
    ("^CW0301 10:35:04.000000 1234 torch/distributed/elastic/agent/server/api.py:704] closing", "interrupted"),
    ("  traceback : Signal 9 (SIGKILL) received by PID 47", "sigkill"),
    ("  exitcode  : -9 (pid: 47)", "sigkill"),
    ("[2026-01-01 00:00:00,000] [INFO] [launch.py:319] Process 47 exits with return code = -9", "sigkill"),
    (
        "[2026-01-01 00:00:00,000] [ERROR] [launch.py:341:sigkill_handler] [..] exits with return code = -2",
        "interrupted",
    ),
    ("[2026-01-01 00:00:00,000] [ERROR] [launch.py:341:sigkill_handler] [..] exits with return code = -15", "sigterm"),
    (
        "[2026-01-01 00:00:00,000] [ERROR] [launch.py:341:sigkill_handler] [..] exits with return code = -11",
        "exit_code",
    ),
    ("slurmstepd: error: Some of the step tasks have been OOM Killed.", "host_oom"),
    ("slurmstepd: error: Detected 2 oom-kill event(s) in step 9.0 cgroup.", "host_oom"),
    ("oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=step_0", "host_oom"),
    (
        "E1014 12:00:01.0 140 torch/distributed/elastic/multiprocessing/api.py:833] failed (exitcode: 1) local_rank: 3",
        "child_failed",
    ),
    ("Terminated", "sigterm"),
    ("Killed", "sigkill"),
    ("ERROR:composer.cli.launcher:Rank 2 crashed with exit code -11.", "exit_code"),
    ("DUE TO TIME LIMIT ***", "timeout"),
    (
        "[E ProcessGroupNCCL.cpp:1316] [PG 0 Rank 1] Heartbeat monitor timed out! Process will be terminated after dumping",
        "hang",
    ),
    (
        "[E101 01:02:03.4 ProcessGroupNCCL.cpp:1709] [PG 0 Rank 1] Timeout at NCCL work: 7, last enqueued NCCL work: 9.",
        "hang",
    ),
    (
        "EI0002: [PID: 7] 2026-01-02-03:04:05.6 The wait execution of the Notify register times out. Reason: none",
        "hang",
    ),
    ("EE1002: 2026-01-02-03:04:05.6 Stream synchronize timeout. rtDeviceSynchronize execute failed", "hang"),
    ("RuntimeError: NCCL Error 5: invalid usage", "nccl_error"),
    ("RuntimeError: [ERROR] HCCL error in: torch_npu/csrc/distributed/ProcessGroupHCCL.cpp:1", "nccl_error"),
    ("RuntimeError: x.cpp:1 OPS function error: HcclAllGather, error code is 6", "nccl_error"),
    ("EI0006: [PID: 7] 2026-01-02-03:04:05.6 Getting socket times out. Reason: none", "nccl_error"),
    ("terminate called after throwing an instance of 'c10::DistBackendError'", "exception"),
    ("python: Bus error", "exception"),
    ("srun: error: n1: task 0: Exited with exit code 2", "exit_code"),
    ("Traceback (most recent call last):", "traceback"),
    ("AssertionError", "exception"),
    ("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "oom"),
    ("n1:47:99 [0] misc/strongstream.cc:53 NCCL WARN Cuda failure 2 'out of memory'", "oom"),
    (
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: {{function_node f}} OOM when allocating tensor "
        "with shape[9,9] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
        "oom",
    ),
    (
        "ResourceExhaustedError: OOM when allocating tensor with shape[9] and type float on "
        "/job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu",
        "host_oom",
    ),
    (
        "2026-07-31 11:36:02.7: W external/xla/bfc_allocator.cc:501] Allocator (GPU_0_bfc) ran out of memory trying to "
        "allocate 3.72GiB (rounded to 3994328064)requested by op Mul",
        "oom",
    ),
    (
        "W tensorflow/core/common_runtime/bfc_allocator.cc:273] Allocator (GPU_1_bfc) ran out of memory trying to "
        "allocate 3.72GiB.  Current allocation summary follows.",
        "oom",
    ),
    (
        "Attempting to reserve 3.95G at the bottom of memory. That was not possible. There are 1.92G free, 0B reserved, "
        "and 1.92G reservable.; ",
        "oom",
    ),
    ("Memory cgroup out of memory: Killed process 4711 (python) total-vm:1kB", "host_oom"),
    ("Message:          The node was low on resource: memory. Container main was using 9Gi.", "host_oom"),
    ("torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError", "rendezvous"),
    (
        "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed. "
        "See inner exception for details.",
        "rendezvous",
    ),
    ("[default] Worker group FAILED. 2/3 attempts left; will restart worker group", "launch"),
    ("Reason:           Evicted", "preempted"),
    ("  Warning  Evicted    3m    kubelet  The node was low on resource: ephemeral-storage.", "preempted"),
    ("  Warning  NodeNotReady  2m  node-controller  Node is not ready", "node_fail"),
    ("command terminated with exit code 137", "sigkill"),
    ("command terminated with exit code 1", "exit_code"),
    ("      Exit Code:    137", "sigkill"),
    ("      Exit Code:    139", "exit_code"),
    ("Primary job  terminated normally, but 1 process returned", "exit_code"),
    ("signal 9 (Killed).", "sigkill"),
    (
        "prterun noticed that process rank 2 with PID 16 on node n1 exited on signal 11 (Segmentation fault).",
        "exit_code",
    ),
    ("mpirun noticed that process rank 2 with PID 16 on node n1 exited on signal 15 (Terminated).", "sigterm"),
    ("MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD", "exit_code"),
    ("  Process name: [[52042,1],3]", "exit_code"),
    ("=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES", "exit_code"),
    ("=   KILLED BY SIGNAL: 9 (Killed)", "sigkill"),
    ("x3005c0s13b0n0.hsn: rank 3 died from signal 9", "sigkill"),
    ("x3005c0s13b0n0.hsn: rank 3 died from signal 15", "sigterm"),
    ("my.own.VeryOddException: no", "exception"),
    ("Fatal Python error: Segmentation fault", "exception"),
    ("RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 60.97 GiB total capacity)", "oom"),
    ("torch.OutOfMemoryError: XPU out of memory. Tried to allocate 5.25 GiB.", "oom"),
    ("torch.AcceleratorError: CUDA error: out of memory", "oom"),
    ("RuntimeError: Triton Error [CUDA]: out of memory", "oom"),
    ("Failed to CUDA calloc 6291456 bytes: out of memory", "oom"),
    ("ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.", "host_oom"),
    ("(raylet) 2 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed", "host_oom"),
    ("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 12.0 GiB for an array", "host_oom"),
    ("MemoryError", "host_oom"),
    ("OSError: [Errno 12] Cannot allocate memory", "host_oom"),
    (
        "RuntimeError: [enforce fail at alloc_cpu.cpp:73] . DefaultCPUAllocator: can't allocate memory: you tried to "
        "allocate 123 bytes. Error code 12 (Cannot allocate memory)",
        "host_oom",
    ),
    ("TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.", "host_oom"),
    ("=>> PBS: job killed: mem 5242kb exceeded limit 4096kb", "host_oom"),
    ("RuntimeError: [Rank 0]: Ranks 1, 3 failed to pass monitoredBarrier in 1800000 ms", "hang"),
    (
        "[PG ID 0 PG GUID 0 Rank 0] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress",
        "hang",
    ),
    ("WorkNCCL(SeqNum=3, OpType=ALLREDUCE, Timeout(ms)=600000) timed out in blocking wait.", "hang"),
    (
        "[rank1]:[E ProcessGroupNCCL.cpp:1414] [PG 0 Rank 1] Process group watchdog thread terminated with exception: "
        "NCCL error: unhandled system error",
        "nccl_error",
    ),
    ("torch.distributed.DistNetworkError: Connection reset by peer", "rendezvous"),
    ("torch.distributed.DistStoreError: wait timeout after 600000ms, keys: /0", "rendezvous"),
    ("RuntimeError: Socket Timeout", "rendezvous"),
    (
        "RuntimeError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store "
        "by key '0', but store->get('0') got error: wait timeout after 600000ms, keys: /default_pg/0//0",
        "rendezvous",
    ),
    ("=>> PBS: job killed: walltime 3631 exceeded limit 3600", "timeout"),
    ("TERM_RUNLIMIT: job killed after reaching LSF run time limit.", "timeout"),
    ("TERM_PREEMPT: job killed for preemption", "preempted"),
    ("TERM_OWNER: job killed by owner.", "cancelled"),
    ("slurmstepd-n1: error: *** STEP 9.0 ON n1 CANCELLED AT 2024-01-01T00:00:00 ***", "cancelled"),
    (
        "slurmstepd: error: *** STEP 9.0 ON n1 CANCELLED AT 2024-01-01T00:00:00 DUE to SIGNAL Terminated ***",
        "cancelled",
    ),
    (
        "[2026-04-29T23:36:37.809] error: *** STEP 5.0 ON n1 CANCELLED AT 2026-04-29T23:36:37 DUE TO TASK FAILURE ***",
        "exit_code",
    ),
    ("[exiting program after receiving SIGTERM.] datetime: 2025-01-01 00:00:00 ", "sigterm"),
    ("/var/spool/slurm/job9/slurm_script: line 12: 4242 Terminated              python train.py", "sigterm"),
    ("srun: error: n1: tasks 0-7: Terminated", "sigterm"),
    ("torch.distributed.elastic.multiprocessing.api.SignalException: Process 47 got signal: 1", "sigterm"),
    ("srun: sending Ctrl-C to StepId=9.0", "interrupted"),
    ("[2023-04-18 03:20:47,468] [INFO] [launch.py:460:main] Process 73581 exits successfully.", "training_end"),
    ("Detected KeyboardInterrupt, attempting graceful shutdown ...", "interrupted"),
    ("call.py:54: UserWarning: Detected KeyboardInterrupt, attempting graceful shutdown...", "interrupted"),
    ("ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -11) local_rank: 3", "child_failed"),
    ("srun: error: n1: task 0: Aborted (core dumped)", "exit_code"),
    ("double free or corruption (!prev)", "exit_code"),
    ("torch._dynamo.exc.Unsupported: call_function", "exception"),
    ("omegaconf.errors.MissingMandatoryValue: Missing mandatory value: x", "exception"),
    ("triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 180224", "exception"),
    ("ray.exceptions.RayTaskError(ValueError): ray::main_task() (pid=1)", "exception"),
    ("Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.", "exception"),
    ("StopIteration", "exception"),
    (
        "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly",
        "exception",
    ),
    ("zipfile.BadZipFile: File is not a zip file", "exception"),
    ("subprocess.TimeoutExpired: Command '['nvidia-smi']' timed out after 60 seconds", "exception"),
    ("_queue.Empty", "exception"),
    ("socket.gaierror: [Errno -2] Name or service not known", "exception"),
    ("train.py: error: unrecognized arguments: --foo", "exception"),
    ("python3: can't open file 'train.py': [Errno 2] No such file or directory", "exception"),
    ("HW Exception by GPU node-1 (Agent handle: 0x1) reason :GPU Hang", "exception"),
    ("Memory access fault by GPU node-2 (Agent handle: 0x5) on address 0x7f. Reason: Unknown.", "exception"),
    ("NVRM: Xid (PCI:0000:17:00): 79, pid=123, GPU has fallen off the bus.", "exception"),
    (
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
        "exception",
    ),
]

HARMLESS = [
    "  distributed_timeout_minutes ... 10",
    "error: nothing in particular",
    "INFO: RuntimeError handling is enabled",
    "loss scale overflow is not an Error",
    "retrying after OutOfMemory",
    "NCCL_ASYNC_ERROR_HANDLING=1",
    "watchdog timeout is 600 s",
    "will be CANCELLED AT the end",
    "task 0: Exited with exit code 0",
    "torch.distributed.elastic.multiprocessing.errors.error_handler: on",
    "signal handlers: SIGTERM, SIGINT",
    "from ray.exceptions import OutOfMemoryError",
    "see torch._dynamo.exc.Unsupported in the manual",
    "Exception",
    "caught Exception: retry",
    "[W socket.cpp:426] [c10d] The server socket cannot be initialized on [::]:29500",
    "the job may be TERMinated; MemoryErrors are retried",
    "NVRM: Xid (PCI:0000:17:00): 43, pid=123",
    "Connection reset by peer",
    "checkpoint on KeyboardInterrupt",
    "Killed 3 old processes",
    "Timeout at NCCL work: see the manual",
    "see EI0002 and EE1002",
    "",
]


@pytest.mark.parametrize(
    "line",
    ["{}", "[rank3]: \x1b[31m{}\x1b[0m", "\r 10%|#   | 1/10\r 50%|##  | 5/10\r{}"],
    ids=["alone", "prefix and colour", "bar"],
)
def test_a_sign_is_found_alone_and_behind_a_prefix_a_colour_and_a_bar(line: str) -> None:
    each = kinds_of_each([line.replace("{}", text) for text, _ in SIGNS])
    assert [(sign, found) for sign, found in zip(SIGNS, each, strict=True) if sign[1] not in found] == []


def test_a_word_is_not_a_sign() -> None:
    each = kinds_of_each(HARMLESS)
    assert [(text, found) for text, found in zip(HARMLESS, each, strict=True) if found] == []


def test_torchruns_summary_is_no_exception_of_its_own() -> None:
    assert kinds("torch.distributed.elastic.multiprocessing.errors.ChildFailedError:") == {"child_failed"}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ray.exceptions.OutOfMemoryError: Task was killed", "oom"),
        ("torch.distributed.DistNetworkError: Connection reset by peer", "exception"),
        ("torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients.", "exception"),
        ("slurmstepd: error: *** STEP 5.0 ON n CANCELLED AT 2026-04-29T23:36:37 DUE TO TASK FAILURE ***", "cancelled"),
        (
            "[2026-01-01 00:00:00,000] [ERROR] [launch.py:341:sigkill_handler] [..] exits with return code = -2",
            "exit_code",
        ),
        (
            "[2026-01-01 00:00:00,000] [ERROR] [launch.py:341:sigkill_handler] [..] exits with return code = 2",
            "interrupted",
        ),
    ],
)
def test_a_sign_is_not_another(text: str, kind: str) -> None:
    assert kind not in kinds(text)


def test_a_line_is_one_event_per_kind() -> None:
    text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB\n" * 2
    assert found(text).select("line_no", "kind").rows() == [(1, "exception"), (1, "oom"), (2, "exception"), (2, "oom")]


def test_a_redraw_repeated_in_a_line_is_one_event() -> None:
    assert found("KeyboardInterrupt\rKeyboardInterrupt\n").height == 1


def test_rank_host_and_time_are_read_from_the_prefix() -> None:
    row = found("[20260511 02:59:23][rank-7/8][ERROR] [-x.py:1] : AssertionError: no").row(0, named=True)
    assert (row["rank"], row["ts"], row["text"]) == (7, datetime(2026, 5, 11, 2, 59, 23), "AssertionError: no")


def test_long_evidence_is_trimmed() -> None:
    assert found("ValueError: " + "x" * 9000)["text"].str.len_chars().to_list() == [MAX_TEXT_CHARS]


def test_no_lines_no_events() -> None:
    assert found("").is_empty()


@pytest.mark.parametrize("prefix", ["(TaskRunner pid=892962) ", "(MegatronActor pid=12880, ip=33.207.59.232) "])
def test_rays_prefix_stands_in_front_of_an_exception(prefix: str) -> None:
    assert kinds(prefix + "ray.exceptions.ActorDiedError: The actor died unexpectedly") == {"exception"}


@pytest.mark.parametrize("line", ["press ^C to stop", "y = x^C", "^Category: 4"])
def test_a_caret_and_a_c_are_not_always_a_key(line: str) -> None:
    assert kinds(line) == set()
