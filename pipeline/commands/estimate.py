"""`sweepscope estimate FILE`: predicted memory, step time and MFU for every row of a table."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from sweepscope.pipeline.commands.named_cluster import add_cluster_argument
from sweepscope.pipeline.commands.output import say_result
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.errors import InputError, UsageError

if TYPE_CHECKING:
    from sweepscope.pipeline.estimate.rows.asking import ChooseProfile
    from sweepscope.pipeline.store.home import Home


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="CSV or Parquet with the columns of the bundled tables or of runs")
    parser.add_argument(
        "--out", metavar="FILE", required=True, help="CSV or Parquet to write: the rows and est_ columns"
    )
    add_cluster_argument(parser)
    parser.add_argument(
        "--ceiling",
        action="store_true",
        help="also answer rows that do not state their whole layout: ceiling_ columns hold the fastest choice of what "
        "is missing (micro-batch, sharding, recomputation, degrees)",
    )


def read_table(path: str) -> pl.DataFrame:
    """A CSV (also gzipped) with all columns as text, or a Parquet file as it is.

    Raises UsageError or InputError where there is no table with rows.
    """
    if Path(path).is_dir():  # polars would read what lies in it
        raise UsageError(f"{path} is a directory. Give a CSV or Parquet file.")
    try:
        table = pl.read_parquet(path) if path.endswith(".parquet") else pl.read_csv(path, infer_schema=False)
    except FileNotFoundError as error:
        raise UsageError(f"No such file: {path}. Give a CSV or Parquet file.") from error
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{path} is no readable table: {str(error).splitlines()[0]}. Give CSV or Parquet.") from error
    if table.is_empty():
        raise InputError(f"{path} has no rows below its header. Give a table with a row per configuration.")
    return table


def _estimated(table: pl.DataFrame, given: str | None, choose: ChooseProfile, home: Home) -> pl.DataFrame:
    """The rows with their predictions: each on the cluster that its column `cluster` names, else on the `given` one.

    A name in the column that the home does not know is a remark, and changes nothing. Raises UsageError where the
    `given` one is unknown.
    """
    from sweepscope.pipeline.commands.named_cluster import by_cluster
    from sweepscope.pipeline.estimate.rows.estimate_rows import estimate_frame

    numbered = table.with_columns(_row=pl.int_range(pl.len()))
    parts = [
        estimate_frame(rows.drop("_row"), chosen, assumes=True).with_columns(rows["_row"])
        for rows, chosen in by_cluster(numbered, choose, home, given)
    ]
    return pl.concat(parts, how="diagonal_relaxed").sort("_row").drop("_row")


def _run(args: argparse.Namespace) -> int:
    from sweepscope.pipeline.estimate.calibration.own_runs import with_own
    from sweepscope.pipeline.estimate.rows.asking import OK
    from sweepscope.pipeline.estimate.rows.ceiling import ceilings
    from sweepscope.pipeline.store.home import Home

    out = Path(args.out)
    if out.suffix not in (".csv", ".parquet"):
        raise UsageError(f"--out must end in .csv or .parquet, not {out.name!r}.")
    if out.exists() and Path(args.file).exists() and out.samefile(args.file):
        raise UsageError(f"--out would overwrite its input {args.file}. Name another file.")
    home = Home.resolve(args.home, for_writing=False)
    choose = with_own(home.path / "calibration")
    predicted = _estimated(read_table(args.file), args.cluster, choose, home)
    if args.ceiling:
        predicted = ceilings(predicted, choose)
    if out.suffix == ".csv":
        predicted.write_csv(out)
    else:
        predicted.write_parquet(out)
    counts = predicted.group_by("est_status").len(name="rows").sort("rows", "est_status", descending=[True, False])
    refused = counts.filter(pl.col("est_status") != OK)
    estimated = predicted.height - int(refused["rows"].sum())
    lines = [f"Estimated {estimated:,} of {predicted.height:,} rows into {out}"]
    lines += [f"  {row['rows']:>6,}  {row['est_status']}" for row in refused.iter_rows(named=True)]
    value = {"out": str(out), "rows": predicted.height, "estimated": estimated, "refused": refused.to_dicts()}
    if args.ceiling:
        value["with_ceiling"] = bounded = int((predicted["ceiling_status"] == OK).sum())
        lines.append(f"Rows with a ceiling: {bounded:,}; ceiling_status has the reason for the others")
    say_result(value, "\n".join(lines), as_json=args.json)
    return 0


VERB = Verb(
    name="estimate",
    description="Predict memory, step time and MFU for every row of a CSV or Parquet file, from first principles. "
    "est_status has the reason where a row cannot be estimated, est_assumptions what was assumed.",
    add_arguments=_add_arguments,
    run=_run,
)
