"""A custom script that prints nothing but a progress bar with its loss: `tqdm(loader)` and `set_postfix(loss=..)`.

Or without a loss, below a caption that names the training: `tqdm(loader, desc="Training")`, and `Iteration` of the
loops in transformers' first examples (examples/run_glue.py: `tqdm(train_dataloader, desc="Iteration")`).

Or nothing at all before it fails under accelerate's launcher, which says what it started with (commands/launch.py: `The
following values were not passed to `accelerate launch``, and the failed command as a list of arguments). Options under
the usual names are settings.

tqdm's format (std.py format_meter): `Epoch 1:  30%|###  | 300/1000 [01:00<02:20,  5.00it/s, loss=2.31]`. Such bars are
drawn by others, too (Lightning, Colossal-AI's examples), so this dialect reads only files that no other one knows.
A bar without a loss or such a caption may count anything: downloads, tokens, shards. It is no sign of a training, and
no step. A captioned one counts only where no bar of its file has a loss.

A bar counts the batches of its epoch; steps go on over the bars of a file, as long as each was full before the next one
began. Of bars with different lengths the one that is drawn most is the training's; bars named after an evaluation are
none. Where the ranks of a training draw the same bar into one file, they are a step or two apart, since they wait for
each other: the first of them that reaches a count tells its step. Bars that are further apart are of trainings that
cannot be separated: there are no steps. The time of a step is that between redraws of one bar (`huggingface.bars`).

`for batch in tqdm(loader)` counts a batch when the next one is asked for: the loss that is set within the loop is drawn
behind the count of the batch before, at first behind 0. Then the first drawing of a count holds its loss; where
`update` comes before `set_postfix`, nothing is drawn at 0, and it is the last.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from sweepscope.pipeline.logs import synonyms
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.dialects import environment
from sweepscope.pipeline.logs.dialects.huggingface.bars import elapsed_s, steps_of
from sweepscope.pipeline.logs.extractors import as_commands, is_drawn_again, matched_settings
from sweepscope.pipeline.logs.facts import EVENT_FACTS, SETTING_FACTS, STEP_BASIS, STEP_FACTS, Facts, conform
from sweepscope.pipeline.logs.sidecars import exit_code, sacred_files, wandb_files
from sweepscope.pipeline.logs.trackers.histories import HISTORIES
from sweepscope.pipeline.text.quantities import HUMAN, NUMBER, human, number
from sweepscope.pipeline.text.timestamps import timestamp

_BAR = (
    r"^(?P<name>[^|\r]*?) *\d{1,3}%\|[^|]*\| *(?P<done>\d+)/(?P<total>\d+) \[(?P<clock>[\d:]+)<[^\]]*"
    rf"(?:it/s|s/it), (?P<postfix>(?:train_)?loss=(?P<shown_loss>{NUMBER})(?:, [^\]]*)?)\]"
)
_CAPTIONED = (
    r"^(?P<name>(?i:(?:pre-?)?training(?: (?:progress|steps?|batch(?:es)?|loop|iterations?))?"
    r"(?: epoch)?(?: \d+(?:/\d+)?)?|iteration)): *\d{1,3}%\|[^|]*\| *(?P<done>\d+)/(?P<total>\d+) "
    r"\[(?P<clock>[\d:]+)<[^\],]*,[^\],]*\]"  # what stands behind the rate may be a loss in the script's own words
)
_OF_WHOLE = r"^(?i:(?:pre-?)?training (?:progress|steps?)): *\d{1,3}%\|[^|]*\| *\d+/([1-9]\d*) \["
"""A bar whose caption says that it counts the whole training rather than an epoch of it: its total is the plan."""
_BESIDE = {
    "tokens_per_s": r"(?:^|, )(?:train_)?(?:tok(?:en)?s?(?:/|_per_|_)s(?:ec(?:ond)?)?|tps)=",
    "learning_rate": r"(?:^|, )(?:lr|learning_rate)=",
    "grad_norm": r"(?:^|, )(?:grad_?norm|g_?norm|gnorm)=",
}
"""Beside the loss, under the usual names; a number may be shortened: `tok/s=13.8K`."""
_EVALUATION = r"(?i)val|eval|test"
_NEAR = 2
"""Batches that ranks are apart at most."""

_FULL = 0.9
"""Of a bar: fast ones are redrawn every tenth of a second only, and not always at their end."""


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of redraws with a loss, as facts that `finalize` makes steps of: the total is that of the bar."""
    found = lines.with_columns(bar=pl.col("text").str.extract_groups(_BAR)).unnest("bar").drop_nulls("done")
    captioned = lines.with_columns(bar=pl.col("text").str.extract_groups(_CAPTIONED)).unnest("bar").drop_nulls("done")
    captioned = captioned.join(found, on=["source", "line_no"], how="anti", maintain_order="left")
    found = found.filter(~pl.col("name").str.contains(_EVALUATION))
    found = pl.concat([found, captioned], how="diagonal")
    whole = found.with_columns(
        step=pl.col("done").cast(pl.Int64, strict=False),
        steps_planned=pl.col("total").cast(pl.Int64, strict=False),
        loss=number(pl.col("shown_loss")),
        **{name: human(_shown(begin)) for name, begin in _BESIDE.items()},
        step_time_s=elapsed_s(pl.col("clock")),  # so far: `finalize` takes the differences
        ts=timestamp(pl.concat_str("prefix", "text", ignore_nulls=True)),
    )
    return conform(whole.filter(pl.col("step") <= pl.col("steps_planned")), STEP_FACTS)


def _shown(begin: str) -> pl.Expr:
    return pl.col("postfix").str.extract(rf"{begin}((?i:{HUMAN}))").str.replace("k", "K", literal=True)


def finalize(facts: Facts) -> Facts:
    """Steps counted over the bars of each file, with their time."""
    drawn = facts.steps.sort("source", "line_no", maintain_order=True)
    drawn = drawn.filter(pl.col("loss").is_not_null() | pl.col("loss").is_null().all().over("source"))
    most = drawn.group_by("source", "steps_planned", maintain_order=True).agg(n=pl.len())
    main = most.sort("n", descending=True, maintain_order=True).unique("source", keep="first", maintain_order=True)
    rows = drawn.join(main.select("source", "steps_planned"), on=["source", "steps_planned"], how="semi")
    rows = _first_of_ranks(_one_per_count(rows))
    before = pl.col("step").shift().over("source")
    is_next = (pl.col("step") < before).fill_null(value=False)
    rows = rows.with_columns(launch=is_next.cast(pl.Int64).cum_sum().over("source"), is_next=is_next, before=before)
    # A new bar begins at its beginning.
    is_mixed = pl.col("is_next") & (pl.col("step") > 1 + (1 - _FULL) * pl.col("steps_planned"))
    rows = rows.filter(~is_mixed.any().over("source"))
    is_full = pl.col("is_next") & (pl.col("before") >= _FULL * pl.col("steps_planned"))
    # A bar that broke off is followed by that of another attempt, which counts from 0.
    broken = (pl.col("is_next") & ~is_full).cast(pl.Int64).cum_sum().over("source")
    rows = rows.with_columns(try_=broken, full=is_full)
    offset = pl.col("full").cast(pl.Int64).cum_sum().over("source", "try_") * pl.col("steps_planned")
    times = steps_of(rows).select("source", "launch", "step", "step_time_s")
    timed = rows.drop("step_time_s").join(times, on=["source", "launch", "step"], how="left", maintain_order="left")
    counted = timed.with_columns(
        step=pl.col("step") + offset, steps_planned=pl.lit(None, pl.Int64), step_basis=pl.lit("batch", STEP_BASIS)
    )
    return replace(facts, steps=conform(counted, STEP_FACTS), events=pl.concat([facts.events, _ends(rows)]))


def _ends(rows: pl.DataFrame) -> pl.DataFrame:
    """EVENT_FACTS of files whose last bar is full: nothing of the training was left to draw."""
    last = rows.group_by("source", maintain_order=True).last().filter(pl.col("step") == pl.col("steps_planned"))
    text = pl.format("the progress bar is full: {}/{}", "step", "steps_planned")
    return conform(last.with_columns(kind=pl.lit("finished"), text=text, host=pl.lit(None, pl.String)), EVENT_FACTS)


def _one_per_count(rows: pl.DataFrame) -> pl.DataFrame:
    """Of consecutive redraws with the same count, the one with the loss of its batch; none of the count 0."""
    step = pl.col("step")
    is_first, is_last = (step.ne_missing(step.shift(by).over("source")) for by in (1, -1))
    sets_within = (step == 0).any().over("source")
    rows = rows.filter(~is_drawn_again(["source"]))
    return rows.filter(pl.when(sets_within).then(is_first).otherwise(is_last)).filter(step > 0)


def _first_of_ranks(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with which a bar is further than ever, over the bars of a file, where many fall back a step or two."""
    rise = pl.col("step").diff().over("source").fill_null(0)
    is_near = rise.is_between(-_NEAR, -1) & (pl.col("step") > 1)
    is_of_ranks = is_near.sum().over("source") > _NEAR
    # From the end of a bar to the begin of the next one, and back to a rank that is not there yet.
    bars = (rise < -pl.col("steps_planned") / 2).cast(pl.Int64) - (rise > pl.col("steps_planned") / 2).cast(pl.Int64)
    drawn = rows.with_columns(of_ranks=is_of_ranks, bar=bars).with_columns(
        drawn=pl.col("step") + pl.col("bar").cum_sum().over("source") * pl.col("steps_planned")
    )
    highest = pl.col("drawn").cum_max().shift().over("source")
    is_ahead = (pl.col("drawn") > highest).fill_null(value=True)
    is_apart = pl.col("drawn") < highest - _NEAR
    is_usable = pl.col("of_ranks") & ~is_apart.fill_null(value=False).any().over("source")
    return drawn.filter(~is_usable | is_ahead).select(rows.columns)


_LAUNCHED = "The following values were not passed to `accelerate launch`"
_OPTION = r"--([A-Za-z][\w-]*)[= ](\d+)(?:\s|$)"


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS of a failed command's options under the usual names, the number of processes, and the machine."""
    failed = as_commands(lines.filter(pl.col("text").str.contains("CalledProcessError: Command '[", literal=True)))
    options = failed.with_columns(option=pl.col("text").str.extract_all(_OPTION)).explode("option").drop_nulls("option")
    named = options.with_columns(
        name=pl.col("option").str.extract(_OPTION, 1).map_elements(_column_of, return_dtype=pl.String),
        value=pl.col("option").str.extract(_OPTION, 2),
        setting_source=pl.lit("command_line"),
    )
    started = matched_settings(
        lines,
        [("num_gpus", r"^\s*`--num_processes` was set to a value of `([1-9]\d*)`"), ("steps_planned", _OF_WHOLE)],
    )
    return pl.concat([conform(named.drop_nulls("name"), SETTING_FACTS), started, environment.settings(lines)])


def _column_of(option: str) -> str | None:
    column, doubt = synonyms.setting_of(synonyms.words(option)) or (None, 0)
    return None if doubt else column


_SIGNATURES = tuple(f"{unit}, {name}=" for unit in ("it/s", "s/it") for name in ("loss", "train_loss"))
_COUNTED = ("progress", "step", "steps", "loop", "batch", "batches", "iteration", "iterations")
_CAPTIONS = (
    *("raining: ", "raining Epoch ", "raining epoch ", "teration: "),
    *(f"raining {what}: " for word in _COUNTED for what in (word, word.title())),
)
_BEGUN = tuple(f"{caption}  0%|" for caption in _CAPTIONS if caption.endswith(": "))
_BEGUN += tuple(f"raining {epoch} {first}:   0%|" for epoch in ("Epoch", "epoch") for first in ("0", "1"))
"""What tqdm draws first, and no text about a training holds."""

DIALECT = Dialect(
    name="other",
    module=__name__,
    signature_literals=(*_SIGNATURES, *_BEGUN, _LAUNCHED),
    steps=steps,
    settings=settings,
    sidecars=(*wandb_files.WANDB, *sacred_files.SACRED, *exit_code.EXIT_CODE),
    histories=HISTORIES,
    finalize=finalize,
    literals_by_function={
        "steps": (*_SIGNATURES, *_CAPTIONS),
        "settings": (
            *("CalledProcessError: Command '[", "`--num_processes` was set", *environment.LITERALS),
            *(begun for begun in _BEGUN if "rogress" in begun or "tep" in begun),
        ),
    },
    is_last_resort=True,
)
