"""Layouts of rows: degrees as stated, the schedule by its many names, the framework's defaults for the rest."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import numpy as np

from sweepscope.pipeline.estimate.physics.layouts import RECOMPUTE_MODES, SCHEDULES, Layouts
from sweepscope.pipeline.estimate.physics.profile import Profile
from sweepscope.pipeline.estimate.physics.schedule import V_SHAPED
from sweepscope.pipeline.reference.vocabulary import framework_of

_SCHEDULES = (
    ("dualpipe-v", r"dual.?pipe.?v"),
    ("dualpipe", r"dual"),
    ("zb-v", r"zb.?v|zero.?bubble.?v|\bv.?(zero.?bubble|zb)"),
    ("zb-h1", r"zero.?bubble|\bzb"),
    ("interleaved", r"interleav"),
    ("afab", r"afab|gpipe|all.?forward"),
)
"""Words of SCHEDULES by how frameworks and papers name them; anything else is 1F1B."""


def schedule_of(name: str) -> str | None:
    """Word of SCHEDULES in what a framework or paper calls its pipeline schedule, or None where it names none."""
    return next((word for word, pattern in _SCHEDULES if re.search(pattern, name.casefold())), None)


_FULLY_SHARDED = re.compile(r"torchtitan|composer|llm.?foundry|litgpt|fsdp|torchtune|maxtext", re.IGNORECASE)
"""Trainers whose usual sharding is that of all states (PyTorch's FSDP, MaxText's meshes)."""


def zero_stage_of(row: dict[str, Any]) -> int:
    """ZeRO stage of a row: as stated, else the commonest of its framework, which of large runs is 1 (the distributed
    optimizer of Megatron and NeMo)."""
    if row["zero_stage"] is not None:
        return int(row["zero_stage"])
    if row["dp"] * (row["cp"] or 1) == 1:
        return 0
    return 3 if _FULLY_SHARDED.search(row["framework"] or row["source_id"] or "") else 1


_CHUNKS: dict[str, int] = {"mlperf": 6}
"""Chunks of a stage in a trainer's usual pipeline. All 24 of MLPerf's rows that state their chunks interleave, four to
eight of them, six in the middle."""


def usual_chunks(row: dict[str, Any]) -> int:
    """Chunks of a stage that a row leaves open: those of its framework, two (the fewest) of an interleaved pipeline
    that names none, else one."""
    schedule = schedule_of(row["pipeline_schedule"] or "")
    usual = _CHUNKS.get(row["framework"] or framework_of(row["source_id"] or "") or "", 1)
    chunks = 2 if schedule == "interleaved" else 1 if row["pipeline_schedule"] else usual
    fits = row["pp"] > 1 and chunks * row["pp"] <= (row["num_layers"] or np.inf)
    return chunks if fits and not row["vpp"] else 1


def layouts_of(rows: list[dict[str, Any]], profile: Profile) -> Layouts:
    """Layouts of complete rows. An expert degree outside dp (dp x tp x pp x cp x ep = N) is folded into dp."""
    filled = []
    for row in rows:
        inside = row["dp"] * row["tp"] * row["pp"] * (row["cp"] or 1)
        dp = row["dp"] if inside == row["num_gpus"] else row["dp"] * (row["ep"] or 1)
        word = schedule_of(row["pipeline_schedule"] or profile.schedule) or "1f1b"
        mode = row["recompute"] or "none"
        sp = row["sequence_parallel"]
        if sp is None:  # the framework's default, where the sequence can be split so
            sp = profile.is_sequence_parallel and row["seq_len"] % (row["tp"] * (row["cp"] or 1)) == 0
        ep, chunks = row["ep"] or 1, 2 if word in V_SHAPED else usual_chunks(row)
        word = "interleaved" if word == "1f1b" and chunks > 1 else word
        etp = row["etp"] or (row["tp"] if (dp * (row["cp"] or 1)) % ep == 0 else 1)
        filled.append(
            [
                dp,
                row["tp"],
                row["pp"],
                row["cp"] or 1,
                ep,
                etp,
                row["vpp"] or chunks,
                zero_stage_of(row),
                row["mbs"],
                row["gas"],
                RECOMPUTE_MODES.index(mode),
                float(sp and row["tp"] > 1),
                SCHEDULES.index(word),
                row["dp_replicate"] or 1,
            ]
        )
    table = np.array(filled, np.float64).reshape(-1, len(fields(Layouts))).T
    return Layouts(*table)
