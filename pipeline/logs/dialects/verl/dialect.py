"""verl (reinforcement learning with PPO, GRPO and others, and supervised fine-tuning).

Formats: verl/utils/logger/aggregate_logger.py LocalLogger (`step:7 - name:value - name:value`, one long line),
trainer/ppo/metric_utils.py (perf/throughput is tokens per second and GPU), workers (perf/mfu/actor is a fraction,
perf/max_memory_allocated_gb is bytes / 1024**3), trainer/fsdp_sft_trainer.py (train/loss). Ray puts `(TaskRunner
pid=..)` in front, or a progress bar that ends without a line feed. A value may be `np.float64(0.1)`. A line that holds
validation scores only is no step. Where metrics go to a tracker only, the bar of the training is all that tells of its
steps (trainer/ppo/ray_trainer.py fit, which draws it anew after each of them).
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.dialects import environment
from sweepscope.pipeline.logs.dialects.huggingface.bars import elapsed_s, steps_of
from sweepscope.pipeline.logs.dialects.verl import settings as verl_settings
from sweepscope.pipeline.logs.extractors import computed_settings, milestones
from sweepscope.pipeline.logs.facts import STEP_FACTS, Facts, conform
from sweepscope.pipeline.text.field_extraction import extract_each
from sweepscope.pipeline.text.quantities import NUMBER, number
from sweepscope.pipeline.text.timestamps import timestamp

_STEP = r"(?:^|[^\w/])step:(\d+) - "
_TRAINING = r" - (?:train/loss|actor/\w+|critic/\w+/mean|training/global_step|timing_s/step|perf/time_per_step):"
_VALIDATION = r"(?:^|[^\w/])step:\d+ - val[-/\w]*"
# The rest of a step line that was wrapped where it was copied from: no number, but the end of one.
_BROKEN_OFF = r"^[^ ]*(?: - [\w/@()+-]+:[^ ]+)* - (?:timing_s|timing_per_token_ms|perf)/[\w/]+:"


_METRICS = (
    *("train/loss", "actor/loss", "actor/pg_loss", "timing_s/step", "perf/time_per_step"),
    *(r"train/time\(s\)", "perf/throughput", "perf/mfu/actor", "mfu/actor", "train/mfu"),
    *(f"{part}perf/max_memory_{kind}_gb" for kind in ("allocated", "reserved") for part in ("", "actor/")),
    *(r"train/total_tokens\(B\)", "actor/grad_norm", "train/grad_norm", "actor/lr", "train/lr"),
)
# What follows shows that the value is whole.
_FIELDS = {name: rf" - {name}:(?:np\.\w+\()?({NUMBER})(?:\)|\s|$)" for name in _METRICS}


def _field(*names: str) -> pl.Expr:
    """The first of `names` that the line holds."""
    return number(pl.coalesce(*names))


def _known(value: pl.Expr) -> pl.Expr:
    return pl.when(value != 0).then(value)


def _bytes(kind: str) -> pl.Expr:
    gib = _field(*(f"{part}perf/max_memory_{kind}_gb" for part in ("", "actor/")))  # since 2025 per worker
    return _known((gib * 2**30).round())


_BAR = r"\bTraining Progress: +\d+%\|[^|]*\| *(?P<done>\d+)/(?P<total>\d+) \[(?P<clock>[\d:]+)<[^\]]*\]"


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of step lines and what a terminal broke off them; one without a training value stays unparsed.

    Bars are facts that `finalize` makes steps of: they alone plan steps.
    """
    text = pl.col("text")
    is_training = text.str.contains(_STEP) & text.str.contains(_TRAINING)
    is_step = text.str.contains(_STEP) & (is_training | ~text.str.contains(_VALIDATION))
    mine = lines.filter(is_step | text.str.contains(_BROKEN_OFF))
    return pl.concat([_printed(mine, is_training), _drawn(lines)]).sort("source", "line_no", maintain_order=True)


def _drawn(lines: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of bars, whose time is that so far."""
    alone = lines.filter(~pl.col("text").str.contains(_STEP))
    bars = alone.with_columns(bar=pl.col("text").str.extract_groups(_BAR)).unnest("bar").drop_nulls("done")
    return conform(
        bars.with_columns(
            ts=timestamp(pl.col("text")),
            rank=pl.lit(None, pl.Int64),
            step=pl.col("done").cast(pl.Int64, strict=False),
            steps_planned=pl.col("total").cast(pl.Int64, strict=False),
            step_time_s=elapsed_s(pl.col("clock")),
        ),
        STEP_FACTS,
    )


def _printed(mine: pl.DataFrame, is_training: pl.Expr) -> pl.DataFrame:
    text = pl.col("text")
    return conform(
        extract_each(mine, _FIELDS).with_columns(
            ts=timestamp(text),
            rank=pl.lit(None, pl.Int64),
            step=pl.when(is_training).then(text.str.extract(_STEP)),
            loss=_field("train/loss", "actor/loss", "actor/pg_loss"),
            step_time_s=_known(_field("timing_s/step", "perf/time_per_step", r"train/time\(s\)")),
            tokens_per_s_per_gpu=_field("perf/throughput"),
            mfu_logged=_known(_field("perf/mfu/actor", "mfu/actor", "train/mfu")),
            mem_allocated_bytes=_bytes("allocated"),
            mem_reserved_bytes=_bytes("reserved"),
            consumed_tokens=(_field(r"train/total_tokens\(B\)") * 1e9).round(),
            grad_norm=_field("actor/grad_norm", "train/grad_norm"),
            learning_rate=_field("actor/lr", "train/lr"),
        ),
        STEP_FACTS,
    )


_PLANNED = r"Total training steps: (\d+)|\bTraining Progress: +\d+%\|[^|]*\| *\d+/(\d+) "
_END = r"\bFinal validation metrics: "
"""trainer/ppo/ray_trainer.py fit, behind the validation of the last step."""


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS of the configuration as given and dumped, and the number of steps."""
    planned = {"steps_planned": pl.coalesce(pl.col("text").str.extract(_PLANNED, group) for group in (1, 2))}
    return pl.concat([verl_settings.settings(lines), computed_settings(lines, planned), environment.settings(lines)])


def finalize(facts: Facts) -> Facts:
    """The actor's part of a dump, and step lines with what was broken off them; bars where there are no such lines."""
    steps = _without_bars(facts.steps)
    return Facts(_rejoined(steps), verl_settings.of_actor(facts.settings), facts.peaks, facts.events)


def _without_bars(steps: pl.DataFrame) -> pl.DataFrame:
    """`steps` without those of bars of sources with other steps, and the time of each of the rest."""
    lines = steps.filter(pl.col("steps_planned").is_null())
    bars = steps.drop_nulls("steps_planned").join(
        lines.drop_nulls("step"), on="source", how="anti", maintain_order="left"
    )
    if bars.is_empty():
        return lines
    began = (pl.col("step") < pl.col("step").shift().over("source")).fill_null(value=False)
    counted = bars.with_columns(launch=began.cast(pl.Int64).cum_sum().over("source"))
    timed = conform(steps_of(counted), STEP_FACTS)
    return pl.concat([lines, timed]).sort("source", "line_no", maintain_order=True)


_WITHIN_LINES = 3
"""Lines into which a step line was broken; no step line follows right after the rest of another."""


def _rejoined(steps: pl.DataFrame) -> pl.DataFrame:
    rows = steps.sort("source", "line_no", maintain_order=True)
    is_rest = (pl.col("step").is_null() & pl.col("text").str.contains(_BROKEN_OFF)).fill_null(value=False)
    is_rest = is_rest & ~pl.col("text").str.contains(_STEP)
    rows = rows.with_columns(is_rest=is_rest.fill_null(value=False))
    if not rows["is_rest"].any():
        return steps
    rows = rows.with_columns(part=(~pl.col("is_rest")).cast(pl.Int64).cum_sum().over("source"))
    first = pl.col("line_no").first().over("source", "part")
    near = rows.filter(~pl.col("is_rest") | (pl.col("line_no") - first < _WITHIN_LINES))
    others = [name for name in STEP_FACTS.names() if name not in ("source", "text")]
    joined = near.group_by("source", "part", maintain_order=True).agg(
        pl.col("is_rest", "text").first(), *(pl.col(name).drop_nulls().first() for name in others)
    )
    return conform(joined.filter(~pl.col("is_rest")), STEP_FACTS)


DIALECT = Dialect(
    name="verl",
    module=__name__,
    signature_literals=(
        *(" - training/global_step:", " - actor/", " - perf/throughput:", " - timing_s/"),
        *(" - global_seqlen/", " - train/loss:", "verl.trainer.", "actor_rollout_ref.", "'actor_rollout_ref': {"),
    ),
    steps=steps,
    settings=settings,
    events=milestones(training_end=_END),
    finalize=finalize,
    combined=verl_settings.COMBINED,
    literals_by_function={
        "steps": ("step:", " - timing_", " - perf/", "Training Progress: "),
        "settings": (*verl_settings.LITERALS, "Total training steps: ", "Training Progress: ", *environment.LITERALS),
        "events": ("Final validation metrics: ",),
    },
)
