"""OpenRLHF: fine-tuning, reward models and preferences in bars, PPO and its kin in bars or in lines of their own.

Formats: openrlhf/trainer/sft_trainer.py, dpo_trainer.py and the others (`Train step of epoch 0:  5%|5     | 3/64
[.., gpt_loss=1.97, loss_mean=0.5]`), ppo_trainer.py (`Episode [1/20]: .. [.., policy_loss=0.01, actor_lr=..]`, since
2025 `Global step 3: {'policy_loss': .., 'timing/step_total': ..}` behind a star), cli/train_*.py (options). Ray puts
`(ActorModelRayActor pid=..)` in front.

A bar of an epoch counts micro-batches; of the optimizer's steps the last one's loss is kept, where DeepSpeed or the
options give their number. Otherwise a step is a micro-batch, and has no time. Values of a batch are drawn
behind the count of the batch before: the first drawing of a count shows its own. Files with lines of global steps need
no bar. What DeepSpeed prints is read by `deepspeed.settings`.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from sweepscope.pipeline.logs.dialect import CombinedSetting, Dialect
from sweepscope.pipeline.logs.dialects import environment
from sweepscope.pipeline.logs.dialects.deepspeed import settings as deepspeed_settings
from sweepscope.pipeline.logs.dialects.huggingface.bars import elapsed_s, steps_of
from sweepscope.pipeline.logs.expressions import cases, is_true, quotient, whole
from sweepscope.pipeline.logs.extractors import extract_numbers, milestones, named_settings
from sweepscope.pipeline.logs.facts import EVENT_FACTS, SETTING_FACTS, STEP_FACTS, Facts, conform
from sweepscope.pipeline.text.line_templates import with_text
from sweepscope.pipeline.text.quantities import NUMBER, number
from sweepscope.pipeline.text.timestamps import timestamp

_BAR = (
    r"^\s*(?:Train step of epoch (?P<epoch>\d+)|Episode \[(?P<episode>\d+)/\d+\]): +\d+%\|[^|]*\| *(?P<done>\d+)/"
    rf"(?P<total>\d+) \[(?P<clock>[\d:]+)<[^\]]*?(?:, (?:gpt_loss|policy_loss|loss)=(?P<shown_loss>{NUMBER}))[,\]]"
)
_GLOBAL_STEP = r"\bGlobal step (\d+)(?: \[\w+\])?: \{"
_NUMBERS = {
    "loss": rf"'policy_loss': ({NUMBER})[,}}]",
    "step_time_s": rf"'timing/step_total': ({NUMBER})[,}}]",
    "learning_rate": rf"'actor_lr': ({NUMBER})[,}}]",
    "grad_norm": rf"'actor_grad_norm': ({NUMBER})[,}}]",
}
_COUNTERS = {"number": _GLOBAL_STEP, "complete": _GLOBAL_STEP + r"[^{}]*(\})"}


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of lines of global steps, and redraws of bars with a loss, which `finalize` makes steps of."""
    text = pl.col("text")
    ts = timestamp(pl.concat_str("prefix", "text", ignore_nulls=True))
    printed = extract_numbers(lines.filter(text.str.contains(_GLOBAL_STEP)), _NUMBERS, _COUNTERS).with_columns(
        ts=ts, step=pl.when(pl.col("complete").is_not_null()).then("number")
    )
    drawn = lines.with_columns(bar=text.str.extract_groups(_BAR)).unnest("bar").drop_nulls("done")
    done, total, epoch, episode = (
        pl.col(name).cast(pl.Int64, strict=False) for name in ("done", "total", "epoch", "episode")
    )
    bars = drawn.with_columns(
        ts=ts,
        step=pl.coalesce(epoch, episode - 1) * total + done,
        # Of micro-batches until `finalize`; those of episodes are steps of the optimizer.
        steps_planned=pl.when(epoch.is_not_null()).then(-total).otherwise(total),
        loss=number(pl.col("shown_loss")),
        grad_norm=number(text.str.extract(rf", grad_norm=({NUMBER})[,\]]")),
        learning_rate=number(text.str.extract(rf", (?:actor_)?lr=(?:tensor\()?({NUMBER})[,)\]]")),
        step_time_s=elapsed_s(pl.col("clock")),  # so far: `finalize` takes the differences
    ).filter(done > 0)
    return pl.concat([conform(printed, STEP_FACTS), conform(bars, STEP_FACTS)])


def finalize(facts: Facts) -> Facts:
    """Optimizer steps of bars, in files without lines of global steps."""
    order = ["source", "line_no"]
    is_bar = pl.col("steps_planned").is_not_null()
    printed = facts.steps.filter(~is_bar)
    bars = facts.steps.filter(is_bar).join(printed.drop_nulls("step"), on="source", how="anti")
    bars = bars.sort(order, maintain_order=True)
    is_first = pl.col("step").ne_missing(pl.col("step").shift(1).over("source"))
    counted = bars.filter(is_first).join(
        _batches_a_step(facts.settings), on="source", how="left", maintain_order="left"
    )
    is_batches = pl.col("steps_planned") < 0
    gas = pl.when(is_batches).then(pl.col("gas")).otherwise(1)
    rows = counted.with_columns(gas=gas, total=pl.col("steps_planned").abs())
    rows = rows.with_columns(launch=(pl.col("step") - 1) // pl.col("total"))
    times = steps_of(rows).select("source", "launch", "step", each="step_time_s")
    timed = rows.join(times, on=["source", "launch", "step"], how="left", maintain_order="left")
    whole_steps = timed.filter((pl.col("step") % pl.col("gas") == 0).fill_null(value=True))
    steps = whole_steps.with_columns(
        step=pl.col("step") // pl.col("gas").fill_null(1),
        step_time_s=pl.col("each") * pl.col("gas"),
        steps_planned=pl.lit(None, pl.Int64),
    )
    both = pl.concat([printed, conform(steps, STEP_FACTS)]).sort(order, maintain_order=True)
    return replace(facts, steps=both)


def _batches_a_step(settings: pl.DataFrame) -> pl.DataFrame:
    """`gas` per source: as DeepSpeed printed it, else what the batches leave per process."""
    names = ("gas", "gbs", "mbs", "dp", "num_gpus")
    latest = settings.filter(pl.col("name").is_in(names)).sort("line_no", maintain_order=True)
    latest = latest.group_by("source", "name").agg(pl.col("value").last().cast(pl.Int64, strict=False))
    known = latest.pivot(on="name", on_columns=names, index="source", values="value")
    each = pl.col("mbs") * pl.coalesce("dp", "num_gpus")
    left = pl.when((each > 0) & (pl.col("gbs") % each == 0)).then(pl.col("gbs") // each)
    return known.select("source", gas=pl.coalesce("gas", left)).filter(pl.col("gas") > 0)


_OPTIONS = (
    {"micro_train_batch_size": "mbs", "train_batch_size": "gbs", "max_len": "seq_len"}
    | {"zero_stage": "zero_stage", "pretrain": "model", "ring_attn_size": "cp", "ds_tensor_parallel_size": "tp"}
    | {"param_dtype": "precision", "prompt_max_len": "arg:prompt", "generate_max_len": "arg:response"}
    | {"actor_num_nodes": "num_nodes", "actor_num_gpus_per_node": "gpus_per_node"}
    # since 2026 in sections
    | {"train.micro_batch_size": "mbs", "train.batch_size": "gbs", "data.max_len": "seq_len"}
    | {"ds.zero_stage": "zero_stage", "ds.ring_attn_size": "cp", "ds.tensor_parallel_size": "tp"}
    | {"ds.param_dtype": "precision", "model.model_name_or_path": "model", "actor.model_name_or_path": "model"}
    | {"actor.num_nodes": "num_nodes", "actor.num_gpus_per_node": "gpus_per_node"}
)
_SWITCHES = {
    "bf16": "arg:bf16",
    **{
        f"{part}gradient_checkpointing{more}": "arg:gradient_checkpointing"
        for part in ("", "model.", "actor.")
        for more in ("", "_enable")
    },
}
_OPTION_LITERALS = tuple(f"--{name}" for name in (*_OPTIONS, *_SWITCHES))


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS of options of the launch, also as the launcher lists them, and what DeepSpeed prints."""
    listed = with_text(lines, pl.col("text").str.replace_all("['\"], ['\"]", " "))
    options = named_settings(listed, r"--([\w.]+)[= ]+(\w[\w./-]*)", _OPTIONS, setting_source="command_line")
    switches = named_settings(listed, r"--([\w.]+)(\s|[\\'\"\]]|$)", _SWITCHES, setting_source="command_line")
    switches = switches.with_columns(value=pl.lit("true"))
    return pl.concat([options, switches, deepspeed_settings.settings(lines), environment.settings(lines)]).select(
        SETTING_FACTS.names()
    )


_FULL = r"^\s*(?:Train epoch: +100%\|[^|]*\| *(\d+)/(\d+) |Episode \[(\d+)/(\d+)\]: +100%\|)"


def events(lines: pl.DataFrame) -> pl.DataFrame:
    """EVENT_FACTS: the last epoch's or episode's bar when it is full, and DeepSpeed's launcher."""
    done = [pl.col("text").str.extract(_FULL, group) for group in range(1, 5)]
    is_last = pl.coalesce(done[0], done[2]) == pl.coalesce(done[1], done[3])
    full = milestones(training_end=_FULL)(lines.filter(is_last.fill_null(value=False)))
    return conform(pl.concat([full, deepspeed_settings.events(lines)]), EVENT_FACTS)


COMBINED = (
    CombinedSetting(
        "precision",
        cases((is_true("arg:bf16") | is_true("arg:ds_bf16"), "bf16"), (is_true("arg:ds_fp16"), "fp16")),
        ("arg:bf16", "arg:ds_bf16"),
    ),
    CombinedSetting("recompute", pl.when(is_true("arg:gradient_checkpointing")).then(pl.lit("full"))),
    CombinedSetting("seq_len", whole("arg:prompt") + whole("arg:response")),
    CombinedSetting(
        "dp",
        pl.when(pl.col("dp").is_null()).then(
            quotient(whole("num_gpus"), whole("tp").fill_null(1) * whole("cp").fill_null(1))
        ),
        ("num_gpus",),
        setting_source="derived",
    ),
    CombinedSetting(
        "num_gpus", whole("dp") * whole("tp").fill_null(1) * whole("cp").fill_null(1), ("dp",), setting_source="derived"
    ),
)

_BAR_LITERALS = ("Train step of epoch ", "Episode [")

DIALECT = Dialect(
    name="openrlhf",
    module=__name__,
    # DeepSpeed's literals count here too, so that OpenRLHF's own decide. Many programs print epochs, episodes and
    # global steps: the star, a bar's first drawing and the values behind it are OpenRLHF's.
    signature_literals=(
        *("openrlhf.cli.", "openrlhf/", "Train step of epoch ", "Train epoch:   0%|"),
        *(", actor_lr=", ", act_lr=", "(ActorModelRayActor pid=", "(PolicyModelActor pid="),
        *("\u2728 Global step ", "gpt_loss=", ":sigkill_handler] ", "cmd = deepspeed "),
        *deepspeed_settings.SIGNATURES,
    ),
    steps=steps,
    settings=settings,
    events=events,
    combined=COMBINED,
    finalize=finalize,
    literals_by_function={
        "steps": (*_BAR_LITERALS, " Global step "),
        "settings": (*_OPTION_LITERALS, *deepspeed_settings.LITERALS, *environment.LITERALS),
        "events": ("Train epoch:", "Episode [", *deepspeed_settings.EVENT_LITERALS),
    },
)
