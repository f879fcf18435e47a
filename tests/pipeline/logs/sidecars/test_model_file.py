"""The shape in transformers' `config.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sweepscope.pipeline.logs.sidecars.model_file import read_model_config
from tests.pipeline.logs.logs import tables_of

LLAMA: dict[str, Any] = {
    "_name_or_path": "meta-llama/Meta-Llama-3-8B",
    "architectures": ["LlamaForCausalLM"],
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "model_type": "llama",
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
    "vocab_size": 128256,
}


def test_llama() -> None:
    assert dict(read_model_config(json.dumps(LLAMA))) == {
        "num_layers": "32",
        "hidden_size": "4096",
        "num_heads": "32",
        "num_kv_heads": "8",
        "ffn_hidden_size": "14336",
        "vocab_size": "128256",
        "gated_mlp": "true",
        "tie_word_embeddings": "false",
        "model": "meta-llama/Meta-Llama-3-8B",
    }


def test_names_of_gpt2() -> None:
    config = {
        "model_type": "gpt2",
        "n_layer": 12,
        "n_embd": 768,
        "n_head": 12,
        "n_inner": None,
        "vocab_size": 50257,
        "activation_function": "gelu_new",
        "_name_or_path": "/scratch/me/gpt2",
    }
    said = dict(read_model_config(json.dumps(config)))
    assert said == {"num_layers": "12", "hidden_size": "768", "num_heads": "12", "vocab_size": "50257"}


def test_mixtures() -> None:
    mixtral = LLAMA | {"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}
    said = read_model_config(json.dumps(mixtral))
    assert (said["num_experts"], said["experts_per_token"], said["expert_ffn_hidden_size"]) == ("8", "2", "14336")
    deepseek = LLAMA | {"n_routed_experts": 64, "moe_intermediate_size": 1408, "first_k_dense_replace": 1}
    said = read_model_config(json.dumps(deepseek | {"kv_lora_rank": 512, "q_lora_rank": None}))
    assert (said["num_experts"], said["expert_ffn_hidden_size"], said["num_dense_layers"]) == ("64", "1408", "1")
    assert said["kv_lora_rank"] == "512"
    assert "q_lora_rank" not in said


def test_the_language_model_of_a_model_that_sees() -> None:
    config = {"model_type": "gemma3", "text_config": LLAMA, "vision_config": {"hidden_size": 1152}}
    assert read_model_config(json.dumps(config))["hidden_size"] == "4096"


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"hidden_size": 1, "num_hidden_layers": 2}', '{"model_type": "llama"}', "x"]
)
def test_another_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_model_config(text)


def test_beside_a_log_it_is_the_model_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    text = "***** Running training *****\n{'loss': 2.5, 'grad_norm': 1.2, 'learning_rate': 1e-05, 'epoch': 0.01}\n"
    runs = tables_of(tmp_path, text)["runs"]
    assert runs.select("framework", "model", "num_layers").rows() == [("hf-trainer", "Llama 3 8B", 32)]


def test_it_makes_no_run_of_a_text_beside_it(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    assert tables_of(tmp_path, "a note\n", name="note.txt")["runs"].is_empty()
