"""Write the exports of Aim beside this file anew, with Aim itself.

    python -m venv build/aim
    build/aim/bin/pip install aim pandas
    build/aim/bin/python tests/trackers/record_aim.py

`aim/NAME.csv.gz` is what `metric.dataframe(...)` of every metric gives, concatenated as Aim's own collections do and
written by pandas; `NAME.json` has the runs with parameters and the values of each metric by step, by Aim's own API.
Recorded with aim 3.29.1 and pandas 3.0.6.
"""

# mypy: ignore-errors

from __future__ import annotations

import datetime
import gzip
import json
import tempfile
from pathlib import Path

import pandas
from aim import Repo, Run

HERE = Path(__file__).parent / "aim"
STEPS = 12


def sweep(size: int) -> tuple[dict, list]:
    config = {"parallel": {"tp": size, "pp": 1, "dp": 8 // size}, "seq_len": 4096, "micro_batch_size": 2}
    return config, [
        (step, {"loss": 9.0 / step + size, "step_time_s": 0.5 + size / 100}, {"subset": "train"})
        for step in range(1, STEPS + 1)
    ]


def trainer() -> tuple[dict, list]:
    """As transformers' callback of Aim logs: every tenth step, and evaluations in a context of their own."""
    config = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "model_type": "llama"}
    logged = [(10 * step, {"loss": 4.0 / step, "learning_rate": 1e-4}, {"subset": "train"}) for step in range(1, 13)]
    return config, [*logged, *((40 * step, {"loss": 3.5}, {"subset": "eval"}) for step in range(1, 4))]


def plain() -> tuple[dict, list]:
    return {"tp": 2, "note": 'quoted "text", with commas'}, [
        (step, {"train_loss": 7.0 / (step + 1)}, {}) for step in range(9)
    ]


def diverged() -> tuple[dict, list]:
    config, logged = sweep(2)
    return config, [*logged[:10], (11, {"loss": float("inf")}, {"subset": "train"}), (12, {"loss": float("nan")}, {})]


def nothing() -> tuple[dict, list]:
    return {"tp": 2}, [(1, {"accuracy": 0.5}, {})]


CASES = {
    "sweep": [sweep(2), sweep(4), sweep(8)],
    "trainer": [trainer()],
    "plain": [plain()],
    "diverged": [diverged()],
    "nothing": [nothing()],
}


def record(case: str) -> None:
    quiet = {"system_tracking_interval": None, "log_system_params": False, "capture_terminal_logs": False}
    repo = Repo.from_path(tempfile.mkdtemp(), init=True)
    frames, expected = [], []
    for config, logged in CASES[case]:
        run = Run(repo=repo, experiment=case, **quiet)
        run["hparams"] = config
        for step, values, context in logged:
            for name, value in values.items():
                run.track(value, name=name, step=step, context=context)
        metrics = []
        for metric in run.metrics():
            frames.append(metric.dataframe(include_run=True, include_name=True, include_context=True))
            steps, (values, _, _) = metric.data.items_list()
            metrics.append({"name": metric.name, "context": metric.context.to_dict(), "steps": steps, "values": values})
        expected.append({"hash": run.hash, "hparams": run["hparams"], "metrics": metrics})
    (HERE / f"{case}.csv.gz").write_bytes(gzip.compress(_dated(pandas.concat(frames)).to_csv().encode(), mtime=0))
    (HERE / f"{case}.json").write_text(json.dumps(expected, indent=1) + "\n")


def _dated(frame: pandas.DataFrame) -> pandas.DataFrame:
    """Times that do not hang on the machine of the recording: half a second per step."""
    start = datetime.datetime(2026, 9, 1)
    return frame.assign(time=[start + datetime.timedelta(seconds=0.5 * step) for step in frame["step"]])


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    for one in CASES:
        record(one)
