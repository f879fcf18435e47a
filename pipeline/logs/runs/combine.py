"""Settings that follow from several printed values of one run; see `protocol.CombinedSetting`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from sweepscope.pipeline.logs.dialect import CombinedSetting
from sweepscope.pipeline.logs.runs.setting_precedence import NOTHING, ranked

_FACT = ("value", "setting_source", "source_path", "line_no")


def with_combined(
    settings: pl.DataFrame, dialect_of: pl.DataFrame, rules: Mapping[str, Sequence[CombinedSetting]]
) -> pl.DataFrame:
    """`settings` plus what each dialect concludes from them.

    Args:
        settings: `run_id`, `name`, `value`, `setting_source`, `line_no`, `source_path`.
        dialect_of: `run_id`, `dialect`.
        rules: by dialect.
    """
    parts = [settings]
    present = set(dialect_of["dialect"])
    for dialect, combined in rules.items():
        if not combined or dialect not in present:
            continue
        mine = settings.join(dialect_of.filter(pl.col("dialect") == dialect), on="run_id", how="semi")
        if not mine.is_empty():
            parts.append(conclude(mine, combined).select(settings.columns))
    return pl.concat(parts)


def conclude(settings: pl.DataFrame, rules: Sequence[CombinedSetting]) -> pl.DataFrame:
    """Rows like `settings` for every rule that gives a value. Each input is the best-sourced, latest one of its run."""
    names = sorted({name for rule in rules for name in rule.inputs})
    best = ranked(settings.filter(pl.col("name").is_in(names))).unique(
        ["run_id", "name"], keep="first", maintain_order=True
    )
    if best.is_empty():
        return settings.clear()
    facts = best.select("run_id", "name", fact=pl.struct(_FACT)).pivot(on="name", index="run_id", values="fact")
    unsaid = pl.lit(None, dtype=pl.Struct({name: best.schema[name] for name in _FACT}))
    facts = facts.with_columns(unsaid.alias(name) for name in names if name not in facts.columns)
    values = facts.select("run_id", *(pl.col(name).struct.field("value").alias(name) for name in names))
    return pl.concat([_apply(rule, values, facts) for rule in rules])


def _apply(rule: CombinedSetting, values: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    concluded = values.select("run_id", name=pl.lit(rule.name), value=rule.value.cast(pl.String))
    origin = facts.select(fact=pl.coalesce(rule.inputs)).unnest("fact").drop("value")
    rows = pl.concat([concluded, origin], how="horizontal").drop_nulls("value")
    if rule.setting_source:
        rows = rows.with_columns(setting_source=pl.lit(rule.setting_source))
    return rows.select("run_id", "name", *_FACT)


def is_true(name: str) -> pl.Expr:
    """Whether a printed value says yes; NULL where nothing was printed."""
    return pl.col(name).str.to_lowercase().is_in(["true", "1"])


def is_said(name: str) -> pl.Expr:
    """Whether a printed value names something: not absent, None or empty."""
    return pl.col(name).is_not_null() & ~pl.col(name).is_in(NOTHING)


def whole(name: str) -> pl.Expr:
    """A printed whole number; NULL for None and for anything else."""
    return pl.col(name).cast(pl.Float64, strict=False).cast(pl.Int64, strict=False)


def quotient(all_: pl.Expr, each: pl.Expr) -> pl.Expr:
    """How many times `each` is in `all_`; NULL where that is no whole number, so that one of them is not what it seems.

    >>> pl.select(quotient(pl.lit(8), pl.lit(2))).item(), pl.select(quotient(pl.lit(8), pl.lit(3))).item()
    (4, None)
    """
    return pl.when(all_ % each == 0).then(all_ // each)
