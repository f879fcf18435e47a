"""transformers' Trainer, and axolotl, which runs it.

Formats: transformers/trainer_callback.py ProgressCallback and PrinterCallback (the log dict, a Python literal without
the step), trainer.py _inner_training_loop (`***** Running training *****` and the lines below it) and log (`epoch`,
`num_input_tokens_seen`, in new versions `train_runtime` in every dict), trainer_utils.py speed_metrics (the final dict,
which every rank may print). Version 5 quotes the numbers. axolotl: utils/callbacks (memory), utils/bench.py.

`dicts` reads the dict, `notebook_tables` the table of a notebook. The step comes from the progress bar (`steps`): it
follows from the whole file only, so a step fact is a bar (a counter and its total, no loss) or a dict (a loss, no
step) until `finalize`. Configuration: see `settings`.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.dialects import environment
from sweepscope.pipeline.logs.dialects.deepspeed import settings as deepspeed_settings
from sweepscope.pipeline.logs.dialects.huggingface import bars, dicts, histories, notebook_tables, settings
from sweepscope.pipeline.logs.dialects.huggingface import steps as huggingface_steps
from sweepscope.pipeline.logs.extractors import computed_peaks, milestones
from sweepscope.pipeline.logs.facts import STEP_FACTS, conform
from sweepscope.pipeline.logs.sidecars import run_files
from sweepscope.pipeline.text.field_extraction import extract_each
from sweepscope.pipeline.text.quantities import number
from sweepscope.pipeline.text.timestamps import timestamp

_BAR = r"^\s*(?:Train: +)?\d{{1,3}}%(?:\|[^|]*\|)? {step}/{steps_planned} \[{clock}[^\]]*(?:it/s|s/it)"
"""tqdm's bar without a description, or with ms-swift's: the training's, or an evaluation's within it."""
_PARTS = {"step": r"\d+", "steps_planned": r"\d+", "clock": r"[\d:]*"}
_BAR_FIELDS = {name: _BAR.format_map(_PARTS | {name: f"({part})"}) for name, part in _PARTS.items()}


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of progress bars, log dicts and their fragments, in the order printed; an open dict is unparsed."""
    text = pl.col("text")
    indexed = lines.with_row_index("row")
    bar_rows = (
        extract_each(indexed, _BAR_FIELDS)
        .drop_nulls("step")
        .with_columns(
            pl.col("step", "steps_planned").cast(pl.Int64, strict=False),
            step_time_s=bars.elapsed_s(pl.col("clock")),  # so far: `finalize` takes the differences
            part=pl.lit(0),
        )
    )
    dict_rows = dicts.read(indexed.filter(text.str.contains(dicts.LOOKS_LIKE)))
    ts = timestamp(pl.concat_str("prefix", "text", ignore_nulls=True))
    cut = pl.concat([dicts.fragments(indexed), notebook_tables.rows(indexed)])
    dict_facts = pl.concat([dict_rows, cut], how="diagonal").with_columns(part=pl.lit(1), ts=ts)
    # LLaMA-Factory's callback logs each dict once more, rounded.
    both = pl.concat([bar_rows, dict_facts], how="diagonal").sort("row", "part")
    return conform(both, STEP_FACTS)


# Scripts like transformers' examples/pytorch/language-modeling/run_clm.py dump their arguments as they start.
_BEGIN = r"\*{5} Running training \*{5}|\bTraining/evaluation parameters \w*TrainingArguments\("
_END = (
    rf"{dicts.FINAL}|^(?:.*>> +)?\s*train_runtime += +\d+:\d\d:\d\d|\] Training [Cc]ompleted!"
    r"|^\s*Training completed\. Do not forget to share your model"
    # What a notebook's cell returns, and what unsloth's notebooks print behind their training.
    r"|^\s*TrainOutput\(global_step=|^\s*[\d.]+ seconds used for training\."
)


def events(lines: pl.DataFrame) -> pl.DataFrame:
    """EVENT_FACTS where a script or its training begins, and the final dict or table with which it ends."""
    marks = milestones(launch=_BEGIN, training_end=_END)(lines)
    return pl.concat([marks, notebook_tables.events(lines)])


_MEMORY = r"(?:GPU|cuda) memory usage while training: ([\d.]+)GB(?: \(\+([\d.]+)GB cache)?"
_PEAK = r"^[\s\"]*Peak reserved memory = ([\d.]+) GB\."


def peaks(lines: pl.DataFrame) -> pl.DataFrame:
    """PEAK_FACTS: reserved memory that axolotl prints after the first steps, unsloth at the end; GB is GiB.

    axolotl prints what is allocated, and the allocator's cache on top. The former is no peak: activations are gone.
    """
    text = pl.col("text")
    allocated, cache = (number(text.str.extract(_MEMORY, group)) for group in (1, 2))
    reserved = pl.coalesce(allocated + cache, number(text.str.extract(_PEAK)))
    return computed_peaks(lines, {"mem_peak_reserved_bytes": (reserved * 2**30).round()})


_SIGNATURE = (
    *("{'loss': ", '{"loss": ', ", 'epoch': ", "'train_samples_per_second': "),
    # Scripts with a loop of their own print the first two, too; DeepSpeed's banner is longer than either.
    *("Instantaneous batch size per device", "Total optimization steps"),
    *("  Number of trainable parameters = ", "|trainer.py:"),
    *("Training/evaluation parameters", "[INFO:swift]", "finetuning | Num GPUs"),
    # Of warnings and tracebacks, in logs that end before the first step.
    *("transformers/training_args.py", 'transformers/trainer.py", line ', "trl/scripts/"),
    *notebook_tables.SIGNATURES,
    *deepspeed_settings.SIGNATURES,
)
_LITERALS = {
    "steps": ("'loss': ", '"loss": ', "it/s", "s/it", *dicts.FRAGMENT_LITERALS, *notebook_tables.LITERALS),
    "settings": (*settings.LITERALS, *environment.LITERALS),
    "peaks": ("memory usage while training", "Peak reserved memory = "),
    "events": (
        *("Running training", "Training/evaluation parameters", "train_runtime", "Training Completed"),
        *("Training completed", "TrainOutput(global_step=", "seconds used for training."),
        *notebook_tables.BAR_LITERALS,
    ),
}

TRAINER = Dialect(
    name="hf-trainer",
    module=__name__,
    signature_literals=_SIGNATURE,
    steps=steps,
    settings=settings.settings,
    peaks=peaks,
    events=events,
    combined=settings.COMBINED,
    finalize=huggingface_steps.finalize,
    sidecars=run_files.HUGGINGFACE,
    histories=histories.HISTORIES,
    literals_by_function=_LITERALS,
)
AXOLOTL = Dialect(
    name="axolotl",
    module=__name__,
    signature_literals=(*_SIGNATURE, "[axolotl.", "axolotl.cli", "axolotl.train"),
    steps=steps,
    settings=settings.settings,
    peaks=peaks,
    events=events,
    combined=settings.COMBINED,
    finalize=huggingface_steps.finalize,
    sidecars=run_files.AXOLOTL,
    literals_by_function=_LITERALS,
)
