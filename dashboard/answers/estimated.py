"""Questions to the estimator, which need no run of what they ask about."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import polars as pl
from pydantic import Field

from sweepscope.dashboard.answers.answer import Answer, table
from sweepscope.dashboard.answers.arguments import Limit
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.view_models.explorer import Setup, found_for
from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.estimate.advice.recipe import search_summary
from sweepscope.pipeline.estimate.calibration.own_runs import with_own
from sweepscope.pipeline.estimate.rows.asking import OK
from sweepscope.pipeline.estimate.rows.estimate_rows import PREDICTED, estimate_frame
from sweepscope.pipeline.reference.clusters import find_cluster, known_cards
from sweepscope.pipeline.reference.models import find_model, known_models, shape_of

Model = Annotated[str, Field(description="a known model, for example Llama 3 70B; an unknown one lists those near it")]
Accelerator = Annotated[str, Field(description="for example H100-SXM-80GB")]
Nodes = Annotated[int, Field(ge=1, description="number of nodes")]
SeqLen = Annotated[int, Field(ge=1, description="tokens of one sequence")]
Degree = Annotated[int, Field(ge=1)]
Framework = Annotated[
    str | None, Field(description="nanotron, megatron, torchtitan ...: its fitted constants, where there are some")
]

_LAYOUTS = names(
    "dp tp pp cp ep vpp gas mbs zero_stage recompute pipeline_schedule est_mfu est_tokens_per_s_per_gpu "
    "est_step_time_s est_step_time_lo_s est_step_time_hi_s est_mem_reserved_bytes est_penalty expected_step_time_s"
)


class Estimated:
    """Questions to the estimator, with the constants that were fitted in one home over the bundled ones."""

    def __init__(self, home: Path) -> None:
        self._choose = with_own(home / "calibration")

    def estimate(
        self,
        *,
        model: Model,
        accelerator: Accelerator,
        nodes: Nodes,
        seq_len: SeqLen,
        dp: Degree = 1,
        tp: Degree = 1,
        pp: Degree = 1,
        cp: Degree = 1,
        ep: Degree = 1,
        mbs: Annotated[int, Field(ge=1, description="sequences of a micro-batch")] = 1,
        gas: Annotated[int, Field(ge=1, description="micro-batches per step: gradient accumulation")] = 1,
        zero_stage: Annotated[int, Field(ge=0, le=3)] = 0,
        recompute: Literal["none", "selective", "full"] = "none",
        framework: Framework = None,
    ) -> Answer:
        """Predicted memory, step time and MFU of one layout (dp x tp x pp x cp accelerators) from first principles,
        with an interval and what was assumed."""
        layout = {"dp": dp, "tp": tp, "pp": pp, "cp": cp, "ep": ep, "mbs": mbs, "gas": gas, "zero_stage": zero_stage}
        asked = {"model": model, "accelerator": accelerator, "num_nodes": nodes, "seq_len": seq_len, **layout}
        frame = pl.DataFrame([{**asked, "num_gpus": dp * tp * pp * cp, "recompute": recompute, "framework": framework}])
        predicted = estimate_frame(frame, self._choose, assumes=True).select(PREDICTED.names())
        row = predicted.row(0, named=True)
        if row["est_status"] != OK:
            raise UsageError(f"This cannot be estimated: {row['est_status']}.")
        fits = "" if row["est_fits"] is None else f", which {'fits' if row['est_fits'] else 'does not fit'}"
        return Answer(
            answer=f"A step takes {row['est_step_time_s']:.3g} s at an MFU of {row['est_mfu']:.1%}, and reserves "
            f"{numbers.gib(row['est_mem_reserved_bytes'])} per accelerator{fits}.",
            tables=[table("Prediction", predicted, limit=1)],
            notes=[row["est_assumptions"]] if row["est_assumptions"] else [],
            origins=["estimated"],
        )

    def search(
        self,
        *,
        model: Model,
        accelerator: Accelerator,
        nodes: Nodes,
        seq_len: SeqLen,
        gbs_tokens: Annotated[int, Field(ge=1, description="tokens of one step, a multiple of seq_len")],
        framework: Framework = None,
        limit: Limit = 10,
    ) -> Answer:
        """The fastest layouts that fit, out of all of a model on a cluster, with predicted memory and step time, and
        why the others are no answer."""
        known = find_model(model)
        if known is None:
            raise _unknown("model", model, known_models())
        if find_cluster(accelerator) is None:
            raise _unknown("accelerator", accelerator, known_cards())
        if gbs_tokens % seq_len:
            raise UsageError(f"gbs_tokens {gbs_tokens} is no multiple of seq_len {seq_len}.")
        setup = Setup(model, shape_of(known), accelerator, nodes, seq_len, gbs_tokens, framework)
        request = setup.request(self._choose)
        found = found_for(request, setup.by)
        pruned = [f"{count:,} layouts left out: {reason}" for reason, count in found.pruned.items()]
        if not found.fitting:
            return Answer(answer="No layout fits.", notes=pruned, origins=["estimated"])
        return Answer(
            answer=" ".join(search_summary(request, found)),
            tables=[table("Layouts that fit, the fastest first", found.layouts, _LAYOUTS, limit=limit)],
            notes=[f"ranked by {found.ranked_by}; constants {request.asked.profile.name}", *pruned],
            origins=["estimated"],
        )


def _unknown(label: str, value: str, known: list[str]) -> UsageError:
    return UsageError(f"Unknown {label}: {value}. Known: {', '.join(known)}.")
