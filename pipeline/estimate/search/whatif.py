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

from sweepscope.pipeline.estimate.physics.layouts import RECOMPUTE_MODES, SCHEDULES, Layouts
from sweepscope.pipeline.estimate.physics.memory import stage_memory
from sweepscope.pipeline.estimate.physics.schedule import V_SHAPED
from sweepscope.pipeline.estimate.physics.stages import stage_layers
from sweepscope.pipeline.estimate.search.enumerate import Request, blocks, chunk_counts, divisors, launch_codes, lay_out

MESH = ("tp", "pp", "cp")
_MOST_CP = 64
"""Context parallelism that a dial offers, however short the sequences: runs may use it where no search would."""
FOLLOWING = ("ep", "vpp", "mbs", "zero_stage")
"""Knobs that are set after the mesh, in this order: each depends on those before it."""


@dataclass(frozen=True)
class Choice:
    """A position of every knob. `recompute` is a word of RECOMPUTE_MODES, `pipeline_schedule` one of SCHEDULES."""

    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    pipeline_schedule: str = "1f1b"
    vpp: int = 1
    mbs: int = 1
    zero_stage: int = 0
    dp_replicate: int = 1
    recompute: str = "none"

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Choice:
        """The choice in a row of a search, or of knobs: the others keep their defaults."""
        stated = {name: row[name] for name in cls.__dataclass_fields__ if name in row}
        if stated.get("pipeline_schedule") in (None, "interleaved"):
            stated["pipeline_schedule"] = "1f1b"  # with chunks it is interleaved
        return cls(**stated)

    @property
    def schedule(self) -> str:
        """The schedule that runs: chunks interleave 1F1B, and nothing else does without them."""
        if self.pipeline_schedule in ("1f1b", "interleaved"):
            return "interleaved" if self.vpp > 1 else "1f1b"
        return self.pipeline_schedule


def layouts_for(request: Request, choices: list[Choice]) -> Layouts:
    """The layouts of `choices`, as a list."""

    def column(name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.array([getattr(choice, name) for choice in choices], np.float64)

    modes = np.array([RECOMPUTE_MODES.index(choice.recompute) for choice in choices], np.float64)
    return lay_out(
        request,
        tp=column("tp"),
        cp=column("cp"),
        pp=column("pp"),
        ep=column("ep"),
        mbs=column("mbs"),
        zero_stage=column("zero_stage"),
        recompute=modes,
        vpp=column("vpp"),
        dp_replicate=column("dp_replicate"),
        schedule=np.array([SCHEDULES.index(choice.schedule) for choice in choices], np.float64),
    )


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
    if name == "vpp":
        return chunk_counts(request)
    whole, limit = {
        "tp": (gpus, min(shape.num_heads, request.max_tp or gpus)),
        "pp": (gpus, min(shape.num_layers, request.max_pp or gpus)),
        "cp": (gpus, request.max_cp or max(request.cp_limit, _MOST_CP)),
        "ep": (max(shape.num_experts, 1), request.max_ep),
        "mbs": (request.gbs, request.max_mbs),
    }[name]
    return divisors(whole, limit)


def _with(choice: Choice, **knobs: Any) -> Choice:
    return replace(choice, **knobs)


def options(request: Request, at: Choice) -> dict[str, list[Any]]:
    """Values of each knob with which the mesh of `at` can be launched; the knobs after it in FOLLOWING may follow.

    Schedule and copies follow all others. Chunks are a choice under 1F1B alone.
    """
    found: dict[str, list[Any]] = {
        "pipeline_schedule": schedules_for(request, at),
        "dp_replicate": replicas_for(request, at),
    }
    has_chunks = at.pipeline_schedule == "1f1b"
    at = replace(at, pipeline_schedule="1f1b", dp_replicate=1, vpp=at.vpp if has_chunks else 1)
    for index, name in enumerate((*MESH, *FOLLOWING)):
        later = FOLLOWING[max(index - len(MESH) + 1, 0) :]
        base = _with(at, **{knob: 0 if knob == "zero_stage" else 1 for knob in later})
        tried = [_with(base, **{name: value}) for value in _candidates(request, name)]
        found[name] = [getattr(choice, name) for choice in _launchable(request, tried)]
    if not has_chunks:
        found["vpp"] = []
    return found


def nearest_launchable(request: Request, wanted: Choice) -> Choice | None:
    """`wanted` with the knobs after the mesh at the largest values up to the wanted ones that can be launched.

    None when nothing can be launched on its mesh.
    """
    at = replace(wanted, ep=1, vpp=1, mbs=1, zero_stage=0, pipeline_schedule="1f1b", dp_replicate=1)
    if not _launchable(request, [at]):
        return None
    for name in FOLLOWING:
        limit = getattr(wanted, name)
        tried = [_with(at, **{name: value}) for value in _candidates(request, name) if value <= limit]
        fitting = _launchable(request, tried)
        at = fitting[-1] if fitting else at
    if wanted.pipeline_schedule in schedules_for(request, at):
        at = _scheduled(at, wanted.pipeline_schedule)
    copies = [count for count in replicas_for(request, at) if count <= wanted.dp_replicate]
    return replace(at, dp_replicate=copies[-1])


def _scheduled(at: Choice, word: str) -> Choice:
    """`at` under another schedule: V forms have two chunks, and of the others only 1F1B a choice."""
    chunks = at.vpp if word == "1f1b" else 2 if word in V_SHAPED else 1
    return replace(at, pipeline_schedule=word, vpp=chunks)


def schedules_for(request: Request, at: Choice) -> list[str]:
    """Pipeline schedules that `at` can be launched with; 1F1B includes interleaving, which its chunks make."""
    tried = [_scheduled(at, word) for word in SCHEDULES if word != "interleaved"]
    return [choice.pipeline_schedule for choice in _launchable(request, tried)]


def replicas_for(request: Request, at: Choice) -> list[int]:
    """Copies of the sharded states that `at` can be launched with; 1 alone without sharding."""
    ranks = request.num_gpus // (at.tp * at.pp)
    tried = [replace(at, dp_replicate=count) for count in divisors(ranks) if count == 1 or at.zero_stage]
    return [choice.dp_replicate for choice in _launchable(request, tried)]


def resolve(request: Request, start: Choice, wanted: Mapping[str, Any]) -> tuple[Choice, list[str]]:
    """`start` with the knobs in `wanted` set, as far as that can be launched; and the names of those left out.

    `start` must be launchable. Wanted values that work only together are set together.
    """
    together = nearest_launchable(request, replace(start, **wanted))
    if together is not None and all(getattr(together, name) == wanted[name] for name in MESH if name in wanted):
        # Numbers follow to the nearest that can be launched; a schedule has no nearest one.
        lost = "pipeline_schedule" in wanted and together.pipeline_schedule != wanted["pipeline_schedule"]
        return together, ["pipeline_schedule"] if lost else []
    at, left_out = start, []
    for name, value in wanted.items():
        tried = nearest_launchable(request, replace(at, **{name: value}))
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
        index = int(np.argmin(need))
        if need.flat[index] < least:
            least = float(need.flat[index])
            is_it = np.zeros(need.shape, np.bool_)
            is_it.flat[index] = True
            best = block.at[is_it]
    if best is None:
        return None
    knobs = {name: int(np.ravel(getattr(best, name))[0]) for name in (*MESH, *FOLLOWING, "dp_replicate")}
    words = {
        "recompute": RECOMPUTE_MODES[int(np.ravel(best.recompute)[0])],
        "pipeline_schedule": SCHEDULES[int(np.ravel(best.schedule)[0])],
    }
    return Choice.of({**knobs, **words})
