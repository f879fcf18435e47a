"""Steps in files of the trainer's own: alone, beside a log, in checkpoints."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from sweepscope.pipeline.logs.dialects.huggingface import histories
from sweepscope.pipeline.logs.dialects.lightning import metrics_csv
from tests.pipeline.logs.logs import Tables, tables_of


def state(*steps: int, max_steps: int = 40) -> str:
    entries: list[dict[str, Any]] = [{"epoch": n / 40, "grad_norm": 1.5, "loss": 4 - n / 10, "step": n} for n in steps]
    entries.insert(1, {"epoch": 0.25, "eval_loss": 2.5, "step": steps[0]})
    return json.dumps({"global_step": steps[-1], "log_history": entries, "max_steps": max_steps}, indent=2)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def run_of(tables: Tables, *names: str) -> list[tuple[object, ...]]:
    return tables["runs"].sort("source_path").select(names).rows()


def test_state_of_the_trainer() -> None:
    steps = histories.read_trainer_state(state(10, 20))
    assert steps.select("step", "loss", "grad_norm").rows() == [(10, 3.0, 1.5), (20, 2.0, 1.5)]
    lines = state(10, 20).split("\n")
    assert [lines[n - 1].strip() for n in steps["line_no"]] == ['"step": 10', '"step": 20']


def test_running_totals_of_the_state_are_rates() -> None:
    entries = [
        {"loss": 3.0, "step": n, "train_runtime": 2.0 * n + 1, "num_input_tokens_seen": 1024 * n} for n in (10, 20)
    ]
    steps = histories.read_trainer_state(json.dumps({"log_history": entries}))
    assert steps.select("step_time_s", "tokens_per_s", "consumed_tokens").rows() == [
        (None, None, 10240),
        (2.0, 512.0, 20480),
    ]


def test_state_on_one_line_is_numbered() -> None:
    steps = histories.read_trainer_state(json.dumps(json.loads(state(10, 20))))
    assert steps["line_no"].to_list() == [1, 3]


def test_log_of_llama_factory() -> None:
    lines = [
        '{"current_steps": 5, "total_steps": 10, "loss": 1.5, "lr": 5e-05, "epoch": 0.5, "elapsed_time": "0:00:10"}',
        '{"current_steps": 8, "total_steps": 10, "loss": 1.25, "eval_loss": null, "learning_rate": 1e-05, "epoch": 0.8}',
        '{"current_steps": 10, "total_steps": 10, "eval_loss": 1.25, "epoch": 1.0}',
        '{"current_steps": 10, "total_steps": 10, "epoch": 1.0, "percentage": 100.0}',
        '{"current_steps": 10, "total_steps": 10, "lo',
    ]
    steps = histories.read_trainer_log("\n".join(lines))
    assert steps.select("line_no", "step", "steps_planned", "loss", "learning_rate").rows() == [
        (1, 5, 10, 1.5, 5e-05),
        (2, 8, 10, 1.25, 1e-05),
        (4, 10, 10, None, None),
        (5, None, None, None, None),
    ]
    assert steps["text"].to_list() == [None, None, None, lines[4]]


def test_llama_factorys_clock_and_tokens_are_rates() -> None:
    lines = [
        json.dumps(
            {"current_steps": n, "total_steps": 40, "loss": 2.5, "elapsed_time": clock, "total_tokens": 4096 * n}
        )
        for n, clock in ((10, "0:00:20"), (20, "0:00:41"), (40, "1 day, 0:00:20"))
    ]
    steps = histories.read_trainer_log("\n".join(lines))
    assert steps.select("step_time_s", "tokens_per_s").rows() == [(None, None), (None, None), (2880.0, 1.422)]


METRICS = "epoch,lr,step,train_loss_epoch,train_loss_step,val_loss\n0,1e-4,49,,2.5,\n0,,99,,2.25,\n0,,99,2.375,,2.5\n"


def test_metrics_of_lightning() -> None:
    steps = metrics_csv.read(METRICS)
    assert steps.select("line_no", "step", "loss", "learning_rate").rows() == [(2, 49, 2.5, 1e-4), (3, 99, 2.25, None)]


def test_metrics_of_nemo() -> None:
    text = "step,lr,reduced_train_loss,train_step_timing in s\n0,1e-5,11.0,5.0\n1,1e-5,10.5,2.5\n"
    assert metrics_csv.read_nemo(text)["step_time_s"].to_list() == [5.0, 2.5]
    with pytest.raises(ValueError, match="NeMo"):
        metrics_csv.read(text)


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "step,accuracy\n1,0.5\n", "run_name,status,mfu\na,completed,40\n"])
def test_another_table_of_that_name_is_left_alone(text: str, tmp_path: Path) -> None:
    write(tmp_path / "metrics.csv", text)
    tables = tables_of(tmp_path)
    assert tables["runs"].is_empty()
    assert tables["files"].select("kind", "status").rows() == [("bench_csv", "skipped")]


def test_a_run_without_a_log(tmp_path: Path) -> None:
    write(tmp_path / "trainer_state.json", state(10, 20, max_steps=20))
    assert run_of(tables_of(tmp_path), "framework", "status", "steps_logged", "last_loss") == [
        ("hf-trainer", "completed", 2, 2.0)
    ]


def test_the_newest_checkpoint_stands_for_the_run(tmp_path: Path) -> None:
    for last in (20, 30, 100):
        write(tmp_path / "out" / f"checkpoint-{last}" / "trainer_state.json", state(10, last, max_steps=200))
    tables = tables_of(tmp_path)
    assert run_of(tables, "run_dir", "last_step", "status") == [(str(tmp_path / "out"), 100, "truncated")]


def test_a_state_above_the_checkpoints_counts(tmp_path: Path) -> None:
    write(tmp_path / "out" / "checkpoint-20" / "trainer_state.json", state(10, 20))
    write(tmp_path / "out" / "trainer_state.json", state(10, 20, 40))
    assert run_of(tables_of(tmp_path), "run_dir", "last_step") == [(str(tmp_path / "out"), 40)]


def dicts(*steps: int) -> str:
    return "***** Running training *****\n" + "".join(
        f"{{'loss': {4 - n / 10}, 'epoch': 0.5, 'step': {n}}}\n" for n in steps
    )


def test_the_log_leads_where_it_holds_as_much(tmp_path: Path) -> None:
    write(tmp_path / "trainer_state.json", state(10, 20))
    tables = tables_of(tmp_path, "[INFO] [axolotl.train:1] x\n" + dicts(10, 20))
    assert run_of(tables, "framework", "source_path", "steps_logged", "steps_planned") == [
        ("axolotl", str(tmp_path / "train.log"), 2, 40)
    ]


def test_the_state_leads_where_the_log_lost_steps_and_the_log_tells_the_end(tmp_path: Path) -> None:
    write(tmp_path / "trainer_state.json", state(10, 20, 30))
    end = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    tables = tables_of(tmp_path, "[INFO] [axolotl.train:1] x\n" + dicts(10) + end)
    assert run_of(tables, "framework", "status", "steps_logged") == [("axolotl", "oom", 3)]


def test_beside_the_logs_of_several_runs_it_is_nobodys(tmp_path: Path) -> None:
    write(tmp_path / "trainer_state.json", state(10, 20, 30))
    write(tmp_path / "other.log", dicts(10))
    assert run_of(tables_of(tmp_path, dicts(10)), "steps_logged") == [(1,), (1,)]


def test_bars_of_lightning_under_a_script_of_ones_own(tmp_path: Path) -> None:
    bar = "Epoch {}: 100%|##########| {}/15 [00:10<00:00,  1.45it/s, v_num=0, train/loss={}, train/acc=0.5]"
    text = "\n".join([bar.format(0, 7, 2.5), bar.format(0, 15, 2.25), bar.format(1, 15, 2.0)])
    tables = tables_of(tmp_path, text + "`Trainer.fit` stopped: `max_epochs=2` reached.\n")
    assert run_of(tables, "framework", "status", "last_loss") == [("lightning", "completed", 2.0)]
    assert tables["steps"].sort("step")["step"].to_list() == [6, 14, 29]


def test_the_lines_of_many_entries_take_no_square_of_their_number() -> None:
    entries = ",".join(f'\n{{"step": {step}, "loss": 1.5}}' for step in range(1, 60_001))
    begin = time.process_time()
    steps = histories.read_trainer_state(f'{{"global_step": 60000, "max_steps": 60000, "log_history": [{entries}]}}')
    assert time.process_time() - begin < 5
    assert steps.select("step", "line_no").row(-1) == (60_000, 60_001)
