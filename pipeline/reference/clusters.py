"""What a model runs on: accelerators, the domain that their links join, hosts, and the network between domains.

Facts are in `data/hardware/accelerators.csv` (peaks, memory) and `data/hardware/links.csv` (bandwidths of memory,
links and network, with sources). An unknown card has no cluster: nothing is guessed from a part of a name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sweepscope import data
from sweepscope.pipeline.reference.accelerators import canonical_accelerator, load_accelerators

Precision = Literal["bf16", "fp8", "fp4"]
"""Of matrix products: 16 bit, 8, or 4 with a scale per block (NVFP4, MXFP4)."""


@dataclass(frozen=True)
class Cluster:
    """One kind of host, any number of them. Bandwidths are per accelerator and one direction, in bytes/s.

    Three facts that are often one: `gpus_per_node` accelerators share a host; `gpus_per_domain` are joined by links
    (NVLink and its like), eight of a DGX host or the 72 of 18 hosts in an NVL72 rack; and `network_bytes_per_s` is the
    share of one accelerator in the network cards of its host. `has_multicast`: switches of the domain can reduce
    (NVLink SHARP). `direct_peers`: accelerators that each one's links lead to one by one, without switches between;
    0 where switches join them. `board_power_w`: of the board at its default limit, None where it is not known.
    """

    accelerator: str
    generation: str
    peak_flops: float
    peak_flops_fp8: float
    peak_flops_fp4: float
    memory_bytes: float
    memory_bytes_per_s: float
    link_bytes_per_s: float
    network_bytes_per_s: float
    gpus_per_node: int
    gpus_per_domain: int
    processors: int
    has_multicast: bool = False
    direct_peers: int = 0
    board_power_w: float | None = None

    def peak_flops_of(self, precision: Precision) -> float:
        """Dense peak at a precision, in FLOP/s; that of the next wider one where the card has none."""
        return {"bf16": self.peak_flops, "fp8": self.peak_flops_fp8, "fp4": self.peak_flops_fp4}[precision]

    def links_among(self, ranks: NDArray[np.float64]) -> NDArray[np.float64]:
        """Share of an accelerator's links that lead to others of a group of so many `ranks` in one domain.

        All of them where switches join the domain. Without, each peer has links of its own: of the seven Infinity
        Fabric links of an MI300X a group of two drives one. Rings along all of them run at once. In a cube of two
        meshes of four (V100s of a DGX-1) a pair has one link of six and a mesh four.

        >>> find_cluster("MI300X").links_among(np.array([2.0, 4.0, 8.0])).round(2).tolist()
        [0.14, 0.43, 1.0]
        >>> find_cluster("V100", gpus_per_node=8).links_among(np.array([2.0, 4.0, 8.0])).round(2).tolist()
        [0.17, 0.67, 1.0]
        """
        if not self.direct_peers:
            return np.ones_like(ranks)
        if self.gpus_per_domain > self.direct_peers + 1:
            among: NDArray[np.float64] = np.interp(ranks, *_OF_CUBE)
        else:
            among = np.minimum((ranks - 1.0) / self.direct_peers, 1.0)
        # A rank alone in its domain sends over the network only.
        return np.where(ranks > 1.0, among, 1.0)

    @property
    def precisions(self) -> tuple[Precision, ...]:
        """Those that each have a higher peak than the one before."""
        shorter: tuple[tuple[Precision, bool], ...] = (
            ("fp8", self.peak_flops_fp8 > self.peak_flops),
            ("fp4", self.peak_flops_fp4 > self.peak_flops_fp8),
        )
        return ("bf16", *(precision for precision, is_faster in shorter if is_faster))


_OF_CUBE: Final = ((2.0, 4.0, 8.0), (1.0 / 6.0, 4.0 / 6.0, 1.0))
"""Ranks, and the share of six links that the worst placed of them has among these, in the hybrid cube mesh of a DGX-1
with eight V100 (NVIDIA DGX-1 with Tesla V100, WP-08437-002, figure 4; `nvidia-smi topo -m` in Oneflow-Inc/DLPerf)."""


@cache
def _cards() -> dict[str, dict[str, object]]:
    links = pl.read_csv(data.HARDWARE / "links.csv")
    both = load_accelerators().join(links, on="accelerator", how="inner")
    return {str(row["accelerator"]): row for row in both.iter_rows(named=True)}


def known_cards() -> list[str]:
    """Names that a cluster can be built of."""
    return sorted(_cards())


def find_cluster(
    accelerator: str, *, gpus_per_node: int | None = None, gpus_per_domain: int | None = None
) -> Cluster | None:
    """The cluster of a card by any of its spellings, or None for an unknown card or one without published links.

    The network is the usual one of that card's published clusters unless a caller replaces it.

    Args:
        accelerator: any spelling of the card.
        gpus_per_node: accelerators of a host, where it is not the usual number. Where a host has more of a package of
            several devices than there are packages in it, each is one device: eight MI250X of a host are its dies.
        gpus_per_domain: accelerators that links join, where it is not the usual number. Links end at the host unless
            the card is sold in racks whose links join hosts: there a host of any size leaves the domain as it is.

    >>> rack = find_cluster("GB200", gpus_per_node=4)
    >>> rack.gpus_per_node, rack.gpus_per_domain
    (4, 72)
    >>> four = find_cluster("H100", gpus_per_node=4)
    >>> four.gpus_per_node, four.gpus_per_domain, four.direct_peers, four.has_multicast
    (4, 4, 3, False)
    >>> [find_cluster("A100", gpus_per_node=count).direct_peers for count in (2, 4, 8)]
    [0, 3, 0]
    >>> [find_cluster("MI250X", gpus_per_node=count).accelerator for count in (4, 8)]
    ['MI250X', 'MI250X-GCD']
    """
    name = canonical_accelerator(accelerator)
    row = _cards().get(name) if name else None
    if row is None:
        return None
    if gpus_per_node and row["device_of_package"] and gpus_per_node > _number(row["usual_gpus_per_node"]):
        row = _cards()[str(row["device_of_package"])]
    usual_host, usual_domain = int(_number(row["usual_gpus_per_node"])), int(_number(row["usual_gpus_per_domain"]))
    host = gpus_per_node or usual_host
    domain = gpus_per_domain or (max(usual_domain, host) if usual_domain > usual_host else host)
    is_direct = _is_direct(row, domain)
    return Cluster(
        accelerator=str(row["accelerator"]),
        generation=str(row["generation"]),
        peak_flops=1e12 * _number(row["peak_bf16_tflops"]),
        peak_flops_fp8=1e12 * _number(row["peak_fp8_tflops"] or row["peak_bf16_tflops"]),
        peak_flops_fp4=1e12 * _number(row["peak_fp4_tflops"] or row["peak_fp8_tflops"] or row["peak_bf16_tflops"]),
        memory_bytes=_number(row["memory_bytes"] or row["assumed_memory_bytes"]),
        memory_bytes_per_s=1e9 * _number(row["memory_gb_per_s"]),
        link_bytes_per_s=1e9 * _number(row["link_gb_per_s"]),
        network_bytes_per_s=1e9 / 8 * _number(row["network_gbit_per_s"]),
        gpus_per_node=host,
        gpus_per_domain=domain,
        processors=int(_number(row["processors"])),
        has_multicast=bool(row["has_multicast"]) and not is_direct,
        direct_peers=int(_number(row["direct_peers"])) if is_direct else 0,
        board_power_w=_number(row["board_power_w"]) if row["board_power_w"] else None,
    )


def _is_direct(row: dict[str, object], domain: int) -> bool:
    """Whether links of a domain of a card lead to its peers one by one. Of a card that comes with switches, too, a
    domain of fewer than all direct peers is a part of one with switches."""
    if not row["direct_peers"]:
        return False
    if not row["switched_from"]:
        return True
    return _number(row["direct_peers"]) < domain < _number(row["switched_from"])


UNKNOWN: Final = "unknown"
"""Generation of cards that no table here has."""
ASSUMED_MEMORY_BYTES: Final = 80e9
"""Of a card whose memory nothing says."""
_BYTES_PER_FLOP: Final = 4e-3
"""Memory's bytes per FLOP of the peak in 16 bit, of a card whose bandwidth nothing says: H100, MI300X, B200 and Gaudi 2
have 3.4 to 5.7 per thousand."""
_LINK_BYTES_PER_FLOP: Final = 4e-4
"""Links' bytes per FLOP, one direction: the same four have 3.4 to 6.1 per ten thousand."""
_ASSUMED_NETWORK: Final = 25e9
"""Of each card, in bytes/s: a port of 200 Gb/s."""
_ASSUMED_PROCESSORS: Final = 100
"""Multiprocessors, over which small products are rounded up: MI210 has 104 and A100 108 (`data/hardware/links.csv`)."""
_SIZE_IN_NAME: Final = re.compile(r"(?i)(\d+)\s*-?(gi?b)\b")


@dataclass(frozen=True)
class DataSheet:
    """What is stated of a card, beside its name: dense peaks in FLOP/s, bytes, bytes/s. None where it is not."""

    peak_flops: float
    peak_flops_fp8: float | None = None
    memory_bytes: float | None = None
    memory_bytes_per_s: float | None = None
    link_bytes_per_s: float | None = None


def cluster_of_sheet(
    accelerator: str, sheet: DataSheet, *, gpus_per_node: int | None = None, gpus_per_domain: int | None = None
) -> Cluster:
    """The cluster of a card that no table has, by its data sheet; what that leaves open is as data centers have it.

    A size of memory that the name ends in counts where the sheet has none.

    >>> other = cluster_of_sheet("Biren BR104 32GB", DataSheet(256e12), gpus_per_node=8)
    >>> other.generation, other.memory_bytes, other.memory_bytes_per_s
    ('unknown', 32000000000.0, 1024000000000.0)
    """
    host = gpus_per_node or 8
    size = _SIZE_IN_NAME.search(accelerator)
    named = float(size[1]) * (2.0**30 if size[2].casefold() == "gib" else 1e9) if size else None
    return Cluster(
        accelerator=accelerator,
        generation=UNKNOWN,
        peak_flops=sheet.peak_flops,
        peak_flops_fp8=max(sheet.peak_flops_fp8 or 0.0, sheet.peak_flops),
        peak_flops_fp4=max(sheet.peak_flops_fp8 or 0.0, sheet.peak_flops),
        memory_bytes=sheet.memory_bytes or named or ASSUMED_MEMORY_BYTES,
        memory_bytes_per_s=sheet.memory_bytes_per_s or _BYTES_PER_FLOP * sheet.peak_flops,
        link_bytes_per_s=sheet.link_bytes_per_s or _LINK_BYTES_PER_FLOP * sheet.peak_flops,
        network_bytes_per_s=_ASSUMED_NETWORK,
        gpus_per_node=host,
        gpus_per_domain=gpus_per_domain or host,
        processors=_ASSUMED_PROCESSORS,
    )


def with_network(cluster: Cluster, gbit_per_s: float) -> Cluster:
    """The same nodes on another network: `gbit_per_s` per accelerator, one direction."""
    return replace(cluster, network_bytes_per_s=1e9 / 8 * gbit_per_s)


def _number(value: object) -> float:
    if not isinstance(value, int | float):
        raise TypeError(f"a figure is missing in the hardware tables: {value!r}")
    return float(value)
