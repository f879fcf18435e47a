"""nanochat's fine-tuning on conversations, behind its pretraining in one log."""

from __future__ import annotations

from pathlib import Path

from tests.pipeline.logs.logs import tables_of

BASE = "step {0:05d}/00003 (0.00%) | loss: {1} | lrm: 1.00 | dt: 512.00ms | tok/sec: 1,024,000 | mfu: 48.00 | total\n"
CHAT = "Step {0:05d}/00004 | Training loss: {1}| lrm: 0.5| num_tokens: 7,389\n"
WORLD = "2025-10-16 20:39:03,208 - nanochat.common - INFO - Distributed world size: 8\n"


def test_fine_tuning_is_a_run_of_its_own_and_what_evaluates_it_is_none(tmp_path: Path) -> None:
    base = "".join(BASE.format(step, 11 - step) for step in range(3)) + "Total training time: 0.03m\n"
    chat = "".join(CHAT.format(step, 1.5 - step / 8) for step in range(3)) + "Step 00003 | Validation loss: 1.011768\n"
    end = "✅ Saved model checkpoint to /cache/chatsft_checkpoints/d20\n" + WORLD + "Final: 355/1172 (30.29%)\n"
    runs = tables_of(tmp_path, WORLD + base + WORLD + chat + end)["runs"].sort("attempt")
    assert runs.select("last_step", "last_loss", "status").rows() == [(2, 9.0, "completed"), (2, 1.25, "completed")]
    assert runs["steps_planned"].to_list() == [3, 4]
