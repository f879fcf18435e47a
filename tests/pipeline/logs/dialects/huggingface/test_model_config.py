"""The configuration of a model that transformers prints while it loads it."""

from __future__ import annotations

from pathlib import Path

from tests.pipeline.logs.logs import run_of

CONFIG = """\
[INFO|configuration_utils.py:768] 2025-02-11 10:31:08,405 >> Model config Qwen2MoeConfig {
  "_name_or_path": "Qwen/Qwen1.5-MoE-A2.7B",
  "architectures": [
    "Qwen2MoeForCausalLM"
  ],
  "hidden_act": "silu",
  "hidden_size": 2048,
  "intermediate_size": 5632,
  "moe_intermediate_size": 1408,
  "num_attention_heads": 16,
  "num_experts": 60,
  "num_experts_per_tok": 4,
  "num_hidden_layers": 24,
  "num_key_value_heads": 16,
  "sliding_window": null,
  "tie_word_embeddings": false,
  "vision_config": {
    "hidden_size": 1280,
    "num_hidden_layers": 2
  },
  "vocab_size": 151936
}

{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': 0.1}
"""


def test_its_fields_are_the_shape_of_the_model(tmp_path: Path) -> None:
    run = run_of(tmp_path, CONFIG)
    shape = ("num_layers", "hidden_size", "num_heads", "num_kv_heads", "vocab_size", "num_experts", "experts_per_token")
    assert [run[name] for name in shape] == [24, 2048, 16, 16, 151936, 60, 4]
    assert (run["expert_ffn_hidden_size"], run["gated_mlp"], run["tie_word_embeddings"]) == (1408, True, False)
    assert "Qwen1.5" in run["model"]


def test_a_path_is_no_name_and_experts_without_a_width_have_the_layers(tmp_path: Path) -> None:
    text = CONFIG.replace("Qwen/Qwen1.5-MoE-A2.7B", "/data/models/mine").replace(
        '  "moe_intermediate_size": 1408,\n', ""
    )
    run = run_of(tmp_path, text)
    assert (run["expert_ffn_hidden_size"], run.get("model_logged")) == (5632, None)
