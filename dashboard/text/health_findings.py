"""Health findings of a run, besides its status, in a sentence or two for its answer."""

from __future__ import annotations

from collections.abc import Sequence

from sweepscope.dashboard.format.numbers import capital, number
from sweepscope.dashboard.queries.query import Row
from sweepscope.schemas.vocab import HEALTH_FINDINGS

_MOST = 2
_MINOR = ("gpu_shared", "not_ending", "skipped_step")
"""Listed among the evidence lines only; alone they cost a run little."""


def health_findings(run: Row, evidence: Sequence[Row]) -> str:
    """At most two sentences, the costliest findings first, each after a blank; empty for a healthy run."""
    by_kind: dict[str, list[Row]] = {}
    for row in evidence:
        by_kind.setdefault(row["kind"], []).append(row)
    kinds = [kind for kind in HEALTH_FINDINGS if kind in by_kind and kind not in _MINOR]
    if run["status"] == "hang" and run["status_confidence"] == "low":
        kinds = [kind for kind in kinds if kind != "silence"]  # the status was derived from it
    sentences = [sentence for kind in kinds if (sentence := _sentence(kind, by_kind[kind], run))]
    return "".join(f" {sentence}" for sentence in sentences[:_MOST])


def _sentence(kind: str, rows: Sequence[Row], run: Row) -> str:
    if kind == "nan_loss":  # the line may be an exception raised by the trainer
        step = run["diverged_at_step"]
        return f"The loss or its gradient is NaN or infinite from step {number(step)} on." if step is not None else ""
    if kind == "gpu_busy":
        return "Another process was using a GPU."
    text = str(rows[0]["text"]).strip().rstrip(".")
    more = f", and {number(len(rows) - 1)} more like it" if len(rows) > 1 else ""
    return f"{capital(text)}{more}."
