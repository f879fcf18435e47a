"""A run of Lightning whose log, files of steps and settings lie where its script put them: in one place, or in many."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import polars as pl
from hypothesis import strategies as st

STEPS = 9


@dataclass(frozen=True)
class Run:
    """`seed` decides the values of its steps."""

    seed: int = 1
    steps: int = STEPS

    def loss(self, step: int) -> float:
        """Falls, and differs between seeds in every step."""
        return round(9.0 - step / self.steps - self.seed / 50, 3)

    def rate(self, step: int) -> float:
        """Learning rate."""
        return round(0.001 * (step + 1), 3)

    def log(self, steps: Collection[int]) -> str:
        """Console output with bars at some of its steps."""
        head = "GPU available: True (cuda), used: True\n"
        bars = "".join(
            f"Epoch 0:  50%|#####     | {step + 1}/{self.steps} [00:05<00:05,  1.00it/s, v_num=0, "
            f"train/loss={self.loss(step)}, lr={self.rate(step)}]\n"
            for step in sorted(steps)
        )
        return f"{head}{bars}`Trainer.fit` stopped: `max_steps={self.steps}` reached.\n"

    def table(self, steps: Collection[int]) -> str:
        """`metrics.csv` with some of its steps."""
        rows = [f"0,{step},{self.loss(step)},{self.rate(step)}\n" for step in sorted(steps)]
        return "".join(["epoch,step,train/loss,lr\n", *rows])

    @property
    def settings(self) -> str:
        """`hparams.yaml`."""
        return f"cfg:\n  micro_batch_size: {self.seed}\n  encoder_seq_length: 2048\n"


LOGS = ("train.log", "logs/train.log", "rank_0/train.log", "train.out", "slurm/train.log")
TABLES = (
    "metrics.csv",
    "out/metrics.csv",
    "lightning_logs/version_0/metrics.csv",
    "csv/version_0/metrics.csv",
    "my-model/metrics.csv",
    "out/logs/csv/version_0/metrics.csv",
)
SETTINGS = ("hparams.yaml", "out/hparams.yaml", "lightning_logs/version_0/hparams.yaml", "my-model/hparams.yaml")


@st.composite
def splits(draw: st.DrawFn, run: Run) -> dict[str, str]:
    """Files of a run, of which each step is in one at least, by their paths below its folder."""
    tables = draw(st.lists(st.sampled_from(TABLES), unique=True, max_size=3))
    everything = range(run.steps)
    some = st.sets(st.sampled_from(everything))
    parts = [draw(some) for _ in tables]
    rest = set(everything).difference(*parts) if parts else set(everything)
    logged = draw(some) | rest
    files = {draw(st.sampled_from(LOGS)): run.log(logged)}
    if "rank_0/train.log" in files and draw(st.booleans()):
        files["rank_1/train.log"] = run.log(draw(some) & logged)
    files |= {table: run.table(part) for table, part in zip(tables, parts, strict=True) if part}
    return files | {draw(st.sampled_from(SETTINGS)): run.settings}


def told(tables: Mapping[str, pl.DataFrame]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What rows of `runs` and `steps` tell, without the places that it comes from."""
    places = ["run_id", "source_path", "line_no", "run_dir", "sweep"]
    runs = tables["runs"].drop(*places, "source", "path", "unit", "kind", "launch", strict=False)
    steps = tables["steps"].join(tables["runs"].select("run_id", "mbs"), on="run_id").drop(places, strict=False)
    return runs.sort("mbs"), steps.sort("mbs", "step")
