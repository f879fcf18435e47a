"""How fast a published run could have been: its layout as far as it is stated, and the fastest choice for the rest.

Papers give model, chips and degrees, but rarely the micro-batch, the sharding, recomputation or the chunks of a
pipeline. Each way to fill those in is estimated; the answer is the fastest that may have fitted into memory, or, where
none does by our estimate of a run that did, the fastest. It bounds the run from above, as far as the constants hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sweepscope.pipeline.estimate.physics.estimate import estimate
from sweepscope.pipeline.estimate.physics.feasible import REASONS, reason_codes
from sweepscope.pipeline.estimate.physics.layouts import RECOMPUTE_MODES, SCHEDULES, Array, Layouts
from sweepscope.pipeline.estimate.physics.profile import choose_profile, drops_selectively
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.physics.schedule import INTERLEAVED, ONE_F_ONE_B
from sweepscope.pipeline.estimate.rows.asking import OK, ChooseProfile, ask
from sweepscope.pipeline.estimate.rows.read_rows import read_rows
from sweepscope.pipeline.estimate.rows.row_layouts import schedule_of
from sweepscope.pipeline.estimate.search.enumerate import divisors
from sweepscope.pipeline.reference.layout_text import full_layout_text

CEILING = pl.Schema(
    {
        "ceiling_status": pl.String,
        "ceiling_mfu": pl.Float64,
        "ceiling_layout": pl.String,
        "ceiling_chosen": pl.String,
        "ceiling_fits": pl.Boolean,
    }
)
"""Columns that `ceilings` appends. `ceiling_status` is "ok" or why there is no figure; `ceiling_mfu` is model FLOPs
over the dense bf16 peak, whatever the precision; `ceiling_chosen` names what the row does not state."""

_MAX_MBS, _MAX_CHUNKS = 16, 8
_MAX_CELLS = 500_000
_BATCH_TOLERANCE = 0.02
"""Batches are printed in round numbers of tokens."""
_MEMORY_DOUBT = 1.2
"""The run did fit: what we estimate to need up to so much more than there is may have been it."""
_CHOSEN = ("tp", "pp", "cp", "ep", "vpp", "mbs", "zero_stage", "recompute")
_PLAIN = {"cp": "no context parallelism", "ep": "no expert parallelism"}
"""Degrees that are 1 where a paper does not mention them."""


@dataclass(frozen=True)
class Fastest:
    """The fastest choice of what a row leaves open, of those that may have fitted: one layout, its tokens/s per
    accelerator, the bytes that it needs, and notes on what was assumed and chosen."""

    asked: Question
    at: Layouts
    tokens_per_s_per_gpu: float
    need_bytes: float
    notes: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """Whether it is estimated to fit."""
        return self.need_bytes <= self.asked.cluster.memory_bytes

    @property
    def named(self) -> dict[str, object]:
        """Degrees, schedule and recomputation by name."""
        return _named(self.at)


def ceilings(frame: pl.DataFrame, choose: ChooseProfile = choose_profile) -> pl.DataFrame:
    """`frame` (rows as for `estimate_frame`) with the columns of CEILING; those that it has already are replaced."""
    found = [_ceiling(row, choose) for row in read_rows(frame).iter_rows(named=True)]
    kept = frame.drop([name for name in CEILING if name in frame.columns])
    return pl.concat([kept, pl.DataFrame(found, schema=CEILING, orient="row")], how="horizontal")


def _ceiling(row: dict[str, Any], choose: ChooseProfile) -> dict[str, Any]:
    found = fastest(row, choose)
    if isinstance(found, str):
        return {"ceiling_status": found}
    flops = found.asked.shape.flops_per_token(found.asked.seq_len) * found.tokens_per_s_per_gpu
    return {
        "ceiling_status": OK,
        "ceiling_mfu": flops / found.asked.cluster.peak_flops,
        "ceiling_layout": full_layout_text(found.named),
        "ceiling_chosen": "; ".join(found.notes) or None,
        "ceiling_fits": found.fits,
    }


def fastest(row: dict[str, Any], choose: ChooseProfile, *, doubt: float = _MEMORY_DOUBT) -> Fastest | str:
    """The fastest choice of what a row of `read_rows` leaves open, or why there is none.

    What is estimated to need up to `doubt` times the memory counts as fitting; where nothing does, the fastest counts.
    """
    asked, reason, assumed = ask(row, choose)
    if asked is None:
        return reason
    if reason := _unknown(row):
        return reason
    choices = _choices(row, asked)
    if int(np.prod([len(values) for values in choices.values()])) > _MAX_CELLS:
        return "too little of the layout is stated"
    mesh = np.meshgrid(*choices.values(), indexing="ij")
    grid = {name: axis.ravel().astype(np.float64) for name, axis in zip(choices, mesh, strict=True)}
    at = _laid_out(row, asked, grid)
    can, reason = _launchable(row, asked, at)
    if not can.any():
        return reason
    at = at[can]
    predicted = estimate(asked, at)
    speed = np.broadcast_to(predicted.tokens_per_s_per_gpu, at.shape)
    need = np.broadcast_to(predicted.stages.reserved, at.shape) + asked.profile.outside_bytes
    may_fit = need <= doubt * asked.cluster.memory_bytes
    best = int(np.argmax(np.where(may_fit, speed, 0.0) if may_fit.any() else speed))
    notes = (*assumed, *_assumed_layout(row, choices))
    return Fastest(asked, at[np.array([best])], float(speed[best]), float(need[best]), notes)


def _unknown(row: dict[str, Any]) -> str:
    """What keeps a row from having a ceiling at all, or an empty text."""
    if row["misread"]:
        return f"not understood: {row['misread']}"
    missing = [name for name, values in (("num_gpus", row["num_gpus"]), ("global batch", _gbs(row))) if not values]
    return f"{' and '.join(missing)} not stated" if missing else ""


def _gbs(row: dict[str, Any]) -> int | None:
    """Sequences of one step; a batch in tokens that is printed as a round number is rounded to whole sequences."""
    if row["gbs"]:
        return int(row["gbs"])
    tokens, seq_len = row["gbs_tokens"], row["seq_len"]
    return round(tokens / seq_len) if tokens and seq_len else None


def _choices(row: dict[str, Any], asked: Question) -> dict[str, list[float]]:
    """The values to try by degree: the stated one, or all that may be."""
    gpus, shape = int(row["num_gpus"]), asked.shape
    gbs = _gbs(row) or 1
    pp_most = int(row["pp"] or min(gpus, shape.num_layers))
    free: dict[str, list[int]] = {
        "tp": [tp for tp in divisors(gpus, asked.cluster.gpus_per_domain) if shape.num_heads % tp == 0],
        "pp": divisors(gpus, pp_most),
        "cp": [1],
        "ep": [1],
        "vpp": list(range(1, _MAX_CHUNKS + 1)) if pp_most > 1 else [1],
        "mbs": [mbs for mbs in range(1, _MAX_MBS + 1) if row["gbs"] is None or gbs % mbs == 0],
        "zero_stage": [0, 1, 2, 3],
        "recompute": [code for code, mode in enumerate(RECOMPUTE_MODES) if _is_sensible(mode, asked)],
    }
    stated = {**row, "recompute": RECOMPUTE_MODES.index(row["recompute"]) if row["recompute"] else None}
    return {
        name: [float(stated[name])] if stated[name] is not None else [float(value) for value in values]
        for name, values in free.items()
    }


def _is_sensible(mode: str, asked: Question) -> bool:
    """Whether a mode of recomputation is worth a try."""
    return mode != "selective" or drops_selectively(asked.profile)


def _laid_out(row: dict[str, Any], asked: Question, grid: dict[str, Array]) -> Layouts:
    dp = row["num_gpus"] / (grid["tp"] * grid["cp"] * grid["pp"])
    word = schedule_of(row["pipeline_schedule"] or "")
    code = np.full(dp.shape, float(SCHEDULES.index(word or "1f1b")))
    plain = np.isin(code, (ONE_F_ONE_B, INTERLEAVED))
    split = row["sequence_parallel"]
    if split is None:  # the framework's default, where the sequence can be split so
        split = asked.profile.is_sequence_parallel & (asked.seq_len % (grid["cp"] * grid["tp"]) == 0)
    return Layouts.of(
        **grid,
        dp=dp,
        etp=np.where(dp * grid["cp"] % grid["ep"] == 0, grid["tp"], 1.0),
        gas=np.maximum(np.round((_gbs(row) or 1) / (dp * grid["mbs"])), 1.0),
        sequence_parallel=np.where(grid["tp"] > 1, np.asarray(split, np.float64), 0.0),
        schedule=np.where(plain, np.where(grid["vpp"] > 1, INTERLEAVED, ONE_F_ONE_B), code),
    )


def _launchable(row: dict[str, Any], asked: Question, at: Layouts) -> tuple[NDArray[np.bool_], str]:
    """Mask of the layouts that the row may have had, and why there is none.

    A lab's own code places layers and chunks as it likes: Llama 3's 126 layers lay on 16 stages in several chunks each.
    """
    whole = (at.dp % 1 == 0) & ((row["dp"] is None) | (at.dp == (row["dp"] or 0)))
    codes = reason_codes(asked.shape, at, asked.seq_len, even_stages=False, checks_interleaving=False)
    turns = (at.vpp == 1) | ((at.pp > 1) & (at.vpp * at.pp <= asked.shape.num_layers))
    tolerance = 0.0 if row["gbs"] else _BATCH_TOLERANCE
    batch = np.abs(at.dp * at.mbs * at.gas / (_gbs(row) or 1) - 1) <= tolerance
    alone = (at.zero_stage > 0) & (at.zero_shards == 1)
    can = whole & (codes == 0) & turns & batch & ~alone
    if can.any():
        return can, ""
    if not whole.any():
        return can, f"no layout of {row['num_gpus']} accelerators has the stated degrees"
    counts = np.bincount(codes[whole & (codes > 0)], minlength=len(REASONS))
    return can, f"cannot be launched: {REASONS[int(counts.argmax())]}" if counts.any() else "the batch does not divide"


def _assumed_layout(row: dict[str, Any], choices: dict[str, list[float]]) -> list[str]:
    """Notes on what the row leaves open."""
    names = {"mbs": "micro-batch", "zero_stage": "ZeRO stage", "vpp": "chunks", "recompute": "recomputation"}
    open_ = [name for name in _CHOSEN if row[name] is None and len(choices[name]) > 1]
    notes = [f"fastest {', '.join(names.get(name, name.upper()) for name in open_)}"] if open_ else []
    plain = [words for name, words in _PLAIN.items() if row[name] is None]
    return notes + [words for words in plain if words != _PLAIN["ep"] or row["num_experts"]]


def _named(at: Layouts) -> dict[str, object]:
    numbers = ("dp", "tp", "pp", "cp", "ep", "vpp", "gas", "mbs", "zero_stage")
    return {
        **{name: int(getattr(at, name)[0]) for name in numbers},
        "recompute": RECOMPUTE_MODES[int(at.recompute[0])],
        "pipeline_schedule": SCHEDULES[int(at.schedule[0])],
    }
