"""Logs of the processes of one launch, each with losses of its own: the others are duplicates of the first one's. Pure.

Where each node is given its command by hand (`python train.py --rank 0 --world_size 6 --master_addr 10.0.0.1`,
torchrun's `--node_rank 1 --nnodes 2`), each process or node may log into a file of its own, whose name says nothing of
ranks, and the losses of its own batches. What the commands state shows that they are of one launch: other ranks in a
world of one size, which meet at one address, at the same time. No two launches can meet there at once.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.runs.same_runs import SAME

VERSION = 1
"""Raise it when other runs of the same rows would be found: stores are then published anew."""

_KINDS = (
    (("rank", "global_rank", "process_id"), ("world_size", "num_processes")),
    (("node_rank", "machine_rank"), ("nnodes", "num_nodes", "num_machines")),
)
"""Names of a process's or a node's rank, and of how many there are, as torch.distributed's examples, torchrun,
accelerate and JAX call them; a `local_rank` is one within a node.
"""
_MEETING = (
    *("master_addr", "master_address", "main_process_ip", "rdzv_endpoint", "init_method", "dist_url"),
    *("coordinator_address", "master_port", "main_process_port", "dist_port"),
)


def states_rank() -> pl.Expr:
    """Whether a row of `arguments` is of those by which `rank_logs` knows the processes of a launch."""
    names = [*_MEETING, *(name for kind in _KINDS for part in kind for name in part)]
    return pl.col("name").is_in([*names, *(name.replace("_", "-") for name in names)])


def rank_logs(runs: pl.DataFrame, arguments: pl.DataFrame) -> pl.DataFrame:
    """SAME rows: runs of one folder that are ranks of one launch, each with the run of the lowest rank.

    Args:
        runs: rows of `runs`.
        arguments: `run_id`, `name`, `value` of arguments that `states_rank` names.
    """
    if arguments.is_empty():
        return pl.DataFrame(schema=SAME)
    counting = runs.filter(pl.col("duplicate_of").is_null()).drop_nulls(["started_at", "ended_at"])
    stated = arguments.select("run_id", "value", name=pl.col("name").str.replace_all("-", "_"))
    stated = stated.unique(["run_id", "name"], keep="first", maintain_order=True)
    at = stated.filter(pl.col("name").is_in(_MEETING)).sort("run_id", "name")
    at = at.group_by("run_id").agg(meeting=pl.format("{} {}", "name", "value").str.join(", "))
    known = counting.select("run_id", "run_dir", "started_at", "ended_at").join(at, on="run_id")
    ranks = pl.concat(
        known.join(_number(stated, rank).rename({"number": "rank"}), on="run_id")
        .join(_number(stated, world).rename({"number": "world"}), on="run_id")
        .with_columns(kind=pl.lit(kind))
        for kind, (rank, world) in enumerate(_KINDS)
    )
    ranks = ranks.filter(pl.col("rank") < pl.col("world"))
    pairs = ranks.join(ranks, on=["kind", "run_dir", "world", "meeting"], suffix="_first").filter(
        (pl.col("rank") > pl.col("rank_first"))
        & (pl.col("started_at") < pl.col("ended_at_first"))
        & (pl.col("started_at_first") < pl.col("ended_at"))
    )
    lowest = pairs.sort("run_id", "rank_first", "started_at_first").unique("run_id", keep="first", maintain_order=True)
    # One run has no two logs of the same rank: launches that only seem to be at the same time stay apart.
    is_sure = pl.len().over("run_id_first", "kind", "rank") == 1
    return lowest.filter(is_sure).select("run_id", duplicate_of="run_id_first").sort("run_id")


def _number(stated: pl.DataFrame, names: tuple[str, ...]) -> pl.DataFrame:
    """`run_id` and the `number` that one of its arguments states; none of runs of which two differ."""
    numbers = stated.filter(pl.col("name").is_in(names)).with_columns(
        number=pl.col("value").cast(pl.Int64, strict=False)
    )
    different = numbers.drop_nulls("number").unique(["run_id", "number"])
    return different.select("run_id", "number").unique("run_id", keep="none")
