"""verl (reinforcement learning with PPO, GRPO and others, and supervised fine-tuning).

Formats: verl/utils/logger/aggregate_logger.py LocalLogger (`step:7 - name:value - name:value`, one long line),
trainer/ppo/metric_utils.py (perf/throughput is tokens per second and GPU), workers (perf/mfu/actor is a fraction,
perf/max_memory_allocated_gb is bytes / 1024**3), trainer/fsdp_sft_trainer.py (train/loss). Ray puts `(TaskRunner
pid=..)` in front, or a progress bar that ends without a line feed. A value may be `np.float64(0.1)`. A line that holds
validation scores only is no step.
"""

from __future__ import annotations

import polars as pl

from pipeline.parse import environment
from pipeline.parse.layouts import extract_each
from pipeline.parse.milestones import milestones
from pipeline.parse.protocol import SETTING_FACTS, STEP_FACTS, Dialect, Facts, conform, named_settings
from pipeline.parse.quantities import NUMBER, number
from pipeline.parse.timestamps import timestamp

_STEP = r"(?:^|[^\w/])step:(\d+) - "
_TRAINING = r" - (?:train/loss|actor/\w+|critic/\w+/mean|training/global_step|timing_s/step|perf/time_per_step):"
_VALIDATION = r"(?:^|[^\w/])step:\d+ - val[-/\w]*"


_METRICS = (
    "train/loss", "actor/loss", "actor/pg_loss", "timing_s/step", "perf/time_per_step", r"train/time\(s\)",
    "perf/throughput", "perf/mfu/actor", "train/mfu", "perf/max_memory_allocated_gb", "perf/max_memory_reserved_gb",
    "actor/grad_norm", "train/grad_norm", "actor/lr", "train/lr",
)  # fmt: skip
# What follows shows that the value is whole.
_FIELDS = {name: rf" - {name}:(?:np\.\w+\()?({NUMBER})(?:\)|\s|$)" for name in _METRICS}


def _field(*names: str) -> pl.Expr:
    """The first of `names` that the line holds."""
    return number(pl.coalesce(*names))


def _positive(value: pl.Expr) -> pl.Expr:
    return pl.when(value > 0).then(value)


def _bytes(name: str) -> pl.Expr:
    return _positive((_field(name) * 2**30).round().cast(pl.Int64, strict=False))


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """Step lines; one without any training value behind its number is cut and stays unparsed."""
    text = pl.col("text")
    is_training = text.str.contains(_TRAINING)
    mine = lines.filter(text.str.contains(_STEP) & (is_training | ~text.str.contains(_VALIDATION)))
    return conform(
        extract_each(mine, _FIELDS).with_columns(
            ts=timestamp(text),
            rank=pl.lit(None, pl.Int64),
            step=pl.when(is_training).then(text.str.extract(_STEP).cast(pl.Int64, strict=False)),
            loss=_field("train/loss", "actor/loss", "actor/pg_loss"),
            step_time_s=_positive(_field("timing_s/step", "perf/time_per_step", r"train/time\(s\)")),
            tokens_per_s_per_gpu=_field("perf/throughput"),
            mfu_logged=_positive(_field("perf/mfu/actor", "train/mfu")),
            mem_allocated_bytes=_bytes("perf/max_memory_allocated_gb"),
            mem_reserved_bytes=_bytes("perf/max_memory_reserved_gb"),
            grad_norm=_field("actor/grad_norm", "train/grad_norm"),
            learning_rate=_field("actor/lr", "train/lr"),
        ),
        STEP_FACTS,
    )


# hydra overrides of the launch command, and the pretty-printed configuration.
_OVERRIDE = r"\b((?:trainer|actor_rollout_ref|data|model)\.[\w.]+)=([\w./-]+)"
_OVERRIDES = {
    "trainer.n_gpus_per_node": "gpus_per_node", "trainer.nnodes": "num_nodes",
    "actor_rollout_ref.model.path": "model", "model.partial_pretrain": "model",
    "actor_rollout_ref.actor.megatron.tensor_model_parallel_size": "tp",
    "actor_rollout_ref.actor.megatron.pipeline_model_parallel_size": "pp",
    "actor_rollout_ref.actor.megatron.context_parallel_size": "cp",
    "actor_rollout_ref.actor.megatron.expert_model_parallel_size": "ep",
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": "mbs", "data.micro_batch_size_per_gpu": "mbs",
}  # fmt: skip
_DUMPED = r"'(n_gpus_per_node|nnodes|ppo_micro_batch_size_per_gpu)': (\d+)"
_DUMP = {"n_gpus_per_node": "gpus_per_node", "nnodes": "num_nodes", "ppo_micro_batch_size_per_gpu": "mbs"}
_PLANNED = r"Total training steps: (\d+)|\bTraining Progress: +\d+%\|[^|]*\| *\d+/(\d+) "
_END = r"\bFinal validation metrics: "
"""trainer/ppo/ray_trainer.py fit, behind the validation of the last step."""


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """Launch overrides, the dump's cluster size, and the number of steps."""
    planned = lines.select(
        "source", "line_no", name=pl.lit("steps_planned"),
        value=pl.coalesce(pl.col("text").str.extract(_PLANNED, group) for group in (1, 2)),
        setting_source=pl.lit("log_line"),
    ).drop_nulls("value")  # fmt: skip
    return pl.concat(
        [
            named_settings(lines, _OVERRIDE, _OVERRIDES, setting_source="command_line"),
            named_settings(lines, _DUMPED, _DUMP, setting_source="argument_dump"),
            conform(planned, SETTING_FACTS),
            environment.settings(lines),
        ]
    )


def settle(facts: Facts) -> Facts:
    """The actor's micro-batch of a dump: pprint sorts the names, so the critic's, of the same name, comes later."""
    is_dumped = (pl.col("name") == "mbs") & (pl.col("setting_source") == "argument_dump")
    rows = facts.settings.sort("source", "line_no", maintain_order=True)
    is_first = pl.col("source").is_first_distinct().over(is_dumped)
    return Facts(facts.steps, rows.filter(~is_dumped | is_first), facts.gauges, facts.events)


DIALECT = Dialect(
    name="verl",
    version=3,
    signature=(
        " - training/global_step:", " - actor/", " - perf/throughput:", " - timing_s/", " - global_seqlen/",
        " - train/loss:", "verl.trainer.", "actor_rollout_ref.",
    ),
    anchors=(
        "step:", "actor_rollout_ref.", "trainer.n", "model.partial_pretrain", "micro_batch_size_per_gpu",
        "'n_gpus_per_node'", "'nnodes'", "Total training steps: ", "Training Progress: ",
        "Final validation metrics: ", *environment.ANCHORS,
    ),
    steps=steps,
    settings=settings,
    events=lambda lines: milestones(lines, training_end=_END),
    settle=settle,
    narrowed={"steps": ("step:",), "events": ("Final validation metrics: ",)},
)  # fmt: skip
