"""A run whose log, files of steps and settings lie where its script put them: in one place, or in many.

The log is nanotron's and the tables are Lightning's: each line tells of its step alone, whatever other lines there are.
"""

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
        """Console output with some of its steps."""
        lines = "".join(
            f"iteration: {step + 1} / {self.steps} | consumed_tokens: {step}K | elapsed_time_per_iteration_ms: 1.25K | "
            f"tokens_per_sec: 16K | tokens_per_sec_per_gpu: 2K | global_batch_size: 32 | lm_loss: {self.loss(step)} | "
            f"lr: {self.rate(step)} | model_tflops_per_gpu: 15.5 | hardware_tflops_per_gpu: 15.5 | grad_norm: 1.5\n"
            for step in sorted(steps)
        )
        return f"[INFO|DP=0|PP=0|TP=0]: Start training\n{lines}"

    def table(self, steps: Collection[int]) -> str:
        """`metrics.csv` with some of its steps."""
        rows = [f"0,{step + 1},{self.loss(step)},{self.rate(step)}\n" for step in sorted(steps)]
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
    logged = draw(st.sets(st.sampled_from(everything), min_size=1)) | rest  # only the log tells of the plan
    files = {draw(st.sampled_from(LOGS)): run.log(logged)}
    if "rank_0/train.log" in files and draw(st.booleans()):
        files["rank_1/train.log"] = run.log(draw(some) & logged)
    files |= {table: run.table(part) for table, part in zip(tables, parts, strict=True) if part}
    return files | {draw(st.sampled_from(SETTINGS)): run.settings}


RUNS = ("mbs", "seq_len", "status", "steps_logged", "first_step", "last_step", "last_loss", "attempt")
STEPS_OF = ("mbs", "step", "loss", "learning_rate")
"""Columns that all parts of a run tell."""


def told(tables: Mapping[str, pl.DataFrame]) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """RUNS columns of the runs, and STEPS_OF columns of their steps."""
    runs = tables["runs"]
    steps = tables["steps"].join(runs.select("run_id", "mbs"), on="run_id")
    return runs.select(RUNS).sort("mbs").rows(), steps.select(STEPS_OF).sort("mbs", "step").rows()
