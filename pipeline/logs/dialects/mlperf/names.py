"""Settings in the names that MLPerf's submitters give: of a configuration, of a launch and of a platform.

Formats: NVIDIA's run.sub prints `:::DLPAL <image> <job> <nodes> <hosts> <cluster> <configuration>`, without the last
two before 2023; AMD's primus_mllog logs the configuration as an event. A configuration is named after the system, its
nodes, the GPUs of a node and a batch, then the layout and the precision: `DGXH100_8x8x4xtp4pp2cp1`,
`GB200_64x4x480xtp2pp4ep32cp1_mxfp8`, `config_MI355X_1x8x1.sh`. Platforms are named
after their nodes (`64xNVIDIA DGX H100`, `1xMI325X`), Intel's after their accelerators: `gaudi-1024`.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialect import CombinedSetting
from sweepscope.pipeline.logs.extractors import matched_settings

LITERALS = (
    *("DGXNNODES=", "DGXNGPU="),
    ":::DLPAL",
    '"config_filename"',
    '"submission_platform"',
    '"lowest_numerical_precision_linear"',
)

_NAME = r"(?:^|[ \"/])(?:config_)?([A-Za-z]\w*?_\d+x\d+x\d+\w*)(?:\.sh)?(?:[ \"']|$)"
_PARTS = {
    "num_nodes": r"_(\d+)x\d+x\d+",
    "gpus_per_node": r"_\d+x(\d+)x\d+",
    "tp": r"\dxtp(\d+)",
    "pp": r"[\dx]pp(\d+)",
    "cp": r"\dcp(\d+)",
    "ep": r"\dep(\d+)",
}
_PRECISION = r"_(mxfp4|nvfp4|fp4|mxfp8|fp8|bf16)(?:_|$)"
_LOWEST = r'"lowest_numerical_precision_linear", ?"value": ?"(\w+)"'
_CARD = r"(?:A100|H100|H200|G?B[23]00|L40S|MI\d{3}X)"
_PLATFORM = '"submission_platform", ?"value": ?"'
_CARDS = rf"{_PLATFORM}(\d+) ?x ?(?:NVIDIA |AMD |Instinct )*{_CARD}(?: GPUs?|_\d+GB)\b"
"""Of cards alone, without nodes: `64 x NVIDIA A100 GPU`, `8xA100_80GB-baseline`; `4xMI300X` are nodes with eight."""
_PLATFORM_PARTS = {
    "num_gpus": rf"{_PLATFORM}(?:[Gg]audi\d?|tpu-v(?:5l|5e|6e))-(\d+)\"",
    "accelerator": rf"{_PLATFORM}[^\"]*?(?:\b|\dx|x\d+|_\d+x)"
    r"([Tt][Pp][Uu]-v(?:[234]|5[ep]|6e)|MI\d{3}X|(?:[AHB]\d{3}|GB\d{3})(?:-(?:NVL|PCIE|PCIe|SXM)\d?(?:-\d+GB)?)?)(?:\b|_)",
    "gpus_per_node": rf"{_PLATFORM}[^\"]+?(?:x|_|\(|-| )(\d+)x? ?(?:NVIDIA |AMD |Instinct )*{_CARD}",
    "arg:boards_of_four": rf"{_PLATFORM}[^\"]*?\b(GB[23]00)\b",
    "arg:board": rf"{_PLATFORM}[^\"]*?(DGX ?[AHB]\d{{3}}|HGX ?(?:H[12]|B[23])00|MI3\d\dX)\b",
}
_SHAPE = (("gpus_per_node", rf"{_PLATFORM}[^\"]*\bBM\.GPU\.\w+\.(\d+)"),)
_VARIABLES = {"num_nodes": r"\bDGXNNODES=['\"]?(\d+)\b", "gpus_per_node": r"\bDGXNGPU=['\"]?(\d+)\b"}

COMBINED = (
    # Every DGX since the A100's has eight, and so have the HGX boards since the H100's in use here, and AMD's.
    CombinedSetting(
        "gpus_per_node",
        pl.when(pl.col("arg:board").is_not_null() & pl.col("gpus_per_node").is_null()).then(8),
        ("arg:board",),
        setting_source="derived",
    ),
    # A tray of Grace Blackwell has two boards of two.
    CombinedSetting(
        "gpus_per_node",
        pl.when(pl.col("arg:boards_of_four").is_not_null() & pl.col("gpus_per_node").is_null()).then(4),
        ("arg:boards_of_four",),
        setting_source="derived",
    ),
)


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS: cluster, layout and precision in those names."""
    text = pl.col("text")
    is_launch, is_event = (text.str.contains(mark, literal=True) for mark in (":::DLPAL", ":::MLLOG"))
    events = lines.filter(is_event)
    is_named = is_launch | (is_event & text.str.contains('"config_filename"', literal=True))
    configured = lines.filter(is_named).with_columns(text.str.extract(_NAME)).drop_nulls("text")
    is_of_cards = text.str.contains(_CARDS)
    parts = [
        matched_settings(events.filter(is_of_cards), [("num_gpus", _CARDS)]),
        matched_settings(events.filter(~is_of_cards), [("num_nodes", rf"{_PLATFORM}(\d+)x")]),
        matched_settings(configured, _PARTS.items()),
        matched_settings(configured, [("precision", _PRECISION)]),
        matched_settings(events, [("precision", _LOWEST), *_PLATFORM_PARTS.items(), *_SHAPE]),
        matched_settings(lines, _VARIABLES.items()),
        matched_settings(lines, [("num_nodes", r":::DLPAL \S+ \d+ (\d+) "), ("job_id", r":::DLPAL \S+ (\d+) \d+ ")]),
    ]
    return pl.concat(parts)
