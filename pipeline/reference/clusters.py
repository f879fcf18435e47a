"""What a model runs on: accelerators, links inside a node, network between nodes.

Facts are in `data/hardware/accelerators.csv` (peaks, memory) and `data/hardware/links.csv` (bandwidths of memory,
links and network, with sources). An unknown card has no cluster: nothing is guessed from a part of a name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import polars as pl

from sweepscope import data
from sweepscope.pipeline.reference.accelerators import canonical_accelerator, load_accelerators


@dataclass(frozen=True)
class Cluster:
    """One kind of node, any number of them. Bandwidths are per accelerator and one direction, in bytes/s.

    `network_bytes_per_s` is the share of one accelerator in its node's network cards.
    """

    accelerator: str
    generation: str
    peak_flops: float
    peak_flops_fp8: float
    memory_bytes: float
    memory_bytes_per_s: float
    link_bytes_per_s: float
    network_bytes_per_s: float
    gpus_per_node: int
    processors: int


@cache
def _cards() -> dict[str, dict[str, object]]:
    links = pl.read_csv(data.HARDWARE / "links.csv")
    both = load_accelerators().join(links, on="accelerator", how="inner")
    return {str(row["accelerator"]): row for row in both.iter_rows(named=True)}


def known_cards() -> list[str]:
    """Names that a cluster can be built of."""
    return sorted(_cards())


def find_cluster(accelerator: str, *, gpus_per_node: int | None = None) -> Cluster | None:
    """The cluster of a card by any of its spellings, or None for an unknown card or one without published links.

    The network is the usual one of that card's published clusters unless a caller replaces it.
    """
    name = canonical_accelerator(accelerator)
    row = _cards().get(name) if name else None
    if row is None:
        return None
    return Cluster(
        accelerator=str(row["accelerator"]),
        generation=str(row["generation"]),
        peak_flops=1e12 * _number(row["peak_bf16_tflops"]),
        peak_flops_fp8=1e12 * _number(row["peak_fp8_tflops"] or row["peak_bf16_tflops"]),
        memory_bytes=_number(row["memory_bytes"] or row["assumed_memory_bytes"]),
        memory_bytes_per_s=1e9 * _number(row["memory_gb_per_s"]),
        link_bytes_per_s=1e9 * _number(row["link_gb_per_s"]),
        network_bytes_per_s=1e9 / 8 * _number(row["network_gbit_per_s"]),
        gpus_per_node=gpus_per_node or int(_number(row["usual_gpus_per_node"])),
        processors=int(_number(row["processors"])),
    )


def with_network(cluster: Cluster, gbit_per_s: float) -> Cluster:
    """The same nodes on another network: `gbit_per_s` per accelerator, one direction."""
    return replace(cluster, network_bytes_per_s=1e9 / 8 * gbit_per_s)


def _number(value: object) -> float:
    if not isinstance(value, int | float):
        raise TypeError(f"a figure is missing in the hardware tables: {value!r}")
    return float(value)
