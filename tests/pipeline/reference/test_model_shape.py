"""Parameter counts against what the models' authors state."""

from __future__ import annotations

import pytest

from sweepscope.pipeline.reference.model_shape import ModelShape
from sweepscope.pipeline.reference.models import LLAMA_2_7B, find_model, known_models, shape_of


def registry(name: str) -> ModelShape:
    row = find_model(name)
    assert row is not None, name
    return shape_of(row)


# Counts as the safetensors indexes or papers state them.
STATED = {
    "Llama 2 7B": 6_738_415_616,
    "Llama 2 13B": 13_015_864_320,
    "Llama 2 70B": 68_976_648_192,
    "Llama 3 8B": 8_030_261_248,
    "Llama 3 70B": 70_553_706_496,
    "Llama 3.1 405B": 405_853_388_800,
    "Llama 3.2 1B": 1_235_814_400,
    "Llama 3.2 3B": 3_212_749_824,
    "Mistral 7B": 7_241_732_096,
    "Mixtral 8x7B": 46_702_792_704,
    "Mixtral 8x22B": 140_620_634_112,
}


@pytest.mark.parametrize(("name", "params"), STATED.items())
def test_counts_every_parameter_of_a_llama(name: str, params: int) -> None:
    assert registry(name).params == pytest.approx(params, rel=2e-6)


@pytest.mark.parametrize(
    ("name", "total_b", "active_b"),
    [
        ("DeepSeek-V2", 236, 21),  # 2405.04434, abstract
        ("DeepSeek-V3", 671, 37),  # 2412.19437, abstract
        ("Qwen3 235B-A22B", 235, 22),
        ("Qwen3 30B-A3B", 30.5, 3.3),
        ("Mixtral 8x7B", 46.7, 12.9),
    ],
)
def test_counts_total_and_active_parameters_of_a_moe(name: str, total_b: float, active_b: float) -> None:
    shape = registry(name)
    assert shape.params / 1e9 == pytest.approx(total_b, rel=0.01)
    assert shape.active_params / 1e9 == pytest.approx(active_b, rel=0.035)


@pytest.mark.parametrize(("name", "billions"), [("GPT-3 175B", 175), ("MT-NLG 530B", 530), ("BLOOM 176B", 176.2)])
def test_counts_gpt_models_within_rounding(name: str, billions: float) -> None:
    assert registry(name).params / 1e9 == pytest.approx(billions, rel=0.005)


def test_training_flops_are_six_n_plus_attention() -> None:
    # PaLM appendix B: 6N + 12 L h s
    expected = 6 * 6_738_415_616 + 12 * 32 * 4096 * 2048
    assert LLAMA_2_7B.flops_per_token(2048) == pytest.approx(expected, rel=1e-6)


def test_every_registered_model_has_a_whole_shape() -> None:
    for name in known_models():
        shape = registry(name)
        assert shape.params > 0.1e9
        assert shape.active_params <= shape.params
        assert shape.num_heads % shape.num_kv_heads == 0
