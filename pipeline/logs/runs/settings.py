"""Settings of each run: printed in its log or its job's other logs, read from files beside them, or concluded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from sweepscope.pipeline.logs.dialect import CombinedSetting
from sweepscope.pipeline.logs.evidence.patterns import MAX_TEXT_CHARS
from sweepscope.pipeline.logs.expressions import whole
from sweepscope.pipeline.logs.runs.attribution import attempt_of
from sweepscope.pipeline.logs.runs.setting_precedence import best_first, unreadable
from sweepscope.pipeline.text.secret_columns import shortened
from sweepscope.schemas.registry import TABLES
from sweepscope.schemas.vocab import REJECT_REASON_LEFT_OUT

MOST_ARGUMENTS = 4_000
"""Arguments of a run that are kept: those of a framework with all of its data sets and callbacks are some 1,500."""

SHARDED = CombinedSetting("dp", whole("dp_shard") * whole("dp_replicate"), ("dp_shard",))
"""Where copies of sharded states are stated (HSDP, torchtitan's dp_replicate and dp_shard), whatever printed them."""

_BATCH = pl.coalesce(whole("gbs"), whole("mbs") * whole("gas") * whole("dp"))
PACED = CombinedSetting(
    "step_time_s", _BATCH / pl.col("arg:sequences_per_s").cast(pl.Float64, strict=False), ("arg:sequences_per_s",)
)
"""Where a file beside the log states sequences per second, and none the time of a step."""

_FACT = ("value", "setting_source", "source_path", "line_no")


def configured_from(runs: pl.DataFrame, stretches: pl.DataFrame, announced: pl.DataFrame) -> pl.DataFrame:
    """`runs` with `start_line` moved up to just behind the previous attempt's last step, and `announced_from`.

    The latter is the first line of its log that announces a run, NULL where none does.

    A launcher echoes the command before the trainer starts, so the lines between two attempts configure the later one.
    A line that announces a run is the first of it: those before it are of the run that has ended.

    Args:
        runs: attempts with `source`, `attempt_in_source` and `start_line`.
        stretches: lines of each run's steps (`summary.step_lines`).
        announced: `source`, `line_no` of lines that announce runs (`stepless.run_headers`).
    """
    last = stretches.select("run_id", "last_line")
    ordered = runs.join(last, on="run_id", how="left").sort("source", "attempt_in_source")
    behind = pl.col("last_line").shift(1).over("source") + 1
    first = announced.group_by("source").agg(announced_from=pl.col("line_no").min())
    ordered = ordered.join(first, on="source", how="left", maintain_order="left")
    is_announced = pl.col("announced_from").is_not_null()
    start_line = pl.when(is_announced).then("start_line").otherwise(pl.min_horizontal("start_line", behind))
    return ordered.with_columns(start_line=start_line).drop("last_line")


def settings_of_runs(
    settings: pl.DataFrame, sidecars: pl.DataFrame, runs: pl.DataFrame, sources: pl.DataFrame, owners: pl.DataFrame
) -> pl.DataFrame:
    """`run_id`, `name`, `value`, `setting_source`, `line_no`, `source_path` of every setting of every run.

    Settings of other logs count only where the run's own log has none of that name and source.

    Args:
        settings: SETTING_FACTS rows of all logs.
        sidecars: `run_id` and the columns of `assemble.SIDECAR_SETTINGS` (`folders.of_folders`).
        runs: attempts, with the `start_line` of `configured_from`.
        sources: `assemble.SOURCES` rows.
        owners: `source`, `run_id` of logs without runs of their own (`attribution.owners_of`).
    """
    primary = _inherited(_with_common(attempt_of(settings, runs).drop_nulls("run_id"), runs), runs)
    same = ["run_id", "name", "setting_source"]
    of_others = settings.join(owners, on="source", maintain_order="left")
    added = of_others.join(primary, on=same, how="anti", maintain_order="left")
    printed = pl.concat([primary, added]).join(sources.select("source", "path"), on="source", maintain_order="left")
    columns = ["run_id", "name", "value", "setting_source", "line_no", pl.col("path").alias("source_path")]
    return pl.concat([printed.select(columns), sidecars.with_columns(line_no=pl.lit(None, pl.Int64)).select(columns)])


def stepped(stretches: pl.DataFrame, settings: pl.DataFrame) -> pl.DataFrame:
    """Rows like `settings` for the value `arg:stepped` of `CombinedSetting`: the run logged at least one step."""
    return stretches.with_columns(
        line_no="first_line", name=pl.lit("arg:stepped"), value=pl.lit("yes"), setting_source=pl.lit("log_line")
    ).select(settings.columns)


def accumulated(micro_batches: pl.DataFrame, runs: pl.DataFrame, settings: pl.DataFrame) -> pl.DataFrame:
    """`settings` with gradient accumulation, and mean step times, of runs whose log counts micro-batches.

    Args:
        micro_batches: join_readings.MICRO_BATCHES rows.
        runs: `reading`, `run_id`, `source_path`.
        settings: rows of `settings_of_runs`.
    """
    if micro_batches.is_empty():
        return settings
    known = micro_batches.join(runs.select("reading", "run_id", "source_path"), on="reading")
    gas = known.select(
        "run_id",
        "source_path",
        name=pl.lit("gas"),
        value=pl.col("ratio").cast(pl.String),
        setting_source=pl.lit("derived"),
        line_no=pl.lit(None, pl.Int64),
    )
    is_of_batch = (pl.col("name") == "step_time_s") & pl.col("ratio").is_not_null()
    seconds = pl.col("value").cast(pl.Float64, strict=False) * pl.col("ratio")
    whole = settings.join(known.select("run_id", "source_path", "ratio"), on=["run_id", "source_path"], how="left")
    whole = whole.with_columns(value=pl.when(is_of_batch).then(seconds.cast(pl.String)).otherwise("value"))
    return pl.concat([whole.select(settings.columns), gas.select(settings.columns)])


def _with_common(settings: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """`settings` plus copies of those above the first line that announces a run, for the runs behind that lack them."""
    announced = runs.drop_nulls("announced_from").select("source", "run_id", "announced_from")
    if announced.is_empty():
        return settings
    of_logs = announced.select("source", "announced_from").unique()
    above = settings.join(of_logs, on="source").filter(pl.col("line_no") < pl.col("announced_from"))
    copies = above.select(settings.columns).drop("run_id").join(announced.select("source", "run_id"), on="source")
    added = copies.join(settings, on=["run_id", "name"], how="anti", maintain_order="left")
    return pl.concat([settings, added.select(settings.columns)])


_OF_SIZE = ("num_gpus", "num_nodes", "gpus_per_node", "dp", "dp_shard")


def counted_ranks(steps_by_rank: pl.DataFrame, settings: pl.DataFrame) -> pl.DataFrame:
    """`settings` with the GPUs of runs that state no size, and whose steps every rank prints, numbered from 0.

    A log that begins with another rank, leaves one out or has few lines of one is a part; so is one of a run's several.

    Args:
        steps_by_rank: `attribution.steps_of_all_ranks`.
        settings: rows of `settings_of_runs`.
    """
    known = settings.filter(pl.col("name").is_in(_OF_SIZE))
    unknown = steps_by_rank.drop_nulls(["run_id", "rank"]).join(known, on="run_id", how="anti")
    if unknown.is_empty():
        return settings
    rank, count = pl.col("rank"), pl.col("rank").value_counts().struct.field("count")
    counted = unknown.group_by("run_id", maintain_order=True).agg(
        pl.col("source_path", "line_no").first(),
        logs=pl.col("source").n_unique(),
        is_even=2 * count.min() >= count.max(),
        count=rank.n_unique(),
        is_gapless=(rank.min() == 0) & (rank.max() == rank.n_unique() - 1),
    )
    is_whole = pl.col("is_gapless") & pl.col("is_even") & (pl.col("logs") == 1) & (pl.col("count") > 1)
    gpus = counted.filter(is_whole).with_columns(
        name=pl.lit("num_gpus"), value=pl.col("count").cast(pl.String), setting_source=pl.lit("derived")
    )
    return pl.concat([settings, gpus.select(settings.columns)])


def _inherited(settings: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """`settings` plus copies for attempts without any: a restart may not repeat those of the attempt before it."""
    ordered = runs.select("source", "attempt_in_source", "run_id").sort("source", "attempt_in_source")
    is_configured = pl.col("run_id").is_in(settings["run_id"].unique().to_list())
    heirs = ordered.with_columns(
        giver=pl.when(is_configured).then("run_id").forward_fill().over("source"), is_configured=is_configured
    ).filter(~pl.col("is_configured") & pl.col("giver").is_not_null())
    given = settings.rename({"run_id": "giver"}).join(
        heirs.select("giver", "run_id"), on="giver", maintain_order="left"
    )
    return pl.concat([settings, given.select(settings.columns)])


def with_combined(
    settings: pl.DataFrame, dialect_of: pl.DataFrame, rules: Mapping[str, Sequence[CombinedSetting]]
) -> pl.DataFrame:
    """`settings` plus the rows that follow from them, for every dialect and for each.

    Args:
        settings: rows of `settings_of_runs`.
        dialect_of: `run_id`, `dialect`.
        rules: `Dialect.combined` by dialect.
    """
    parts = [settings, conclude(settings, [SHARDED, PACED]).select(settings.columns)]
    present = set(dialect_of["dialect"])
    for dialect, combined in rules.items():
        if not combined or dialect not in present:
            continue
        of_dialect = settings.join(dialect_of.filter(pl.col("dialect") == dialect), on="run_id", how="semi")
        if not of_dialect.is_empty():
            parts.append(conclude(of_dialect, combined).select(settings.columns))
    return pl.concat(parts)


def conclude(settings: pl.DataFrame, rules: Sequence[CombinedSetting]) -> pl.DataFrame:
    """Rows like `settings` for every rule that gives a value, from the latest input of the best source of each run."""
    names = sorted({name for rule in rules for name in rule.inputs})
    best = best_first(settings.filter(pl.col("name").is_in(names))).unique(
        ["run_id", "name"], keep="first", maintain_order=True
    )
    if best.is_empty():
        return settings.clear()
    facts = best.select("run_id", "name", fact=pl.struct(_FACT)).pivot(on="name", index="run_id", values="fact")
    missing = pl.lit(None, dtype=pl.Struct({name: best.schema[name] for name in _FACT}))
    facts = facts.with_columns(missing.alias(name) for name in names if name not in facts.columns)
    values = facts.select("run_id", *(pl.col(name).struct.field("value").alias(name) for name in names))
    return pl.concat([_apply(rule, values, facts) for rule in rules])


def _apply(rule: CombinedSetting, values: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    concluded = values.select("run_id", name=pl.lit(rule.name), value=rule.value.cast(pl.String))
    origin = facts.select(fact=pl.coalesce(rule.inputs)).unnest("fact").drop("value")
    rows = pl.concat([concluded, origin], how="horizontal").drop_nulls("value")
    if rule.setting_source:
        rows = rows.with_columns(setting_source=pl.lit(rule.setting_source))
    return rows.select("run_id", "name", *_FACT)


def arguments_of_runs(found: pl.DataFrame) -> pl.DataFrame:
    """Rows of `settings_of_runs` for arguments under their own names: one per run and name, up to MOST_ARGUMENTS.

    Of several sources that which counts more is kept, of several lines of it the last.
    """
    if found.is_empty():
        return found
    kept = best_first(found.drop_nulls("run_id")).unique(["run_id", "name"], keep="first", maintain_order=True)
    return kept.filter(pl.int_range(pl.len()).over("run_id") < MOST_ARGUMENTS).with_columns(
        pl.col("name").str.slice(0, MAX_TEXT_CHARS), shortened(pl.col("value"), MAX_TEXT_CHARS)
    )


def rejected_settings(chosen: pl.DataFrame) -> pl.DataFrame:
    """Rows of `rejects` for chosen values (`setting_precedence.choose`) that their column of `runs` cannot hold."""
    bad = unreadable(chosen, TABLES["runs"].columns)
    return TABLES["rejects"].conform(
        bad.select(
            pl.col("source_path").alias("file"),
            "line_no",
            table=pl.lit("runs"),
            column=pl.col("name"),
            reason=pl.lit(f"{REJECT_REASON_LEFT_OUT}: it does not fit the type or range of its column"),
            raw=pl.col("value").str.slice(0, MAX_TEXT_CHARS),
        )
    )
