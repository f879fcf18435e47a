from __future__ import annotations

from datetime import datetime

import polars as pl
import pytest

from sweepscope.pipeline.scheduler import kubernetes, registry

POD = """\
Name:             llama-worker-0
Namespace:        training
Priority:         0
Node:             gpu-node-7/10.2.0.49
Start Time:       Fri, 16 Feb 2024 15:20:00 +0000
Labels:           app=llama
Annotations:      <none>
Status:           Failed
IP:               10.244.0.14
IPs:
  IP:           10.244.0.14
Init Containers:
  init:
    State:          Terminated
      Reason:       Completed
      Exit Code:    0
Containers:
  pytorch:
    Container ID:  containerd://567f505a
    Command:
      torchrun
    State:          Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Started:      Fri, 16 Feb 2024 15:22:17 +0000
      Finished:     Fri, 16 Feb 2024 16:22:17 +0000
    Last State:     Terminated
      Reason:       Error
      Exit Code:    1
      Started:      Fri, 16 Feb 2024 15:20:17 +0000
      Finished:     Fri, 16 Feb 2024 15:21:17 +0000
    Ready:          False
    Restart Count:  1
    Limits:
      memory:          40Gi
      nvidia.com/gpu:  8
    Requests:
      nvidia.com/gpu:  8
  sidecar:
    State:          Running
      Started:      Fri, 16 Feb 2024 15:22:17 +0000
Conditions:
  Type              Status
  Ready             False
Events:
  Type     Reason   Age   From     Message
  ----     ------   ----  ----     -------
  Warning  BackOff  11s   kubelet  Back-off restarting failed container
"""

EVICTED = """\
Name:           eval-1
Namespace:      training
Node:           gpu-node-8/
Start Time:     Fri, 16 Feb 2024 15:20:00 +0000
Status:         Failed
Reason:         Evicted
Message:        The node was low on resource: ephemeral-storage. Container main was using 9Gi.
"""


def read(text: str) -> pl.DataFrame:
    ((rows, rejects),) = kubernetes.read_descriptions(text.splitlines(keepends=True))
    assert rejects.is_empty()
    return rows


def said(row: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in row.items() if value is not None and name != "text"}


def test_a_pod_is_a_job_in_its_containers_state() -> None:
    pod, before = read(POD).iter_rows(named=True)
    assert said(pod) == {
        "scheduler": "kubernetes",
        "job_id": "llama-worker-0",
        "job_state": "out_of_memory",
        "job_reason": "OOMKilled",
        "exit_code": 137,
        "exit_signal": 9,
        "started_at": datetime(2024, 2, 16, 15, 22, 17),
        "ended_at": datetime(2024, 2, 16, 16, 22, 17),
        "restarts": 1,
        "num_nodes": 1,
        "num_gpus": 8,
        "hosts": "gpu-node-7",
        "line_no": 1,
    }
    assert (before["job_step"], before["job_state"], before["exit_code"], before["line_no"]) == (
        "before restart",
        "failed",
        1,
        27,
    )


def test_a_pods_own_reason_counts_more_than_its_containers() -> None:
    pod = read(EVICTED).row(0, named=True)
    assert (pod["job_id"], pod["job_state"], pod["started_at"]) == ("eval-1", "evicted", datetime(2024, 2, 16, 15, 20))
    assert pod["job_reason"].startswith("The node was low on resource: ephemeral-storage.")
    assert read(EVICTED.replace("ephemeral-storage", "memory"))["job_state"].to_list() == ["out_of_memory"]


def test_several_pods_of_one_file() -> None:
    assert read(POD + "\n\n" + EVICTED)["job_id"].to_list() == ["llama-worker-0", "llama-worker-0", "eval-1"]


@pytest.mark.parametrize(
    ("old", "new", "state"),
    [
        ("OOMKilled\n      Exit Code:    137", "Completed\n      Exit Code:    0", "completed"),
        ("OOMKilled\n      Exit Code:    137", "Error\n      Exit Code:    1", "failed"),
        ("Terminated\n      Reason:       OOMKilled", "Running", "failed"),
        ("Terminated\n      Reason:       OOMKilled\n      Exit Code:    137", "Waiting", "pending"),
        (
            "State:          Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n",
            "Ready: True\n",
            "failed",
        ),
    ],
)
def test_states(old: str, new: str, state: str) -> None:
    assert read(POD.replace(old, new, 1)).row(0, named=True)["job_state"] == state


def test_only_a_description_from_the_first_line_on_is_one() -> None:
    found = registry.recognise(POD)
    assert found is not None
    assert found.name == "kubectl"
    assert registry.recognise("step: 1\n" * 5 + POD) is None
    assert registry.recognise("Name: llama\nlayers: 32\n") is None
