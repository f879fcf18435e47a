"""Which runs of a directory the files in its folders describe."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl


def of_folders(sidecars: pl.DataFrame, runs: pl.DataFrame, joined: pl.DataFrame, sources: pl.DataFrame) -> pl.DataFrame:
    """`sidecars` with the `run_id` of each run that they describe.

    A file in a folder with steps describes the runs of these steps, as `version_1/hparams.yaml` does beside
    `version_1/metrics.csv`; so does one in a folder below that has none. All others describe every run of their unit.

    Args:
        sidecars: `unit`, `path` and others.
        runs: `source`, `unit`, `run_id`.
        joined: `source`, `run_id` of further sources that tell of runs.
        sources: `source`, `path`.
    """
    of_unit = sidecars.join(runs.select("unit", "run_id"), on="unit", maintain_order="left")
    several = of_unit.filter(pl.col("run_id").n_unique().over("unit") > 1)
    if several.is_empty():
        return of_unit
    read = pl.concat([runs.select("source", "run_id"), joined.select("source", "run_id")])
    read = read.join(several.select("run_id").unique(), on="run_id", how="semi").join(
        sources.select("source", "path"), on="source"
    )
    runs_in: dict[str, set[str]] = {}
    for path, run in read.select("path", "run_id").iter_rows():
        runs_in.setdefault(_folder(path), set()).add(run)
    described = {
        path: next((runs_in[folder] for folder in _folders(path, unit) if folder in runs_in), None)
        for path, unit in several.select("path", "unit").unique().iter_rows()
    }
    strangers = {
        (path, run)
        for path, run in several.select("path", "run_id").unique().iter_rows()
        if (of_folder := described[path]) is not None and run not in of_folder
    }
    gone = pl.DataFrame(sorted(strangers), schema={"path": pl.String, "run_id": pl.String}, orient="row")
    return of_unit.join(gone, on=["path", "run_id"], how="anti", maintain_order="left")


def _folders(path: str, unit: str) -> Iterator[str]:
    """Folders of a file, up to but not including that of its unit."""
    folder = _folder(path)
    while folder.startswith(f"{unit}/"):
        yield folder
        folder = _folder(folder)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
