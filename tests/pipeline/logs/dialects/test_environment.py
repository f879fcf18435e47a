"""What launchers and machines print, whatever the framework."""

from __future__ import annotations

from tests.pipeline.logs.logs import settings_of_each

LINES: list[tuple[str, dict[str, str]]] = [
    ("NCCL version 2.27.3+cuda12.9", {"nccl_version": "2.27.3+cuda12.9"}),
    ("RCCL version 2.18.3+hip6.0 HEAD:2f6d59e+", {"nccl_version": "2.18.3+hip6.0"}),
    (
        "|   0  Tesla V100-SXM2...  On   | 00000000:1A:00.0 Off |                    0 |",
        {"accelerator": "Tesla V100-SXM2"},
    ),
    (
        "|   3  NVIDIA H100 80GB HBM3          On  | 00000000:1A:00.0 Off | 0 |",
        {"accelerator": "NVIDIA H100 80GB HBM3"},
    ),
    ("[2026-05-07 13:09:22] [NODE-0(n)] [INFO] Detected GPU model: MI355X", {"accelerator": "MI355X"}),
    ("torch 2.5.1+cu124, 8 x NVIDIA H100 80GB HBM3 per node", {"accelerator": "NVIDIA H100 80GB HBM3"}),
    ("on cuda:0 (NVIDIA A100 80GB PCIe), bf16", {"accelerator": "NVIDIA A100 80GB PCIe"}),
    ("gpu: NVIDIA GeForce RTX 4090, 24564 MiB", {"accelerator": "NVIDIA GeForce RTX 4090"}),
    ("CUDA device 0: [GeForce GTX 1050 Ti]; cc: [6.1]", {"accelerator": "GeForce GTX 1050 Ti"}),
    ("GPU available: Radeon RX 7900 GRE", {"accelerator": "Radeon RX 7900 GRE"}),
    ("device=Tesla V100-SXM2-32GB rank=0", {"accelerator": "Tesla V100-SXM2-32GB"}),
    ("devices: 8x AMD Instinct MI300X OAM", {"accelerator": "AMD Instinct MI300X"}),
    ("SM_CURRENT_INSTANCE_TYPE=ml.p4d.24xlarge", {"accelerator": "p4d.24xlarge"}),
    ("node.kubernetes.io/instance-type: p5.48xlarge", {"accelerator": "p5.48xlarge"}),
    ('"machine": "Standard_ND96isr_H100_v5", "zone": 2', {"accelerator": "Standard_ND96isr_H100_v5"}),
    ("I1103 14:22:10.1 1401 main.py:51] JAX process: 0 / 4", {"num_nodes": "4"}),
    ("JAX local devices: [CudaDevice(id=0), CudaDevice(id=1)]", {"gpus_per_node": "2"}),
    ("JAX local devices: [CpuDevice(id=0)]", {}),
    ("head node m5.24xlarge, p4d.24xlarges are sold out, xp4d.24xlarge", {}),
    ("trained as fast as on NVIDIA H100 cards, Tesla would say; NVIDIA NeMo", {}),
    ("torchrun --nproc_per_node=8 --nnodes=4 train.py", {"gpus_per_node": "8", "num_nodes": "4"}),
    ("torchrun --nproc-per-node 8 --nnodes 4 train.py", {"gpus_per_node": "8", "num_nodes": "4"}),
    ("[NODE-0(gpu-40)] [INFO] NNODES: 2", {"num_nodes": "2"}),
    ("+ export GPUS_PER_NODE=8", {"gpus_per_node": "8"}),
    (
        "I1209 10:37:15.2 25 nccl_context.cc:74] init nccl context nranks: 4 local rank: 0 gpu id: 0 ring id: 0",
        {"num_gpus": "4"},
    ),
    ("I1209 10:37:15.2 25 nccl_context.cc:74] init nccl context nranks: 2 local rank: 0 gpu id: 0 ring id: 3", {}),
    ("   TresPerNode=gres/gpu:h100:4", {"accelerator": "h100", "gpus_per_node": "4"}),
    ("   TresPerNode=gres:gpu:2", {"gpus_per_node": "2"}),
    ("SLURM_JOB_ID=410022", {"job_id": "410022"}),
    ("SLURM_NNODES: 2", {"num_nodes": "2"}),
    (
        "{'SLURM_JOB_NODELIST': 'gpu[09-10]', 'SLURM_GPUS_ON_NODE': '8'}",
        {"hosts": "gpu09, gpu10", "gpus_per_node": "8"},
    ),
    ("PBS_JOBID=7.server.site", {"job_id": "7"}),
    ("export SLURM_JOB_ID=$SLURM_JOB_ID SLURM_NNODES=${SLURM_NNODES} SLURM_JOB_NUM_NODES=0", {}),
    ("SLURM_JOB_ID=tba SLURM_JOB_NODELIST=gpu[1-", {}),
    ("torchrun --nproc_per_node=$GPUS_PER_NODE --nnodes=1:4 train.py", {}),
    ("# $ torchrun --standalone --nproc_per_node=8 train.py config/train_gpt2.py", {}),
]

COMMANDS = [
    ("torchrun --nproc_per_node=8 train.py --lr 1e-4", "1"),
    ("+ python -m torch.distributed.launch --nproc_per_node 8 train.py", "1"),
    ("torchrun --nproc-per-node 8", "1"),
    ("torchrun --nproc_per_node=8 --nnodes=$NNODES train.py", None),
    ("torchrun --nproc_per_node=8 \\", None),
    ("deepspeed --nproc_per_node=8 train.py", None),
]


def test_lines() -> None:
    found = settings_of_each("megatron", [line for line, _ in LINES])
    assert [(line, settings) for (line, _), settings in zip(LINES, found, strict=True)] == LINES


def test_torchrun_without_nodes_starts_one() -> None:
    found = settings_of_each("megatron", [command for command, _ in COMMANDS])
    nodes = [settings.get("num_nodes") for settings in found]
    assert [(command, number) for (command, _), number in zip(COMMANDS, nodes, strict=True)] == COMMANDS
