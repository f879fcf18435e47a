"""Predictions for the rows of any frame; a row that cannot be estimated has the reason in est_status.

Rows that share model, cluster, sequence length and constants are estimated together, as arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import polars as pl

from sweepscope.pipeline.estimate.learned.expected import EXPECTED, expect
from sweepscope.pipeline.estimate.learned.transfer import OF_OTHERS, with_transfers
from sweepscope.pipeline.estimate.physics.estimate import Estimate, estimate
from sweepscope.pipeline.estimate.physics.feasible import REASONS, REMEDIES, reason_codes
from sweepscope.pipeline.estimate.physics.layouts import Layouts
from sweepscope.pipeline.estimate.physics.memory import Memory
from sweepscope.pipeline.estimate.physics.profile import CALIBRATION, choose_profile
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.physics.ratio_columns import RATIOS, ratio_columns
from sweepscope.pipeline.estimate.physics.step_time import StepTime
from sweepscope.pipeline.estimate.rows.asking import OK, ChooseProfile, ask
from sweepscope.pipeline.estimate.rows.assumptions import with_assumed
from sweepscope.pipeline.estimate.rows.distinct_rows import distinct_rows
from sweepscope.pipeline.estimate.rows.model_shape import SHAPE
from sweepscope.pipeline.estimate.rows.needed_recompute import with_needed_recompute
from sweepscope.pipeline.estimate.rows.needed_states import with_needed_states
from sweepscope.pipeline.estimate.rows.open_ends import OPEN_ENDS, open_ends, with_open_ends
from sweepscope.pipeline.estimate.rows.open_layouts import with_open_layouts
from sweepscope.pipeline.estimate.rows.read_rows import SHEET, is_partial, read_rows
from sweepscope.pipeline.estimate.rows.refusals import is_hybrid, missing, not_understood
from sweepscope.pipeline.estimate.rows.row_layouts import layouts_of, usual_chunks, zero_stage_of
from sweepscope.pipeline.estimate.rows.stated_facts import FACTS
from sweepscope.pipeline.estimate.rows.strata import strata_of
from sweepscope.pipeline.reference.clusters import Cluster
from sweepscope.schemas.tables.estimates import ESTIMATES

_KEY = (
    *("model", *SHAPE, "stated_params", "seq_len", "accelerator", "precision", "framework", "source_id", "attention"),
    "torch_version",
    *("gpus_per_node", "gpus_per_domain", "network_gbit_per_s", "nics_per_node", "nic_gbit_per_s", *SHEET, *FACTS),
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
PREDICTED = pl.Schema([*_PHYSICS.items(), *((name, pl.Float64()) for name in RATIOS), *EXPECTED.items()])
"""Columns that `estimate_frame` appends. Memory parts but fragmentation add up to est_mem_bytes, times to
est_step_time_s; est_mem_reserved_bytes has the fragmentation too. RATIOS follow from both, EXPECTED has what comparable
runs add."""


def estimate_frame(
    frame: pl.DataFrame, choose: ChooseProfile = choose_profile, *, assumes: bool = False
) -> pl.DataFrame:
    """`frame` with the columns of PREDICTED. Columns of that name that it has already are replaced.

    `choose` finds the constants for a card generation and a framework. Where comparable runs of the framework are too
    few for an interval, it is that of other frameworks' runs. `assumes`: rows that leave shape, batch or sequence
    length open are estimated with the commonest choice, which est_assumptions names, and completed ones with the
    recomputation and states that they needed (`needed_recompute`, `needed_states`); without, the former are refused.
    """
    kept = frame.drop([name for name in PREDICTED if name in frame.columns])
    rows = read_rows(frame)
    if assumes:
        rows = with_open_layouts(with_assumed(rows), choose)
        rows = with_needed_states(frame, rows, lambda some: _predict(some, choose))
        physics = with_needed_recompute(frame, rows, lambda some: _predict(some, choose))
    else:
        physics = _predict(rows, choose)
    predicted = with_open_ends(with_transfers(physics, strata_of(rows)))
    return pl.concat([kept, predicted], how="horizontal")


def estimate_runs(runs: pl.DataFrame, choose: ChooseProfile = choose_profile) -> pl.DataFrame:
    """Rows of `estimates`, one per row of `runs`, in order; est_status has the reason where there is no estimate."""
    return ESTIMATES.conform(estimate_frame(runs, choose))


def predict(rows: pl.DataFrame, choose: ChooseProfile = choose_profile) -> pl.DataFrame:
    """PREDICTED of rows that `read_rows` has read, in their order."""
    return _predict(rows, choose).select(PREDICTED.names())


def _predict(rows: pl.DataFrame, choose: ChooseProfile) -> pl.DataFrame:
    """PREDICTED, OPEN_ENDS and OF_OTHERS."""
    distinct, places = distinct_rows(rows)
    out: list[dict[str, Any]] = [{"est_status": "not estimated"} for _ in range(distinct.height)]
    for group in same_question(distinct):
        for index, predicted in zip(group["row"], _group(group, choose), strict=True):
            out[index] = predicted
    schema = pl.Schema([*PREDICTED.items(), *OPEN_ENDS.items(), (OF_OTHERS, pl.Boolean())])
    return pl.DataFrame(out, schema=schema, orient="row")[places]


def same_question(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Rows of `read_rows` that share everything but the layout, with their index in `row`."""
    for _, group in rows.with_row_index("row").group_by(*_KEY, maintain_order=True):
        yield group


def reasons_against(asked: Question, rows: list[dict[str, Any]]) -> list[str]:
    """Why each row cannot be estimated or launched; an empty text where it can."""
    reasons = [missing(row) for row in rows]
    whole = [index for index, reason in enumerate(reasons) if not reason]
    at = layouts_of([rows[index] for index in whole], asked.profile)
    # A row that ran with uneven chunks did run: only what no framework can launch is refused.
    codes = reason_codes(asked.shape, at, asked.seq_len, even_stages=False, checks_interleaving=False)
    for index, code in zip(whole, codes, strict=True):
        reasons[index] = f"cannot be launched: {REASONS[code]} ({REMEDIES[code]})" if code else ""
    return reasons


def _assumed_network(row: dict[str, Any], cluster: Cluster) -> list[str]:
    """What was taken of links and network beside what the row states, where its accelerators need it."""
    assumptions = []
    if row["gpus_per_domain"] is None and row["num_gpus"] > cluster.gpus_per_node < cluster.gpus_per_domain:
        assumptions.append(f"links join {cluster.gpus_per_domain} accelerators")
    is_stated = row["network_gbit_per_s"] or (row["nics_per_node"] and row["nic_gbit_per_s"])
    if row["num_gpus"] > cluster.gpus_per_domain and not is_stated:
        assumptions.append(f"a network of {8e-9 * cluster.network_bytes_per_s:g} Gb/s per accelerator")
    return assumptions


def _assumed_layout(row: dict[str, Any]) -> list[str]:
    assumptions = []
    if row["zero_stage"] is None and row["dp"] * (row["cp"] or 1) > 1:
        assumptions.append(f"ZeRO-{zero_stage_of(row)}")
    if row["stated_recompute"] is None:
        usual = f"{row['recompute']} recomputation, the trainer's default" if row["recompute"] else "no recomputation"
        assumptions.append(usual)
    elif is_partial(row["stated_recompute"]):
        assumptions.append("recomputation of some layers estimated as that of all")
    if (chunks := usual_chunks(row)) > 1:
        assumptions.append(f"{'two' if chunks == 2 else chunks} chunks on each stage")
    if row["sequence_parallel"] is None and row["tp"] > 1:
        assumptions.append("sequence parallelism as the framework's default")
    if is_hybrid(row) and not (row["dp_shard"] or row["stated_replicas"]):
        assumptions.append("states sharded within each node")
    return assumptions


def _assumed_exchanges(row: dict[str, Any], asked: Question) -> list[str]:
    """What is open of exchanges and states that the row's layout has; intervals reach to the other choices."""
    profile, assumptions = asked.profile, []
    if asked.shape.num_experts and (row["ep"] or 1) > 1:
        if profile.is_dispatch_open:
            assumptions.append("a copy of a token to each of its experts, or one to each node")
        if profile.is_experts_overlap_open:
            assumptions.append("exchanges of experts alone, or beside other micro-batches")
    if profile.is_send_open and (row["pp"] or 1) > 1 and (row["vpp"] or 1) == 1:
        assumptions.append("sends between stages alone, or beside compute")
    if profile.is_gather_open and row["tp"] > 1:
        assumptions.append("loss of a part of the vocabulary on each tensor rank, or of all of it")
    if profile.is_state_open:
        assumptions.append("gradients and moments in 32 bit, or all states in 16")
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
        results = _as_rows(asked, at, predicted, expect(asked, at, predicted) | open_ends(asked, at, predicted))
        for row, result in zip(usable, results, strict=True):
            filled = [row["assumed"]] if row.get("assumed") else []
            layout = [*_assumed_layout(row), *_assumed_exchanges(row, asked)]
            notes = [*assumed, *filled, *layout, *_assumed_network(row, asked.cluster)]
            result["est_assumptions"] = "; ".join(notes) or None
            result[OF_OTHERS] = asked.profile.folder == CALIBRATION
    found = iter(results)
    return [{"est_status": refusal} if refusal else next(found) for refusal in refusals]


def _as_rows(asked: Question, at: Layouts, predicted: Estimate, expected: dict[str, list[Any]]) -> list[dict[str, Any]]:
    worst, size = predicted.memory, at.shape[0]
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
    for name, values in ratio_columns(asked, at, predicted).items():
        lists[name] = [None if np.isnan(value) else value for value in values.tolist()]
    return [
        {"est_status": OK, "est_profile": asked.profile.name, **{name: values[i] for name, values in lists.items()}}
        for i in range(size)
    ]
