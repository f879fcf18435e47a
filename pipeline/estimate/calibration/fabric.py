"""What a cluster's links and network carry, fitted to its nccl-tests: the constants of every exchange, and no others.

Measured bandwidths of collectives by size and ranks are answered by the same model that estimates use
(`physics.collectives`); its shares, latencies and the loss in wide groups are what is fitted. Runs have no say, so
that a cluster is known before anything was trained on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from sweepscope.pipeline.estimate.calibration.fit import fit
from sweepscope.pipeline.estimate.physics import collectives as comm
from sweepscope.pipeline.estimate.physics.fabrics import FABRIC, Fabric
from sweepscope.pipeline.estimate.physics.layouts import Array
from sweepscope.pipeline.estimate.physics.profile import choose_profile, with_values
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.reference.clusters import find_cluster
from sweepscope.pipeline.reference.models import LLAMA_2_7B

FEWEST = 8
"""Measured bandwidths that a fit needs."""
_SMALLEST_BYTES = 2**16
"""Smaller messages tell of launches, not of links."""
_SIZES = 3
"""Sizes within a domain that tell latency from bandwidth; over the network the number of ranks does."""
_PULL, _HUBER, _ROUNDS = 0.01, 1.0, 25
OPERATIONS = {"AllReduce": 2.0, "AllGather": 1.0, "ReduceScatter": 1.0}
"""Collectives that are fitted, with their times round the ring: bus bandwidth is that many times (n-1)/n of the bytes
over the time."""

RUNS_OF = {"ultrascale_playbook_nccl": ("ultrascale_playbook_all_runs", "ultrascale_playbook_heatmap")}
"""Published tables of runs by the source of the bandwidths that were measured on their cluster."""


@dataclass(frozen=True)
class Measured:
    """Bus bandwidths in bytes/s of one kind of accelerator, a row per operation, size and group."""

    accelerator: str
    rows: pl.DataFrame

    @property
    def usable(self) -> pl.DataFrame:
        """Rows of OPERATIONS with two ranks and more, whose nodes are known."""
        return self.rows.filter(
            pl.col("op").is_in(list(OPERATIONS)),
            pl.col("nranks") > 1,
            pl.col("num_nodes") > 0,
            pl.col("message_bytes") >= _SMALLEST_BYTES,
            pl.col("busbw_bytes_per_s") > 0,
        )


def bus_bytes_per_s(asked: Question, rows: pl.DataFrame) -> Array:
    """Estimated bus bandwidth of `rows` (op, message_bytes, nranks, num_nodes)."""
    out = np.zeros(rows.height)
    hosts = asked.cluster.gpus_per_domain / asked.cluster.gpus_per_node
    for op, times in OPERATIONS.items():
        is_op = (rows["op"] == op).to_numpy()
        if not is_op.any():
            continue
        ranks, data, nodes = (
            rows[name].cast(pl.Float64).to_numpy()[is_op] for name in ("nranks", "message_bytes", "num_nodes")
        )
        group = comm.Group(ranks, np.ceil(nodes / hosts))
        spent = (comm.all_reduce_s if times > 1 else comm.all_gather_s)(asked, group, data)
        out[is_op] = times * (ranks - 1.0) / ranks * data / spent
    return out


def fit_fabric(measured: Measured, *, name: str, source_ids: Sequence[str] = ()) -> Fabric | None:
    """The fabric that answers `measured` best; None for an unknown card or fewer than FEWEST usable rows."""
    cluster, rows = find_cluster(measured.accelerator), measured.usable
    if cluster is None or rows.height < FEWEST:
        return None
    profile = choose_profile(cluster.generation, None)
    asked = Question(LLAMA_2_7B, cluster, profile, 1)
    known = rows["busbw_bytes_per_s"].to_numpy()

    def residuals(constants: dict[str, float]) -> Array:
        found: Array = np.log(bus_bytes_per_s(replace(asked, profile=with_values(profile, constants)), rows) / known)
        return found

    inside = rows.filter(pl.col("nranks") <= cluster.gpus_per_domain)
    untold = () if inside["message_bytes"].n_unique() >= _SIZES else ("link_latency_s",)
    start = {constant: getattr(profile, constant) for constant in FABRIC if constant not in untold}
    constants = fit(residuals, start, pull=_PULL, huber=_HUBER, rounds=_ROUNDS)
    error = float(np.median(np.abs(np.exp(residuals(constants)) - 1)))
    return Fabric(name, cluster.generation, tuple(source_ids), rows.height, round(error, 4), constants)


def published_fabrics(bandwidths: pl.DataFrame, runs_of: Mapping[str, Sequence[str]]) -> list[Fabric]:
    """Fabrics of `published_bandwidths`, one per source; `runs_of` names the tables of runs on each.

    Published bandwidths are taken for bus bandwidths, as nccl-tests prints them.
    """
    found = []
    for (source, accelerator), rows in bandwidths.group_by("source_id", "accelerator", maintain_order=True):
        named = rows.rename({"bandwidth_bytes_per_s": "busbw_bytes_per_s"})
        ids = runs_of.get(str(source), ())
        found.append(fit_fabric(Measured(str(accelerator), named), name=str(source), source_ids=ids))
    return [one for one in found if one is not None]


def own_fabrics(bench: pl.DataFrame) -> list[Fabric]:
    """Fabrics of a store's `nccl_bench`, one per accelerator."""
    found = []
    stated = bench.filter(pl.col("accelerator").is_not_null())
    for (accelerator,), rows in stated.group_by("accelerator", maintain_order=True):
        found.append(fit_fabric(Measured(str(accelerator), rows), name=f"nccl-tests on {accelerator}"))
    return [one for one in found if one is not None]
