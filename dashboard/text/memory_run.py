"""Sentences on the memory of one run, or of one artefact: its verdict, sources and levels."""

from __future__ import annotations

from collections.abc import Sequence

from sweepscope.dashboard.format.numbers import capital, count, memory, number, percent
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.view_models.memory import VERDICT, Bar
from sweepscope.schemas.vocab.memory import MEM_FIT, PEAK_SOURCE, VERDICT_BASIS

_NEAR = ("fits", "fragmented")
"""Verdicts of runs that are not known to have run out of memory."""
_WITHOUT_REASON = ("failed", "truncated", "unknown")
"""Statuses of runs that ended without a known reason."""


def snapshot_name(row: Row) -> str:
    """File with its directory, rank and device of an artefact."""
    parts = ["/".join(row["source_path"].split("/")[-2:])]
    if row["rank"] is not None:
        parts.append(f"rank {row['rank']}")
    if row["device"] is not None and row["device"] != 0:
        parts.append("CPU" if row["device"] == -1 else f"device {row['device']}")
    return " · ".join(parts)


def snapshot_facts(row: Row) -> str:
    """Peak and failures of an artefact, short."""
    bound = "at least " if row["peak_is_lower_bound"] else ""
    failed = f"▲ {count(row['oom_events'], 'failed allocation')} · " if row["oom_events"] else ""
    return f"{failed}{bound}{memory(row['peak_bytes'])}" if row["peak_bytes"] is not None else f"{failed}no peak"


def need(row: Row) -> str | None:
    """What a run needs, by symbol and word; None where it has no verdict."""
    if row["mem_verdict"] in _NEAR and row["status"] in _WITHOUT_REASON:
        return "? near the limit when it ended"
    return VERDICT[row["mem_verdict"]].text if row["mem_verdict"] else None


def run_answer(fit: Row | None, row: Row) -> str:
    """What the picked run needs, or how much room it had."""
    if fit is not None:
        return verdict_text(fit, row["status"])
    share = row["card_share"]
    return f"**{percent(share, 0)} of the card** at its peak." if share is not None else "The card is not known."


def verdict_text(fit: Row, status: str) -> str:
    """The verdict and the bytes that show it.

    A run that ended without a reason is not known to fit; only how full the card was is known.
    """
    if fit["mem_verdict"] in _NEAR and status in _WITHOUT_REASON:
        evidence = sentence(fit["verdict_evidence"])
        return f"**Near the limit when it ended.** {evidence} Memory may be the cause; the log has no reason."
    return f"**{capital(MEM_FIT[fit['mem_verdict']])}.** {sentence(fit['verdict_evidence'])}{_of_lines(fit)}"


def _of_lines(fit: Row) -> str:
    """Which of several out-of-memory lines has the request; empty where there is one, or another source."""
    if fit["mem_verdict"] in (*_NEAR, "others") or fit["verdict_basis"] != "oom_report" or fit["oom_lines"] < 2:
        return ""
    line, lines = number(fit["oom_line_no"]), number(fit["oom_lines"])
    return f" The request is that of line {line}, one of {lines} out-of-memory lines."


def sentence(text: str | None) -> str:
    """Text with a capital letter and a full stop.

    >>> sentence("held 3 of 4")
    'Held 3 of 4.'
    """
    return f"{capital(text)}." if text else ""


def run_meta(fit: Row | None, row: Row, unknown: Sequence[str]) -> str:
    """Sources of the levels, the basis of the verdict, and what is unknown."""
    parts = []
    if row["peak_source"]:
        parts.append(f"Peaks from {PEAK_SOURCE[row['peak_source']].split(':')[0]}")
    if fit is not None and fit["verdict_basis"]:
        parts.append(f"verdict from {VERDICT_BASIS[fit['verdict_basis']].split(':')[0]}")
    if unknown:
        parts.append(f"unknown: {', '.join(unknown)}")
    return " · ".join(parts)


def waterfall_alt(parts: Sequence[Bar]) -> str:
    """The waterfall in one sentence."""
    levels = [f"{part.name.lower()} {memory(part.size)}" for part in parts if part.kind == "level"]
    return f"Memory from the estimate to the card: {', '.join(levels)}." if levels else "No level is known."
