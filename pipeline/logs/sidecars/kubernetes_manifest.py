"""What a Kubernetes manifest states of the training that its pods run: the command, the cards, and what kind they are.

A pod's template lies below the replicas of whatever makes the pods, whose numbers multiply: `parallelism` of a Job
(batch/v1), `replicas` of a JobSet's `replicatedJobs`, of each role of Kubeflow's PyTorchJob and MPIJob, of Volcano's
tasks and of Ray's worker groups, `size` of a LeaderWorkerSet's group. Kubeflow's TrainJob has `numNodes` and
`resourcesPerNode` in place of a template.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from sweepscope.pipeline.io.yaml_text import safe_loader

_GPUS = ("nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi", "huawei.com/Ascend910")
_PRODUCTS = ("nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "amd.com/gpu.product-name")
"""Labels of nodes: NVIDIA's GPU feature discovery, GKE, AMD's node labeller."""
_COUNTS = ("replicas", "parallelism", "size", "numNodes")
_WHOLE_NODE = 8
"""Cards of a pod that has its node for itself, as far as a manifest shows."""
_DEEPEST = 20
_IS_MANIFEST = re.compile(r"(?m)^apiVersion: *\S+\s*$")


@dataclass(frozen=True)
class _Pods:
    """Equal pods: how many, the cards of each, and the command of the container that has them."""

    count: int
    gpus: int
    command: str


def is_manifest(text: str) -> bool:
    """Whether a YAML text states an object of Kubernetes."""
    return _IS_MANIFEST.search(text) is not None


def manifest_commands(text: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Names and values that the objects of a manifest state of cards and pods, and the commands of pods with cards.

    Raises yaml.YAMLError for a text that is not YAML.
    """
    documents = [node for node in yaml.load_all(text, safe_loader(text)) if isinstance(node, Mapping)]
    pods = [found for node in documents for found in _pods(node, 1, 0) if found.gpus]
    values: list[tuple[str, str]] = []
    if pods:
        values.append(("kubernetes.num_gpus", str(sum(one.count * one.gpus for one in pods))))
        if len({one.gpus for one in pods}) == 1 and pods[0].gpus >= _WHOLE_NODE:
            values.append(("kubernetes.num_nodes", str(sum(one.count for one in pods))))
    products = {product for node in documents for product in _products(node, 0)}
    if len(products) == 1:
        values.append(("kubernetes.accelerator", products.pop()))
    return values, list(dict.fromkeys(one.command for one in pods if one.command))


def _pods(node: object, count: int, depth: int) -> Iterator[_Pods]:
    if depth > _DEEPEST:
        return
    if isinstance(node, list):
        for item in node:
            yield from _pods(item, count, depth + 1)
    if not isinstance(node, Mapping):
        return
    for name in _COUNTS:
        if isinstance(number := node.get(name), int) and not isinstance(number, bool) and number > 0:
            count *= number
    if isinstance(per_node := node.get("resourcesPerNode"), Mapping):
        yield _Pods(count, _gpus({"resources": per_node}), _command(node))
        return
    containers = node.get("containers")
    if isinstance(containers, list):
        of_cards = [one for one in containers if isinstance(one, Mapping) and _gpus(one)]
        if of_cards:
            yield _Pods(count, sum(map(_gpus, of_cards)), _command(of_cards[0]))
        return
    for inner in node.values():
        yield from _pods(inner, count, depth + 1)


def _gpus(container: Mapping[Any, Any]) -> int:
    """Cards that a container asks for."""
    resources = container.get("resources")
    for kind in ("limits", "requests"):
        asked = resources.get(kind) if isinstance(resources, Mapping) else None
        for name in _GPUS:
            number = str(asked.get(name, "")) if isinstance(asked, Mapping) else ""
            if number.isdigit() and int(number):
                return int(number)
    return 0


def _command(container: Mapping[Any, Any]) -> str:
    """The command with its arguments as one line; of `bash -c SCRIPT` the script."""
    words = [str(word) for name in ("command", "args") for word in _list(container.get(name))]
    scripts = [word for word in words if "\n" in word or " " in word.strip()]
    return "\n".join(scripts) if scripts and words[0].endswith("sh") else " ".join(words)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else [value] if isinstance(value, str) else []


def _products(node: object, depth: int) -> Iterator[str]:
    """Kinds of cards that pods ask for: in a selector of nodes, or as the values of an affinity."""
    if depth > _DEEPEST:
        return
    if isinstance(node, list):
        for item in node:
            yield from _products(item, depth + 1)
    elif isinstance(node, Mapping):
        for name in _PRODUCTS:
            if isinstance(product := node.get(name), str):
                yield product
        values = _list(node.get("values"))
        if node.get("key") in _PRODUCTS and node.get("operator") == "In" and len(values) == 1:
            yield str(values[0])
        for inner in node.values():
            yield from _products(inner, depth + 1)
