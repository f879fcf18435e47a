"""Lists of jobs as LSF, PBS, Flux and kubectl print them."""

from __future__ import annotations

import time
from datetime import datetime

import polars as pl
import pytest

from sweepscope.pipeline.scheduler import flux, registry

BJOBS = """\
JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME
3101    bob     DONE  gpu_h100   login1      8*node07    train_dp8  Jan  3 09:12
                                             8*node08
3102    bob     EXIT  gpu_h100   login1      8*node09    *in_tp8_x  Jan  3 09:12
3103[2] bob     PEND  gpu_h100   login1                  train_pp2  Jan  3 09:12
3104    bob     ?     gpu_h100   login1      -           train_pp2  Jan  3 09:12
"""
BJOBS_SUMMIT = """\
JOBID      USER       STAT   SLOTS    QUEUE       START_TIME    FINISH_TIME   JOB_NAME
2911001    alice      RUN    -        batch       Mar 12 10:11  Mar 12 12:00  gpt-tp2
2911002    averyveryverylongname EXIT -  batch  Mar 12 10:11 Mar 12 11:00 gpt-tp4
"""
BJOBS_L = """
Job <2911002>, Job Name <gpt-tp4>, User <alice>, Status <EXIT>, Que
                     ue <batch>, Command <./run.sh>
Wed Mar 12 10:11:00: Started 4 Task(s) on Host(s) <2*h41n02> <2*h41n03>;
Wed Mar 12 11:11:00: Exited with exit code 140. The CPU time used is 10.0 seconds.
Wed Mar 12 11:11:00: Completed <exit>; {}: job killed.

Job <2911003>, Job Name <gpt-tp8>, User <alice>, Status <DONE>, Queue <batch>
"""
JOB = """
Name:             gpt
Namespace:        train
Parallelism:      4
Pods Statuses:    {}
"""
QSTAT = """\

polaris-pbs-01:
                                                            Req'd  Req'd   Elap
Job ID          Username Queue    Jobname    SessID NDS TSK Memory Time  S Time
--------------- -------- -------- ---------- ------ --- --- ------ ----- - -----
2001301.polari* someone  prod     gpt-tp4     98123  10  40    --  06:00 R 01:10
2001302.polari* someone  prod     gpt-tp8       --   10  40    --  06:00 Q   --
2001303.polari* someone  prod     gpt-tp2     98124  10  40    --  06:00 F 05:59
"""
QSTAT_PLAIN = """\
Job id            Name             User              Time Use S Queue
----------------  ---------------- ----------------  -------- - -----
1301.pbs-0        gpt-tp4          someone           01:10:11 E prod
"""
QSTAT_F = """\
Job Id: 2001305.polaris-pbs-01.hsn
    Job_Name = gpt-pp2
    resources_used.mem = 421338112kb
    resources_used.walltime = 01:00:12
    job_state = F
    queue = prod
    exec_host = x3001/0*64+x3002/0*64
    Resource_List.nodect = 2
    Resource_List.ngpus = 8
    Resource_List.walltime = 01:00:00
    Exit_status = {code}
    comment = Job run at Thu Feb 06 at 10:00 on (x3001:ncpus=64) and fai
	led
    Output_Path = login-01:/w/gpt-pp2.o2001305
    stime = Thu Feb  6 10:00:01 2025

Job Id: 2001306.polaris-pbs-01.hsn
    job_state = Q
"""
FLUX = """\
       JOBID USER     NAME       ST NTASKS NNODES     TIME INFO
   ƒ2kBvZoXR alice    pretrain   CD     32      4   1.204h t[1001-1004]
   ƒ2kBwAoXR alice    pretrain    F     32      4   11.20m t[1001-1002]
   ƒ2kBwCoXR alice    pretrain   TO     32      4       1h t1001
   ƒ2kBwDoXR alice    pretrain    S     32      4        -
   ƒ2kBwEoXR alice    pretrain   ??     32      4        -
"""
PODS = """\
$ kubectl get pods -n train -o wide
NAME       READY   STATUS             RESTARTS        AGE    IP         NODE     NOMINATED NODE   READINESS GATES
gpt-0      0/1     OOMKilled          3 (4m12s ago)   18m    10.1.2.3   gpu-1    <none>           <none>
gpt-1      0/1     Completed          0               18m    10.1.2.4   gpu-2    <none>           <none>
gpt-2      0/1     CrashLoopBackOff   7               18m    10.1.2.4   gpu-2    <none>           <none>
gpt-3      0/1     ImagePullBackOff   0               18m    <none>     <none>   <none>           <none>
gpt-4      1/1     Running            0               18m    10.1.2.4   gpu-2    <none>           <none>
gpt-5      0/1     NodeLost           0               18m    10.1.2.4   gpu-2    <none>           <none>
Error from server (NotFound)
"""
PODS_OF_ALL = """\
NAMESPACE   NAME   READY   STATUS    RESTARTS   AGE
train       a-0    0/1     Evicted   0          3h
"""


def read(text: str) -> tuple[str, pl.DataFrame, pl.DataFrame]:
    table = registry.recognise(text)
    assert table is not None
    parts = list(table.read(text.splitlines(keepends=True)))
    return table.name, pl.concat(rows for rows, _ in parts), pl.concat(odd for _, odd in parts)


def states(rows: pl.DataFrame) -> dict[str, str]:
    return dict(rows.select("job_id", "job_state").iter_rows())


def test_bjobs() -> None:
    name, rows, odd = read(BJOBS)
    assert name == "lsf"
    assert states(rows) == {"3101": "completed", "3102": "failed", "3103[2]": "pending"}
    assert set(rows["scheduler"]) == {"lsf"}
    first = rows.row(0, named=True)
    assert (first["hosts"], first["num_nodes"], first["job_name"]) == ("node07, node08", 2, "train_dp8")
    assert rows["job_name"].to_list()[1:] == ["in_tp8_x", "train_pp2"]
    assert odd["line_no"].to_list() == [6]


def test_bjobs_of_a_site_and_a_name_that_is_too_long() -> None:
    _, rows, odd = read(BJOBS_SUMMIT)
    assert states(rows) == {"2911001": "running", "2911002": "failed"}
    assert rows["job_name"].to_list() == ["gpt-tp2", None]
    assert odd.is_empty()


@pytest.mark.parametrize(
    ("term", "state"),
    [
        ("TERM_RUNLIMIT", "timeout"),
        ("TERM_MEMLIMIT", "out_of_memory"),
        ("TERM_OWNER", "cancelled"),
        ("TERM_UNKNOWN", "failed"),
    ],
)
def test_bjobs_described(term: str, state: str) -> None:
    name, rows, odd = read(BJOBS_L.format(term))
    assert (name, states(rows), odd.height) == ("lsf", {"2911002": state, "2911003": "completed"}, 0)
    first = rows.row(0, named=True)
    assert (first["job_name"], first["job_partition"], first["exit_code"]) == ("gpt-tp4", "batch", 140)
    assert (first["hosts"], first["num_nodes"], first["job_reason"]) == ("h41n02, h41n03", 2, term)


@pytest.mark.parametrize(
    ("pods", "state"),
    [
        ("0 Active (0 Ready) / 0 Succeeded / 4 Failed", "failed"),
        ("0 Active (0 Ready) / 4 Succeeded / 0 Failed", "completed"),
        ("1 Active (1 Ready) / 2 Succeeded / 1 Failed", "running"),
    ],
)
def test_kubectl_describe_job(pods: str, state: str) -> None:
    assert states(read(JOB.format(pods))[1]) == {"gpt": state}


def test_qstat() -> None:
    name, rows, _ = read(QSTAT)
    assert name == "pbs"
    assert states(rows) == {"2001301": "running", "2001302": "pending", "2001303": "unknown"}
    assert rows.select("num_nodes", "elapsed_s", "time_limit_s").row(0) == (10, 4200, 21600)
    assert rows["elapsed_s"].to_list() == [4200, None, 21540]


def test_qstat_without_options() -> None:
    _, rows, _ = read(QSTAT_PLAIN)
    assert rows.select("job_id", "job_name", "job_state", "job_partition").row(0) == (
        "1301",
        "gpt-tp4",
        "running",
        "prod",
    )


@pytest.mark.parametrize(
    ("code", "state", "exit_code", "signal"),
    [
        (-29, "timeout", None, None),
        (-27, "out_of_memory", None, None),
        (0, "completed", 0, 0),
        (271, "cancelled", 0, 15),
        (265, "failed", 0, 9),
        (1, "failed", 1, 0),
    ],
)
def test_qstat_records(code: int, state: str, exit_code: int | None, signal: int | None) -> None:
    _, rows, _ = read(QSTAT_F.format(code=code))
    assert states(rows) == {"2001305": state, "2001306": "pending"}
    row = rows.row(0, named=True)
    assert (row["exit_code"], row["exit_signal"]) == (exit_code, signal)
    assert (row["num_gpus"], row["num_nodes"]) == (8, 2)
    assert (row["hosts"], row["elapsed_s"], row["time_limit_s"]) == ("x3001, x3002", 3612, 3600)
    assert (row["started_at"], row["stdout_path"]) == (datetime(2025, 2, 6, 10, 0, 1), "/w/gpt-pp2.o2001305")
    assert (row["host_mem_peak_bytes"], str(row["job_reason"])[-10:]) == (421338112 * 1024, "and failed")


def test_flux_jobs() -> None:
    name, rows, odd = read(FLUX)
    assert name == "flux"
    assert list(states(rows).values()) == ["completed", "failed", "timeout", "pending"]
    first = rows.row(0, named=True)
    assert (first["elapsed_s"], first["num_nodes"]) == (4334, 4)
    assert first["hosts"] == "t1001, t1002, t1003, t1004"
    assert odd["line_no"].to_list() == [6]
    assert flux.seconds("250ms") == 0


def test_kubectl_get_pods() -> None:
    name, rows, odd = read(PODS)
    assert name == "kubectl-pods"
    assert list(states(rows).values()) == ["out_of_memory", "completed", "failed", "pending", "running", "node_fail"]
    assert rows["restarts"].to_list() == [3, 0, 7, 0, 0, 0]
    assert rows["hosts"].to_list() == ["gpu-1", "gpu-2", "gpu-2", None, "gpu-2", "gpu-2"]
    assert odd["line_no"].to_list() == [9]


def test_kubectl_get_pods_of_all_namespaces() -> None:
    _, rows, _ = read(PODS_OF_ALL)
    assert states(rows) == {"a-0": "evicted"}


def test_pods_that_a_node_refused_have_failed() -> None:
    words = ("OutOfnvidia.com/gpu", "UnexpectedAdmissionError", "NodeAffinity", "Init:OOMKilled", "Init:ExitCode:1")
    waits = ("ErrImagePull", "CreateContainerConfigError", "Init:0/1", "PodInitializing")
    head = "NAME READY STATUS RESTARTS AGE\n"
    _, rows, _ = read(head + "".join(f"{word} 0/1 {word} 0 2m\n" for word in (*words, *waits)))
    wanted = dict.fromkeys(words, "failed") | dict.fromkeys(waits, "pending") | {"Init:OOMKilled": "out_of_memory"}
    assert states(rows) == wanted


def test_squeue_cuts_long_states_and_prints_the_time() -> None:
    _, rows, _ = read(
        "Thu Feb 06 11:22:33 2025\n"
        "             JOBID PARTITION     NAME     USER    STATE       TIME TIME_LIMI  NODES NODELIST(REASON)\n"
        "             90017       gpu llama-tp    alice COMPLETI    1:02:03   4:00:00      4 gpu[01-04]\n"
        "             90018       gpu llama-tp    alice OUT_OF_M       0:03   4:00:00      4 gpu[01-04]\n"
    )
    assert states(rows) == {"90017": "running", "90018": "out_of_memory"}
    assert rows["time_limit_s"].to_list() == [14400, 14400]


@pytest.mark.parametrize("prompt", ["[me@login ~]$ ", "me@login:~> ", "$ "])
def test_a_shells_prompt_may_stand_above(prompt: str) -> None:
    name, rows, _ = read(f"{prompt}sacct -P -j 7\nJobID|State|ExitCode\n7|NODE_FAIL|1:0\n")
    assert (name, states(rows)) == ("sacct", {"7": "node_fail"})


@pytest.mark.parametrize(
    "text",
    [
        "JOBID is printed by the script\nstep 1\n",
        "NAME STATE AGE\nllama Failed 21h\n",
        "Job ID 12 started\nstep 1\n",
        "step: 1 loss: 2\nNAME READY STATUS RESTARTS AGE\n",
    ],
)
def test_other_texts_are_none(text: str) -> None:
    assert registry.recognise(text) is None


def test_a_long_line_like_a_prompt_takes_no_long_time() -> None:
    begun = time.process_time()
    assert registry.recognise(f"me@{'a' * 40_000}\nstep 1\n") is None
    assert time.process_time() - begun < 2


def test_a_description_of_many_lines_takes_no_long_time() -> None:
    begun = time.process_time()
    _, rows, _ = read("Job <7>, Status <RUN>\n" + f"{'x' * 21:>40}\n" * 200_000)
    assert (states(rows), time.process_time() - begun < 4) == ({"7": "running"}, True)
