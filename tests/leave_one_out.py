"""`python -m tests.leave_one_out`: what is left of each dialect's facts when that dialect is not there.

Every file of the corpus that a built-in dialect reads is read again without it, by another dialect or by inference.
The table has a line per dialect: facts that the corpus's manifest states, and how many were right, wrong or missing.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from sweepscope.pipeline.ingest.batch import Tables, parse_batch
from sweepscope.pipeline.ingest.discover import discover
from sweepscope.pipeline.io.files import list_files
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.registry import DIALECTS
from tests.facts import HEAD, NO_ENDING, Score, number, status_verdict, verdict
from tests.paths import CORPUS

_NOW = datetime(2035, 1, 1)
_STATUS = {
    "slurm_timeout": {"timeout"},
    "slurm_cancelled": {"cancelled"},
    "killed": {"cancelled"},
    "interrupted": {"cancelled"},
    "node_failure": {"node_fail"},
    "truncated": set(NO_ENDING),
}
_SPEEDS = {
    "median_step_time_s": "step_time_s",
    "tokens_per_s": "tokens_per_s",
    "tokens_per_s_per_gpu": "tokens_per_s_per_gpu",
}
_SETTINGS = {name: name for name in ("num_gpus", "dp", "tp", "pp", "cp", "ep", "mbs", "gas", "seq_len")} | {
    "zero": "zero_stage"
}


def read(paths: Sequence[Path], dialects: Sequence[Dialect]) -> Tables:
    """Every table that some files give with some dialects."""
    entries = [entry for path in paths for entry in list_files(str(path))]
    found = discover(entries, is_simulated=lambda _place: False, named=[str(path) for path in paths], dialects=dialects)
    return parse_batch(found, now=_NOW, dialects=dialects)


def score_file(fact: Mapping[str, str], path: Path, tables: Tables) -> Score:
    """The stated facts of one file."""
    score = Score()
    runs = tables["runs"].filter(pl.col("source_path") == str(path)).sort("attempt")
    steps = tables["steps"].filter(pl.col("run_id").is_in(runs["run_id"].implode()))
    mine = runs.to_dicts()

    def add(name: str, result: str, want: object, got: object) -> None:
        score.add(result, f"{fact['path']}: {name} want {want!r} got {got!r}")

    if fact["outcome"]:
        wanted = _STATUS.get(fact["outcome"], {fact["outcome"]})
        wanted = {"host_oom"} if fact["outcome"] == "oom" and fact["oom"].lower() == "false" else wanted
        got = mine[-1]["status"] if mine else None
        add("status", status_verdict(wanted, got), fact["outcome"], got)
    attempts = [steps.filter(pl.col("run_id") == run["run_id"]).sort("step") for run in mine]
    stepped = [attempt for attempt in attempts if attempt.height]
    counts: dict[str, tuple[list[Any], float]] = {
        "num_steps_logged": ([steps.height] if stepped else [], 0),
        "first_step": ([stepped[0]["step"].min()] if stepped else [], 0),
        "last_step": ([stepped[-1]["step"].max()] if stepped else [], 0),
        "last_loss": (stepped[-1]["loss"].drop_nulls().tail(1).to_list() if stepped else [], 2e-3),
    }
    for name, (values, tolerance) in counts.items():
        if (want := number(fact, name)) is not None:
            add(name, verdict(want, values, tolerance), want, values)
    _speeds(fact, steps, add)
    for name, column in _SETTINGS.items():
        if (want := number(fact, name)) is not None:
            values = [run.get(column) for run in mine]
            add(column, verdict(want, values), want, values)
    return score


def _speeds(fact: Mapping[str, str], steps: pl.DataFrame, add: Any) -> None:
    """Step time or throughput: one of them is enough, and each that is there has to be right."""
    stated = {column: number(fact, name) for name, column in _SPEEDS.items() if number(fact, name) is not None}
    results = {column: verdict(want or 0, [steps[column].median()], 0.02) for column, want in stated.items()}
    for column, result in results.items():
        if result != "missing" or not {"right", "wrong"} & set(results.values()):
            add(column, result, stated[column], steps[column].median())
            if result == "missing":
                return


def leave_one_out(corpus: Path) -> dict[str, Score]:
    """The score of each dialect's files without it."""
    with (corpus / "manifest.csv").open(newline="", encoding="utf-8") as file:
        facts = [row for row in csv.DictReader(file) if row["outcome"] not in ("config", "not_a_log")]
    paths = {row["path"]: corpus / row["path"] for row in facts}
    owners = dict(read(list(paths.values()), DIALECTS)["files"].select("path", "parser").iter_rows())
    scores = {}
    for dialect in DIALECTS:
        mine = [row for row in facts if owners.get(str(paths[row["path"]])) == dialect.name]
        if not mine:
            continue
        tables = read([paths[row["path"]] for row in mine], [one for one in DIALECTS if one is not dialect])
        scores[dialect.name] = sum((score_file(row, paths[row["path"]], tables) for row in mine), Score())
    return scores


def main() -> None:
    """Write the table, and every fact that was not found with --verbose."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", default=str(CORPUS / "logs"))
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    scores = leave_one_out(Path(args.corpus))
    failures = [failure for score in scores.values() for failure in score.failures] if args.verbose else []
    table = [HEAD, *(score.row(name) for name, score in scores.items()), sum(scores.values(), Score()).row("all")]
    sys.stdout.write("\n".join([*failures, *table]) + "\n")


if __name__ == "__main__":
    main()
