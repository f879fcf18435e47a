"""Real logs, when a corpus of them is at hand: what was determined by other means is what the parser must find.

The corpus is a folder with `manifest.csv` (one row per log: path, framework and the facts that the log states; an empty
field is a fact that it does not state). It is not part of the repository.
"""

from __future__ import annotations

import csv
import math
import statistics
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from sweepscope.pipeline.logs.registry import DIALECTS
from tests.paths import CORPUS, NO_CORPUS
from tests.pipeline.logs.logs import Tables, tables_of

_STATUS = {
    "slurm_timeout": {"timeout"},
    "slurm_cancelled": {"cancelled"},
    "killed": {"cancelled"},
    "interrupted": {"cancelled"},
    "node_failure": {"node_fail"},
    "truncated": {"truncated", "running", "unknown"},
}
_LAYOUT = {
    "num_gpus": "num_gpus",
    "dp": "dp",
    "tp": "tp",
    "pp": "pp",
    "cp": "cp",
    "ep": "ep",
    "mbs": "mbs",
    "gas": "gas",
    "zero_stage": "zero",
    "seq_len": "seq_len",
}
_MEDIANS = {
    "step_time_s": "median_step_time_s",
    "tokens_per_s": "tokens_per_s",
    "tokens_per_s_per_gpu": "tokens_per_s_per_gpu",
    "tflops_per_gpu_logged": "tflops_per_gpu",
    "mfu_logged": "mfu",
}


def _corpora() -> list[Path]:
    return [path for path in (CORPUS / "logs", CORPUS / "picotron_sweep") if (path / "manifest.csv").exists()]


def _facts() -> Iterator[tuple[Path, dict[str, str]]]:
    ours = {dialect.name for dialect in DIALECTS}
    for corpus in _corpora():
        with (corpus / "manifest.csv").open(newline="", encoding="utf-8") as handle:
            for fact in csv.DictReader(handle):
                if fact["framework"] in ours and fact["outcome"] not in ("config", "not_a_log"):
                    yield corpus, fact


_FACTS = list(_facts())


@pytest.fixture(scope="module")
def parsed() -> dict[Path, Tables]:
    return {corpus: tables_of(corpus) for corpus in {corpus for corpus, _ in _FACTS}}


@pytest.mark.skipif(not _FACTS, reason=NO_CORPUS)
@pytest.mark.parametrize(("corpus", "fact"), _FACTS, ids=[fact["path"] for _, fact in _FACTS])
def test_real_log(corpus: Path, fact: dict[str, str], parsed: dict[Path, Tables]) -> None:
    found = differences(fact, parsed[corpus], str(corpus / fact["path"]))
    assert not found, "\n".join(found)


def differences(fact: dict[str, str], tables: Tables, path: str) -> list[str]:
    """Every stated fact of a log that the tables do not bear out. A run directory's facts hold for its log."""
    is_its = (pl.col("source_path") == path) | pl.col("source_path").str.starts_with(path.rstrip("/") + "/")
    runs = tables["runs"].filter(is_its).sort("attempt")
    if runs.is_empty():
        return ["no run"]
    steps = tables["steps"].filter(pl.col("run_id").is_in(runs["run_id"].to_list()))
    checks = [*_outcome(fact, runs, tables), *_progress(fact, runs, steps), *_speed(fact, steps), *_layout(fact, runs)]
    return [
        f"{name}: stated {stated!r}, read {read!r}" for name, stated, read, agrees in checks if stated and not agrees
    ]


Check = tuple[str, str, object, bool]


def _outcome(fact: dict[str, str], runs: pl.DataFrame, tables: Tables) -> Iterator[Check]:
    status, stated = runs["status"][-1], fact["outcome"]
    wanted = {"host_oom"} if stated == "oom" and fact["oom"].lower() == "false" else _STATUS.get(stated, {stated})
    yield "status", stated, status, status in wanted
    kinds = set(tables["events"].filter(pl.col("run_id").is_in(runs["run_id"].to_list()))["kind"]) | set(runs["status"])
    for name in ("oom", "hang"):
        yield f"{name} seen", fact[name], sorted(kinds), (name in kinds) == (fact[name].lower() == "true")


def _progress(fact: dict[str, str], runs: pl.DataFrame, steps: pl.DataFrame) -> Iterator[Check]:
    yield "steps", fact["num_steps_logged"], steps.height, _close(steps.height, fact["num_steps_logged"])
    yield "first_step", fact["first_step"], (first := runs["first_step"][0]), _close(first, fact["first_step"])
    # A last attempt that logs no step has no last step to state: then the one before tells.
    stepped = runs.filter(pl.col("last_step").is_not_null()).tail(1)
    last = next(iter(stepped["last_step"].to_list()), None)
    yield "last_step", fact["last_step"], last, _close(last, fact["last_step"])
    ended = steps.filter(pl.col("run_id").is_in(stepped["run_id"].to_list())).sort("step").drop_nulls("loss")
    loss = ended["loss"][-1] if not ended.is_empty() else None
    yield "last_loss", fact["last_loss"], loss, _close(loss, fact["last_loss"], within=2e-3)


def _speed(fact: dict[str, str], steps: pl.DataFrame) -> Iterator[Check]:
    for column, name in _MEDIANS.items():
        values = steps[column].drop_nulls().to_list()
        median = statistics.median(values) if values else None
        percent = 100 * median if median is not None and column == "mfu_logged" else median
        yield column, fact[name], median, _close(median, fact[name], 0.02) or _close(percent, fact[name], 0.02)


def _layout(fact: dict[str, str], runs: pl.DataFrame) -> Iterator[Check]:
    for column, name in _LAYOUT.items():
        read = runs[column].to_list()
        yield column, fact[name], read, any(_close(value, fact[name]) for value in read)


def _close(value: float | None, stated: str, within: float = 0) -> bool:
    if value is None or not stated or not math.isfinite(value):
        return False
    return abs(value - float(stated)) <= within * max(abs(value), abs(float(stated)))
