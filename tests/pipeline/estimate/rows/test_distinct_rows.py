"""Rows that ask the same are estimated once, and the answer goes to each of them."""

from __future__ import annotations

from typing import Any

import polars as pl
from polars.testing import assert_frame_equal

from sweepscope.pipeline.estimate.rows.distinct_rows import distinct_rows
from sweepscope.pipeline.estimate.rows.estimate_rows import predict
from sweepscope.pipeline.estimate.rows.model_shape import meant_by
from sweepscope.pipeline.estimate.rows.read_rows import read_rows
from tests.pipeline.estimate.rows.test_estimate_rows import row


def read(*rows: dict[str, Any]) -> pl.DataFrame:
    texts = [{name: None if value is None else str(value) for name, value in one.items()} for one in rows]
    return read_rows(pl.DataFrame(texts, infer_schema_length=None))


def test_repeats_and_names_that_say_nothing_are_one_question() -> None:
    rows = read(row(model="mine"), row(model="yours", tp=1, dp=8), row(model="theirs"), row(model=None))
    distinct, places = distinct_rows(rows)
    assert distinct.height == 2
    assert places.to_list() == [0, 1, 0, 0]
    assert distinct["model"].to_list() == ["mine", "mine"]


def test_names_that_say_something_are_told_apart() -> None:
    # of the same shape as stated, one name is of the registry, one of its family and one of another's
    named = [
        row(model=name, gated_mlp=None, ffn_hidden_size=None) for name in ("Llama 2 7B", "llama mine", "gpt2-mine")
    ]
    assert distinct_rows(read(*named))[1].to_list() == [0, 1, 2]


def test_a_name_means_what_it_does_beside_its_own_parameters() -> None:
    size = 1_235_814_400
    assert (meant_by("llama-1b", size)[0] or {})["model"] == "Llama 3.2 1B"
    shapeless = {"num_layers": None, "hidden_size": None, "params": size}
    rows = read(row(model="llama-1b", **shapeless), row(model="Llama 3.2 1B", **{**shapeless, "params": size + 1}))
    assert distinct_rows(rows)[1].to_list() == [0, 1]


def test_answers_are_those_of_each_row_alone() -> None:
    rows = read(
        row(model="Llama 2 7B", num_layers=None),
        row(),
        row(model="llama mine", gated_mlp=None),
        row(model="another name"),
        row(model="llama yours", gated_mlp=None),
        row(model=None, tp=4, dp=2),
        row(num_layers=None),
        row(model="Llama 2 7B", num_layers=None),
    )
    alone = pl.concat([predict(rows[place]) for place in range(rows.height)])
    assert_frame_equal(predict(rows), alone)


def test_no_rows_are_no_question() -> None:
    rows = read(row()).clear()
    distinct, places = distinct_rows(rows)
    assert (distinct.height, places.len()) == (0, 0)
    assert predict(rows).height == 0
