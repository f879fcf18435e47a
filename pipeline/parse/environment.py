"""What launchers and machines print about themselves, whatever the framework; dialects add it to their settings."""

from __future__ import annotations

import polars as pl

from pipeline.parse.protocol import SETTING_FACTS, conform, named_settings

ANCHORS = (
    "CCL version", "nproc_per_node", "nproc-per-node", "NNODES", "GPUS_PER_NODE", "Tesla V100",
    "NVIDIA A100", "NVIDIA H", "NVIDIA B", "NVIDIA GB", "A100-SXM", "Detected GPU model:",
)  # fmt: skip

_LAUNCH = {
    "nproc_per_node": "gpus_per_node", "nproc-per-node": "gpus_per_node", "nnodes": "num_nodes",
    "GPUS_PER_NODE": "gpus_per_node", "NNODES": "num_nodes",
}  # fmt: skip
# torchrun's options, and the variables that launch scripts export or print (Primus: `NNODES: 1`, `NNODES=1`).
_LAUNCH_OPTION = r"--(nproc[-_]per[-_]node|nnodes)[= ](\d+)(?:\s|$)"
_LAUNCH_VARIABLE = r"\b(NNODES|GPUS_PER_NODE)(?:=|:\s*)(\d+)\s*$"

_LINE = {
    # ncclGetVersion, printed by rank 0 of each communicator: src/init.cc `NCCL version 2.27.3+cuda12.9`; AMD: RCCL.
    "nccl_version": r"\bR?N?CCL version (\d[\w.+-]*)",
    # A row of nvidia-smi's table; long names are cut with dots.
    "accelerator": r"^\|\s+\d+\s+((?:NVIDIA |Tesla |A100|H100)[\w -]*\w)(?:\.\.\.)?\s+(?:On|Off)\s*\|",
}
_PRIMUS_GPU = r"Detected GPU model: (\S+)"  # Primus runner/helpers


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """Library version, accelerator and launch size, as SETTING_FACTS."""
    text = pl.col("text")
    patterns = [*_LINE.items(), ("accelerator", _PRIMUS_GPU)]
    said = pl.concat(
        lines.select(
            "source", "line_no", name=pl.lit(name), value=text.str.extract(pattern), setting_source=pl.lit("log_line")
        ).drop_nulls("value")
        for name, pattern in patterns
    )
    launched = [
        named_settings(lines, pattern, _LAUNCH, setting_source="command_line")
        for pattern in (_LAUNCH_OPTION, _LAUNCH_VARIABLE)
    ]
    return pl.concat([conform(said, SETTING_FACTS), *launched])
