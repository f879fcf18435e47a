"""What a row leaves open and an estimate needs, filled with the commonest choice and named.

For tables that someone asks about. Nothing is fitted to such rows, and none counts for the accuracy of estimates.
"""

from __future__ import annotations

from math import ceil
from typing import Any, Final

import polars as pl

from sweepscope.pipeline.reference.models import find_model

SEQ_LEN: Final = 4096
"""Tokens of a sequence where a row states none: step time and memory go with it, throughput and MFU hardly do."""
NUM_GPUS: Final = 1024
"""Accelerators where neither they nor degrees that they follow from are stated: step time goes with them, MFU less."""
_BATCH_TOKENS: Final = 2**22
"""Tokens of a step: what LLaMA, Llama 2 and PaLM's first stage trained with (2302.13971, 2307.09288, 2204.02311)."""
_HEAD_DIM: Final = 128
_WIDTH_STEP: Final = 1024
_USUAL_VOCAB: Final = 51200


def with_assumed(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of `read_rows` with shape, sequence length, micro-batch and accumulation filled in; `assumed` names them.

    A batch whose parts are not stated is accumulated one sequence at a time. Without a batch nothing is accumulated,
    unless a pipeline needs it: then the batch is the usual one.
    """
    rows = rows.with_columns(stated_gpus=pl.col("num_gpus"))
    has_open_gpus = pl.col("num_gpus").is_null() & pl.col("dp").is_null()
    rows = rows.with_columns(num_gpus=pl.when(has_open_gpus).then(NUM_GPUS).otherwise("num_gpus"))
    seq_len = pl.coalesce("seq_len", pl.lit(SEQ_LEN, pl.Int64))
    batch = pl.coalesce("gbs", (pl.col("gbs_tokens") / seq_len).round().cast(pl.Int64))
    whole = pl.all_horizontal(pl.col("dp", "tp", "pp").is_not_null())
    has_open_mbs = whole & pl.col("mbs").is_null()
    mbs = pl.when(has_open_mbs).then(1).otherwise(pl.col("mbs"))
    is_alone = whole & batch.is_null() & pl.col("gas").is_null() & (pl.col("pp") == 1)
    is_piped = whole & batch.is_null() & pl.col("gas").is_null() & (pl.col("pp") > 1)
    usual = pl.max_horizontal(pl.lit(_BATCH_TOKENS) // seq_len, pl.col("num_gpus"))
    rounds = (pl.coalesce(batch, usual) / (pl.col("dp") * mbs)).round().cast(pl.Int64).clip(lower_bound=1)
    gas = pl.coalesce("gas", pl.when(is_alone).then(1), pl.when(whole).then(rounds))
    notes = [
        pl.when(pl.col("stated_gpus").is_null() & pl.col("num_gpus").is_not_null()).then(
            pl.lit(f"{NUM_GPUS:,} accelerators")
        ),
        pl.when(pl.col("seq_len").is_null()).then(pl.lit(f"sequences of {SEQ_LEN:,} tokens")),
        pl.when(has_open_mbs).then(pl.lit("micro-batches of one sequence")),
        pl.when(is_alone).then(pl.lit("no accumulation")),
        pl.when(is_piped).then(pl.format("{} micro-batches a step", rounds)),
    ]
    noted = rows.with_columns(
        assumed=pl.concat_str(notes, separator="; ", ignore_nulls=True), seq_len=seq_len, mbs=mbs, gas=gas
    )
    return _with_shapes(_with_experts(noted.drop("stated_gpus")))


def _with_experts(rows: pl.DataFrame) -> pl.DataFrame:
    """Experts of the stated feed-forward width, as Mixtral's are, where models without dense layers state no other."""
    is_alike = (
        (pl.col("num_experts") > 0)
        & pl.col("expert_ffn_hidden_size").is_null()
        & pl.col("ffn_hidden_size").is_not_null()
        & (pl.col("num_dense_layers").fill_null(0) == 0)
    )
    if not rows.select(is_alike.any()).item():
        return rows
    unknown = [find_model(model or "") is None for model in rows["model"]]
    is_open = is_alike & pl.lit(pl.Series(unknown, dtype=pl.Boolean))
    note = pl.concat_str(
        pl.lit("experts as wide as ffn_hidden_size"),
        pl.col("assumed").replace("", None),
        separator="; ",
        ignore_nulls=True,
    )
    return rows.with_columns(
        expert_ffn_hidden_size=pl.when(is_open).then("ffn_hidden_size").otherwise("expert_ffn_hidden_size"),
        assumed=pl.when(is_open).then(note).otherwise("assumed"),
    )


def usual_batch(num_gpus: int, seq_len: int) -> int:
    """Sequences of a step where none are stated: four million tokens, and as many on each accelerator."""
    return max(ceil(_BATCH_TOKENS / seq_len / num_gpus), 1) * num_gpus


def _with_shapes(rows: pl.DataFrame) -> pl.DataFrame:
    is_open = rows.select(pl.any_horizontal(pl.col("num_layers", "hidden_size", "num_heads").is_null())).to_series()
    if not is_open.any():
        return rows
    filled = []
    for row in rows.iter_rows(named=True):
        is_stated = row["num_layers"] and row["hidden_size"] and row["num_heads"]
        if is_stated or find_model(row["model"] or "") is not None:
            filled.append(row)
            continue
        known, notes = usual_shape(row, row["stated_params"])
        notes = [*notes, *([row["assumed"]] if row["assumed"] else [])]
        filled.append({**known, "assumed": "; ".join(notes)})
    return pl.DataFrame(filled, schema=rows.schema, orient="row")


def _usual_heads(width: int, tp: int) -> int | None:
    """Heads of as nearly 128 as divide a width and are divided by `tp`; None where no number of heads is."""
    heads = [count for count in range(tp, width + 1, tp) if width % count == 0]
    return min(heads, key=lambda count: abs(width / count - _HEAD_DIM), default=None)


def usual_shape(known: dict[str, Any], stated_params: float | None) -> tuple[dict[str, Any], list[str]]:
    """(`known` of a dense model with heads, layers and widths of GPT's proportions, notes on that).

    Heads of 128, or as nearly as tensor parallelism allows; 128 times as wide as deep, as GPT-3 and Megatron's larger
    models are (2005.14165 table 2.1, 2104.04473 table 1), and as many parameters as are stated: 12 L h^2 in the layers.
    Without parameters only heads are filled in.
    """
    known, filled = dict(known), []
    if known["num_experts"]:
        return known, []
    if stated_params and not known["hidden_size"] and not known["num_layers"]:
        width = round(128 * (stated_params / 12 / 128**2) ** (1 / 3) / _WIDTH_STEP) * _WIDTH_STEP
        known["hidden_size"] = max(width, _WIDTH_STEP)
        filled.append("hidden_size")
    if stated_params and known["hidden_size"] and not known["num_layers"]:
        known["num_layers"] = max(round(stated_params / 12 / int(known["hidden_size"]) ** 2), 1)
        filled.append("num_layers")
    if known["hidden_size"] and not known["num_heads"]:
        known["num_heads"] = _usual_heads(int(known["hidden_size"]), int(known.get("tp") or 1))
        filled.append("num_heads")
    if filled and known["hidden_size"]:
        if not known["ffn_hidden_size"] and known["gated_mlp"] is not True:
            known.update(ffn_hidden_size=4 * int(known["hidden_size"]), gated_mlp=False)
            filled.append("ffn_hidden_size")
        if not known["vocab_size"]:
            known["vocab_size"] = _USUAL_VOCAB
            filled.append("vocab_size")
        if known["tie_word_embeddings"] is None:
            known["tie_word_embeddings"] = True
    return known, [f"{', '.join(filled)} of usual proportions"] if filled else []
