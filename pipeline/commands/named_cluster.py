"""`--cluster NAME`: what a named cluster states for arguments and rows, and the constants of its own exchanges."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from sweepscope.pipeline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from sweepscope.pipeline.estimate.physics.profile import Profile
    from sweepscope.pipeline.estimate.rows.asking import ChooseProfile
    from sweepscope.pipeline.estimate.search.enumerate import Request
    from sweepscope.pipeline.store.home import Home

STATED = ("accelerator", "gpus_per_node", "gpus_per_domain", "nics_per_node", "nic_gbit_per_s")
"""Columns of rows that a cluster fills where they are empty."""


def add_cluster_argument(parser: argparse.ArgumentParser) -> None:
    """The option --cluster."""
    parser.add_argument(
        "--cluster", metavar="NAME", help="a cluster of `sweepscope cluster`: its accelerator, hosts, links and network"
    )


def fill_arguments(args: argparse.Namespace, home: Home) -> dict[str, Any] | None:
    """Fill what the question's arguments leave open from --cluster; its row. Raises UsageError for an unknown name."""
    from sweepscope.pipeline.store import clusters

    if not getattr(args, "cluster", None):
        return None
    row = clusters.find(home, args.cluster)
    for name in STATED[:3]:
        if getattr(args, name) is None:
            setattr(args, name, row[name])
    if args.network_gbit is None and row["nic_gbit_per_s"]:
        args.network_gbit = row["nic_gbit_per_s"] * row["nics_per_node"] / row["gpus_per_node"]
    if args.accelerator is None:
        raise UsageError(f"The cluster {args.cluster} states no accelerator.")
    return row


def on_cluster(choose: ChooseProfile, row: dict[str, Any], home: Home) -> ChooseProfile:
    """`choose` with the links and network that the cluster's own nccl-tests measured, where there are enough."""
    from sweepscope.pipeline.estimate.calibration.fabric import Measured, fit_fabric
    from sweepscope.pipeline.estimate.physics.fabrics import on_fabric
    from sweepscope.pipeline.store import clusters

    rows = clusters.measured(home, row)
    fabric = fit_fabric(Measured(row["accelerator"], rows), name=f"nccl-tests of {row['cluster']}")

    def chosen(generation: str, framework: str | None) -> Profile:
        profile = choose(generation, framework)
        return on_fabric(profile, fabric) if fabric is not None and fabric.generation == generation else profile

    return chosen


def by_cluster(
    frame: pl.DataFrame, choose: ChooseProfile, home: Home, given: str | None = None
) -> Iterator[tuple[pl.DataFrame, ChooseProfile]]:
    """(rows, constants) of each cluster that the column `cluster` of a table, or of `runs`, names.

    Rows that name none of the home's are on the `given` one. They are filled with what it states, and their constants
    are those of its own nccl-tests. Raises UsageError where the `given` one is unknown.
    """
    import polars as pl

    from sweepscope.pipeline.store import clusters

    if given is not None:
        clusters.find(home, given)
    known = {row["cluster"]: row for row in clusters.stored(home).to_dicts()} if home.lake.is_dir() else {}
    has_column = "cluster" in frame.columns
    column = frame["cluster"].cast(pl.String) if has_column else pl.repeat(None, frame.height, eager=True)
    names = [name if name in known else given for name in column]
    if not any(names):
        yield frame, choose
        return
    numbered = frame.with_columns(_on=pl.Series(names, dtype=pl.String))
    for (name,), part in numbered.group_by("_on", maintain_order=True):
        rows, row = part.drop("_on"), known.get(str(name))
        yield (with_cluster(rows, row), on_cluster(choose, row, home)) if row else (rows, choose)


def planned_request(row: dict[str, Any], home: Home) -> Request:
    """The question of a row of `planned_runs`, by the home's constants, on the cluster that it was planned for.

    One whose cluster was removed since is asked on the accelerator's usual. Raises InputError.
    """
    from sweepscope.pipeline.estimate.calibration.own_runs import with_own
    from sweepscope.pipeline.estimate.planning.planned_requests import request_of
    from sweepscope.pipeline.store import clusters

    choose = with_own(home.path / "calibration")
    known = {one["cluster"]: one for one in clusters.stored(home).to_dicts()} if row["cluster"] else {}
    if (described := known.get(row["cluster"])) is None:
        return request_of(row, choose)
    return request_of(row, on_cluster(choose, described, home), described)


def with_cluster(frame: pl.DataFrame, row: dict[str, Any]) -> pl.DataFrame:
    """Rows of a table with what the cluster states where they are empty; a stated network stays as it is."""
    import polars as pl

    from sweepscope.pipeline.estimate.rows.read_rows import RENAMED

    taken = {RENAMED.get(name, name) for name in frame.columns}
    names = STATED[:3] if taken & {"network_gbit_per_s", "nic_gbit_per_s"} else STATED
    for name in names:
        if row[name] is None:
            continue
        if name not in frame.columns:
            frame = frame.with_columns(pl.lit(row[name]).alias(name))
            continue
        cell = pl.col(name).cast(pl.String).str.strip_chars().replace("", None)
        value = str(row[name]) if frame.schema[name] == pl.String else row[name]
        frame = frame.with_columns(pl.when(cell.is_null()).then(pl.lit(value)).otherwise(name).alias(name))
    return frame
