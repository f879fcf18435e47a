"""Which numbers in names of files are jobs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepscope.pipeline.ingest.job_names import job_of


@pytest.mark.parametrize(
    ("name", "job"),
    [
        ("log_410022.out", "410022"),
        ("slurm-2631.out", "2631"),
        ("slurm-2631_7.out", "2631_7"),
        ("train.o410022", "410022"),
        ("nemo.410022.err", "410022"),
        ("run.log", ""),
        ("tp8_pp4.log", ""),
        ("run_2026-01-05.log", ""),
        ("b200_qwen.log", ""),
        ("v12.out", ""),
        ("10143163.output", "10143163"),
        ("gpt2_base_n4-1832555.out", "1832555"),
        ("train_410022_3.err", "410022_3"),
        ("train_410022.log", "410022"),
        ("train-410022.out.gz", "410022"),
        ("job_410022_rank0.log", "410022"),
        ("run_slurm-2631_normal.out", "2631"),
        ("train.e410022", "410022"),
        ("410022.pbs01.OU", "410022"),
        ("config_001.log", ""),
        ("train_2024.log", ""),
        ("train_2024.out", ""),
        ("seq512.log", ""),
        ("seq_2048.out", ""),
        ("bs200000.log", ""),
        ("run-20260101-120000.log", ""),
        ("run_20260101_120000.out", ""),
        ("run-20260101120000.out", ""),
        ("run-1767225600.out", ""),
        ("train_260101.log", ""),
        ("gpt2-124.out", ""),
        ("step_12500.out", ""),
        ("lr_0001.log", ""),
        ("tokens_1300000.out", ""),
        ("sweep_17.out", ""),
    ],
)
def test_ids_in_names(name: str, job: str) -> None:
    assert job_of(name) == job


@given(st.text(alphabet=st.characters(exclude_characters="/\0"), min_size=1, max_size=20))
def test_any_name_has_one_or_none(name: str) -> None:
    assert job_of(name) == "" or job_of(name) in name
