"""One name for one model over frameworks, and no name for what is another model."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from sweepscope.pipeline.derive.complete import complete_runs
from sweepscope.pipeline.reference.model_identity import registered_name

SHAPE: dict[str, Any] = {
    "num_layers": 32,
    "hidden_size": 4096,
    "num_heads": 32,
    "num_kv_heads": 8,
    "ffn_hidden_size": 14336,
    "gated_mlp": True,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
}


def names(**run: Any) -> tuple[str | None, str | None]:
    """`model` and `model_logged` of one run."""
    runs = complete_runs(pl.DataFrame([{"run_id": "a", "origin": "measured", **run}])).runs
    assert complete_runs(runs).runs.equals(runs)
    return runs.select("model", "model_logged").row(0)


@pytest.mark.parametrize(
    "logged",
    ["llama3 8B", "meta-llama/Llama-3.1-8B", "/models/Meta-Llama-3-8B-Instruct", "Llama 3.1 8B", "llama3-8b"],
)
def test_spellings_of_one_model(logged: str) -> None:
    assert names(model=logged) == ("Llama 3 8B", logged)
    assert names(model=logged, **SHAPE) == ("Llama 3 8B", logged)


def test_a_shape_that_nobody_named() -> None:
    assert names(**SHAPE) == ("Llama 3 8B", None)
    assert names(**{**SHAPE, "vocab_size": 128256 + 1000}) == ("Llama 3 8B", None)


@pytest.mark.parametrize(
    "change", [{"vocab_size": 150_000}, {"num_layers": 33}, {"num_experts": 8}, {"num_kv_heads": 32}]
)
def test_another_shape_is_another_model(change: dict[str, Any]) -> None:
    assert names(**{**SHAPE, **change})[0] != "Llama 3 8B"
    assert names(model="my-llama", **{**SHAPE, **change}) == ("my-llama", None)


def test_a_part_of_a_model_keeps_the_name_its_source_gives_it() -> None:
    assert names(model="deepseek-v3", num_layers=4, hidden_size=7168) == ("deepseek-v3", None)
    assert names(model="deepseek-v3", num_layers=61, hidden_size=7168)[0] == "DeepSeek-V3"


@pytest.mark.parametrize("params", [1_235_814_400, 1_235_814_400 + 128_256 * 2048])  # tied, and with a head of its own
def test_a_name_of_a_framework_is_told_by_counted_parameters(params: int) -> None:
    assert names(model="llama3 1B", params=params)[0] == "Llama 3.2 1B"


def test_a_name_of_a_framework_stays_where_another_model_was_counted() -> None:
    assert names(model="llama3 1B", params=1_400_000_000)[0] == "llama3 1B"  # a fork's shape
    assert names(model="llama3 1B")[0] == "llama3 1B"
    assert names(model="llama3 1B", params=1_235_814_400, num_layers=18)[0] == "llama3 1B"
    assert names(model="my-llama", params=1_235_814_400)[0] == "my-llama"


def test_numbers_that_stand_apart_are_no_longer_number() -> None:
    assert names(model="llama3 3B", params=3_212_749_824)[0] == "Llama 3.2 3B"
    assert names(model="llama3 3B")[0] == "llama3 3B"
    assert names(model="llama-33b")[0] == "LLaMA 30B"


def test_smollm2_has_one_name_in_three_frameworks() -> None:
    shape = {"num_layers": 24, "hidden_size": 2048, "num_heads": 32, "num_kv_heads": 32, "ffn_hidden_size": 8192}
    assert names(model="HuggingFaceTB/SmolLM2-1.7B", num_layers=24)[0] == "SmolLM2 1.7B"
    assert names(model="smollm2 1.7B", params=1_711_376_384)[0] == "SmolLM2 1.7B"
    assert names(**shape, gated_mlp=True, vocab_size=49_152, tie_word_embeddings=True)[0] == "SmolLM2 1.7B"
    assert names(model="SmolLM-1.7B", params=1_711_376_384)[0] == "SmolLM-1.7B"


def test_published_names_stay() -> None:
    assert names(model="Llama 3.1 8B", origin="published") == ("Llama 3.1 8B", None)


def test_ones_own_name_stays() -> None:
    assert names(model="org/my-own-8b", **SHAPE) == ("my-own-8B", "org/my-own-8b")


def test_a_name_that_is_not_known() -> None:
    assert registered_name("llama2_70b_lora") is None


def test_a_smaller_vocabulary_on_a_shared_shape_names_no_model() -> None:
    shape = {"num_layers": 32, "hidden_size": 4096, "num_heads": 32, "num_kv_heads": 8, "ffn_hidden_size": 14336}
    assert names(**shape, vocab_size=32_000)[0] not in {"Mistral 7B", "Llama 3 8B"}
    assert names(**shape, vocab_size=128_256)[0] == "Llama 3 8B"
    assert names(model="mistral-7b", **shape, vocab_size=32_000)[0] == "Mistral 7B"
