from __future__ import annotations

import polars as pl
import pytest

from sweepscope.pipeline.reference.model_names import canonical_model, canonical_models, format_params, name_from_shape


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("llama-1B (1.34B)", "Llama 1.34B"),
        ("llama-80B (80B)", "Llama 80B"),
        ("MPT-70b", "MPT 70B"),
        ("Llama 2 13b", "Llama 2 13B"),
        ("MT-NLG 530B (420 nodes)", "MT-NLG 530B"),
        ("GPT 175B (MegaScale)", "GPT 175B (MegaScale)"),
        ("DeepSeek-V3", "DeepSeek-V3"),
        (" SmolLM-135M ", "SmolLM-135M"),
        ("HuggingFaceTB/SmolLM-1.7B", "SmolLM-1.7B"),
        ("/scratch/models/tiny-4M/", "tiny-4M"),
        ("Gemini / PaLM", "Gemini / PaLM"),
        ("/ckpt/qwen2.5-3b-sft/checkpoint-291", "qwen2.5-3B-sft"),
        ("/ckpt/llama3-8b/global_step100_hf/", "llama3-8B"),
        ("/data/models/checkpoint-291", "checkpoint-291"),
    ],
)
def test_names_read_well(text: str, name: str) -> None:
    assert canonical_model(text) == name
    assert canonical_model(name) == name


def test_names_of_a_column_keep_missing_ones() -> None:
    assert canonical_models(pl.Series(["MPT-7b", None])).to_list() == ["MPT 7B", None]


def test_where_a_model_was_saved_is_not_its_name() -> None:
    paths = ["/data/models/checkpoint-291", "out/step_400", "/data/llama3-8b/final"]
    assert canonical_models(pl.Series(paths)).to_list() == [None, None, "llama3-8B"]


@pytest.mark.parametrize(
    ("gated_mlp", "num_experts", "name"),
    [(True, None, "Llama 1.34B"), (False, None, "GPT 1.34B"), (None, None, "1.34B"), (True, 8, "MoE 1.34B")],
)
def test_an_unnamed_model_is_called_by_kind_and_size(
    gated_mlp: bool | None, num_experts: int | None, name: str
) -> None:
    assert name_from_shape(1_342_177_280, gated_mlp=gated_mlp, num_experts=num_experts) == name


@pytest.mark.parametrize(("params", "text"), [(999_950_000, "1B"), (12_345, "12.3K"), (671_000_000_000, "671B")])
def test_sizes_have_three_digits(params: int, text: str) -> None:
    assert format_params(params) == text
