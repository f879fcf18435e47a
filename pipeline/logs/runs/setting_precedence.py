"""Which value of a setting counts when several sources state one, and where they disagree."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from sweepscope.pipeline.logs.facts import NOTHING
from sweepscope.pipeline.reference.accelerators import canonical_accelerators
from sweepscope.pipeline.reference.model_names import canonical_models
from sweepscope.pipeline.reference.vocabulary import canonical_precision, canonical_recompute, map_words
from sweepscope.schemas.core.column import Column, DataType

# What the process printed about itself is nearer to the truth than a file beside it, and what follows from both than
# what somebody states of a whole sweep, or a name: it was given before anything ran.
PRECEDENCE = (
    "stated_override",
    "log_line",
    "argument_dump",
    "config_file",
    "command_line",
    "named_config",
    "launch_script",
    "dialect_file",
    "published_table",
    "result_table",
    "derived",
    "stated",
    "folder_name",
)

INPUT_PREFIX = "arg:"
"""Beginning of the names of values that only feed other settings (`dialect.CombinedSetting`)."""

NOT_EVIDENCE = ("derived", "assumed")
"""Sources that cannot contradict another one, because they observe nothing."""


def best_first(settings: pl.DataFrame) -> pl.DataFrame:
    """The latest value of each run, name and source (overrides print later), the best source first."""
    order = {word: rank for rank, word in enumerate(PRECEDENCE)}
    latest = settings.sort("line_no", nulls_last=False, maintain_order=True).unique(
        ["run_id", "name", "setting_source"], keep="last", maintain_order=True
    )
    rank = pl.col("setting_source").replace_strict(order, default=len(order), return_dtype=pl.Int64)
    return (
        latest.with_columns(precedence=rank)
        .sort("run_id", "name", "precedence", maintain_order=True)
        .drop("precedence")
    )


def choose(settings: pl.DataFrame) -> pl.DataFrame:
    """The latest value per run, name and source, with `is_used` true for the one per run and name that counts.

    A source whose latest value is None or null is left out.

    Args:
        settings: `run_id`, `name`, `value`, `setting_source`, `source_path`, `line_no`.
    """
    stated = best_first(settings).filter(~pl.col("value").is_in(NOTHING))
    # Rows of one run and name are adjacent: comparing neighbours costs a tenth of grouping by two texts.
    is_as_before = pl.all_horizontal(pl.col(key).eq_missing(pl.col(key).shift(1)) for key in ("run_id", "name"))
    return stated.with_columns(is_used=~is_as_before)


def conflicts(chosen: pl.DataFrame) -> pl.DataFrame:
    """Events (`run_id`, `source_path`, `line_no`, `kind`, `text`) where a source contradicts the value that counts."""
    settings = chosen.filter(~pl.col("name").str.starts_with(INPUT_PREFIX))
    observed = settings.filter(~pl.col("setting_source").is_in(NOT_EVIDENCE))
    used = settings.filter("is_used").select(
        "run_id", "name", pl.col("value").alias("used"), pl.col("setting_source").alias("used_source")
    )
    other = observed.filter(~pl.col("is_used")).join(used, on=["run_id", "name"])
    return other.filter(~_same(_meaning(other, "value"), _meaning(other, "used"))).select(
        "run_id",
        "source_path",
        "line_no",
        kind=pl.lit("config_conflict"),
        text=pl.format(
            "{}: {} says {}, {} says {}; the latter counts", "name", "setting_source", "value", "used_source", "used"
        ),
    )


_FLAGS = {"true": "1", "yes": "1", "false": "0", "no": "0"}


def _meaning(rows: pl.DataFrame, column: str) -> pl.Expr:
    """The words of a column as `runs` has them: a card, a model and a precision are spelt in many ways."""
    text = rows[column]
    spelt = {
        "accelerator": canonical_accelerators(text),
        "model": canonical_models(text),
        "precision": map_words(text, canonical_precision, pl.String).replace("unclear", None).fill_null(text),
        "recompute": map_words(text, canonical_recompute, pl.String).fill_null(text),
    }
    meant = pl.lit(text)
    for name, words in spelt.items():
        meant = pl.when(pl.col("name") == name).then(pl.lit(words)).otherwise(meant)
    return meant


def _same(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    first, second = (meant.str.to_lowercase().replace(_FLAGS) for meant in (left, right))
    numbers = first.cast(pl.Float64, strict=False) == second.cast(pl.Float64, strict=False)
    return (first == second) | numbers.fill_null(value=False)


def widen(chosen: pl.DataFrame, columns: Collection[Column]) -> pl.DataFrame:
    """One row per run and one typed column per setting that is one of `columns`.

    A value that its column cannot hold becomes NULL, so that the run is not rejected for it; see `unreadable`.
    """
    known = {column.name: column for column in columns}
    used = chosen.filter(pl.col("is_used") & pl.col("name").is_in(list(known)))
    if used.is_empty():
        return used.select("run_id").unique()
    wide = used.pivot(on="name", index="run_id", values="value")
    return wide.select("run_id", *(as_column(name, known[name]) for name in wide.columns if name != "run_id"))


def unreadable(chosen: pl.DataFrame, columns: Collection[Column]) -> pl.DataFrame:
    """Chosen values that their column cannot hold: `source_path`, `line_no`, `name`, `value`."""
    alike: dict[tuple[object, ...], list[str]] = {}
    for column in columns:
        if column.dtype != pl.String:  # a text column holds any text
            alike.setdefault((column.dtype, column.positive, column.minimum), []).append(column.name)
    known = {column.name: column for column in columns}
    used = chosen.filter("is_used", pl.col("value").is_not_null()).select("source_path", "line_no", "name", "value")
    if not alike:
        return used.clear()
    is_lost = pl.any_horizontal(
        pl.col("name").is_in(names) & as_column("value", known[names[0]]).is_null() for names in alike.values()
    )
    # The runs of a sweep share most values: each distinct one is judged once.
    lost = used.select("name", "value").unique().filter(is_lost)
    return used.join(lost, on=["name", "value"], how="semi", maintain_order="left")


def as_column(name: str, column: Column) -> pl.Expr:
    """Text column `name` in the type of `column`; NULL for a number below its minimum (a batch of -1: not set)."""
    value = typed(name, column.dtype)
    if column.positive:
        value = pl.when(value > 0).then(value)
    if column.minimum is not None:
        value = pl.when(value >= column.minimum).then(value)
    return value.alias(name)


def typed(name: str, dtype: DataType) -> pl.Expr:
    """Text column to a column of `dtype`; unreadable text is NULL."""
    text = pl.col(name)
    if dtype == pl.Boolean:
        words = {"true": True, "1": True, "false": False, "0": False, "yes": True, "no": False}
        return text.str.to_lowercase().replace_strict(words, default=None, return_dtype=pl.Boolean).alias(name)
    if dtype == pl.Int64:  # "288.0" and "1e6" are integers too
        number = text.str.replace_all("_", "", literal=True).cast(pl.Float64, strict=False)
        return pl.when(number == number.round()).then(number.round()).cast(pl.Int64, strict=False).alias(name)
    if dtype == pl.Float64:
        return text.cast(pl.Float64, strict=False).alias(name)
    return text.alias(name)
