"""Settings in the names of directories and files."""

from __future__ import annotations

import pytest

from sweepscope.pipeline.logs.sidecars.folder_name import read_folder_name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "dp2_tp1_pp1_cp1_mbs8_ga4_sl256",
            {"dp": "2", "tp": "1", "pp": "1", "cp": "1", "mbs": "8", "gas": "4", "seq_len": "256"},
        ),
        (
            "8_dp2_tp4_pp1_acc16_mbs2_seq4096_zero1_tpmodeRED_vocab131k",
            {"dp": "2", "tp": "4", "pp": "1", "gas": "16", "mbs": "2", "seq_len": "4096", "zero_stage": "1"},
        ),
        ("run-TP2-lbs160-seq128", {"tp": "2", "mbs": "160", "seq_len": "128"}),
        ("tp=4,pp=2", {"tp": "4", "pp": "2"}),
        ("bs4_ga2_ddp8", {"arg:named_batch": "4", "gas": "2", "arg:named_ranks": "8"}),
        ("bs8_acc95", {"arg:named_batch": "8"}),
        ("slurm-2631.out", {}),
        ("checkpoints-2026", {}),
        ("b200_qwen3_14b_run345_mxfp8.log", {"model": "Qwen3 14B"}),
        ("llama-3.1-8b-tp2-4nodes", {"model": "Llama 3 8B", "num_nodes": "4", "tp": "2"}),
        ("8-gpus", {"num_gpus": "8"}),
        ("llama3-8b_vs_qwen3-14b", {}),
        ("my7b_nodes", {}),
        ("setup2", {}),
        ("http2-dump", {}),
        ("", {}),
    ],
)
def test_names(name: str, expected: dict[str, str]) -> None:
    assert read_folder_name(name) == expected


def test_a_name_that_contradicts_itself_says_nothing_of_that() -> None:
    assert read_folder_name("tp2_vs_tp4_pp1") == {"pp": "1"}


def test_leading_zeros_are_not_octal() -> None:
    assert read_folder_name("tp08") == {"tp": "8"}
