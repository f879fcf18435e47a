"""Notebooks' tables of losses, and what unsloth prints around them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.logs.logs import facts_of, run_of, tables_of

UNSLOTH = (
    "==((====))==  Unsloth 2025.7.11: Fast Qwen3 patching. Transformers: 4.54.0.\n"
    "   \\\\   /|    NVIDIA A100-SXM4-40GB. Num GPUs = 1. Max memory: 39.557 GB. Platform: Linux.\n"
    "==((====))==  Unsloth - 2x faster free finetuning | Num GPUs used = 1\n"
    "O^O/ \\_/ \\    Batch size per device = 2 | Gradient accumulation steps = 4\n"
    ' "-____-"     Trainable parameters = 66,060,288 of 4,088,528,384 (1.62% trained)\n'
)
TABLE = "Step\tTraining Loss\tValidation Loss\n10\t1.500000\t1.4\n20\t1.300000\t1.2\n"
CELLS = """\
<th>Step</th>
<th>Training Loss</th>
</tr>
</thead>
<tr>
<td>10</td>
<td>1.500000</td>
</tr>
<tr>
<td>20</td>
<td>1.300000</td>
</tr>
"""


def steps_of(directory: Path, text: str) -> list[tuple[int, float]]:
    return list(tables_of(directory, text)["steps"].sort("line_no").select("step", "loss").iter_rows())


@pytest.mark.parametrize("table", [TABLE, CELLS, CELLS.replace("<t", '      "<t').replace("</td>", '</td>\\n",')])
def test_rows_are_steps(tmp_path: Path, table: str) -> None:
    assert steps_of(tmp_path, table) == [(10, 1.5), (20, 1.3)]


def test_rows_without_their_header_are_none(tmp_path: Path) -> None:
    text = f"{UNSLOTH}10\t1.5\n{TABLE}some other table\n30\t9.9\n<td>7</td>\n<td>8.0</td>\n"
    assert steps_of(tmp_path, text) == [(10, 1.5), (20, 1.3)]


EPOCHS = "Epoch\tTraining Loss\tValidation Loss\n1\tNo log\t0.6\n2\t0.500000\t0.5\n"


def test_a_table_of_epochs_alone_tells_no_step(tmp_path: Path) -> None:
    tables = tables_of(tmp_path, EPOCHS)
    assert (tables["steps"].height, tables["rejects"].height) == (0, 0)
    assert tables["runs"]["framework"].to_list() == ["hf-trainer"]


@pytest.mark.parametrize("bar", [" [564/564 10:10, Epoch 3/3]\n", " [400/564 07:00 < 03:01, 1.11 it/s, Epoch 2/3]\n"])
def test_the_bar_above_tells_the_steps_of_an_epoch(tmp_path: Path, bar: str) -> None:
    assert steps_of(tmp_path, bar + EPOCHS) == [(376, 0.5)]


def test_a_row_that_logged_no_loss_is_none(tmp_path: Path) -> None:
    assert steps_of(tmp_path, TABLE.replace("1.500000", "No log")) == [(20, 1.3)]


@pytest.mark.parametrize(
    ("bar", "status"),
    [
        (" [20/20 03:42, Epoch 0/1]\n", "completed"),
        (" [ 20/250 05:10 < 1:52:11, 0.04 it/s, Epoch 0.00/1]\n", "truncated"),
        ("", "truncated"),
    ],
)
def test_the_bar_above_tells_the_end(tmp_path: Path, bar: str, status: str) -> None:
    assert run_of(tmp_path, bar + TABLE)["status"] == status


@pytest.mark.parametrize("end", ["TrainOutput(global_step=20, training_loss=1.4)", "223.1 seconds used for training."])
def test_what_a_notebook_says_behind_its_training(tmp_path: Path, end: str) -> None:
    assert run_of(tmp_path, f"{TABLE}{end}\n")["status"] == "completed"


def test_unsloths_banner_and_peak(tmp_path: Path) -> None:
    run = run_of(tmp_path, UNSLOTH + TABLE + "Peak reserved memory = 14.5 GB.\n")
    assert (run["framework"], run["num_gpus"], run["mbs"], run["gas"]) == ("hf-trainer", 1, 2, 4)
    assert run["mem_peak_reserved_bytes"] == 14.5 * 2**30
    assert "A100" in run["accelerator"]
    assert run["params"] == 4_088_528_384


def test_no_line_of_a_table_is_a_step_by_itself() -> None:
    whole = facts_of("hf-trainer", TABLE).steps
    assert whole["step"].null_count() == whole.height == 3
