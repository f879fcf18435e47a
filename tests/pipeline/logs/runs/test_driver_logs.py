"""A sweep's driver prints what the log of each of its runs holds, too: each run counts once."""

from __future__ import annotations

from pathlib import Path

from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.publish import publish
from sweepscope.pipeline.store.published import connect, current
from tests.pipeline.ingest.lake_of_logs import LakeOfLogs

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 3 has a total capacity of 79.11 GiB"
LAYOUTS = ((1, 1), (2, 1), (2, 2), (4, 4))


def trial(at: int, tp: int, mbs: int, *, seed: int = 0, steps: int = 20) -> str:
    """A run with losses of its own; without steps, one that ran out of memory."""
    lines = [f"=== trial {at}: {{'tp': {tp}, 'micro_batch_size': {mbs}, 'global_batch_size': 128}} ==="]
    lines += [
        f"iter {step}/20 loss {9 - step / 10 + at / 7 + seed / 3:.4f} time {tp}.125s" for step in range(1, steps + 1)
    ]
    return "\n".join([*lines, f"trial {at} done" if steps else OOM]) + "\n"


def counted(logs: LakeOfLogs) -> list[tuple[str, str]]:
    """Log and status of each run that counts."""
    logs.ingest()
    home = Home.resolve(str(logs.path / "home"))
    publish(home)
    with connect(current(home.path)) as store:
        rows = store.sql("SELECT source_path, status FROM runs WHERE duplicate_of IS NULL ORDER BY ALL").fetchall()
    return [(Path(path).stem, status) for path, status in rows]


def sweep(logs: LakeOfLogs, *, died: int | None = None) -> None:
    """A driver's log with all trials, of which one may have died, and a log of each."""
    texts = [trial(at, *layout, steps=0 if at == died else 20) for at, layout in enumerate(LAYOUTS)]
    logs.write("sweep/driver.log", "llama3-8b (8.03B), seq 4096, 8x H100-80GB on 1 node\n" + "".join(texts))
    for at, text in enumerate(texts):
        logs.write(f"sweep/trials/trial_{at}.log", text)


def test_each_run_of_a_driver_counts_once(tmp_path: Path) -> None:
    logs = LakeOfLogs(tmp_path)
    sweep(logs)
    assert counted(logs) == [(f"trial_{at}", "completed") for at in range(4)]


def test_one_that_died_before_its_first_step_counts_once_too(tmp_path: Path) -> None:
    logs = LakeOfLogs(tmp_path)
    sweep(logs, died=3)
    assert counted(logs) == [*((f"trial_{at}", "completed") for at in range(3)), ("trial_3", "oom")]


def test_what_the_driver_states_of_all_is_known_of_each(tmp_path: Path) -> None:
    logs = LakeOfLogs(tmp_path)
    sweep(logs)
    counted(logs)
    with connect(current(Home.resolve(str(tmp_path / "home")).path)) as store:
        rows = store.sql("SELECT DISTINCT model, num_gpus, seq_len FROM runs WHERE duplicate_of IS NULL").fetchall()
    assert rows == [("Llama 3 8B", 8, 4096)]


def test_other_runs_beside_a_driver_count(tmp_path: Path) -> None:
    logs = LakeOfLogs(tmp_path)
    logs.write("sweep/driver.log", "".join(trial(at, *layout) for at, layout in enumerate(LAYOUTS)))
    for at, layout in enumerate(LAYOUTS):  # the same layouts on another day
        logs.write(f"sweep/again/trial_{at}.log", trial(at, *layout, seed=1))
    assert len(counted(logs)) == 8


def test_attempts_of_one_training_are_no_driver(tmp_path: Path) -> None:
    logs = LakeOfLogs(tmp_path)
    logs.write("sweep/train.log", f"{trial(0, 2, 1, steps=8)}{OOM}\n{trial(0, 2, 1)}")
    logs.write("sweep/other/train.log", f"another day\n{trial(0, 2, 1, steps=8)}")
    assert len(counted(logs)) == 3
