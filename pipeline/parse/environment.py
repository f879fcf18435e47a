"""What launchers and machines print about themselves, whatever the framework; dialects add it to their settings."""

from __future__ import annotations

import polars as pl

from pipeline.parse.lines import holding
from pipeline.parse.protocol import SETTING_FACTS, named_settings, said_settings

ANCHORS = (
    "CCL version", "--nproc_per_node", "--nproc-per-node", "--nnodes", "NNODES", "GPUS_PER_NODE", "Tesla V100",
    "NVIDIA A100", "NVIDIA H", "NVIDIA B", "NVIDIA GB", "A100-SXM", "Detected GPU model:",
)  # fmt: skip

_LAUNCH = {
    "nproc_per_node": "gpus_per_node", "nproc-per-node": "gpus_per_node", "nnodes": "num_nodes",
    "GPUS_PER_NODE": "gpus_per_node", "NNODES": "num_nodes",
}  # fmt: skip
# torchrun's options, and the variables that launch scripts export or print (Primus: `NNODES: 1`, `NNODES=1`).
_LAUNCH_OPTION = r"--(nproc[-_]per[-_]node|nnodes)[= ](\d+)(?:\s|$)"
_LAUNCH_VARIABLE = r"\b(NNODES|GPUS_PER_NODE)(?:=|:\s*)(\d+)\s*$"

_LINE = (
    # ncclGetVersion, printed by rank 0 of each communicator: src/init.cc `NCCL version 2.27.3+cuda12.9`; AMD: RCCL.
    ("nccl_version", r"\bR?N?CCL version (\d[\w.+-]*)"),
    # A row of nvidia-smi's table; long names are cut with dots.
    ("accelerator", r"^\|\s+\d+\s+((?:NVIDIA |Tesla |A100|H100)[\w -]*\w)(?:\.\.\.)?\s+(?:On|Off)\s*\|"),
    ("accelerator", r"Detected GPU model: (\S+)"),  # Primus runner/helpers
)


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """Library version, accelerator and launch size, as SETTING_FACTS."""
    near = lines.filter(holding(ANCHORS))
    if near.is_empty():
        return pl.DataFrame(schema=SETTING_FACTS)
    launched = [
        named_settings(near, pattern, _LAUNCH, setting_source="command_line")
        for pattern in (_LAUNCH_OPTION, _LAUNCH_VARIABLE)
    ]
    return pl.concat([said_settings(near, _LINE), *launched])
