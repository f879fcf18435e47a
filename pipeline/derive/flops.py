"""Parameters and FLOPs per token of runs, from their shapes.

FLOPs per token are 6N + 12Lhs, with N the active parameters (PaLM, Chowdhery et al. 2022, appendix B; Korthikanti et
al., 2205.05198), and without recomputation. Frameworks print different parts of one model: a shape, rounded parameters
or a name. Runs of one model must not be ranked by different FLOPs, so a registered model has those of its registered
shape, whatever its framework prints, and `flops_basis` names what the others rest on.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.reference.model_identity import SHAPE, registered_shape
from sweepscope.schemas.thresholds import LABEL_TOLERANCE

_col = pl.col

_SIZE_IN_NAME = r"(?i)(?:^|[^a-z0-9.])(?<size>\d+(?:\.\d+)?) ?(?<unit>[bm])(?:$|[^a-z0-9])"
_SPARSE_NAME = r"(?i)moe|\d+x\d|[^a-z]a\d+(?:\.\d+)?b"

FORMULA = "flops_formula"
"""Column of `model_flops` that `runs` lacks: the formula, for `mfu_basis`."""


def _attention_width() -> pl.Expr:
    """Width over all heads: hidden_size unless the model has heads of another width (PaLM, Qwen3)."""
    return pl.coalesce(_col("num_heads") * _col("head_dim"), "hidden_size")


def _attention_params() -> pl.Expr:
    """Q and O: hidden x (heads x head width). K and V: hidden x (KV heads x head width). See also `_latent_params`."""
    width = _attention_width()
    kv_width = width * _col("num_kv_heads") / _col("num_heads")
    plain = _col("hidden_size") * (2 * width + 2 * kv_width)
    return pl.when(_col("kv_lora_rank").is_null()).then(plain).otherwise(_latent_params())


def _latent_params() -> pl.Expr:
    """Latent attention (DeepSeek-V2, 2405.04434, section 2.1): queries down and up (or in one step), keys and values
    down with the rotary key, and up, and the output. NULL unless rank, rotary part and head width are known.
    """
    hidden, rope, values = _col("hidden_size"), _col("qk_rope_head_dim"), _col("num_heads") * _col("head_dim")
    queries = values + _col("num_heads") * rope
    rank = _col("q_lora_rank")
    query = pl.when(rank > 0).then((hidden + queries) * rank).when(rank == 0).then(hidden * queries)
    return query + hidden * (_col("kv_lora_rank") + rope) + _col("kv_lora_rank") * 2 * values + values * hidden


def _mlp_params(width: pl.Expr) -> pl.Expr:
    matrices = pl.when(_col("gated_mlp")).then(3).when(~_col("gated_mlp")).then(2)
    return matrices * _col("hidden_size") * width


def _shape_params(experts_counted: str) -> pl.Expr:
    """Parameters that the shape implies, counting `experts_counted` routed experts per layer; NULL unless all is known.

    Norm weights are counted (2L + 1 vectors), biases and learned positions are not: under 0.1 % of any model here.
    """
    hidden, layers = _col("hidden_size"), _col("num_layers")
    embeddings = _col("vocab_size") * hidden * pl.when(_col("tie_word_embeddings")).then(1).otherwise(2)
    outside_mlp = layers * _attention_params() + (2 * layers + 1) * hidden + embeddings
    dense = layers * _mlp_params(_col("ffn_hidden_size"))

    dense_layers = _col("num_dense_layers")
    per_expert_layer = (
        _col(experts_counted) * _mlp_params(_col("expert_ffn_hidden_size"))
        + _mlp_params(_col("shared_expert_ffn_hidden_size"))
        + _col("num_experts") * hidden  # the router
    )
    first_layers = pl.when(dense_layers == 0).then(0.0).otherwise(dense_layers * _mlp_params(_col("ffn_hidden_size")))
    sparse = first_layers + (layers - dense_layers) * per_expert_layer

    is_tying_known = _col("tie_word_embeddings").is_not_null()
    mlp = pl.when(_col("num_experts").is_null()).then(dense).otherwise(sparse)
    return pl.when(is_tying_known).then(outside_mlp + mlp).round().cast(pl.Int64, strict=False)


def _assumed_params() -> pl.Expr:
    """Parameters of a dense model by layers, width and vocabulary alone, with the usual choice for what is not stated.

    As many KV heads as heads; an MLP of 8 h^2, which both the plain one of width 4h and the gated one of width 8h/3
    have (Shazeer 2020, 2002.05202, section 2); gated if its stated width is not 4h; one embedding matrix, since a
    lookup costs no FLOPs. Of a model with experts, as many of the parameters that attention and embeddings leave as
    experts are active. NULL for latent attention: it has no usual choice.
    """
    hidden, attention = _col("hidden_size"), _assumed_attention()
    is_gated = _col("gated_mlp").fill_null(_col("ffn_hidden_size") != 4 * hidden)
    stated_mlp = pl.when(is_gated).then(3).otherwise(2) * hidden * _col("ffn_hidden_size")
    embeddings = _col("vocab_size") * hidden * pl.when(~_col("tie_word_embeddings")).then(2).otherwise(1)
    dense = _col("num_layers") * (attention + pl.coalesce(stated_mlp, 8.0 * hidden * hidden)) + embeddings
    share = _col("experts_per_token") / _col("num_experts")
    sparse = _col("num_layers") * attention + _col("vocab_size") * hidden + _params_of_experts() * share
    total = pl.when(_col("num_experts").is_null()).then(dense).otherwise(sparse)
    return pl.when(_col("kv_lora_rank").is_null()).then(total)


def _assumed_attention() -> pl.Expr:
    """Parameters of a layer's attention, with as many KV heads as heads unless stated."""
    kv_share = (_col("num_kv_heads") / _col("num_heads")).fill_null(1.0)
    return _col("hidden_size") * pl.coalesce(_attention_width(), "hidden_size") * (2 + 2 * kv_share)


def _params_of_experts() -> pl.Expr:
    """What attention and embeddings, two matrices unless they are tied, leave of the stated parameters for experts.

    NULL of models that have dense layers or shared experts besides, and where nothing is left.
    """
    matrices = pl.when(_col("tie_word_embeddings")).then(1).otherwise(2)
    left = (
        _col("params") - _col("num_layers") * _assumed_attention() - matrices * _col("vocab_size") * _col("hidden_size")
    )
    is_all = (_col("num_dense_layers").fill_null(0) == 0) & (_col("shared_expert_ffn_hidden_size").fill_null(0) == 0)
    return pl.when(is_all & (left > 0)).then(left)


def fill_expert_width(runs: pl.DataFrame) -> pl.DataFrame:
    """`runs` with the MLP's width as that of each expert, where the stated parameters show that it is.

    Configurations of models without dense layers often have one width, as Mixtral's `intermediate_size`.
    """
    width = _col("ffn_hidden_size")
    each = _col("num_layers") * _col("num_experts") * _col("hidden_size") * width
    is_of_expert = pl.any_horizontal(
        ((_params_of_experts() - matrices * each) / _col("params")).abs() < LABEL_TOLERANCE for matrices in (2, 3)
    )
    found = pl.when(is_of_expert).then(width)
    return runs.with_columns(expert_ffn_hidden_size=pl.coalesce("expert_ffn_hidden_size", found))


def _named_size() -> pl.Expr:
    """Parameters in the name of a dense model: 13e9 of `ours-13b`. NULL where the name tells of experts (`30B-A3B`)."""
    found = _col("model").str.extract_groups(_SIZE_IN_NAME)
    size = found.struct["size"].cast(pl.Float64) * pl.when(found.struct["unit"].str.to_lowercase() == "b").then(
        1e9
    ).otherwise(1e6)
    is_sparse = _col("num_experts").is_not_null() | _col("model").str.contains(_SPARSE_NAME)
    return pl.when(~is_sparse).then(size)


def fill_params(runs: pl.DataFrame) -> pl.DataFrame:
    """`params` and `active_params` from the shape where it is complete, else as given; and the label check.

    A given `params` that differs from its shape by more than LABEL_TOLERANCE puts the run in quarantine: the label
    names another model than the one that ran.
    """
    shape = runs.with_columns(from_shape=_shape_params("num_experts"), active=_shape_params("experts_per_token"))
    is_mislabelled = ((_col("from_shape") / _col("params") - 1).abs() > LABEL_TOLERANCE).fill_null(False)
    reason = pl.format(
        "the shape has {}B parameters, the label says {}B",
        (_col("from_shape") / 1e9).round(1),
        (_col("params") / 1e9).round(1),
    )
    return shape.with_columns(
        quarantine_reason=pl.coalesce("quarantine_reason", pl.when(is_mislabelled).then(reason)),
        params=pl.coalesce("from_shape", "params"),
        active_params=pl.coalesce("active", "active_params", pl.when(_col("num_experts").is_null()).then("params")),
    ).drop("from_shape", "active")


def _attention_flops() -> pl.Expr:
    """12 L (heads x head width) s per token: scores and values, forward and backward.

    Latent attention scores over a head and its rotary part: 6 L s (queries + values). NULL where that is not known.
    """
    per_layer = 12.0 * _attention_width()
    latent = 6.0 * _col("num_heads") * (2 * _col("head_dim") + _col("qk_rope_head_dim"))
    width = pl.when(_col("kv_lora_rank").is_null()).then(per_layer).otherwise(latent)
    return width * _col("num_layers") * _col("seq_len")


def _registered_flops(runs: pl.DataFrame) -> pl.DataFrame:
    """FLOPs per token by the registered shape of each row's model, and whether its attention is latent.

    NULL where the model or the sequence length is unknown, or the row contradicts the registered shape.
    """
    asked = runs.select("model", "seq_len", "params", *SHAPE)
    distinct = asked.unique().drop_nulls(["model", "seq_len"])
    shapes = [registered_shape(row) for row in distinct.iter_rows(named=True)]
    flops = [shape and shape.flops_per_token(length) for shape, length in zip(shapes, distinct["seq_len"], strict=True)]
    found = distinct.with_columns(
        pl.Series("registered", flops, dtype=pl.Float64),
        pl.Series("registered_is_latent", [shape and shape.kv_lora_rank > 0 for shape in shapes], dtype=pl.Boolean),
    )
    joined = asked.join(found, on=asked.columns, how="left", nulls_equal=True, maintain_order="left")
    return joined.select("registered", "registered_is_latent")


def model_flops(runs: pl.DataFrame) -> pl.DataFrame:
    """`flops_per_token`, `flops_basis` and FORMULA of each row of `runs`, whose names and parameters are complete."""
    parameters = 6.0 * _col("active_params")
    known = runs.select(
        parameters=parameters,
        stated=parameters + _attention_flops(),
        assumed=6.0 * _assumed_params() + _attention_flops(),
        named=6.0 * _named_size(),
        is_shape_stated=_shape_params("experts_per_token").is_not_null(),
        is_latent=_col("kv_lora_rank").is_not_null(),
    ).hstack(_registered_flops(runs))
    basis = (
        pl.when(_col("registered").is_not_null())
        .then(pl.lit("registered_shape"))
        .when(_col("stated").is_not_null() & _col("is_shape_stated"))
        .then(pl.lit("stated_shape"))
        .when(_col("stated").is_not_null())
        .then(pl.lit("parameters_and_attention"))
        .when(_col("parameters").is_not_null())
        .then(pl.lit("parameters"))
        .when(_col("assumed").is_not_null())
        .then(pl.lit("assumed_shape"))
        .when(_col("named").is_not_null())
        .then(pl.lit("named_size"))
    )
    formula = (
        pl.when(basis == "parameters")
        .then(pl.lit("6N, attention left out"))
        .when(basis == "assumed_shape")
        .then(pl.lit("6N + 12Lhs, N by the usual shape"))
        .when(basis == "named_size")
        .then(pl.lit("6N, N by the model's name, attention left out"))
        .when(pl.coalesce("registered_is_latent", "is_latent"))
        .then(pl.lit("6N + 6Ls(q + v)"))
        .otherwise(pl.lit("6N + 12Lhs"))
    )
    flops = pl.coalesce("registered", "stated", "parameters", "assumed", "named")
    return known.select(flops.alias("flops_per_token"), basis.alias("flops_basis"), formula.alias(FORMULA))
