"""MLPerf Training results: `:::MLLOG {json}` events, whatever framework runs below.

Formats: mlcommons/logging mlperf_logging/mllog (the events and their keys), mlperf_common/callbacks/logging.py and each
submission's custom_callbacks.py (what it tracks), mlcommons/training_policies (the rules). A prefix may stand before
`:::MLLOG`, and console output of the framework between the events.

Training values come as `tracked_stats` events with a step time, a loss or both, or as `train_loss` events. Their
counter is in samples, in tokens, or in steps, which nothing states, and a file may have several: see `finalize`.
`tracked_stats` with a throughput sum up the block before an evaluation, and its unit (samples or tokens per second)
differs too. Where a submission logs nothing else of its training, these are its steps, without a loss or a time.
mlperf_common sums up the time of a block beside the size of the block, in samples, which is no counter: it never rises.
`eval_accuracy` is a quality, not a training loss. GPUs and layout are rarely printed: `:::SYSJSON` or NeMo's output may
have them, newer submissions log their parallel sizes as events, and some names hold them (`names`).
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from sweepscope.pipeline.logs.dialect import CombinedSetting, Dialect
from sweepscope.pipeline.logs.dialects import environment
from sweepscope.pipeline.logs.dialects.mlperf import console, names
from sweepscope.pipeline.logs.expressions import cases, whole
from sweepscope.pipeline.logs.extractors import computed_settings, named_settings, once_per_text
from sweepscope.pipeline.logs.facts import EVENT_FACTS, SETTING_FACTS, STEP_FACTS, Facts, conform
from sweepscope.pipeline.text.field_extraction import extract_each
from sweepscope.pipeline.text.quantities import NUMBER, number
from sweepscope.pipeline.text.timestamps import STAMPS, stamped, timestamp

_MARK = ":::MLLOG"
_KEY = r'"key": ?"([^"]+)"'
_NUMBER_OR_NAN = rf"({NUMBER}|-?Infinity)"
_TIME = rf'"train_step_tim(?:e|ing)(?: in s)?": ?{_NUMBER_OR_NAN}'
_LOSS = rf'"(?:reduced_train_loss|train_loss|loss)": ?{_NUMBER_OR_NAN}'
_COUNTERS = ("step", "samples_count", "epoch_num", "step_num")
_COUNTER = rf'"(?:{"|".join(_COUNTERS)})": ?{_NUMBER_OR_NAN}'
_COUNTER_NAME = rf'"({"|".join(_COUNTERS)})": ?[-\d]'
_BLOCK = r'"()(?:throughput|validation_\w+|val_loss)":'
_THROUGHPUT = r'"()throughput":'
_OF_BLOCK = len(_COUNTERS)
"""Added to the number of the counter of a whole block, until `finalize`."""


def _key() -> pl.Expr:
    return pl.col("text").str.extract(_KEY)


def _is_event() -> pl.Expr:
    return pl.col("text").str.contains(_MARK, literal=True)


_FIELDS = {
    "key": _KEY,
    "tracked": rf"()(?:{_TIME}|{_LOSS})",
    "block": _BLOCK,
    "throughput": _THROUGHPUT,
    "counter": rf"{_COUNTER}[,}}]",
    "counted": _COUNTER_NAME,
    # DeepCAM's events have the number of the epoch in front of it.
    "steps_done": r'"step_num": ?(\d+)',
    "loss": _LOSS,
    "value": rf'"value": ?{_NUMBER_OR_NAN}[,}}]',
    "seconds": _TIME,
    "rate": rf'"(?:lr|learning_rate)": ?{_NUMBER_OR_NAN}',
}


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of training events, with the counter as printed; one without a whole counter stays unparsed.

    Step lines of the console, too. Until `finalize`, `consumed_tokens` is the number of the counter in `_COUNTERS`.
    """
    key = pl.col("key")
    is_stats = key == "tracked_stats"
    is_tracked = is_stats & pl.col("tracked").is_not_null() & pl.col("block").is_null()
    is_block = is_stats & pl.col("tracked").is_null() & pl.col("throughput").is_not_null()
    is_wanted = is_tracked | is_block | (key == "train_loss")
    fields = extract_each(lines.filter(_is_event()), {**_FIELDS, **STAMPS}).filter(is_wanted)
    counters = {name: number for number, name in enumerate(_COUNTERS)}
    of_events = conform(
        fields.with_columns(
            ts=stamped(),
            step=number(pl.coalesce("steps_done", "counter")).round(),
            loss=number(pl.coalesce("loss", "value")),
            step_time_s=number(pl.col("seconds")),
            learning_rate=number(pl.col("rate")),
            consumed_tokens=pl.when(pl.col("steps_done").is_null())
            .then(pl.col("counted"))
            .otherwise(pl.lit("step_num"))
            .replace_strict(counters, default=None, return_dtype=pl.Int64)
            + pl.when(is_block).then(_OF_BLOCK).otherwise(0),
        ),
        STEP_FACTS,
    )
    return pl.concat([of_events, console.steps(lines.filter(~_is_event()))])


_NAMES = {
    "submission_benchmark": "model",
    "global_batch_size": "gbs",
    "gradient_accumulation_steps": "gas",
    "max_steps": "steps_planned",
    # BERT: its schedule ends there, as far as it does not reach its quality before.
    "opt_learning_rate_training_steps": "steps_planned",
    "max_sequence_length": "seq_len",
    "sequence_length": "seq_len",
    # Intel's submissions of GPT-3
    "num_layers": "num_layers",
    "num_heads": "num_heads",
    "hidden_size": "hidden_size",
    "ffn_hidden_size": "ffn_hidden_size",
    # Primus backends/megatron/mlperf/mlperf_pretrain_trainer.py
    "tensor_parallelism": "tp",
    "pipeline_parallelism": "pp",
    "context_parallelism": "cp",
    "expert_parallelism": "ep",
    "micro_batch_size": "mbs",
    # MLPerf HPC
    "number_of_ranks": "num_gpus",
    "number_of_nodes": "num_nodes",
    "accelerators_per_node": "gpus_per_node",
    "gradient_accumulation_frequency": "gas",
    # Of OpenFold
    "model_parameters_count": "params",
    "train_sequence_crop_size": "seq_len",
}
_SYSTEM = {
    "number_of_nodes": "num_nodes",
    "accelerators_per_node": "gpus_per_node",
    "accelerator_model_name": "accelerator",
    "nccl_version": "nccl_version",
    "cuda_version": "cuda_version",
    "framework": "framework_version",
}
_PAIR = r'"(\w+)": ?"([^"]*)"'

# NeMo's console output below the events: its YAML, and Lightning's line of each process.
_NEMO = (
    {"tensor_model_parallel_size": "tp", "pipeline_model_parallel_size": "pp", "context_parallel_size": "cp"}
    | {"expert_model_parallel_size": "ep", "micro_batch_size": "mbs", "encoder_seq_length": "seq_len"}
    | {"num_nodes": "num_nodes", "devices": "gpus_per_node"}
)
_NEMO_OPTION = r"^\s+(\w+): (\d+)\s*$"
_PROCESSES = r"GLOBAL_RANK: \d+, MEMBER: \d+/(\d+)|Starting with (\d+) processes"


@once_per_text
def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS of the values that the rules ask for, the system description, and what NeMo prints."""
    text = pl.col("text")
    value = text.str.extract(r'"value": ?"?([^",}]+)"?')
    logged = lines.filter(_is_event() & _key().is_in(list(_NAMES)) & (value != "null")).with_columns(
        name=_key().replace_strict(_NAMES, default=None, return_dtype=pl.String),
        value=value,
        setting_source=pl.lit("log_line"),
    )
    processes = pl.coalesce(text.str.extract(_PROCESSES, 1), text.str.extract(_PROCESSES, 2))
    described = lines.filter(text.str.contains(":::SYSJSON", literal=True))
    return pl.concat(
        [
            conform(logged, SETTING_FACTS),
            computed_settings(lines, {"num_gpus": processes}),
            named_settings(described, _PAIR, _SYSTEM, setting_source="config_file").filter(pl.col("value") != ""),
            named_settings(lines, _NEMO_OPTION, _NEMO, setting_source="argument_dump"),
            names.settings(lines),
            console.settings(lines).select(SETTING_FACTS.names()),
            environment.settings(lines),
        ]
    )


_PER_NODE = pl.coalesce(whole("gpus_per_node"), pl.when(pl.col("arg:board").is_not_null()).then(8))

COMBINED = (
    CombinedSetting(
        "num_gpus",
        pl.when(pl.col("num_gpus").is_null()).then(whole("num_nodes") * _PER_NODE),
        ("num_nodes",),
        setting_source="derived",
    ),
    *names.COMBINED,
    *console.COMBINED,
)


def events(lines: pl.DataFrame) -> pl.DataFrame:
    """EVENT_FACTS of run_start and run_stop. An aborted run did not reach its quality: the rules call it no result."""
    text, key = pl.col("text"), _key()
    status = text.str.extract(r'"status": ?"(\w+)"')
    kind = cases(
        (key == "run_start", "launch"),
        ((key == "run_stop") & (status == "success"), "training_end"),
        ((key == "run_stop") & (status == "aborted"), "aborted"),
    )
    found = lines.filter(_is_event()).with_columns(kind=kind, ts=timestamp(text)).drop_nulls("kind")
    return conform(found.with_columns(text=text.str.strip_chars()), EVENT_FACTS)


def finalize(facts: Facts) -> Facts:
    """Counters to optimizer steps.

    The unit is the largest that divides all numbers of a counter in the file: the tokens of a batch, its samples, else
    the counter is of steps. `samples_count` is of samples at least, `step_num` of steps. Where the batch is not known,
    neither is the step: such events become rejects.
    """
    steps = console.without_spare(facts.steps)
    if steps.is_empty():
        return facts
    sizes = [_latest(facts.settings, name) for name in ("gbs", "seq_len")]
    known = steps
    for size in sizes:
        known = known.join(size, on="source", how="left", maintain_order="left")
    known = _of_training(known.rename({"consumed_tokens": "kind"}))
    gbs, tokens = pl.col("gbs"), pl.col("gbs") * pl.col("seq_len")
    unit = cases(
        (
            pl.col("steps_planned").is_not_null() | (pl.col("kind") == _COUNTERS.index("step_num")),
            pl.lit(1, pl.Int64),
        ),
        (_divides(tokens), tokens),
        (_divides(gbs) | (pl.col("kind") == _COUNTERS.index("samples_count")), gbs),
        (gbs.is_not_null(), pl.lit(1, pl.Int64)),
    )
    counted = known.with_columns(unit=unit, counter=pl.col("step"))
    counted_steps = counted.with_columns(
        step=pl.col("counter") // pl.col("unit"),
        consumed_tokens=pl.col("counter") // pl.col("unit") * tokens,
        text=pl.coalesce(
            "text", pl.when(pl.col("unit").is_null()).then(pl.format("the counter {} without a batch size", "counter"))
        ),
    )
    return replace(facts, steps=counted_steps.select(steps.columns))


def _of_training(steps: pl.DataFrame) -> pl.DataFrame:
    """Steps without the summaries of blocks: those of times, and those of throughput where there are other steps.

    Nor those whose counter is not one of samples, as far as the batch tells: the epochs of an image model.
    """
    is_block = (pl.col("kind") >= _OF_BLOCK).fill_null(value=False)
    is_counted = (pl.col("step") % pl.col("gbs") == 0).fill_null(value=False)
    steps = steps.filter(~is_block | (is_block.all().over("source") & is_counted))
    one_of = pl.col("kind").n_unique().over("source") > 1
    is_constant = (pl.col("step").n_unique() == 1).over("source", "kind") & (pl.len() > 1).over("source", "kind")
    kept = steps.filter(~(one_of & is_constant & pl.col("loss").is_null()).fill_null(value=False))
    return kept.with_columns(pl.col("kind") % _OF_BLOCK)


def _latest(settings: pl.DataFrame, name: str) -> pl.DataFrame:
    """The latest value of a setting, per source."""
    found = settings.filter(pl.col("name") == name).sort("line_no", maintain_order=True)
    latest = found.group_by("source").agg(pl.col("value").last().cast(pl.Float64, strict=False).alias(name))
    return latest.with_columns(pl.col(name).cast(pl.Int64, strict=False)).filter(pl.col(name) > 0)


def _divides(unit: pl.Expr) -> pl.Expr:
    return (pl.col("step") % unit == 0).all().over("source", "kind") & unit.is_not_null()


DIALECT = Dialect(
    name="mlperf",
    module=__name__,
    signature_literals=(
        *(":::MLLOG", ":::SYSJSON", '"event_type": "POINT_IN_TIME"'),
        *('"event_type": "INTERVAL_START"', '"event_type": "INTERVAL_END"', '"key": "init_start"'),
        *('"key": "run_start"', '"key": "run_stop"', '"key": "submission_benchmark"'),
        *('"key": "submission_org"', '"key": "global_batch_size"', '"key": "eval_accuracy"'),
    ),
    steps=steps,
    settings=settings,
    events=events,
    combined=COMBINED,
    finalize=finalize,
    literals_by_function={
        "steps": ('"tracked_stats"', '"train_loss"', *console.STEP_LITERALS),
        "settings": (
            *(f'"{name}"' for name in _NAMES),
            ":::SYSJSON",
            "MEMBER: ",
            "Starting with ",
            *(f"  {name}: " for name in _NEMO),
            *names.LITERALS,
            *console.SETTING_LITERALS,
            *environment.LITERALS,
        ),
        "events": ('"run_start"', '"run_stop"'),
    },
)
