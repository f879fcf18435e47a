"""What starts a planned run on a machine: a torchrun script, a Slurm job and a Kubernetes JobSet that call it.

Each run leaves what reading it whole needs: NCCL's own log, flight recorder dumps of collectives that hang, memory
snapshots where the framework has a switch for them, everything that is printed, and an end by its time limit. See
docs.nvidia.com NCCL environment variables; torch/distributed TORCH_FR_* (TORCH_NCCL_* before 2.9); Slurm's sbatch;
jobset.sigs.k8s.io v1alpha2.
"""

from __future__ import annotations

import shlex
from typing import Any

import yaml

from sweepscope.pipeline.launch.framework import Files, Framework
from sweepscope.pipeline.launch.planned import Planned
from sweepscope.pipeline.launch.statement import STATEMENT, statement

SCRIPT, SBATCH, JOBSET = "launch.sh", "job.sbatch", "jobset.yaml"
_RENDEZVOUS_PORT = 29500
_GRACE_S = 60
"""Seconds between the signal at the time limit and the kill: enough to write what is open."""

_LOG_OF_NODE = "$RUN_DIR/train${NODE_RANK/#0/}.log"
"""`train.log` of the first node, `train1.log` of the second."""
_TRAINER = 'TRAINER_DIR="${TRAINER_DIR:?set it to the folder of the training script}"'
_TRACES = '"$RUN_DIR/flight_recorder_rank_"'
_OF_TRIALS = {"TORCHDYNAMO_DISABLE": "1"}
"""Compiling for a CPU takes minutes, and shows nothing of the accelerator."""


def environment(framework: Framework) -> dict[str, str]:
    """Variables of every process, as words of a shell."""
    return {
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,ENV,GRAPH",
        "NCCL_DEBUG_FILE": '"$RUN_DIR/nccl.%h.%p.log"',
        # Both spellings of the flight recorder: which one counts depends on the version of torch.
        "TORCH_FR_BUFFER_SIZE": "2000",
        "TORCH_FR_DUMP_TEMP_FILE": _TRACES,
        "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000",
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": _TRACES,
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        **{name: shlex.quote(value) for name, value in framework.environment.items()},
    }


def launch_script(run: Planned, framework: Framework, settings: dict[str, str] | None = None) -> str:
    """A script for one node of the job; NNODES, NODE_RANK and MASTER_ADDR say which. `settings`: further variables."""
    further = {**(_OF_TRIALS if run.is_trial else {}), **(settings or {})}
    exports = {**environment(framework), **{name: shlex.quote(text) for name, text in further.items()}}
    command = " ".join(framework.command(run))
    what = f"{run.name}: {framework.name}, {run.num_nodes} x {run.gpus_per_node} ranks"
    needs_trainer = "$TRAINER_DIR" in command
    lines = [
        "#!/usr/bin/env bash",
        f"# {what}. Written by `sweepscope plan launch`.",
        # Values may hold brackets and stars, which are no patterns of file names.
        "set -uf -o pipefail",
        'RUN_DIR="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"',
        'export RUN_DIR; cd "$RUN_DIR"',
        *(f"export {name}={value}" for name, value in exports.items()),
        *([_TRAINER] if needs_trainer else []),
        'NODE_RANK="${NODE_RANK:-0}"',
        # Slurm keeps what is printed with its own messages, which name the reason of an end.
        f'if [ -n "${{SLURM_JOB_ID:-}}" ]; then log() {{ cat; }}; else log() {{ tee -a "{_LOG_OF_NODE}"; }}; fi',
        f'timeout --signal=TERM --kill-after={_GRACE_S} {run.walltime_s} "${{TORCHRUN:-torchrun}}" \\',
        f'  --nnodes={run.num_nodes} --nproc_per_node={run.gpus_per_node} --node_rank="$NODE_RANK" \\',
        f'  --master_addr="${{MASTER_ADDR:-localhost}}" --master_port="${{MASTER_PORT:-{_RENDEZVOUS_PORT}}}" \\',
        f"  {command} 2>&1 | log",
        "",
    ]
    return "\n".join(lines)


def sbatch(run: Planned) -> str:
    """A Slurm job that starts the script on every node. Account, partition and container are the user's to add."""
    hours, rest = divmod(run.walltime_s, 3600)
    options = {
        "job-name": run.name,
        "nodes": run.num_nodes,
        "ntasks-per-node": 1,
        "gpus-per-node": run.gpus_per_node,
        "time": f"{hours:02}:{rest // 60:02}:{rest % 60:02}",
        "output": "slurm-%j.out",
        "exclusive": "",
    }
    return "\n".join(
        [
            "#!/bin/bash",
            *(f"#SBATCH --{name}{f'={value}' if value != '' else ''}" for name, value in options.items()),
            "",
            "# Submit it from its own folder: sbatch job.sbatch",
            'MASTER_ADDR="$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)"',
            "export MASTER_ADDR",
            "srun --kill-on-bad-exit=1 bash -c "
            + shlex.quote(f'NODE_RANK="$SLURM_NODEID" exec bash "$SLURM_SUBMIT_DIR/{SCRIPT}"'),
            "",
        ]
    )


def jobset(run: Planned) -> str:
    """A JobSet with one indexed job, a pod per node. Image, and the volume with the run's folder, are the user's."""
    folder = f"/runs/{run.name}"
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "trainer",
                "image": "IMAGE",
                "command": ["bash", "-c", f'NODE_RANK="$JOB_COMPLETION_INDEX" exec bash {folder}/{SCRIPT}'],
                "env": [{"name": "MASTER_ADDR", "value": f"{run.name}-workers-0-0.{run.name}"}],
                "resources": {"limits": {"nvidia.com/gpu": run.gpus_per_node}},
                "volumeMounts": [{"name": "runs", "mountPath": "/runs"}, {"name": "shm", "mountPath": "/dev/shm"}],  # noqa: S108 - a pod's own mount
            }
        ],
        "volumes": [
            {"name": "runs", "persistentVolumeClaim": {"claimName": "runs"}},
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
        ],
    }
    job = {
        "parallelism": run.num_nodes,
        "completions": run.num_nodes,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "activeDeadlineSeconds": run.walltime_s,
        "template": {"spec": pod},
    }
    document = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": run.name},
        "spec": {
            "failurePolicy": {"maxRestarts": 0},
            "network": {"enableDNSHostnames": True, "subdomain": run.name},
            "replicatedJobs": [{"name": "workers", "replicas": 1, "template": {"spec": job}}],
        },
    }
    return str(yaml.safe_dump(document, sort_keys=False))


def launch_files(run: Planned, framework: Framework, settings: dict[str, str] | None = None) -> Files:
    """All files of a run's directory by name: configuration, scripts, and what its logs will not say."""
    return {
        **framework.files(run),
        SCRIPT: launch_script(run, framework, settings),
        SBATCH: sbatch(run),
        JOBSET: jobset(run),
        STATEMENT: statement(run),
    }
