"""Starts trainings, a few at a time, each in its own folder."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.real.trainings import Training

_SCRIPTS = Path(__file__).parent / "scripts"
_LIMIT_S = 600


def truth_of(folder: Path, training: Training) -> Path:
    """Where a training writes down what it was."""
    return folder / "truth" / f"{training.name}.json"


def train(
    trainings: Iterable[Training],
    folder: Path,
    *,
    python: Path,
    nanogpt: Path | None,
    at_once: int,
    beside: Callable[[threading.Event], None],
) -> None:
    """Run all trainings into `folder`/sweep while `beside` does something else, until its event is set."""
    is_over = threading.Event()
    watcher = threading.Thread(target=beside, args=(is_over,))
    watcher.start()
    try:
        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(lambda training: _train(training, folder, python, nanogpt), trainings))
    finally:
        is_over.set()
        watcher.join()


def _train(training: Training, folder: Path, python: Path, nanogpt: Path | None) -> None:
    place, truth = folder / "sweep" / training.name, truth_of(folder, training)
    for each in (place, truth.parent):
        each.mkdir(parents=True, exist_ok=True)
    start = [str(python)]
    if training.processes > 1:
        start += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={training.processes}"]
    checkout = ["--checkout", str(nanogpt)] if training.script == "train_nanogpt.py" else []
    for number, options in enumerate(training.launches, 1):
        name = f"train_{number}.log" if training.has_log_each else "train.log"
        command = [*start, str(_SCRIPTS / training.script), "--truth", str(truth), *checkout, *options]
        with (place / name).open("ab") as log:
            subprocess.run(
                command,
                cwd=place,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=_surroundings(training),
                timeout=_LIMIT_S,
                check=False,
            )
    if not truth.exists():
        sys.stderr.write(f"{training.name} did not start: see {place}\n")


def _surroundings(training: Training) -> dict[str, str]:
    """The environment without this interpreter's paths, and without anything that asks the internet."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "WANDB", "SWEEPSCOPE"))}
    if not training.is_buffered:
        ours["PYTHONUNBUFFERED"] = "1"
    # Many steps are quick ones.
    ours["REAL_PACE_S"] = "0.03" if "many" in training.name else "0.2"
    return ours | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "COLUMNS": "120"}
