"""transformers' Trainer, and axolotl, which runs it.

Formats: transformers/trainer_callback.py ProgressCallback and PrinterCallback (the log dict, a Python literal without
the step), trainer.py _inner_training_loop (`***** Running training *****` and the lines below it) and log (`epoch`,
`num_input_tokens_seen`, in new versions `train_runtime` in every dict), trainer_utils.py speed_metrics (the final dict,
which every rank may print). Version 5 quotes the numbers. axolotl: utils/callbacks (memory), utils/bench.py.

The dict is read by `huggingface_dicts`. The step comes from the progress bar: see `huggingface_steps`. Only whole files
can say it, so a step fact is a bar (a counter and its total, no loss) or a dict (a loss, no step) until `settle`.
Configuration: see `huggingface_settings`.
"""

from __future__ import annotations

import polars as pl

from pipeline.parse import (
    deepspeed_settings,
    environment,
    huggingface_bars,
    huggingface_dicts,
    huggingface_histories,
    huggingface_settings,
    huggingface_steps,
    run_files,
)
from pipeline.parse.milestones import milestones
from pipeline.parse.protocol import (
    GAUGE_FACTS,
    STEP_FACTS,
    Dialect,
    conform,
)  # fmt: skip
from pipeline.parse.quantities import number
from pipeline.parse.timestamps import timestamp

_BAR = r"^\s*\d{1,3}%(?:\|[^|]*\|)? (?P<step>\d+)/(?P<steps_planned>\d+) \[(?P<clock>[\d:]*)[^\]]*(?:it/s|s/it)"
"""tqdm's bar without a description: the training's, or an evaluation's within it."""


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """Progress bars, log dicts and fragments of them, in the order printed; an open dict stays unparsed."""
    text = pl.col("text")
    placed = lines.with_row_index("place")
    bars = (
        placed.with_columns(bar=text.str.extract_groups(_BAR))
        .unnest("bar")
        .drop_nulls("step")
        .with_columns(
            pl.col("step", "steps_planned").cast(pl.Int64, strict=False),
            step_time_s=huggingface_bars.elapsed_s(pl.col("clock")),  # so far: `settle` takes the differences
            part=pl.lit(0),
        )
    )
    dicts = huggingface_dicts.read(placed.filter(text.str.contains(huggingface_dicts.LOOKS_LIKE)))
    ts = timestamp(pl.concat_str("prefix", "text", ignore_nulls=True))
    said = pl.concat([dicts, huggingface_dicts.fragments(placed)], how="diagonal").with_columns(part=pl.lit(1), ts=ts)
    # LLaMA-Factory's callback logs each dict once more, rounded.
    both = pl.concat([bars, said], how="diagonal").sort("place", "part")
    return conform(both, STEP_FACTS)


_END = (
    rf"{huggingface_dicts.FINAL}|^(?:.*>> +)?\s*train_runtime += +\d+:\d\d:\d\d|\] Training [Cc]ompleted!"
    r"|^\s*Training completed\. Do not forget to share your model"
)


def events(lines: pl.DataFrame) -> pl.DataFrame:
    """Where a training begins, and the final dict or table with which it ends."""
    return milestones(lines, launch=r"\*{5} Running training \*{5}", training_end=_END)


_MEMORY = r"(?:GPU|cuda) memory usage while training: ([\d.]+)GB(?: \(\+([\d.]+)GB cache)?"


def gauges(lines: pl.DataFrame) -> pl.DataFrame:
    """What axolotl says is reserved after the first steps; GB means GiB.

    It prints what is allocated, and the allocator's cache on top. The former is no peak: activations are gone by then.
    """
    said = lines.select(
        "source",
        "line_no",
        allocated=number(pl.col("text").str.extract(_MEMORY, 1)),
        cache=number(pl.col("text").str.extract(_MEMORY, 2)),
    ).drop_nulls("allocated")
    reserved = ((pl.col("allocated") + pl.col("cache")) * 2**30).round()
    found = said.select("source", "line_no", name=pl.lit("mem_peak_reserved_bytes"), value=reserved)
    return conform(found.drop_nulls("value"), GAUGE_FACTS)


_SIGNATURE = (
    "{'loss': ", '{"loss": ', ", 'epoch': ", "'train_samples_per_second': ", "Instantaneous batch size per device",
    "Total optimization steps", "Training/evaluation parameters", "[INFO:swift]", *deepspeed_settings.SIGNS,
)  # fmt: skip
_ANCHORS = (
    "'loss': ", '"loss": ', "it/s", "s/it", "Running training", "train_runtime", "Training Completed",
    "Training completed", "memory usage while training",
    *huggingface_dicts.FRAGMENT_ANCHORS, *huggingface_settings.ANCHORS, *environment.ANCHORS,
)  # fmt: skip

_NARROWED = {
    "steps": ("'loss': ", '"loss": ', "it/s", "s/it", *huggingface_dicts.FRAGMENT_ANCHORS),
    "settings": (*huggingface_settings.ANCHORS, *environment.ANCHORS),
    "gauges": ("memory usage while training",),
    "events": ("Running training", "train_runtime", "Training Completed", "Training completed"),
}

TRAINER = Dialect(
    name="hf-trainer",
    version=10,
    signature=_SIGNATURE,
    anchors=_ANCHORS,
    steps=steps,
    settings=huggingface_settings.settings,
    gauges=gauges,
    events=events,
    combined=huggingface_settings.COMBINED,
    settle=huggingface_steps.settle,
    sidecars=run_files.HUGGINGFACE,
    histories=huggingface_histories.HISTORIES,
    narrowed=_NARROWED,
)
AXOLOTL = Dialect(
    name="axolotl",
    version=10,
    signature=(*_SIGNATURE, "[axolotl.", "axolotl.cli", "axolotl.train"),
    anchors=_ANCHORS,
    steps=steps,
    settings=huggingface_settings.settings,
    gauges=gauges,
    events=events,
    combined=huggingface_settings.COMBINED,
    settle=huggingface_steps.settle,
    sidecars=run_files.AXOLOTL,
    narrowed=_NARROWED,
)
