"""Manifests of Kubernetes: cards, nodes and the command, whatever makes the pods."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from sweepscope.pipeline.logs.inference.documents import settings_of_document
from sweepscope.pipeline.logs.sidecars.documents import document_values

COMMAND = [
    "torchrun",
    "--nnodes=2",
    "--nproc_per_node=8",
    "train.py",
    "--tp=4",
    "--micro-batch-size=2",
    "--seq-len=4096",
]
LABEL = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
PLAIN = {"tp": "4", "mbs": "2", "seq_len": "4096"}
ON = {"num_gpus": "16", "num_nodes": "2", "accelerator": "H100-SXM-80GB"}


def pod(gpus: int = 8, **container: Any) -> dict[str, Any]:
    sidecar = {"name": "logs", "image": "y", "command": ["tail", "--tp=9"]}
    trainer = {"name": "trainer", "image": "x", "resources": {"limits": {"nvidia.com/gpu": gpus}}, **container}
    return {"nodeSelector": LABEL, "containers": [sidecar, trainer]}


SHELL = pod(command=["bash", "-c", " ".join(COMMAND)])
WORDS = pod(command=COMMAND[:1], args=COMMAND[1:])
ROLES = {role: {"replicas": 1, "template": {"spec": WORDS}} for role in ("Master", "Worker")}
GROUP = {"replicas": 1, "leaderWorkerTemplate": {"size": 2, "workerTemplate": {"spec": SHELL}}}
OBJECTS: dict[str, dict[str, Any]] = {
    "Job": {"parallelism": 2, "completions": 2, "template": {"spec": WORDS}},
    "JobSet": {
        "replicatedJobs": [{"replicas": 1, "template": {"spec": {"parallelism": 2, "template": {"spec": SHELL}}}}]
    },
    "PyTorchJob": {"pytorchReplicaSpecs": ROLES},
    "LeaderWorkerSet": GROUP,
    "TrainJob": {
        "trainer": {"numNodes": 2, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}}, "command": COMMAND},
        "podTemplateOverrides": [{"spec": {"nodeSelector": LABEL}}],
    },
}


def settings(*documents: dict[str, Any]) -> dict[str, str]:
    return settings_of_document(document_values("run/job.yaml", yaml.safe_dump_all(documents)))


@pytest.mark.parametrize("kind", OBJECTS)
def test_cards_nodes_and_options_of_a_job(kind: str) -> None:
    found = settings({"apiVersion": "x/v1", "kind": kind, "metadata": {"name": "a"}, "spec": OBJECTS[kind]})
    assert {name: found.get(name) for name in PLAIN | ON} == PLAIN | ON


def test_of_several_objects_those_with_cards_count() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "spec": {"replicas": 7}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "spec": OBJECTS["Job"]}
    assert settings(service, job)["num_gpus"] == "16"


def test_pods_with_a_part_of_a_node_say_nothing_of_nodes() -> None:
    job = {"parallelism": 4, "template": {"spec": pod(1, command=["python", "train.py", "--tp=2", "--seq-len=2048"])}}
    found = settings({"apiVersion": "batch/v1", "kind": "Job", "spec": job})
    assert found["num_gpus"] == "4"
    assert "num_nodes" not in found


def test_a_manifest_without_cards_states_nothing() -> None:
    job = {"template": {"spec": {"containers": [{"name": "a", "command": COMMAND}]}}}
    assert settings({"apiVersion": "batch/v1", "kind": "Job", "spec": job}) == {}
