"""What is written is accepted by the framework's own configuration code, in an interpreter that has it.

SWEEPSCOPE_FRAMEWORKS_PYTHON names the interpreter (by default this one), SWEEPSCOPE_FRAMEWORKS_PATH folders with checkouts
that are no packages (`nanotron/src`, Megatron-LM), as in PYTHONPATH; `make test-accepted` makes such an interpreter. A
framework that is not there skips with the reason; docs/launch.md says which versions were tried. picotron has no code for its configuration: there it is the template in
its repository.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sweepscope.pipeline.launch.frameworks.picotron import config as picotron_config
from sweepscope.pipeline.launch.jobs import launch_files
from sweepscope.pipeline.launch.registry import FRAMEWORKS
from tests.paths import ROOT
from tests.pipeline.launch.accept import NOT_THERE, READERS
from tests.pipeline.launch.planned import EXPERTS, planned, row_of

_LAYOUTS: dict[str, list[dict[str, Any]]] = {
    "nanotron": [
        {"dp": 4, "pp": 2, "zero_stage": 1, "recompute": "full", "sequence_parallel": True},
        {"dp": 4, "cp": 2},
    ],
    "torchtitan": [{"dp": 4, "pp": 2, "zero_stage": 2, "recompute": "selective", "gas": 8}, {"zero_stage": 3}, {}],
    "megatron": [
        {"dp": 4, "pp": 2, "vpp": 2, "zero_stage": 1, "recompute": "full", "pipeline_schedule": "interleaved"},
        {"zero_stage": 3, "recompute": "selective"},
        {"model": EXPERTS, "ep": 4, "zero_stage": 1, "dp_replicate": 2},
    ],
    "megatron-bridge": [
        {"dp": 4, "pp": 2, "vpp": 2, "zero_stage": 1, "recompute": "selective", "pipeline_schedule": "interleaved"},
        {"zero_stage": 2, "recompute": "full"},
    ],
    "hf-trainer": [{"tp": 1, "dp": 16, "zero_stage": stage, "recompute": "full"} for stage in range(4)],
    "litgpt": [{"tp": 1, "dp": 16, "zero_stage": 3, "dp_replicate": 2}],
    "axolotl": [
        {"tp": 1, "dp": 8, "cp": 2, "zero_stage": 1, "recompute": "full"},
        {"tp": 1, "dp": 16, "zero_stage": 3},
    ],
}
_CASES = [(name, layout) for name, layouts in _LAYOUTS.items() for layout in layouts]

_TEMPLATE: dict[str, set[str]] = {
    "distributed": {"tp_size", "cp_size", "pp_size", "dp_size", "pp_engine", "backend", "use_cpu"},
    "model": {"name", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "dtype", "use_flash_attention"}
    | {"use_fused_adam"},
    "training": {"seed", "learning_rate", "total_train_steps", "seq_length", "micro_batch_size", "num_samples"}
    | {"gradient_accumulation_steps", "max_tokens"},
    "dataset": {"name", "subset_name", "num_workers", "num_proc"},
    "checkpoint": {"save_dir", "save_frequency", "load_path"},
    "logging": {"use_wandb", "project_name", "run_name"},
    "environment": {"OMP_NUM_THREADS", "TOKENIZERS_PARALLELISM", "FLASH_ATTEN", "HF_TOKEN"},
}
"""Sections and names of picotron's template/base_config.json."""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "layout"), _CASES, ids=[f"{name}-{at}" for at, (name, _) in enumerate(_CASES)])
def test_the_frameworks_own_code_reads_the_same_layout(name: str, layout: dict[str, Any], tmp_path: Path) -> None:
    run = planned(**layout)
    assert FRAMEWORKS[name].refusal(row_of(run)) is None
    for file, text in launch_files(run, FRAMEWORKS[name]).items():
        (tmp_path / file).write_text(text)
    done = subprocess.run(
        [os.environ.get("SWEEPSCOPE_FRAMEWORKS_PYTHON", sys.executable), _SCRIPT, name, tmp_path],
        env={**os.environ, "PYTHONPATH": _checkouts(name), "HF_HUB_OFFLINE": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode == NOT_THERE:
        pytest.skip(f"{name} is not here ({done.stderr.strip().splitlines()[-1]}); set SWEEPSCOPE_FRAMEWORKS_PYTHON")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    understood = json.loads(done.stdout.splitlines()[-1])
    wanted = row_of(run)
    assert understood == {column: wanted[column] for column in understood}


def _checkouts(name: str) -> str:
    """For those that are no packages: Megatron-Bridge wants the Megatron that was released with it."""
    return os.environ.get("SWEEPSCOPE_FRAMEWORKS_PATH", "") if name in {"nanotron", "megatron"} else ""


_SCRIPT = ROOT / "tests" / "pipeline" / "launch" / "accept.py"


def test_every_framework_with_code_of_its_own_is_tried() -> None:
    assert set(READERS) == set(_LAYOUTS) == set(FRAMEWORKS) - {"picotron"}


def test_picotrons_file_has_what_its_template_has() -> None:
    found = picotron_config(planned())
    assert set(found) == set(_TEMPLATE)
    assert all(found[section].keys() >= names for section, names in _TEMPLATE.items())
