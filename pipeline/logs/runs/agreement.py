"""Whether two readings of steps tell of the same ones: their losses agree as far as both were printed.

Their counters need not be the same: a log may count micro-batches, and a file beside it optimizer steps.
"""

from __future__ import annotations

import polars as pl

PAIRS = pl.Schema({"first": pl.Int64, "second": pl.Int64, "common": pl.UInt32, "agreeing": pl.UInt32})
"""One row per two readings of a group with losses in common: how many, and how many of them agree."""

RATIOS = pl.Schema(
    {
        "first": pl.Int64,
        "second": pl.Int64,
        "ratio": pl.Int64,
        "offset": pl.Int64,
        "common": pl.UInt32,
        "agreeing": pl.UInt32,
    }
)
"""One row per two readings of which the second counts several numbers for each of the first, `ratio` times that number
and `offset`: how many losses are in common then, and how many of them agree. The ratio is the one where most agree."""

_MOST_DECIMALS = 12
"""More of them than a float of 32 bits has, so that such a value counts as printed in full."""

_SAMPLE = 512
"""Steps of a group that are compared: a sample decides as well as a million."""

_MOST_MICRO_BATCHES = 64
"""More of them to a step are rare on GPUs, and would agree by chance in a short log."""


def tolerances(losses: pl.DataFrame) -> pl.DataFrame:
    """`losses` with `tolerance`: by how much a value may be off, as printed with the digits of its reading.

    A reading has the most decimals, and the most digits, of any of its values: `%.4g` prints 7.529 and 0.8312.

    Args:
        losses: `reading`, `loss`.

    >>> tolerances(pl.DataFrame({"reading": [1, 1], "loss": [7.529, 0.8312]}))["tolerance"].to_list()
    [0.001, 0.0001]
    """
    value = pl.col("loss")
    known = value.is_finite() & (value != 0)
    decimals = pl.coalesce(
        *(pl.when(value.round(count) == value).then(count) for count in range(_MOST_DECIMALS)), pl.lit(_MOST_DECIMALS)
    )
    exponent = pl.when(known).then(value.abs().log10().floor())
    measured = losses.with_columns(_decimals=pl.when(known).then(decimals), _exponent=exponent)
    of_reading = measured.group_by("reading").agg(
        _most=pl.col("_decimals").max(), _digits=(pl.col("_decimals") + pl.col("_exponent") + 1).max()
    )
    unit = pl.max_horizontal(-pl.col("_most"), pl.col("_exponent") - pl.col("_digits") + 1)
    return (
        measured.join(of_reading, on="reading", how="left", maintain_order="left")
        .with_columns(tolerance=pl.lit(10.0).pow(unit).fill_null(0.0))
        .drop("_decimals", "_exponent", "_most", "_digits")
    )


def agree(left: str, right: str, tolerance: pl.Expr) -> pl.Expr:
    """Whether two losses are the same but for rounding; NaN is the same as NaN."""
    first, second = pl.col(left), pl.col(right)
    return (first == second) | ((first - second).abs() <= tolerance * 1.001)


def compare(losses: pl.DataFrame, key: str) -> pl.DataFrame:
    """PAIRS rows of the readings of each group.

    Args:
        losses: `group`, `reading`, `loss`, `tolerance`, and a column `key` that is unique in a reading.
        key: what rows of two readings have in common.
    """
    position = pl.col(key).rank("dense").over("group")
    stride = (position.max().over("group") // _SAMPLE).clip(1)
    sample = losses.filter((position - 1) % stride == 0).select("group", "reading", key, "loss", "tolerance")
    both = sample.join(sample, on=["group", key], suffix="_other").filter(pl.col("reading") < pl.col("reading_other"))
    tolerance = pl.max_horizontal("tolerance", "tolerance_other")
    return (
        both.group_by(pl.col("reading").alias("first"), pl.col("reading_other").alias("second"))
        .agg(common=pl.len(), agreeing=agree("loss", "loss_other", tolerance).sum())
        .cast(PAIRS)
    )


def compare_ratios(losses: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """RATIOS rows.

    Each of the counters begins at 0 or at 1, and the second shows the first or the last number of each of the first.

    Args:
        losses: `reading`, `step`, `loss`, `tolerance`, unique in reading and step.
        pairs: `first`, `second`.
    """
    ratio = pl.col("ratio")
    ratios = pl.DataFrame({"ratio": range(2, _MOST_MICRO_BATCHES + 1)}, schema={"ratio": pl.Int64})
    offsets = pl.concat_list(-ratio, 1 - ratio, pl.lit(-1), pl.lit(0), pl.lit(1), ratio - 1, ratio).list.unique()
    candidates = ratios.with_columns(offset=offsets).explode("offset")
    few = losses.filter(pl.int_range(pl.len()).over("reading") < _SAMPLE)
    coarse = few.select(first="reading", coarse="step", loss="loss", tolerance="tolerance")
    fine = losses.select(second="reading", fine="step", loss="loss", tolerance="tolerance")
    both = (
        pairs.select("first", "second")
        .join(coarse, on="first")
        .join(candidates, how="cross")
        .with_columns(fine=pl.col("ratio") * pl.col("coarse") + pl.col("offset"))
        .join(fine, on=["second", "fine"], suffix="_fine")
    )
    tolerance = pl.max_horizontal("tolerance", "tolerance_fine")
    return (
        both.group_by("first", "second", "ratio", "offset")
        .agg(common=pl.len(), agreeing=agree("loss", "loss_fine", tolerance).sum())
        .sort("first", "second", "agreeing", "common", "ratio", descending=[False, False, True, True, False])
        .unique(["first", "second"], keep="first", maintain_order=True)
        .select(RATIOS.names())
        .cast(RATIOS)
    )
