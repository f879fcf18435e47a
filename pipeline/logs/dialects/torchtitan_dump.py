"""torchtitan's whole configuration, as it prints it on request.

Formats: config/job_config.py maybe_log (debug.print_config: JSON, a name a line, from late 2025 on), train.py
(job.print_args: a dict on one line, to 2025). Validation has a sequence length, a batch and steps of its own: a line
of JSON does not tell them from the training's, so that only names which no other section has are read there.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from sweepscope.pipeline.logs.dialect import named_settings, said_settings

_DICT = "Running with args: {"
_SECTIONS = {
    "seq_len": r"'training': \{[^{}]*'seq_len': (\d+)",
    "mbs": r"'training': \{[^{}]*'(?:local_)?batch_size': (\d+)",
    "steps_planned": r"'training': \{[^{}]*'steps': (\d+)",
    "recompute": r"'activation_checkpoint': \{[^{}]*'mode': '(full|selective|none)'",
}
_RECOMPUTE = r'^\s*"mode": "(full|selective)",?\s*$'

ANCHORS = (
    _DICT,
    '"mode": "',
    '_parallel_degree": ',
    '"data_parallel_replicate_degree": ',
    '"data_parallel_shard_degree": ',
    '"fsdp_reshard_after_forward": ',
    '"pipeline_parallel_schedule": ',
    '"mixed_precision_param": ',
)


def settings(lines: pl.DataFrame, options: Mapping[str, str]) -> pl.DataFrame:
    """Settings of both forms. `options` maps `section.name`, as on a command line, to columns of `runs`."""
    names = {
        name.split(".", 1)[1]: column
        for name, column in options.items()
        if name.startswith("parallelism.") or name == "training.mixed_precision_param"
    }
    as_dict = lines.filter(pl.col("text").str.contains(_DICT, literal=True))
    said = [said_settings(lines, [("recompute", _RECOMPUTE)]), said_settings(as_dict, _SECTIONS.items())]
    return pl.concat(
        [
            named_settings(lines, r'^\s*"(\w+)": "?([\w-]+)"?,?\s*$', names, setting_source="argument_dump"),
            named_settings(as_dict, r"'(\w+)': '?([\w-]+)'?[,}]", names, setting_source="argument_dump"),
            pl.concat(said).with_columns(setting_source=pl.lit("argument_dump")),
        ]
    )
