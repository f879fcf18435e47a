"""Lines of a job script before the framework starts: `nvidia-smi` and, with `set -x`, the launch command.

Most frameworks do not print the accelerator or the nodes; these lines do.
"""

from __future__ import annotations

from sweepscope.pipeline.simulate.console import LogLine, scheduler
from sweepscope.pipeline.simulate.renderers.protocol import Stated, cosmetics
from sweepscope.pipeline.simulate.truth import SimulatedRun

_MIB = 2**20
_RULE = "+-----------------------------------------+------------------------+----------------------+"


def prologue(run: SimulatedRun, script: str) -> list[LogLine]:
    """The first node's `nvidia-smi` table and the echoed torchrun command; none for a script that prints nothing."""
    if not run.prologue:
        return []
    launch = (
        f"+ srun torchrun --nnodes {run.num_nodes} --nproc_per_node {run.gpus_per_node} --rdzv_backend c10d {script}"
    )
    return scheduler([*_nvidia_smi(run), launch])


def stated(run: SimulatedRun) -> Stated:
    """Columns of `runs` that the prologue states."""
    if not run.prologue:
        return {}
    return {"accelerator": run.accelerator.name, "num_nodes": run.num_nodes, "gpus_per_node": run.gpus_per_node}


def _nvidia_smi(run: SimulatedRun) -> list[str]:
    rng = cosmetics(run, "nvidia-smi")
    texts = [
        f"{run.started_at:%a %b %d %H:%M:%S %Y}       ",
        "+-----------------------------------------------------------------------------------------+",
        "| NVIDIA-SMI 570.86.15              Driver Version: 570.86.15      CUDA Version: 12.8     |",
        "|-----------------------------------------+------------------------+----------------------+",
        "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |",
        "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |",
        "|=========================================+========================+======================|",
    ]
    total = run.accelerator.memory_bytes // _MIB
    for gpu in range(run.gpus_per_node):
        texts += [
            f"|{gpu:4d}  {run.accelerator.device_name:<31}On  |   00000000:{16 * gpu + 9:02X}:00.0 Off |"
            "                    0 |",
            f"| N/A   {rng.randrange(24, 38)}C    P0            {rng.randrange(60, 120):3d}W /  700W |"
            f"       1MiB / {total:6d}MiB |      0%      Default |",
            _RULE,
        ]
    return texts
