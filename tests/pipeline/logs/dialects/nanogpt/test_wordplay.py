"""wordplay's lines, a part of the nanoGPT dialect."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from tests.pipeline.logs.logs import run_of, step_of, tables_of

LINE = (
    "[2024-11-09 20:00:06.652694][INFO][trainer.py:892] - step=10 loss=3.25 dt=0.5 dtf=0.0065 dtb=0.015 sps=28.125 "
    "sps_per_gpu=3.5 tps=1.75e+06 tps_per_gpu=218750 mfu=46.5"
)


def test_step_line() -> None:
    step = step_of("nanogpt", LINE)
    assert (step["step"], step["loss"], step["step_time_s"]) == (10, 3.25, 0.5)
    assert (step["tokens_per_s"], step["tokens_per_s_per_gpu"], step["mfu_logged"]) == (1.75e6, 218750, 0.465)
    assert step["ts"] == datetime(2024, 11, 9, 20, 0, 6)


@pytest.mark.parametrize("end", [" mfu=46.5", " tps_per_gpu=218750 mfu=46.5", " dtf=0.0065"])
def test_a_cut_line_is_a_reject(tmp_path: Path, end: str) -> None:
    cut = LINE[: LINE.index(end)]
    tables = tables_of(tmp_path, f"{LINE}\n{cut}\n")
    assert tables["steps"]["step"].to_list() == [10]
    assert tables["rejects"]["raw"].to_list() == [cut]


def test_settings(tmp_path: Path) -> None:
    text = f"""\
      • WORLD_SIZE_TOTAL=12
      • WORLD_SIZE_IN_USE=8
    [2024-11-09 19:59:22.963818][WARNING][__main__.py:93] - {{
        "train": {{
            "max_iters": 1000,
            "compile": false
        }},
        "model": {{
            "n_layer": 12,
            "batch_size": 64,
            "block_size": 1024
        }},
        "optimizer": {{
            "gas": 2,
            "beta1": 0.9
        }}
    }}
    [2024-11-09 19:59:24.134755][INFO][model.py:255] - number of parameters: 85.00M
    {LINE}
    """
    run = run_of(tmp_path, text)
    assert (run["framework"], run["num_gpus"], run["mbs"], run["gas"]) == ("nanogpt", 8, 64, 2)
    assert (run["seq_len"], run["num_layers"], run["steps_planned"], run["params"]) == (1024, 12, 1000, 85000000)
