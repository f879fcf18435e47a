"""NCCL's own cost model of its algorithms and protocols, as `data/network/nccl_tuning.toml` has it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any

from sweepscope import data

_US = 1e-6
_GB_PER_S = 1e9


@dataclass(frozen=True)
class Protocol:
    """One protocol of an algorithm: seconds of a call and of its hops, share of a ring's bandwidth.

    `correction` is a further share of it by message size, for 64 bytes and each doubling. PAT is
    counted with LL128 here: what its levels cost is a share of a Simple hop already.
    """

    base_s: float
    link_hop_s: float
    network_hop_s: float
    bandwidth_share: float
    is_simple: bool
    is_ll: bool
    correction: tuple[float, ...] = ()


@dataclass(frozen=True)
class Tuning:
    """Protocols by algorithm and name, and the most that LL reaches in bytes/s by generation, or over the "network"."""

    ring: dict[str, Protocol]
    tree: dict[str, Protocol]
    nvls: Protocol
    pat: Protocol
    ll_most_bytes_per_s: dict[str, float]


def _protocols(entries: dict[str, dict[str, Any]]) -> dict[str, Protocol]:
    return {
        name: Protocol(
            base_s=_US * entry["base_us"],
            link_hop_s=_US * entry["link_hop_us"],
            network_hop_s=_US * entry["network_hop_us"],
            bandwidth_share=entry["bandwidth_share"],
            is_simple=name == "simple",
            is_ll=name == "ll",
            correction=tuple(entry.get("correction", ())),
        )
        for name, entry in entries.items()
    }


@cache
def load_nccl_tuning() -> Tuning:
    """The bundled constants."""
    with (data.NETWORK / "nccl_tuning.toml").open("rb") as handle:
        found = tomllib.load(handle)
    return Tuning(
        ring=_protocols(found["ring"]),
        tree=_protocols(found["tree"]),
        nvls=_protocols(found["nvls"])["simple"],
        pat=_protocols(found["pat"])["ll128"],
        ll_most_bytes_per_s={name: _GB_PER_S * value for name, value in found["ll_most_gb_per_s"].items()},
    )
