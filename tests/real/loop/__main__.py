"""`python -m tests.real.loop`: plan, launch files, real trainings, ingest while they run, status, mend, report."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.real import environment
from tests.real.live import ingest

_HERE = Path(__file__).parent
_SEQ_LEN = 64
_BATCH_TOKENS = 16_384
"""Enough for activations to be a good part of what a run needs: of fewer, no micro-batch is small enough."""
_SHAPE = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 128,
    "intermediate_size": 352,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 512,
    "max_position_embeddings": 256,
    "tie_word_embeddings": False,
    "hidden_act": "silu",
}
_LIMIT_S = 900
"""More than the time limit that the launch file has itself."""


def main() -> int:
    """0 when all planned runs were matched, what was to fail failed, and the advice for it completed."""
    parser = argparse.ArgumentParser(prog="python -m tests.real.loop", description=__doc__)
    parser.add_argument("--picotron", type=Path, help="a checkout of picotron; without one, litgpt is what trains")
    parser.add_argument("--folder", type=Path, help="where to keep everything (default: a temporary folder)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        trainer = Trainer("picotron", 2, args.picotron.resolve()) if args.picotron else Trainer("litgpt", 1)
        return _run((args.folder or Path(scratch)).resolve(), trainer)


@dataclass(frozen=True)
class Trainer:
    """A framework that starts on a CPU with so many ranks; `checkout` holds one that is no package."""

    framework: str
    ranks: int
    checkout: Path | None = None


def _run(folder: Path, trainer: Trainer) -> int:
    home, out, config = folder / "home", folder / "runs", folder / "tiny" / "config.json"
    config.parent.mkdir(parents=True)
    config.write_text(json.dumps(_SHAPE))
    question = ["--model", config, "--nodes", "1", "--gpus-per-node", trainer.ranks, "--accelerator", "H100-SXM-80GB"]
    question += [
        "--seq-len",
        _SEQ_LEN,
        "--gbs-tokens",
        _BATCH_TOKENS,
        "--steps",
        "6",
        "--framework",
        trainer.framework,
        "--for",
        "ablation",
        "--most",
        "3",
    ]
    plan = _answer(home, "plan", *question, "--budget-gpu-hours", "1")
    name, planned = plan["plan_id"], plan["planned_runs"]
    largest = max(row["mbs"] for row in planned)
    tokens = _SEQ_LEN * largest - 1  # the largest micro-batch does not fit
    trainings = _Trainings(out, config, trainer, tokens, environment.python())
    _answer(home, "plan", "launch", name, "--framework", trainer.framework, "--out", out, "--cpu")
    live = trainings.start([row["planned_run_id"] for row in planned], home)
    status = _answer(home, "plan", "status", name, "--mend")
    rounds = 1
    while status["added"] and rounds < 5:
        _answer(home, "plan", "launch", name, "--framework", trainer.framework, "--out", out, "--cpu")
        live += trainings.start(status["added"], home)
        status = _answer(home, "plan", "status", name, "--mend")
        rounds += 1
    report = folder / "report.md"
    _answer(home, "report", "--out", report)
    return _judge(status, {row["planned_run_id"] for row in planned if row["mbs"] == largest}, live, report)


def _judge(status: dict[str, Any], too_large: set[str], live: int, report: Path) -> int:
    runs = {row["planned_run_id"]: row for row in status["runs"]}
    lines = [
        f"{name}  {row['layout']:32s} {row['plan_outcome']:9s} {row['status'] or '':10s} by {row['matched_by']} "
        f"{row['plan_change'] or ''}"
        for name, row in runs.items()
    ]
    failed = {name for name, row in runs.items() if row["status"] == "oom" and not row["mends"]}
    mended = {name for name in too_large if runs[name]["is_mended"]}
    differing = [row["layout_differs"] for row in runs.values() if row["layout_differs"] != _ON_CPU]
    faults = [
        *([f"matched {status['matched']} of {status['planned']}"] if status["matched"] != status["planned"] else []),
        *([f"out of memory were {failed}, not {too_large}"] if failed != too_large else []),
        *([f"not mended: {too_large - mended}"] if mended != too_large else []),
        *([f"other layouts: {differing}"] if differing else []),
        *([] if report.read_text() else ["the report is empty"]),
    ]
    lines.append(f"{status['matched']} of {status['planned']} matched, {live} ingests meanwhile, {len(faults)} faults")
    sys.stdout.write("\n".join([*lines, *faults, ""]))
    return 1 if faults else 0


_ON_CPU = "CPU instead of H100-SXM-80GB"


class _Trainings:
    """Starts planned runs by their own scripts, one after the other, while what is there is ingested."""

    def __init__(self, out: Path, config: Path, trainer: Trainer, tokens: int, python: Path) -> None:
        self.out, self.config, self.trainer, self.python = out, config, trainer, python
        folders = [_HERE / "surroundings", *([trainer.checkout] if trainer.checkout else [])]
        ours = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "SLURM"))}
        self.variables = ours | {
            "TORCHRUN": str(python.parent / "torchrun"),
            "TRAINER_DIR": str(trainer.checkout or ""),
            "PYTHONPATH": os.pathsep.join(map(str, folders)),
            "PYTHONUNBUFFERED": "1",
            "HF_TOKEN": "none",
            "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_CACHE": str(out.parent / "datasets"),
            "LOOP_TOKENS": str(tokens),
        }

    def start(self, names: list[str], home: Path) -> int:
        """Run them; how many ingests went through beside them. Ends with one of everything."""
        is_over, count = threading.Event(), [0]

        def watch() -> None:
            while not is_over.wait(1.0):
                ingest(self.out, home)
                count[0] += 1

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            for name in names:
                self._run(self.out / name)
        finally:
            is_over.set()
            watcher.join()
        ingest(self.out, home)
        return count[0]

    def _run(self, folder: Path) -> None:
        if self.trainer.checkout:  # picotron wants weights, a tokenizer and a data set from the hub
            model = json.loads((folder / "config.json").read_text())["model"]["name"]
            command = [self.python, _HERE / "model.py", folder, self.config, model]
            subprocess.run(command, check=True, capture_output=True)
        subprocess.run(
            ["bash", folder / "launch.sh"], env=self.variables, capture_output=True, timeout=_LIMIT_S, check=False
        )


def _answer(home: Path, *args: Any) -> dict[str, Any]:
    command = [sys.executable, "-m", "sweepscope", *map(str, args), "--json", "--home", str(home)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    sys.exit(main())
