"""Steps of a run from all of its readings: the richer one for each column, filled up from the others."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from sweepscope.pipeline.logs.facts import STEP_FACTS
from sweepscope.pipeline.logs.runs.agreement import agree, tolerances

CONFLICTS = pl.Schema(
    {
        "reading": pl.Int64,
        "source": pl.Int64,
        "line_no": pl.Int64,
        "step": pl.Int64,
        "loss": pl.Float64,
        "other_source": pl.Int64,
        "other_loss": pl.Float64,
        "differing": pl.UInt32,
        "common": pl.UInt32,
    }
)
"""One row per run (`reading`) and further source with other losses for some of its steps: the first of them, with the
value that counts and the other one, and how many of the common ones differ."""

_VALUES = tuple(name for name in STEP_FACTS.names() if name not in {"source", "line_no", "step", "step_basis", "text"})
_COUNTED = ["batch", "ordinal"]
"""`step_basis` of numbers that count something else than steps."""
_SIMILAR = 0.02
"""Two readings of a time or a rate that differ by less mean the same."""


@dataclass(frozen=True)
class JoinedSteps:
    """STEP_FACTS rows with `reading`, one per step of the readings that are runs; and CONFLICTS rows."""

    steps: pl.DataFrame
    conflicts: pl.DataFrame


def join_steps(steps: pl.DataFrame, decisions: pl.DataFrame) -> JoinedSteps:
    """Steps of readings, joined as decided.

    Args:
        steps: STEP_FACTS rows with `reading`, one per reading and step; of all readings that `decisions` names.
        decisions: readings.DECISIONS rows.
    """
    joined = steps.join(decisions, on="reading", how="semi")
    whole = tolerances(steps.join(decisions, on="reading", how="anti"))
    dealt = _dealt(tolerances(joined), whole, decisions)
    conflicts = []
    for turn in range(int(dealt["turn"].max() or 0) + 1 if dealt.height else 0):  # type: ignore[arg-type]  # a number
        further = dealt.filter(turn=turn).drop("turn", "reading").rename({"target": "reading"})
        whole, found = _joined(whole, further)
        conflicts.append(found)
    return JoinedSteps(
        steps=whole.drop("tolerance").sort("reading", "step"),
        conflicts=pl.concat([pl.DataFrame(schema=CONFLICTS), *conflicts]),
    )


def _dealt(rows: pl.DataFrame, whole: pl.DataFrame, decisions: pl.DataFrame) -> pl.DataFrame:
    """`rows` with `target`, the reading that each is of now, and `turn`, which numbers the readings of a target.

    A row is of the last target that has its step with that loss. One that none has goes with the row before it, and the
    first ones with the row behind them.
    """
    numbered = rows.sort("reading", "step").with_row_index("row")
    targets = decisions.select("reading", "target")
    known = whole.select("step", "loss", "tolerance", target="reading")
    pairs = (
        numbered.select("row", "reading", "step", "loss", "tolerance")
        .join(targets, on="reading")
        .join(known, on=["target", "step"], suffix="_known")
    )
    tolerance = pl.max_horizontal("tolerance", "tolerance_known")
    found = pairs.filter(agree("loss", "loss_known", tolerance)).group_by("row").agg(pl.col("target").max())
    last = targets.group_by("reading").agg(last=pl.col("target").max())
    turn = last.sort("reading").select("reading", turn=pl.int_range(pl.len()).over("last"))
    dealt = numbered.join(found, on="row", how="left", maintain_order="left")
    dealt = dealt.join(last, on="reading", maintain_order="left").join(turn, on="reading", maintain_order="left")
    near = pl.col("target").forward_fill().backward_fill().over("reading")
    return dealt.with_columns(target=pl.coalesce(near, "last")).drop("row", "last")


def _joined(whole: pl.DataFrame, further: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Steps of runs with those of one more reading of each, and the CONFLICTS rows of that reading."""
    key = ["reading", "step"]
    both = _of_one_count(whole.join(further, on=key, how="full", coalesce=True, suffix="_new"))
    tolerance = pl.max_horizontal("tolerance", "tolerance_new")
    differs = pl.col("loss").is_not_null() & ~agree("loss", "loss_new", tolerance)
    conflicts = (
        both.filter(pl.col("loss").is_not_null() & pl.col("loss_new").is_not_null())
        .with_columns(differs=differs.fill_null(value=False))
        .sort(key)
        .group_by("reading", "source_new", maintain_order=True)
        .agg(
            *(pl.col(name).filter("differs").first() for name in ("source", "line_no", "step", "loss")),
            other_loss=pl.col("loss_new").filter("differs").first(),
            differing=pl.col("differs").sum(),
            common=pl.len(),
        )
        .filter(pl.col("differing") > 0)
        .rename({"source_new": "other_source"})
    )
    is_sure = pl.any_horizontal(
        pl.col(source).is_not_null() & pl.col(basis).is_null()
        for source, basis in (("source", "step_basis"), ("source_new", "step_basis_new"))
    )
    merged = both.select(
        *key,
        source=pl.coalesce("source", "source_new"),
        line_no=pl.when(pl.col("source").is_null()).then("line_no_new").otherwise("line_no"),
        tolerance=pl.max_horizontal("tolerance", "tolerance_new"),
        text=pl.coalesce("text", "text_new"),
        # NULL is the surest: where one reading counts steps, the other's number is one, too.
        step_basis=pl.when(~is_sure).then(pl.coalesce("step_basis", "step_basis_new")),
        **{name: _richer(name) for name in _VALUES},
    )
    return merged.select(whole.columns), conflicts.select(CONFLICTS.names()).cast(CONFLICTS)


def _of_one_count(both: pl.DataFrame) -> pl.DataFrame:
    """Rows of two readings, less those that count something else than the steps that the other reading counts.

    Where both have the same loss for the same number, they count the same, and all are steps.
    """
    is_old, is_new = pl.col("source").is_not_null(), pl.col("source_new").is_not_null()
    sure = [
        is_there.any() & pl.col(basis).is_null().all()
        for is_there, basis in ((is_old, "step_basis"), (is_new, "step_basis_new"))
    ]
    is_mixed = (sure[0] != sure[1]) & is_old.any() & is_new.any()
    tolerance = pl.max_horizontal("tolerance", "tolerance_new")
    is_same = agree("loss", "loss_new", tolerance).fill_null(value=False).any()
    flagged = both.with_columns(
        _is_of_one=(is_mixed & is_same).over("reading"),
        _is_alien=(is_mixed & ~is_same).over("reading"),
    )
    bases = {name: pl.when(~pl.col("_is_of_one")).then(name) for name in ("step_basis", "step_basis_new")}
    own = _without_alien(_without_alien(flagged, ""), "_new")
    is_left = pl.col("source").is_not_null() | pl.col("source_new").is_not_null()
    return own.filter(is_left).with_columns(**bases).drop("_is_of_one", "_is_alien")


def _without_alien(both: pl.DataFrame, side: str) -> pl.DataFrame:
    """`both` without the values of a side that counts something else than the steps of the other."""
    is_counted = pl.col(f"step_basis{side}").cast(pl.String).is_in(_COUNTED).fill_null(value=False)
    names = [f"{name}{side}" for name in ("source", "line_no", "text", "step_basis", "tolerance", *_VALUES)]
    return both.with_columns(pl.when(~(pl.col("_is_alien") & is_counted)).then(name).alias(name) for name in names)


def _richer(name: str) -> pl.Expr:
    """A column from the reading that has more of its values, filled up from the other where they mean the same."""
    old, new = pl.col(name), pl.col(f"{name}_new")
    is_new_richer = (new.count() > old.count()).over("reading")
    first, second = pl.when(is_new_richer).then(new).otherwise(old), pl.when(is_new_richer).then(old).otherwise(new)
    if STEP_FACTS[name] != pl.Float64 or name == "loss":
        return pl.coalesce(first, second)
    apart = ((old - new).abs() / pl.max_horizontal(old.abs(), new.abs())).median().over("reading")
    return pl.coalesce(first, pl.when((apart <= _SIMILAR).fill_null(value=True)).then(second))
