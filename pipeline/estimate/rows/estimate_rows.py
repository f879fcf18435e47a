"""Predictions for the rows of any frame; a row that cannot be estimated has the reason in est_status.

Rows that share model, cluster, sequence length and constants are estimated together, as arrays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np
import polars as pl

from sweepscope.pipeline.estimate.learned.expected import EXPECTED, expect
from sweepscope.pipeline.estimate.physics.estimate import Estimate, estimate
from sweepscope.pipeline.estimate.physics.feasible import REASONS, reason_codes
from sweepscope.pipeline.estimate.physics.layouts import RECOMPUTE_MODES, SCHEDULES, Layouts
from sweepscope.pipeline.estimate.physics.memory import Memory
from sweepscope.pipeline.estimate.physics.profile import Profile, choose_profile
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.physics.schedule import V_SHAPED
from sweepscope.pipeline.estimate.physics.step_time import StepTime
from sweepscope.pipeline.estimate.rows.model_shape import SHAPE, complete_shape
from sweepscope.pipeline.estimate.rows.read_rows import HYBRID, read_rows
from sweepscope.pipeline.reference.accelerators import EIGHT_BIT, SIXTEEN_BIT
from sweepscope.pipeline.reference.clusters import find_cluster
from sweepscope.pipeline.reference.vocabulary import framework_of
from sweepscope.schemas.tables.estimates import ESTIMATES

OK = "ok"
ChooseProfile = Callable[[str, str | None], Profile]
_KEY = (
    *("model", *SHAPE, "stated_params", "seq_len", "accelerator", "precision", "framework", "source_id"),
    *("flash_attention", "attention", "gpus_per_node"),
)

_PHYSICS = pl.Schema(
    {
        "est_status": pl.String,
        "est_assumptions": pl.String,
        "est_profile": pl.String,
        "est_mem_bytes": pl.Float64,
        "est_mem_reserved_bytes": pl.Float64,
        "est_fits": pl.Boolean,
        "est_step_time_s": pl.Float64,
        "est_tokens_per_s_per_gpu": pl.Float64,
        "est_mfu": pl.Float64,
        **{f"est_mem_{part.name}_bytes": pl.Float64 for part in fields(Memory)},
        "est_mem_fragmentation_bytes": pl.Float64,
        **{f"est_time_{part.name}_s": pl.Float64 for part in fields(StepTime)},
    }
)
PREDICTED = pl.Schema([*_PHYSICS.items(), *EXPECTED.items()])
"""Columns that `estimate_frame` appends. Memory parts but fragmentation add up to est_mem_bytes, times to
est_step_time_s; est_mem_reserved_bytes has the fragmentation too. EXPECTED has what comparable runs add."""


def estimate_frame(frame: pl.DataFrame, choose: ChooseProfile = choose_profile) -> pl.DataFrame:
    """`frame` with the columns of PREDICTED. Columns of that name that it has already are replaced.

    `choose` finds the constants for a card generation and a framework.
    """
    kept = frame.drop([name for name in PREDICTED if name in frame.columns])
    return pl.concat([kept, predict(read_rows(frame), choose)], how="horizontal")


def estimate_runs(runs: pl.DataFrame, choose: ChooseProfile = choose_profile) -> pl.DataFrame:
    """Rows of `estimates`, one per row of `runs`, in order; est_status has the reason where there is no estimate."""
    return ESTIMATES.conform(estimate_frame(runs, choose))


def predict(rows: pl.DataFrame, choose: ChooseProfile = choose_profile) -> pl.DataFrame:
    """PREDICTED of rows that `read_rows` has read, in their order."""
    out: list[dict[str, Any]] = [{"est_status": "not estimated"} for _ in range(rows.height)]
    for group in same_question(rows):
        for index, predicted in zip(group["row"], _group(group, choose), strict=True):
            out[index] = predicted
    return pl.DataFrame(out, schema=PREDICTED, orient="row")


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


def same_question(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Rows of `read_rows` that share everything but the layout, with their index in `row`."""
    for _, group in rows.with_row_index("row").group_by(*_KEY, maintain_order=True):
        yield group


def _no_cluster(accelerator: str) -> str:
    if re.search(r"(?i)\b(cpu|xeon|epyc)\b", accelerator):
        return f"{accelerator} is no accelerator: only GPUs and TPUs are modelled"
    return f"unknown accelerator: {accelerator} (add it to data/hardware/links.csv)"


def ask(row: dict[str, Any], choose: ChooseProfile = choose_profile) -> tuple[Question | None, str, list[str]]:
    """(question, "", assumptions) of a row's model, cluster and constants, or (None, reason, [])."""
    if not row["accelerator"]:
        return None, "accelerator not stated", []
    if not row["seq_len"]:
        return None, "sequence length not stated", []
    cluster = find_cluster(row["accelerator"], gpus_per_node=row["gpus_per_node"])
    if cluster is None:
        return None, _no_cluster(row["accelerator"]), []
    precision = row["precision"]
    if precision is not None and precision not in (*SIXTEEN_BIT, *EIGHT_BIT):
        return None, f"precision {precision} is not modelled (16-bit and FP8 are)", []
    shape, reason, assumed = complete_shape(row)
    if shape is None:
        return None, reason, []
    framework = row["framework"] or framework_of(row["source_id"] or "")
    profile = choose(cluster.generation, framework)
    flash = row["flash_attention"]
    if flash is not None:
        is_flash = flash.strip().casefold() not in ("false", "no", "none", "0", "torch", "megatron", "eager", "math")
        profile = replace(profile, is_flash=is_flash)
    asked = Question(shape, cluster, profile, row["seq_len"], is_fp8=precision in EIGHT_BIT)
    return asked, "", assumed


def _not_understood(row: dict[str, Any]) -> str:
    """The cells of a row that hold no such number as they should, or an empty text."""
    return f"not understood: {row['misread']}" if row["misread"] else ""


def _missing(row: dict[str, Any]) -> str:
    """Why a row has no layout, or an empty text."""
    if wrong := _not_understood(row):
        return wrong
    unknown = [name for name in ("num_gpus", "dp", "tp", "pp", "mbs", "gas") if not row[name]]
    if unknown:
        return f"layout incomplete: {', '.join(unknown)} not stated and not derivable"
    product = row["dp"] * row["tp"] * row["pp"] * (row["cp"] or 1)
    if product != row["num_gpus"]:
        outside = row["ep"] and product * row["ep"] == row["num_gpus"]
        if not outside:
            return f"layout needs {product} accelerators, the row has {row['num_gpus']}"
    if row["stated_recompute"] is not None and row["recompute"] is None:
        return f"recomputation not understood: {row['stated_recompute']}"
    if row["zero_stage"] is None and row["dp"] * (row["cp"] or 1) > 1:
        return "sharding of optimizer and parameters (ZeRO stage or FSDP) not stated"
    return _missing_group(row)


def _missing_group(row: dict[str, Any]) -> str:
    """Why the group that shares one copy of the sharded states is unknown, or an empty text."""
    if row["dp_replicate"] == 0:
        return "dp is no multiple of the ranks that share one copy of the sharded states"
    if row["dp_replicate"] is None and _is_hybrid(row):
        return "sharded within groups, but neither dp_replicate, dp_shard nor gpus_per_node gives their size"
    return ""


def _is_hybrid(row: dict[str, Any]) -> bool:
    """Whether the row names sharding within groups without their size."""
    sharding = row["stated_sharding"] or ""
    return bool(re.search(HYBRID, sharding)) and not re.search(r"\d", sharding)


def layouts_of(rows: list[dict[str, Any]], profile: Profile) -> Layouts:
    """Layouts of complete rows. An expert degree outside dp (dp x tp x pp x cp x ep = N) is folded into dp."""
    filled = []
    for row in rows:
        inside = row["dp"] * row["tp"] * row["pp"] * (row["cp"] or 1)
        dp = row["dp"] if inside == row["num_gpus"] else row["dp"] * (row["ep"] or 1)
        word = schedule_of(row["pipeline_schedule"] or profile.schedule) or "1f1b"
        mode = row["recompute"] or "none"
        sp = profile.is_sequence_parallel if row["sequence_parallel"] is None else row["sequence_parallel"]
        ep, chunks = row["ep"] or 1, 2 if word in V_SHAPED else 1
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
                row["zero_stage"] or 0,
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


def reasons_against(asked: Question, rows: list[dict[str, Any]]) -> list[str]:
    """Why each row cannot be estimated or launched; an empty text where it can."""
    reasons = [_missing(row) for row in rows]
    whole = [index for index, reason in enumerate(reasons) if not reason]
    at = layouts_of([rows[index] for index in whole], asked.profile)
    # A row that ran with uneven chunks did run: only what no framework can launch is refused.
    codes = reason_codes(asked.shape, at, asked.seq_len, even_stages=False, checks_interleaving=False)
    for index, code in zip(whole, codes, strict=True):
        reasons[index] = f"cannot be launched: {REASONS[code]}" if code else ""
    return reasons


def _assumed_layout(row: dict[str, Any]) -> list[str]:
    assumptions = []
    if row["stated_recompute"] is None:
        assumptions.append("no recomputation")
    if row["sequence_parallel"] is None and row["tp"] > 1:
        assumptions.append("sequence parallelism as the framework's default")
    if _is_hybrid(row) and not (row["dp_shard"] or row["stated_replicas"]):
        assumptions.append("states sharded within each node")
    return assumptions


def _group(group: pl.DataFrame, choose: ChooseProfile) -> list[dict[str, Any]]:
    """Predictions of rows that ask the same question."""
    rows = group.to_dicts()
    asked, reason, assumed = ask(rows[0], choose)
    if asked is None:
        return [{"est_status": _not_understood(row) or reason} for row in rows]
    refusals = reasons_against(asked, rows)
    usable = [row for row, refusal in zip(rows, refusals, strict=True) if not refusal]
    results: list[dict[str, Any]] = []
    if usable:
        at = layouts_of(usable, asked.profile)
        predicted = estimate(asked, at)
        results = _as_rows(asked, predicted, len(usable), expect(asked, at, predicted))
        for row, result in zip(usable, results, strict=True):
            result["est_assumptions"] = "; ".join([*assumed, *_assumed_layout(row)]) or None
    found = iter(results)
    return [{"est_status": refusal} if refusal else next(found) for refusal in refusals]


def _as_rows(asked: Question, predicted: Estimate, size: int, expected: dict[str, list[Any]]) -> list[dict[str, Any]]:
    worst = predicted.memory
    columns: dict[str, Any] = {
        "est_mem_bytes": predicted.mem_bytes,
        "est_mem_reserved_bytes": predicted.stages.reserved,
        "est_mem_fragmentation_bytes": predicted.stages.fragmentation,
        "est_fits": predicted.fits,
        "est_step_time_s": predicted.step_time_s,
        "est_tokens_per_s_per_gpu": predicted.tokens_per_s_per_gpu,
        "est_mfu": predicted.mfu,
        **{f"est_mem_{part.name}_bytes": getattr(worst, part.name) for part in fields(Memory)},
        **{f"est_time_{part.name}_s": getattr(predicted.time, part.name) for part in fields(StepTime)},
    }
    lists = {name: np.broadcast_to(values, (size,)).tolist() for name, values in columns.items()} | expected
    return [
        {"est_status": OK, "est_profile": asked.profile.name, **{name: values[i] for name, values in lists.items()}}
        for i in range(size)
    ]
