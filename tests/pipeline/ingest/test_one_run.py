"""Laws of what a run is: split over files and folders in any way it is one, and several runs are as many."""

from __future__ import annotations

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.pipeline.ingest.split_run import Run, splits, told
from tests.pipeline.ingest_in_memory import tables_of
from tests.properties import draws

RUN = Run()


def whole(*runs: Run) -> dict[str, str]:
    """Each run with everything in its log, and its settings beside it."""
    return {
        f"tp{run.seed}/{name}": text
        for run in runs
        for name, text in (("train.log", run.log(range(run.steps))), ("hparams.yaml", run.settings))
    }


@settings(max_examples=draws(150), deadline=None)
@given(splits(RUN))
def test_splitting_the_output_of_a_run_changes_nothing(files: dict[str, str]) -> None:
    assert told(tables_of({f"tp1/{name}": text for name, text in files.items()})) == told(tables_of(whole(RUN)))


@settings(max_examples=draws(60), deadline=None)
@given(st.data(), st.sampled_from(["{}/{}", "sweep/{}/{}", "{}/results/{}", "lr/{}/{}"]), st.integers(2, 5))
def test_runs_side_by_side_are_as_many(data: st.DataObject, layout: str, count: int) -> None:
    sweep = [Run(seed) for seed in range(1, count + 1)]
    files = data.draw(splits(RUN))  # all of them alike, as those of a sweep are
    paths = {layout.format(f"tp{run.seed}", name): text for run in sweep for name, text in _of(run, files).items()}
    assert told(tables_of(paths)) == told(tables_of(whole(*sweep)))


def _of(run: Run, files: dict[str, str]) -> dict[str, str]:
    """The same files of another run."""
    found = {}
    for name, text in files.items():
        lines = pl.Series(text.splitlines(), dtype=pl.String)
        if name.endswith(".yaml"):
            found[name] = run.settings
        elif name.endswith(".csv"):
            found[name] = run.table((lines.str.extract(r"^0,(\d+),").drop_nulls().cast(pl.Int64) - 1).to_list())
        else:
            found[name] = run.log((lines.str.extract(r"iteration: (\d+)").drop_nulls().cast(pl.Int64) - 1).to_list())
    return found
