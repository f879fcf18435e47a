"""Predictions for the rows of any frame; a row that cannot be estimated has the reason in est_status.

Rows that share model, cluster, sequence length and constants are estimated together, as arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np
import polars as pl

from sweepscope.pipeline.estimate.learned.expected import EXPECTED, expect
from sweepscope.pipeline.estimate.physics.estimate import Estimate, estimate
from sweepscope.pipeline.estimate.physics.feasible import REASONS, reason_codes
from sweepscope.pipeline.estimate.physics.memory import Memory
from sweepscope.pipeline.estimate.physics.profile import Profile, choose_profile
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.physics.step_time import StepTime
from sweepscope.pipeline.estimate.rows.model_shape import SHAPE, complete_shape
from sweepscope.pipeline.estimate.rows.read_rows import read_rows
from sweepscope.pipeline.estimate.rows.refusals import is_hybrid, missing, no_cluster, not_understood
from sweepscope.pipeline.estimate.rows.row_layouts import layouts_of
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


def same_question(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Rows of `read_rows` that share everything but the layout, with their index in `row`."""
    for _, group in rows.with_row_index("row").group_by(*_KEY, maintain_order=True):
        yield group


def ask(row: dict[str, Any], choose: ChooseProfile = choose_profile) -> tuple[Question | None, str, list[str]]:
    """(question, "", assumptions) of a row's model, cluster and constants, or (None, reason, [])."""
    if not row["accelerator"]:
        return None, "accelerator not stated", []
    if not row["seq_len"]:
        return None, "sequence length not stated", []
    cluster = find_cluster(row["accelerator"], gpus_per_node=row["gpus_per_node"])
    if cluster is None:
        return None, no_cluster(row["accelerator"]), []
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


def reasons_against(asked: Question, rows: list[dict[str, Any]]) -> list[str]:
    """Why each row cannot be estimated or launched; an empty text where it can."""
    reasons = [missing(row) for row in rows]
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
    if is_hybrid(row) and not (row["dp_shard"] or row["stated_replicas"]):
        assumptions.append("states sharded within each node")
    return assumptions


def _group(group: pl.DataFrame, choose: ChooseProfile) -> list[dict[str, Any]]:
    """Predictions of rows that ask the same question."""
    rows = group.to_dicts()
    asked, reason, assumed = ask(rows[0], choose)
    if asked is None:
        return [{"est_status": not_understood(row) or reason} for row in rows]
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
