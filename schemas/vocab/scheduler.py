"""Words of schedulers' tables of jobs."""

from __future__ import annotations

JOB_STATE: dict[str, str] = {
    "completed": "ended with exit code 0 on all nodes",
    "failed": "ended with a non-zero exit code or by a signal",
    "out_of_memory": "the host ran out of memory (cgroup limit), or a pod was OOMKilled",
    "timeout": "reached its time limit",
    "deadline": "could not end before its deadline",
    "cancelled": "cancelled by its user or an administrator",
    "node_fail": "a node failed",
    "boot_fail": "a node did not boot",
    "preempted": "ended, to be replaced by another job",
    "requeued": "ended, to be started again",
    "evicted": "a pod was evicted from its node",
    "running": "was running when the table was written",
    "pending": "was waiting when the table was written",
    "suspended": "was suspended when the table was written",
    "unknown": "a state that no rule knows; the text has it",
}

SCHEDULER: dict[str, str] = {
    "slurm": "Slurm: sacct, squeue or scontrol",
    "kubernetes": "Kubernetes: kubectl describe pod, kubectl get pods",
    "lsf": "LSF: bjobs",
    "pbs": "PBS: qstat",
    "flux": "Flux: flux jobs",
}
