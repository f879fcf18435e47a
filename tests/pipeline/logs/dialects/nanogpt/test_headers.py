"""What nanoGPT and its kin print before their first step."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.logs.logs import run_of, settings_of_each

STEP = "step     0 | loss: 10.955029 | lr 8.3916e-07 | norm: 15.3660 | dt: 2048.00ms | tok/sec: 256000.00\n"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("defaulting to vocab_size of GPT-2 to 50304 (50257 rounded up for efficiency)", {"vocab_size": "50257"}),
        (
            "2026-03-16 - INFO - Building model with config: {'sequence_len': 128, 'n_layer': 2, 'n_head': 1, 'n_embd': 8}",
            {"seq_len": "128", "num_layers": "2", "num_heads": "1", "hidden_size": "8"},
        ),
        ("found vocab_size = 65 (inside data/shakespeare_char/meta.pkl)", {"vocab_size": "65"}),
        ("Padding vocab_size from 50257 to 50304 for efficiency", {"vocab_size": "50257"}),
        ("=> calculated gradient accumulation steps: 32", {"gas": "32"}),
        (
            "B=32 T=1024 ddp_world_size=2 train_accumulation_steps=8 tokens_per_fwdbwd=524288 args.batch_size=512",
            {"mbs": "32", "seq_len": "1024", "num_gpus": "2", "gas": "8"},
        ),
        ("grad_accum_steps = 8 // world_size", {}),
        ("Total batch size 524,288 => gradient accumulation steps: 8", {"gbs_tokens": "524288", "gas": "8"}),
        ("total desired batch size: 524288", {"gbs_tokens": "524288"}),
        ("    batch_size : int = 8*64 # batch size, in sequences, across all devices", {"gbs": "512"}),
        ("    batch_size : int = 8*64*1024 # batch size in tokens", {"gbs_tokens": "524288"}),
        ("    device_batch_size : int = 64 # batch size, in sequences, per device", {"mbs": "64"}),
        ("    device_batch_size : int = 64*1024 # batch size per device in tokens", {}),
        ("    train_batch_size: int = 2048 * 24 * 8", {"gbs_tokens": "393216"}),
        ("    sequence_length : int = 64*1024 # sequence length, in tokens", {"seq_len": "65536"}),
        (
            "Running pytorch 2.5.1+cu124 compiled for CUDA 12.4",
            {"torch_version": "2.5.1+cu124", "cuda_version": "12.4"},
        ),
        (
            "Running PyTorch 2.11.0+cu128 compiled for CUDA 12.8 on NVIDIA H100 NVL with world_size 2",
            {
                "torch_version": "2.11.0+cu128",
                "cuda_version": "12.8",
                "accelerator": "NVIDIA H100 NVL",
                "num_gpus": "2",
            },
        ),
        ("print0(f'Running PyTorch {torch.version.__version__} compiled for CUDA {torch.version.cuda}')", {}),
    ],
)
def test_a_line(line: str, found: dict[str, str]) -> None:
    assert settings_of_each("nanogpt", [line]) == [found]


@pytest.mark.parametrize(
    ("device", "gpus", "accelerator"),
    [("cuda", 1, None), ("cpu", 1, "CPU"), ("cuda:3", None, None)],
)
def test_a_device_without_a_number_is_that_of_the_only_process(
    tmp_path: Path, device: str, gpus: int | None, accelerator: str | None
) -> None:
    run = run_of(tmp_path, f"using device: {device}\n{STEP}")
    assert (run.get("num_gpus"), run.get("dp"), run.get("accelerator")) == (gpus, gpus, accelerator)


def test_parameters_are_those_of_all_tensors(tmp_path: Path) -> None:
    tensors = (
        "num decayed parameter tensors: 50, with 124,318,720 parameters\n"
        "num non-decayed parameter tensors: 98, with 121,344 parameters\n"
    )
    assert run_of(tmp_path, tensors + STEP)["params"] == 124_440_064
    printed = "number of parameters: 123.59M\n"  # without those of the positions
    assert run_of(tmp_path, printed + tensors + STEP)["params"] == 123_590_000


def test_micro_batches_of_all_ranks_and_of_one_tell_how_many_there_are(tmp_path: Path) -> None:
    text = "Tokens / micro-batch / rank: 32 x 2048 = 65,536\nTokens / micro-batch: 524,288\n"
    run = run_of(tmp_path, text + STEP)
    assert [run[name] for name in ("mbs", "seq_len", "num_gpus", "dp")] == [32, 2048, 8, 8]
