"""Lines by which a script of any framework says that it is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.logs.logs import run_of, tables_of

STEPS = "".join(
    f"step:{step}/20000 train_loss:{9 - step / 9:.4f} train_time:131ms step_avg:43.5ms\n" for step in range(1, 9)
)


@pytest.mark.parametrize(
    ("line", "is_end"),
    [
        ("stopping_early: wallclock_cap train_time:600038ms step:13780/20000", True),
        ("Training complete! Saving to out/", True),
        ("[2026-01-31 12:00:00] INFO - Training finished in 3.2 h", True),
        ("2026-01-31 12:00:00,123 | INFO | train.py:88 - Finished training.", True),
        ("EarlyStopping: early stopping triggered, no improvement in 3 evaluations", True),
        ("Epoch 3: training done, validating", False),
        ("finished in 14.1 s", True),
        ("[rank0] all done in 1:02:11", True),
        ("\tElapsed (wall clock) time (h:mm:ss or m:ss): 1:23.40\n\tExit status: 0", True),
        ("done. best val loss 2.31. total time 24.8s", True),
        ("[main] Finished! Final loss: 2.31", True),
        ("*** ALL DONE ***", True),
        ("submitit INFO (2026-11-04 08:40:00,104) - Job completed successfully", True),
        ("2026-11-05 10:15:01,220 sagemaker-training-toolkit INFO     Reporting training SUCCESS", True),
        ("[2026-06-26 18:39:46] run complete @ step 11295: 1362.22 min training time; 182.2/192 GPU-h used", True),
        ("job finished: 300 epochs, epoch 300 is the best", True),
        ("run complete: 3 of 8 trials", False),
        ("saving checkpoint ... done. best so far", False),
        ("Job completed successfully, says the probe of the cache", False),
        ("Done.", False),
        ("compilation finished in 3.1 s", False),
        ("saved before training completed", False),
        ("Early stopping after 3 evaluations without improvement", False),
        ("resume once training complete", False),
        ("[EARLY STOP] no gain in 5 epochs, best val_loss=2.27 at epoch 18", True),
        ("Epoch 11: early stopping", True),
        ("Early stopping: patience exhausted", True),
        ("EarlyStopping counter: 3 out of 5", False),
        ("[EARLY STOP] counter 3/5", False),
        ("2 more epochs until early stopping", False),
        ("early stopping: true", False),
        ("+ exit 0", True),
        ("Successfully completed.\n\nResource usage summary:\n", True),
        ("Job ID: 88124\nState: COMPLETED (exit code 0)\nCores per node: 16", True),
        ("88124  train  gpu  ab  16  COMPLETED  0:0", True),
        ("wandb: Waiting for W&B process to finish... (success).", True),
    ],
)
def test_a_line_says_that_a_script_is_done(line: str, is_end: bool, tmp_path: Path) -> None:
    tables = tables_of(tmp_path, f"{STEPS}{line}\n")
    assert ("finished" in tables["events"]["kind"].to_list()) == is_end
    assert tables["runs"]["status"].item() == ("completed" if is_end else "truncated")
    assert run_of(tmp_path, f"{line}\n{STEPS}")["status"] == "truncated", "steps follow"


def test_a_script_that_failed_behind_it_has_crashed(tmp_path: Path) -> None:
    text = f"{STEPS}Training complete!\nTraceback (most recent call last):\nValueError: no such folder\n"
    assert run_of(tmp_path, text)["status"] == "crash"
