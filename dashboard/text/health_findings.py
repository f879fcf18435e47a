"""What ails a run beside how it ended, in a sentence or two for its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sweepscope.dashboard.format.numbers import number
from sweepscope.schemas.vocab import AILMENTS

_MOST = 2
_QUIET = ("gpu_shared", "not_ending", "skipped_step")
"""They stand among the evidence lines; alone they cost a run little."""


def ailments(run: Mapping[str, Any], evidence: Sequence[Mapping[str, Any]]) -> str:
    """At most two sentences, the costliest ailments first, with a blank before each; empty for a sound run."""
    by_kind: dict[str, list[Mapping[str, Any]]] = {}
    for row in evidence:
        by_kind.setdefault(row["kind"], []).append(row)
    told = [kind for kind in AILMENTS if kind in by_kind and kind not in _QUIET]
    if run["status"] == "hang" and run["status_confidence"] == "low":
        told = [kind for kind in told if kind != "silence"]  # the status says so already
    said = [sentence for kind in told if (sentence := _sentence(kind, by_kind[kind], run))]
    return "".join(f" {sentence}" for sentence in said[:_MOST])


def _sentence(kind: str, rows: Sequence[Mapping[str, Any]], run: Mapping[str, Any]) -> str:
    if kind == "nan_loss":  # the line may be an exception of the trainer's
        step = run["diverged_at_step"]
        return f"The loss or its gradient is NaN or infinite from step {number(step)} on." if step is not None else ""
    if kind == "gpu_busy":
        return "A GPU was held by another process."
    text = str(rows[0]["text"]).strip().rstrip(".")
    more = f", and {number(len(rows) - 1)} more like it" if len(rows) > 1 else ""
    return f"{text[:1].upper()}{text[1:]}{more}."
