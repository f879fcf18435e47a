"""Steps of readings that agree and count differently, by the numbers of the one that counts steps."""

from __future__ import annotations

import polars as pl


def renumbered(steps: pl.DataFrame, decisions: pl.DataFrame) -> pl.DataFrame:
    """`steps`, in which the two readings of each pair that agrees in order, or at a ratio, have the same numbers.

    Of a log that counts micro-batches the one is left that ends each step: it shows what the file says of the step.
    The numbers of a log may be those of its values or batches (`step_basis`), or be counted (1, 2, 3) where the other
    reading has gaps: then that one tells which steps these were, unless it counts batches itself. Where both count
    steps, from 0 and from 1, the log's numbers count.

    Args:
        steps: STEP_FACTS rows with `reading`, one per reading and step.
        decisions: readings.DECISIONS rows.
    """
    steps = _of_optimizer(steps, decisions)
    pairs = decisions.filter("by_order").select("reading", "target")
    if pairs.is_empty():
        return steps
    logged = steps.drop_nulls("loss").sort("reading", "step").select("reading", "step", "step_basis")
    logged = logged.with_columns(n=pl.int_range(pl.len()).over("reading"))
    both = (
        pairs.join(logged, on="reading")
        .join(logged.rename({"reading": "target"}), on=["target", "n"], suffix="_target")
        .sort("reading", "target", "n")
    )
    is_counted = (pl.col("step_target").diff() == 1).all() & (pl.col("step_target").first() <= 1)
    has_gaps = (pl.col("step").diff() > 1).any()
    counts_steps, is_unsure = pl.col("step_basis").is_null().all(), pl.col("step_basis_target").is_not_null().any()
    is_target = counts_steps & ((is_counted & has_gaps) | is_unsure)
    both = both.with_columns(is_target=is_target.over("reading", "target"))
    known = pl.concat(
        [
            both.filter("is_target").select(reading="target", step="step_target", number="step"),
            both.filter(~pl.col("is_target")).select("reading", "step", number="step_target"),
        ]
    )
    return _numbered(steps, known.unique(["reading", "step"], keep="first", maintain_order=True))


def _of_optimizer(steps: pl.DataFrame, decisions: pl.DataFrame) -> pl.DataFrame:
    """`steps`, of which those that count micro-batches have the numbers of optimizer steps."""
    ratios = decisions.drop_nulls("ratio").unique("target", keep="last", maintain_order=True)
    if ratios.is_empty():
        return steps
    mine = steps.join(ratios.select("ratio", "offset", reading="target"), on="reading", maintain_order="left")
    counted, ratio = pl.col("step") - pl.col("offset"), pl.col("ratio")
    number = (counted + ratio - 1) // ratio
    of_step = pl.col("step_time_s").mean().over("reading", number)
    ends = (
        mine.with_columns(step_time_s=of_step * ratio)
        .filter((counted % ratio == 0) & (counted >= 0))
        .with_columns(step=number, step_basis=pl.lit(None, steps.schema["step_basis"]))
    )
    others = steps.join(ratios.select(reading="target"), on="reading", how="anti", maintain_order="left")
    return pl.concat([others, ends.select(steps.columns)])


def _numbered(steps: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """`steps` with the numbers that are known of some; the others are as far from them as they were, to scale."""
    known = known.sort("reading", "step").with_columns(known_step="step")
    scale = known.group_by("reading").agg(scale=(pl.col("number").diff() / pl.col("step").diff()).median())
    mine = steps.join(known, on="reading", how="semi").sort("reading", "step")
    near = mine.with_row_index("_row").select("_row", "reading", "step").sort("step")
    nearest = near.join_asof(known.sort("step"), on="step", by="reading", strategy="nearest", check_sortedness=False)
    found = nearest.join(scale, on="reading", how="left").with_columns(
        number=pl.col("number") + ((pl.col("step") - pl.col("known_step")) * pl.col("scale").fill_null(1.0)).round()
    )
    numbers = found.sort("_row")["number"].cast(pl.Int64)
    new = (
        mine.with_columns(step=numbers, step_basis=None)
        .cast({"step_basis": steps.schema["step_basis"]})
        .unique(["reading", "step"], keep="first", maintain_order=True)
    )
    return pl.concat([steps.join(known, on="reading", how="anti", maintain_order="left"), new])
