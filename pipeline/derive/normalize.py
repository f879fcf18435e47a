"""Fill what follows from what is known: layout, batch, place and model name of `runs`.

Every rule is exact: a value is filled only when integers divide and nothing else is possible. Defaults that no
file states (8 accelerators per node) are kept apart as 'assumed'. Not here: performance (see
`pipeline.derive.metrics`) and the reading of text (see `pipeline.reference.vocabulary`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import polars as pl

from sweepscope.pipeline.reference.accelerators import canonical_accelerators
from sweepscope.pipeline.reference.layout_text import layout_texts
from sweepscope.pipeline.reference.model_identity import identified
from sweepscope.pipeline.reference.model_names import canonical_models, name_from_shape
from sweepscope.pipeline.reference.vocabulary import canonical_precision, canonical_recompute, map_words
from sweepscope.schemas.tables.runs import RUNS

FILLED = (
    *("num_gpus", "num_nodes", "gpus_per_node", "dp", "tp", "pp", "cp"),
    *("mbs", "gas", "gbs", "gbs_tokens", "seq_len"),
)
"""Columns that the rules fill; `layout` and `model` are texts over them."""

_DIMENSIONS = ("dp", "tp", "pp", "cp")
# A compute tray of an NVL72 holds two superchips of two GPUs (nvidia.com/en-us/data-center/gb200-nvl72); a TPU host of
# v3, v4 and v5p has four chips (cloud.google.com/tpu/docs/v4, .../v5p).
_FOUR_PER_NODE = ("GB200", "GB300", "TPU-v3", "TPU-v4", "TPU-v5p")

DERIVED = pl.Schema({"run_id": pl.String, "name": pl.String, "value": pl.String, "setting_source": pl.String})
"""One row per run and filled column, in the terms of the `settings` table."""


@dataclass(frozen=True)
class Normalised:
    """Runs with everything filled that follows, and what was filled (rows of `DERIVED`)."""

    runs: pl.DataFrame
    derived: pl.DataFrame


def _product(*names: str) -> pl.Expr:
    """Product of columns; NULL as soon as one is NULL."""
    product = pl.col(names[0])
    for name in names[1:]:
        product = product * pl.col(name)
    return product


def _quotient(whole: str, *parts: str) -> pl.Expr:
    """`whole` divided by `parts` where that is a whole number of at least one, else NULL."""
    divisor = _product(*parts)
    return pl.when((divisor > 0) & (pl.col(whole) % divisor == 0)).then(pl.col(whole) // divisor)


def _missing_dimension(name: str) -> pl.Expr:
    """A parallel degree that the accelerator count proves.

    When the known degrees already use every accelerator, each unknown one is 1. When it is the only unknown one, it is
    the quotient; except cp, which sources leave out because they do not use it, so a remainder there is a
    contradiction and not a degree.
    """
    others = [other for other in _DIMENSIONS if other != name]
    known = pl.lit(1)
    for other in others:
        known = known * pl.col(other).fill_null(1)
    quotient = pl.when(pl.col("num_gpus") % known == 0).then(pl.col("num_gpus") // known)
    is_only_unknown = pl.all_horizontal(pl.col(other).is_not_null() for other in others) & pl.lit(name != "cp")
    return pl.when(is_only_unknown | (quotient == 1)).then(quotient).cast(pl.Int64)


def _replicas_of_batch() -> pl.Expr:
    """How many replicas share a batch; NULL where they cannot have the known number of accelerators between them."""
    replicas = _quotient("gbs", "gas", "mbs")
    ranks = replicas
    for other in _DIMENSIONS[1:]:
        ranks = ranks * pl.col(other).fill_null(1)
    return pl.when((pl.col("num_gpus") % ranks == 0).fill_null(value=True)).then(replicas)


@cache
def _rules() -> dict[str, pl.Expr]:
    """All exact rules; each fills only NULLs, so the order does not matter for what is known."""
    nodes_rounded_up = (pl.col("num_gpus") + pl.col("gpus_per_node") - 1) // pl.col("gpus_per_node")
    rules: dict[str, tuple[pl.Expr, ...]] = {
        "num_gpus": (_product(*_DIMENSIONS), _product("num_nodes", "gpus_per_node")),
        **{name: (_missing_dimension(name),) for name in _DIMENSIONS},
        "dp": (_missing_dimension("dp"), _replicas_of_batch()),
        "num_nodes": (nodes_rounded_up,),
        "gpus_per_node": (_quotient("num_gpus", "num_nodes"),),
        "gbs": (_product("dp", "gas", "mbs"), _quotient("gbs_tokens", "seq_len")),
        "gas": (_quotient("gbs", "dp", "mbs"),),
        "mbs": (_quotient("gbs", "dp", "gas"),),
        "gbs_tokens": (_product("gbs", "seq_len"),),
        "seq_len": (_quotient("gbs_tokens", "gbs"),),
    }
    return {name: pl.coalesce(name, *fills).cast(pl.Int64).alias(name) for name, fills in rules.items()}


def _derive(runs: pl.DataFrame) -> pl.DataFrame:
    """All exact rules until nothing more follows: a batch may give a degree, which gives the accelerator count."""
    while True:
        missing = [name for name in FILLED if runs[name].null_count()]
        filled = runs.with_columns(_rules()[name] for name in missing)
        if all(filled[name].null_count() == runs[name].null_count() for name in missing):
            return filled
        runs = filled


def derive_layout(runs: pl.DataFrame) -> pl.DataFrame:
    """`runs` with every value of FILLED that follows exactly from the others; it has all of these columns."""
    return _derive(runs)


def _assume_no_context_parallelism(runs: pl.DataFrame) -> pl.DataFrame:
    """A context parallelism of 1 where a source states all other degrees and not this one.

    Only where nothing states the number of accelerators, by which it is proved, and where the nodes that are stated can
    share the others' product evenly.
    """
    ranks = _product("dp", "tp", "pp")
    is_even = (ranks % pl.col("num_nodes") == 0).fill_null(value=True)
    is_open = ranks.is_not_null() & pl.col("num_gpus").is_null() & is_even
    assumed = pl.when(is_open).then(pl.lit(1, pl.Int64))
    return runs.with_columns(cp=pl.coalesce("cp", assumed))


_IS_OF_UNKNOWN = pl.col("framework").is_in(["other", "pytorch-examples"]).fill_null(value=False)
"""What a known framework does where nothing is stated, its dialect knows: a degree of -1 takes what is left. The loops
of PyTorch's examples are copied into trainers of any kind."""


def _assume_unstated_are_unused(runs: pl.DataFrame) -> pl.DataFrame:
    """Degrees of 1 where a source states tensor or pipeline parallelism and neither the others nor the replicas.

    Trainers and their users leave out what they do not use; the replicas follow then, unless a batch says otherwise.
    """
    others = [pl.col(name).fill_null(1) for name in _DIMENSIONS[1:]]
    model_ranks = others[0] * others[1] * others[2]
    is_even = (pl.col("num_gpus") % model_ranks == 0).fill_null(value=False)
    of_replica = pl.col("mbs") * pl.col("gas").fill_null(1) * (pl.col("num_gpus") // model_ranks)
    is_batch = (
        pl.when(pl.col("gas").is_null()).then(pl.col("gbs") % of_replica == 0).otherwise(pl.col("gbs") == of_replica)
    )
    is_stated = pl.col("tp").is_not_null() | (pl.col("pp") > 1).fill_null(value=False)
    is_open = _IS_OF_UNKNOWN & pl.col("dp").is_null() & is_stated & is_even & is_batch.fill_null(value=True)
    assumed = pl.when(is_open).then(pl.lit(1, pl.Int64))
    return runs.with_columns(pl.coalesce(name, assumed).alias(name) for name in _DIMENSIONS[1:])


def _assume_no_model_parallelism(runs: pl.DataFrame) -> pl.DataFrame:
    """Data parallelism alone where no source states a degree of any kind, and what is stated speaks for it.

    That is sharding of the states over ranks, or a batch of one micro-batch of each accelerator. A trainer that splits
    layers states how far; one that only shards or copies (FSDP, ZeRO, DDP) has nothing to state. The batch has to be
    known: what states neither was cut off before its settings.
    """
    degrees = pl.all_horizontal(pl.col(name).is_null() for name in (*_DIMENSIONS, "ep"))
    has_batch = pl.col("mbs").is_not_null() | pl.col("gbs").is_not_null()
    is_sharded = (pl.col("zero_stage") > 0).fill_null(value=False) & pl.col("num_gpus").is_not_null() & has_batch
    of_all = pl.col("mbs") * pl.col("num_gpus") * pl.col("gas").fill_null(1)
    is_of_all = ((pl.col("gbs") == of_all) & (pl.col("num_gpus") > 1)).fill_null(value=False)
    is_open = _IS_OF_UNKNOWN & (is_sharded | is_of_all) & degrees
    assumed = pl.when(is_open).then(pl.lit(1, pl.Int64))
    return runs.with_columns(pl.coalesce(name, assumed).alias(name) for name in _DIMENSIONS[1:])


def _assume_place(runs: pl.DataFrame) -> pl.DataFrame:
    """Accelerators per node where no source states them: all of them on one node up to 8, else 8 (4 on GB200 and TPUs).

    CPU runs count ranks, which have no usual number per node: they are taken as one node.
    """
    usual = pl.when(pl.col("accelerator").is_in(_FOUR_PER_NODE)).then(4).otherwise(8)
    gpus = pl.col("num_gpus")
    whole_job = (gpus <= usual) | (pl.col("accelerator") == "CPU").fill_null(False)
    assumed = pl.when(whole_job).then(gpus).when(gpus % usual == 0).then(usual).cast(pl.Int64)
    is_unstated = pl.col("gpus_per_node").is_null() & pl.col("num_nodes").is_null()
    return runs.with_columns(gpus_per_node=pl.when(is_unstated).then(assumed).otherwise(pl.col("gpus_per_node")))


def _name_models(runs: pl.DataFrame) -> pl.DataFrame:
    """Canonical names for named models; unnamed ones are called by size and kind, else by their layers and width."""
    runs = runs.with_columns(
        model=pl.coalesce(identified(runs), canonical_models(runs["model"])), model_as_given=pl.col("model")
    )
    unnamed = runs.filter(pl.col("model").is_null() & pl.col("params").is_not_null())
    shapes = unnamed.select("params", "gated_mlp", "num_experts").unique()
    names = [
        name_from_shape(params, gated_mlp=gated, num_experts=experts) for params, gated, experts in shapes.iter_rows()
    ]
    named = shapes.with_columns(pl.Series("shape_name", names, dtype=pl.String))
    joined = runs.join(named, on=shapes.columns, how="left", nulls_equal=True, maintain_order="left")
    is_respelt = pl.col("model").ne_missing(pl.col("model_as_given")) & pl.col("model_as_given").is_not_null()
    # Runs of a sweep whose logs count no parameters are still of one model, as depth and width show.
    by_depth = pl.format("{} layers × {}", "num_layers", "hidden_size")
    return joined.with_columns(
        model=pl.coalesce("model", "shape_name", by_depth),
        model_logged=pl.coalesce("model_logged", pl.when(is_respelt).then("model_as_given")),
    ).drop("shape_name", "model_as_given")


def _newly_filled(before: pl.DataFrame, after: pl.DataFrame, names: tuple[str, ...], source: str) -> pl.DataFrame:
    # Nothing is ever emptied: what was filled has fewer NULLs.
    filled = [name for name in names if after[name].null_count() < before[name].null_count()]
    parts = [
        after.filter(before[name].is_null() & after[name].is_not_null()).select(
            "run_id", name=pl.lit(name), value=pl.col(name).cast(pl.String), setting_source=pl.lit(source)
        )
        for name in filled
    ]
    return pl.concat([pl.DataFrame(schema=DERIVED), *parts])


def normalise_runs(frame: pl.DataFrame, *, are_whole: bool = False) -> Normalised:
    """Canonical names and every value of `runs` that follows from the others.

    Where rows `are_whole`, as those of logs with their configurations are, a parallelism that no source of a row states
    is one that it does not use.

    Idempotent: normalising twice changes nothing and derives nothing more. Columns of `runs` that `frame` lacks are
    added as NULL. `params` must already be filled where the shape gives it (`pipeline.derive.flops.fill_params`):
    a model without a name is called by its size.
    """
    given, derived, assumed = _filled(frame, are_whole=are_whole)
    named = _name_models(assumed)
    named = named.with_columns(layout_texts(named))
    return Normalised(
        runs=named,
        derived=pl.concat(
            [
                _newly_filled(given, derived, FILLED, "derived"),
                _newly_filled(derived, assumed, FILLED, "assumed"),
                _newly_filled(given, named, ("model",), "derived"),
            ]
        ),
    )


def filled_runs(frame: pl.DataFrame, *, are_whole: bool = False) -> pl.DataFrame:
    """The runs of `normalise_runs` as they are before models are named and layouts spelt: all of FILLED."""
    return _filled(frame, are_whole=are_whole)[2]


def _filled(frame: pl.DataFrame, *, are_whole: bool) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """(`frame` in canonical words, with what follows exactly, with what is assumed where nothing states it too)."""
    given = RUNS.conform(frame)
    given = given.with_columns(
        canonical_accelerators(given["accelerator"]),
        map_words(given["precision"], canonical_precision, pl.String),
        map_words(given["recompute"], canonical_recompute, pl.String),
    )
    derived = _derive(given)
    assumed = _derive(_assume_no_context_parallelism(derived))
    if are_whole:
        assumed = _derive(_assume_no_model_parallelism(_derive(_assume_unstated_are_unused(assumed))))
    return given, derived, _derive(_assume_place(assumed))
