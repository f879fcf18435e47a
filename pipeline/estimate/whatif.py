"""One layout of a question at a time, as a person turns its knobs: which values each knob can take, what fits together.

The accelerators are fixed, so dp takes what tp, cp and pp leave; the batch is fixed, so gas takes what dp and mbs
leave. The three degrees of the mesh decide what can be launched at all; the other knobs follow them to the nearest
smaller value that can.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pipeline.estimate.enumerate import Request, blocks, divisors, launch_codes, lay_out
from pipeline.estimate.layouts import RECOMPUTE_MODES, Layouts
from pipeline.estimate.memory import stage_memory
from pipeline.estimate.stages import stage_layers

MESH = ("tp", "pp", "cp")
FOLLOWING = ("ep", "vpp", "mbs", "zero_stage")
"""Knobs that are settled after the mesh, in this order: each depends on those before it."""


@dataclass(frozen=True)
class Choice:
    """A position of every knob. `recompute` is a word of RECOMPUTE_MODES."""

    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    vpp: int = 1
    mbs: int = 1
    zero_stage: int = 0
    recompute: str = "none"

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Choice:
        """The choice in a row of a search."""
        return cls(**{name: row[name] for name in cls.__dataclass_fields__})


def layouts_for(request: Request, choices: list[Choice]) -> Layouts:
    """The layouts of `choices`, as a list."""

    def column(name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.array([getattr(choice, name) for choice in choices], np.float64)

    modes = np.array([RECOMPUTE_MODES.index(choice.recompute) for choice in choices], np.float64)
    return lay_out(
        request, tp=column("tp"), cp=column("cp"), pp=column("pp"), ep=column("ep"), mbs=column("mbs"),
        zero_stage=column("zero_stage"), recompute=modes, vpp=column("vpp"),
    )  # fmt: skip


def _launchable(request: Request, choices: list[Choice]) -> list[Choice]:
    """Those of `choices` that can be launched."""
    meshes = [choice for choice in choices if request.num_gpus % (choice.tp * choice.pp * choice.cp) == 0]
    if not meshes:
        return []
    codes = launch_codes(request, layouts_for(request, meshes))
    return [choice for choice, code in zip(meshes, codes, strict=True) if code == 0]


def _candidates(request: Request, name: str) -> list[int]:
    shape, gpus = request.asked.shape, request.num_gpus
    if name == "zero_stage":
        return list(request.zero_stages)
    whole, limit = {
        "tp": (gpus, shape.num_heads), "pp": (gpus, shape.num_layers), "cp": (gpus, request.max_cp),
        "ep": (max(shape.num_experts, 1), None), "vpp": (shape.num_layers, request.max_vpp),
        "mbs": (request.gbs, request.max_mbs),
    }[name]  # fmt: skip
    return divisors(whole, limit)


def _with(choice: Choice, **knobs: Any) -> Choice:
    return replace(choice, **knobs)


def options(request: Request, at: Choice) -> dict[str, list[int]]:
    """Values of each knob with which the mesh of `at` can be launched; the knobs after it in FOLLOWING may follow."""
    found = {}
    for place, name in enumerate((*MESH, *FOLLOWING)):
        later = FOLLOWING[max(place - len(MESH) + 1, 0) :]
        base = _with(at, **{knob: 0 if knob == "zero_stage" else 1 for knob in later})
        tried = [_with(base, **{name: value}) for value in _candidates(request, name)]
        found[name] = [getattr(choice, name) for choice in _launchable(request, tried)]
    return found


def settle(request: Request, wanted: Choice) -> Choice | None:
    """`wanted` with the knobs after the mesh at the largest values up to the wanted ones that can be launched.

    None when nothing can be launched on its mesh.
    """
    at = replace(wanted, ep=1, vpp=1, mbs=1, zero_stage=0)
    if not _launchable(request, [at]):
        return None
    for name in FOLLOWING:
        limit = getattr(wanted, name)
        tried = [_with(at, **{name: value}) for value in _candidates(request, name) if value <= limit]
        fitting = _launchable(request, tried)
        at = fitting[-1] if fitting else at
    return at


def resolve(request: Request, start: Choice, wanted: Mapping[str, Any]) -> tuple[Choice, list[str]]:
    """`start` with the knobs in `wanted` set, as far as that can be launched; and the names of those left out.

    `start` must be launchable. Wanted values that work only together are set together.
    """
    together = settle(request, replace(start, **wanted))
    if together is not None and all(getattr(together, name) == wanted[name] for name in MESH if name in wanted):
        return together, []
    at, left_out = start, []
    for name, value in wanted.items():
        tried = settle(request, replace(at, **{name: value}))
        if tried is None:
            left_out.append(name)
        else:
            at = tried
    return at, left_out


def leanest(request: Request) -> Choice | None:
    """The layout that needs least memory of all that can be launched, whether it fits or not; None without any."""
    best, least = None, np.inf
    for block in blocks(request):
        can = block.codes == 0
        if not can.any():
            continue
        stages = stage_layers(request.asked.shape, block.at.pp, placement=request.asked.profile.placement)
        need = np.where(can, stage_memory(request.asked, block.at, stages).reserved, np.inf)
        place = int(np.argmin(need))
        if need.flat[place] < least:
            least = float(need.flat[place])
            is_it = np.zeros(need.shape, np.bool_)
            is_it.flat[place] = True
            best = block.at[is_it]
    if best is None:
        return None
    knobs = {name: int(np.ravel(getattr(best, name))[0]) for name in (*MESH, *FOLLOWING)}
    return Choice(**knobs, recompute=RECOMPUTE_MODES[int(np.ravel(best.recompute)[0])])
