"""`sweepscope.toml` of a planned run: what the trainer's log does not say, and the plan knows."""

from __future__ import annotations

from sweepscope.pipeline.launch.planned import Planned
from sweepscope.pipeline.logs.declared.statements import NAME
from sweepscope.pipeline.logs.declared.toml_writer import written

STATEMENT = NAME


def statement(run: Planned) -> str:
    """The file's text. Where log or configuration state a value themselves, theirs counts."""
    return written(
        {
            "accelerator": run.accelerator,
            "model": run.model,
            "num_nodes": run.num_nodes,
            "gpus_per_node": run.gpus_per_node,
            "num_gpus": run.num_gpus,
            "seq_len": run.seq_len,
            "steps_planned": run.steps,
        }
    )
