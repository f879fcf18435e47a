"""The log dict of transformers' Trainer, on one line or wrapped over several.

Formats: see `huggingface`. A terminal breaks a dict at its width, within a number too; rich and textwrap between words,
with blanks before what goes on and rich's `file.py:123` at the right of the first line; pprint sorts the names and
breaks behind every value. A line cannot know what goes on behind it, so a fact may be a fragment until `rejoined`:
neither step nor loss, and the line as text.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.extractors import extract_numbers, milestones
from sweepscope.pipeline.logs.facts import EVENT_FACTS, STEP_FACTS, Facts, conform
from sweepscope.pipeline.text.quantities import NUMBER, number

_Q = "['\"]"  # version 2 printed JSON
_LOSS_NAME = "loss(?:/policy_avg)?"  # the latter is TRL's, with PPO
_OPENS = rf"(?:^|[^:\s]\s*|[^'\":]:\s*)\{{{_Q}"
"""The brace of a dict that is no value of another one, as in `"train": {"loss": 2.3}` of somebody's own records."""
LOOKS_LIKE = rf"{_OPENS}(?:[^{{}}]*, {_Q})?{_LOSS_NAME}{_Q}: "
QUOTED_NUMBER = rf"['\"]?{NUMBER}['\"]?"
_LOSS = rf"\b{_LOSS_NAME}{_Q}: {QUOTED_NUMBER}"
# What a Trainer adds to the loss; callbacks leave the epoch out.
_BESIDE = rf"\b(?:epoch|learning_rate|grad_norm|step){_Q}: {QUOTED_NUMBER}"
_COMPLETE = rf"{_OPENS}[^{{}}]*(?:{_LOSS},[^{{}}]*{_BESIDE}|{_BESIDE},[^{{}}]*{_LOSS})(?:,[^{{}}]*)?(\}})"
FINAL = rf"\{{{_Q}(?:[^{{}}]*{_Q})?train_runtime{_Q}: [^{{}}]*{_Q}train_samples_per_second{_Q}: [^{{}}]*\}}"

_OPEN = r"\{['\"][^{}]*$"
_GOES_ON = r"^[^{]*(?:(?:['\"]: |, ['\"])[^{]*|\})\s*$"
FRAGMENT_LITERALS = ("': ", '": ', ", '", ', "', "}", "{'", '{"')
MOST_LINES = 24
"""Of one dict: pprint gives each of its values a line."""


def _field(label: str) -> str:
    return rf"(?i){_Q}{label}{_Q}: '?({NUMBER})'?[,}}]"


_TOKENS = "(?:num_input_tokens_seen|num_tokens|tokens/total)"  # Trainer's, TRL's, axolotl's
_RUNTIME = "train_runtime"
_TOTALS = {"seconds": _RUNTIME, "tokens": _TOKENS}

# Versions 2 and 3 (trainer.py log), and ms-swift's `'global_step/max_steps': '5/100'` (trainers/callback.py), which it
# prints as JSON, too.
_COUNTERS = {
    "own_step": rf"{_Q}(?:(?:global_)?step|num_updates|iteration){_Q}: (\d+)[,}}]",
    "shared_step": rf"{_Q}global_step/max_steps{_Q}: {_Q}(\d+)/\d+{_Q}",
    "own_total": rf"{_Q}global_step/max_steps{_Q}: {_Q}\d+/(\d+){_Q}",
}
_NUMBERS = {
    "loss": _field(_LOSS_NAME),
    "grad_norm": _field("grad_norm"),
    "learning_rate": _field("learning_rate"),
    "consumed_tokens": _field(_TOKENS),
    "tokens_per_s_per_gpu": _field("tokens(?:_per_second_per_gpu|/train_per_sec_per_gpu|_per_gpu_per_sec)"),
    "mem_allocated_bytes": _field(r"memory/max_(?:mem_)?allocated ?\(gib\)"),
    "mem_reserved_bytes": _field(r"(?:memory/device_(?:mem_)?reserved ?|memory)\(gib\)"),  # ms-swift's is the peak
    "step_time_s": _field(_RUNTIME),  # since the beginning: `finalize` takes the differences
    "own_time_s": _field("step_time"),  # TRL's, with GRPO
}
_MEMORY_FIELDS = ("mem_allocated_bytes", "mem_reserved_bytes")


def read(lines: pl.DataFrame) -> pl.DataFrame:
    """`lines` with what their dicts say; `loss` is NULL where a dict does not reach its brace."""
    is_complete = pl.col("complete").is_not_null()
    return extract_numbers(lines, _NUMBERS, {**_COUNTERS, "complete": _COMPLETE}).with_columns(
        pl.col("consumed_tokens").cast(pl.Int64, strict=False),
        *(_gibibytes(pl.col(name)) for name in _MEMORY_FIELDS),
        # A step's own time is negative until `finalize`, which so distinguishes it from a running total.
        step_time_s=pl.coalesce("step_time_s", -pl.col("own_time_s")),
        loss=pl.when(is_complete).then("loss"),
        step=pl.when(is_complete).then(pl.coalesce("own_step", "shared_step").cast(pl.Int64, strict=False)),
        steps_planned=pl.when(is_complete).then(pl.col("own_total").cast(pl.Int64, strict=False)),
    )


def epoch_text(text: pl.Expr) -> pl.Expr:
    """The epoch of a dict as it is printed, perhaps in quotes; NULL of other text."""
    return text.str.extract(rf"{_Q}epoch{_Q}: ({QUOTED_NUMBER})[,}}]")


def shown_epoch() -> pl.Expr:
    """The epoch of rows that are dicts (`has_value`): bars, which are many, are not searched."""
    text = pl.when("has_value").then("text")
    return epoch_text(text).str.strip_chars("'\"").cast(pl.Float64, strict=False)


def precision() -> dict[str, pl.Expr]:
    """By how much the running totals of a dict may be off, from its text: `seconds_off`, `tokens_off`; and its `epoch`.

    Version 5 prints four significant digits and quotes them. A count of tokens is a whole number.
    """
    text = pl.col("text")
    digits = {name: text.str.extract(rf"{_Q}{label}{_Q}: '([\d.e+-]+)'[,}}]") for name, label in _TOTALS.items()}
    exponents = {name: number(value).log10().floor().cast(pl.Int64, strict=False) - 3 for name, value in digits.items()}
    return {
        "seconds_off": 0.5 * pl.lit(10.0).pow(exponents["seconds"]).fill_null(0.0),
        "tokens_off": pl.when(exponents["tokens"] > 0).then(0.5 * pl.lit(10.0).pow(exponents["tokens"])).otherwise(0.0),
        "epoch": epoch_text(text),
    }


def _gibibytes(value: pl.Expr) -> pl.Expr:
    return (value * 2**30).round().cast(pl.Int64, strict=False)


def fragments(lines: pl.DataFrame) -> pl.DataFrame:
    """Those of `lines` that may be a part of a dict whose loss is on another line."""
    text = pl.col("text")
    return lines.filter(~text.str.contains(LOOKS_LIKE) & text.str.contains(f"{_OPEN}|{_GOES_ON}"))


def rejoined(facts: Facts) -> Facts:
    """`facts` with one row per wrapped dict, at its first line, and without the other fragments."""
    rows = facts.steps.sort("source", "line_no", maintain_order=True).with_row_index("row")
    is_bare = pl.col("step").is_null() & pl.col("loss").is_null()
    parts = _numbered(rows.filter(is_bare & pl.col("text").is_not_null()))
    if parts.is_empty():
        return facts
    is_cut = ~pl.col("text").str.contains(LOOKS_LIKE)
    whole = read(_joined(parts))
    joined = whole.filter(pl.col("loss").is_not_null())
    used = parts.join(joined.select("group"), on="group", how="semi")["row"]
    stray = parts.filter(is_cut)["row"]
    kept = rows.filter(~pl.col("row").is_in(pl.concat([used, stray]).unique().implode()))
    steps = pl.concat([kept, joined.select(kept.columns)]).sort("row")
    ends = milestones(training_end=FINAL)(whole.with_columns(prefix=pl.lit(None, pl.String)))
    ends = conform(ends.with_columns(pl.col("text").str.slice(0, 200)), EVENT_FACTS)
    events = pl.concat([facts.events, ends]).sort("source", "line_no", maintain_order=True)
    return Facts(conform(steps, STEP_FACTS), facts.settings, facts.peaks, events)


def _numbered(parts: pl.DataFrame) -> pl.DataFrame:
    """Fragments with the `group` they form: one that opens a dict, and those right behind it up to its brace."""
    text = pl.col("text")
    is_behind = (
        (pl.col("line_no").diff() == 1)
        & (pl.col("source").diff() == 0)
        & pl.col("rank").eq_missing(pl.col("rank").shift())
    )
    closes = text.str.contains("}", literal=True)
    is_new = text.str.contains(_OPEN) | ~is_behind.fill_null(value=False) | closes.shift().fill_null(value=False)
    return parts.with_columns(group=is_new.cum_sum())


def _joined(parts: pl.DataFrame) -> pl.DataFrame:
    """One row per group that is a whole dict, as its first row with the text of all."""
    # rich names the caller at the right of the first line.
    text = pl.col("text").str.replace(r" {2,}[\w.]+\.py:\d+ *$", "").str.strip_chars_end()
    rows = parts.with_columns(text=text)
    # Between words a blank was broken at; a terminal breaks anywhere and leaves none out.
    is_word = pl.col("text").str.contains(r"[,:{]$").shift().over("group").fill_null(value=False)
    bare = (
        pl.when(pl.int_range(pl.len()).over("group") == 0)
        .then("text")
        .otherwise(pl.col("text").str.strip_chars_start())
    )
    rows = rows.with_columns(text=pl.when(is_word).then(pl.lit(" ") + bare).otherwise(bare))
    others = [name for name in rows.columns if name not in ("group", "text")]
    groups = rows.group_by("group", maintain_order=True).agg(
        pl.col(others).first(), pl.col("text").str.join(""), length=pl.len()
    )
    is_whole = pl.col("text").str.contains(r"\{[^{}]*\}")
    return groups.filter(is_whole & pl.col("length").is_between(2, MOST_LINES)).drop("length")
