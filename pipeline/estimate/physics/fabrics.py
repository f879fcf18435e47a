"""What a cluster's nccl-tests say of its links and network: constants of exchanges in place of a profile's.

Files: `fabrics/nccl_tests.toml` beside the profiles, bundled for published clusters and in a home for one's own; both
are written by `sweepscope calibrate`.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Final

from sweepscope.pipeline.estimate.physics.profile import CALIBRATION, EQUATIONS, Profile, with_values

FILE = Path("fabrics") / "nccl_tests.toml"
BUNDLED = CALIBRATION / FILE
FABRIC: Final = (
    *("link_share", "network_share", "network_decay", "multicast_share", "link_latency_s", "network_latency_s"),
)
"""Constants that nccl-tests tell."""


@dataclass(frozen=True)
class Fabric:
    """A cluster's exchanges: the generation of its cards, the published tables of runs on it, how many bandwidths were
    measured, how far off the fit is from them in the median, and its constants."""

    name: str
    generation: str
    source_ids: tuple[str, ...]
    rows: int
    error: float
    constants: Mapping[str, float] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """What an estimate rests on, in words."""
        return f"links and network as {self.rows} measured bandwidths have them ({self.name})"


def render_fabrics(found: Sequence[Fabric]) -> str:
    """Text of the file."""
    lines = ["# Written by `sweepscope calibrate` from nccl-tests; not edited by hand."]
    for one in found:
        lines += ["", "[[fabric]]", f"name = {json.dumps(one.name)}", f"generation = {json.dumps(one.generation)}"]
        lines += [f"source_ids = {json.dumps(list(one.source_ids))}", f"rows = {one.rows}", f"error = {one.error}"]
        lines += [f"equations = {EQUATIONS}", "[fabric.constants]"]
        lines += [f"{name} = {value:.6e}" for name, value in one.constants.items()]
    return "\n".join(lines) + "\n"


def read_fabrics(path: Path) -> tuple[Fabric, ...]:
    """The fabrics of a file that are of the equations in force; none where there is no file."""
    if not path.exists():
        return ()
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("fabric", [])
    return tuple(
        Fabric(
            **{name: one[name] for name in ("name", "generation", "rows", "error", "constants")},
            source_ids=tuple(one["source_ids"]),
        )
        for one in entries
        if one["equations"] == EQUATIONS
    )


@cache
def _bundled() -> tuple[Fabric, ...]:
    return read_fabrics(BUNDLED)


def with_fabric(profile: Profile, fabric: Fabric | None) -> Profile:
    """`profile` on a measured fabric; constants that the profile was fitted for stay."""
    if fabric is None:
        return profile
    fitted = set(profile.about.get("fitted", ()))
    kept = {name: value for name, value in fabric.constants.items() if name not in fitted}
    about = profile.about if "network_share" in fitted else {**profile.about, "fabric": fabric.words}
    return replace(with_values(profile, kept), about=about)


def on_fabric(profile: Profile, fabric: Fabric) -> Profile:
    """`profile` on the fabric of the very cluster that is asked about, whatever other one the profile was fitted on."""
    return replace(with_values(profile, dict(fabric.constants)), about={**profile.about, "fabric": fabric.words})


def fabric_of(source_id: str | None) -> Fabric | None:
    """The published fabric that the runs of a source lay on."""
    return next((one for one in _bundled() if source_id in one.source_ids), None)
