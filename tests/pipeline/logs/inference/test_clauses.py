"""Settings that lines state without signs, as people write them: lists of clauses, cards by nodes, a command's options."""

from __future__ import annotations

import pytest

from sweepscope.pipeline.logs.inference.settings import choose
from sweepscope.pipeline.logs.inference.stated import stated


def chosen(*lines: str) -> dict[str, str]:
    return {one.column: one.value for one in choose(stated(enumerate(lines, start=1))) if one.is_used}


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (
            "ours 6.74 B parameters (layers 32, hidden 4096, heads 32, vocab 32000)",
            {"num_layers": "32", "hidden_size": "4096", "num_heads": "32", "vocab_size": "32000"},
        ),
        ("TP=2 PP=2, seq 2048, global batch 1024 seqs, micro 4", {"seq_len": "2048", "gbs": "1024", "mbs": "4"}),
        (
            "training on 128 GPUs (16 x 8 A100-SXM4-80GB)",
            {"num_gpus": "128", "num_nodes": "16", "gpus_per_node": "8", "accelerator": "A100-SXM4-80GB"},
        ),
        (
            "0: world 32 | NVIDIA A100-SXM4-80GB | torch 2.5.1+cu124 | params 6.738B",
            {"num_gpus": "32", "params": "6738000000"},
        ),
        ("device: NVIDIA H100 80GB HBM3, 16 ranks", {"num_gpus": "16"}),
        ("Hardware: 1 x 8 H200 141GB", {"num_nodes": "1", "gpus_per_node": "8", "accelerator": "H200 141GB"}),
        (
            "sweep: 6 trials, llama3-8b (8.03B), seq 4096, 8x H100-80GB on 1 node",
            {
                "model": "llama3-8b",
                "params": "8030000000",
                "seq_len": "4096",
                "num_gpus": "8",
                "accelerator": "H100-80GB",
            },
        ),
        (
            "model llama-3-8b | 16 x H100-80GB-SXM | tp 2 | dp 8 | micro batch 2 | global batch 256 | seq len 4096",
            {"model": "llama-3-8b", "num_gpus": "16", "accelerator": "H100-80GB-SXM", "tp": "2", "gbs": "256"},
        ),
        ("use_distributed_optimizer: True", {"zero_stage": "1"}),
        ("hardware 4x8xH100", {"num_nodes": "4", "gpus_per_node": "8", "accelerator": "H100"}),
        (
            "jax.devices(): 128 x TPU v5p, process 0 of 32",
            {"num_gpus": "128", "num_nodes": "32", "accelerator": "TPU v5p"},
        ),
        ("pretrain.py model=llama3-8b tp=2 ctx=8192", {"model": "llama3-8b", "tp": "2", "seq_len": "8192"}),
        ("params: 30.53B total, 3.35B active", {"params": "30530000000", "active_params": "3350000000"}),
        ("n_active_params=3300000000", {"active_params": "3300000000"}),
    ],
)
def test_what_a_line_states_is_found(line: str, wanted: dict[str, str]) -> None:
    found = chosen(line)
    assert {column: found.get(column) for column in wanted} == wanted


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ("saved shard, layers 32", "num_layers"),  # one clause alone may be anything
        ("finished epoch 3, batch 12, layers frozen", "num_layers"),
        ("16 active experts", "active_params"),
        ("3B active tokens", "active_params"),
        ("process 3 of 32", "num_nodes"),
        ("8x H100-80GB on 4 nodes", "num_gpus"),
        ("4 nodes, 8 x A100", "num_gpus"),
        ("image 224 x 224, model resnet50", "model"),
        ("tokens seen (1.2B)", "params"),
        ("NVIDIA A100-SXM4-80GB, 8 GPUs per node", "num_gpus"),
        ("resized images 224 x 224", "num_nodes"),
        ("batch 4 x accum 16 x 4 gpus = 256 seqs of 2048", "num_gpus"),
    ],
)
def test_what_only_looks_like_a_setting_is_none(line: str, column: str) -> None:
    assert column not in chosen(line)


def test_a_rounded_size_gives_way_to_the_exact_one() -> None:
    assert chosen("train.py --model-size 7b", "model: 6.74 B parameters")["params"] == "6740000000"
    assert "params" not in chosen("train.py --model-size 7b", "model: 13.02 B parameters")
