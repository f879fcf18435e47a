"""Names under which people keep logs: put aside, of ranks, of shells and schedulers."""

from __future__ import annotations

import json

import pytest

from sweepscope.pipeline.ingest.file_kinds import file_kind
from tests.pipeline.ingest_in_memory import tables_of

STEPS = 30


def log(first: float = 9.0) -> str:
    return "".join(f"step {step}/400 loss {first / (1 + step / 9):.4f} lr 1e-3\n" for step in range(STEPS))


@pytest.mark.parametrize(
    "name",
    [
        *("train.log.old", "train.log.bak", "train.log-20250304", "train.log.2025-03-04_09-12", "exp.log_0"),
        *("log.rank0", "STDOUT.rank3", "trainlog", "logfile", "cout", "typescript", "screenlog.0", "workerlog.7"),
        *("run.logs", "run_1.lst", "train.sh.po1234", "train.sh.e1234"),
    ],
)
def test_a_log_is_known_by_its_name(name: str) -> None:
    assert file_kind(name) == "log"


@pytest.mark.parametrize("name", ["catalog", "changelog", "dialog.old", "model.bak", "notes.2025-03-04", "blog"])
def test_other_names_are_none(name: str) -> None:
    assert file_kind(name) == "other"


def test_a_log_that_was_put_aside_is_a_launch_of_the_run_in_its_folder() -> None:
    files = {"a/train.log": log(), "a/train.log.old": log(8.0), "a/config.json": '{"seq_len": 2048, "mbs": 4}'}
    files |= {"a/train.err": "Traceback (most recent call last):\n  File 'train.py'\nValueError: no such folder\n"}
    runs = tables_of(files)["runs"].sort("attempt")
    assert [path.rpartition("/")[2] for path in runs["source_path"]] == ["train.log.old", "train.log"]
    assert runs["attempt"].to_list() == [1, 2]
    assert runs["steps_logged"].to_list() == [STEPS, STEPS]
    assert runs["seq_len"].to_list() == [2048, 2048]
    assert runs["status"].to_list() == ["truncated", "crash"]


def test_logs_of_ranks_behind_the_suffix_are_one_run() -> None:
    files = {f"a/train.log.rank{rank}": f"[rank {rank}] ready\n{log(9.0 + rank / 100)}" for rank in range(4)}
    assert tables_of(files)["runs"].height == 1


def test_records_named_as_a_kind_of_training_are_steps_where_they_have_losses() -> None:
    steps = "".join(f'{{"step": {step}, "loss": {9 / (1 + step / 9):.4f}, "lr": 1e-3}}\n' for step in range(STEPS))
    data = "".join(json.dumps({"step": step, "question": "3 + 4", "answer": "7"}) + "\n" for step in range(STEPS))
    chats = "".join(json.dumps({"messages": [{"role": "user"}], "loss_mask": [1]}) + "\n" for _ in range(STEPS))
    files = {"a/sft_llama8b.jsonl": steps, "b/sft_math.jsonl": data, "c/dpo_chats.jsonl": chats}
    tables = tables_of({**files, "d/logs/train.jsonl": steps, "e/train.jsonl": data})
    found = [path.rpartition("/")[2] for path in tables["runs"].sort("source_path")["source_path"]]
    assert found == ["sft_llama8b.jsonl", "train.jsonl"]
    assert tables["runs"]["steps_logged"].to_list() == [STEPS, STEPS]
