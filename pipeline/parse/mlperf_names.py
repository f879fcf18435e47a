"""What MLPerf's submitters write into names: of a configuration, of a launch and of a platform.

Formats: NVIDIA's run.sub prints `:::DLPAL <image> <job> <nodes> <hosts> <cluster> <configuration>`, without the last
two before 2023; AMD's primus_mllog logs the configuration as an event. A configuration is named after the system, its
nodes, the GPUs of a node and a batch, then the layout and the precision: `DGXH100_8x8x4xtp4pp2cp1`,
`GB200_64x4x480xtp2pp4ep32cp1_mxfp8`, `config_MI355X_1x8x1.sh`. Intel's platforms are named after their accelerators:
`gaudi-1024`.
"""

from __future__ import annotations

import polars as pl

from pipeline.parse.protocol import said_settings

ANCHORS = (":::DLPAL", '"config_filename"', '"submission_platform"', '"lowest_numerical_precision_linear"')

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
_PLATFORM = r'"submission_platform", ?"value": ?"[Gg]audi\d?-(\d+)"'


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """Cluster, layout and precision as those names tell them, as SETTING_FACTS."""
    text = pl.col("text")
    is_named = text.str.contains(":::DLPAL", literal=True) | text.str.contains('"config_filename"', literal=True)
    configured = lines.filter(is_named).with_columns(text.str.extract(_NAME)).drop_nulls("text")
    said = [
        said_settings(configured, _PARTS.items()),
        said_settings(configured, [("precision", _PRECISION)]),
        said_settings(lines, [("precision", _LOWEST), ("num_gpus", _PLATFORM)]),
        said_settings(lines, [("num_nodes", r":::DLPAL \S+ \d+ (\d+) "), ("job_id", r":::DLPAL \S+ (\d+) \d+ ")]),
    ]
    return pl.concat(said)
