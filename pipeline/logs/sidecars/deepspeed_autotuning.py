"""What DeepSpeed's autotuner keeps of an experiment: `exp.json` before it, `metrics.json` behind it.

Formats: deepspeed/autotuning/autotuner.py _generate_experiments (`num_gpus` are those of a node; replicas are all GPUs
over `mp_size`), scheduler.py run_experiment, runtime/engine.py _autotuning_exit (`throughput` in sequences/s,
`FLOPS_per_gpu` in FLOP/s; `latency` is the batch of a step over the throughput, in microseconds).
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from sweepscope.pipeline.logs.sidecars.run_files import read_deepspeed

METRICS_NAME = "metrics.json"
"""Of the file that a finished experiment leaves; other trainers write their steps to files of this name."""


def read_experiment(text: str) -> Mapping[str, str]:
    """Settings of an experiment. Raises ValueError for other JSON."""
    experiment = _object(text)
    config, gpus, nodes = (experiment.get(name) for name in ("ds_config", "num_gpus", "num_nodes"))
    if not isinstance(config, dict) or not isinstance(gpus, int) or not isinstance(nodes, int):
        raise ValueError("it holds no ds_config, num_gpus and num_nodes of an experiment of DeepSpeed's autotuner")
    settings = {**read_deepspeed(json.dumps(config)), "num_gpus": str(gpus * nodes), "num_nodes": str(nodes)}
    ways = config.get("autotuning", {}).get("mp_size", 1)
    if isinstance(ways, int) and ways > 0 and gpus * nodes % ways == 0:
        settings |= {"tp": str(ways), "dp": str(gpus * nodes // ways)}
    return settings


def read_metrics(text: str) -> Mapping[str, str]:
    """Speed of a finished experiment. Raises ValueError for other JSON."""
    metrics = _object(text)
    throughput, flops = metrics.get("throughput"), metrics.get("FLOPS_per_gpu")
    if not isinstance(throughput, float | int) or not isinstance(flops, float | int) or throughput <= 0:
        raise ValueError("it holds no throughput and FLOPS_per_gpu of DeepSpeed's autotuner")
    rate = {"arg:sequences_per_s": str(throughput), "status_file": "completed"}
    return rate | ({"tflops_per_gpu_logged": str(flops / 1e12)} if flops > 0 else {})


def _object(text: str) -> Mapping[str, object]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("it is no object")
    return found
